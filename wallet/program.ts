/** The commands of `svc-wallet`. */

import { steadyMillis } from '../runtime/clock/clock.ts';
import { flag, integer, path, text, UsageError } from '../runtime/command-line/command-line.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { commandTable } from '../runtime/program.ts';
import { chatCommands } from './command/chat-commands.ts';
import {
  callMethod,
  makeAddress,
  proveAddress,
  send,
  showAddresses,
  showBalance,
  showHistory,
  showStatus,
} from './command/commands.ts';
import { runChangePassword, runInit, runRestore } from './command/creation.ts';
import { runDaemon } from './command/daemon.ts';
import { walletDoctor } from './command/doctor.ts';
import { genesisRegistrationCommand } from './command/genesis-registration-command.ts';
import { keyExportCommands } from './command/key-export-commands.ts';
import { multisigCommands } from './command/multisig-commands.ts';
import { creationOptions, daemonOptions, fileOptions, jsonOption, sessionOptions } from './command/options.ts';
import { terminalPrompt } from './command/prompt.ts';
import { stakingCommands } from './command/staking-commands.ts';
import { validatorChangeCommands } from './command/validator-change-commands.ts';
import { validatorCommands } from './command/validator-commands.ts';
import { walletCommand, yes } from './command/wallet-command.ts';
import { faucetCommand } from './faucet/faucet-command.ts';

const NAME = 'svc-wallet';

const commands = [
  walletCommand(
    {
      name: `${NAME} init`,
      summary: 'creates a wallet and shows its 24 words once',
      options: creationOptions,
      examples: [
        { line: `${NAME} init --generate-password`, says: 'for a daemon: the password is kept beside the wallet' },
      ],
    },
    (values, _, terminal) => runInit(values, terminal, terminalPrompt),
  ),
  walletCommand(
    {
      name: `${NAME} restore`,
      summary: 'makes a wallet from its 24 words, typed or from standard input',
      options: { ...creationOptions, wordsFile: path({ help: 'a file with the words' }) },
      examples: [{ line: `${NAME} restore --network mainnet`, says: 'asks for the words and for a new password' }],
    },
    (values, _, terminal) => runRestore(values, terminal, terminalPrompt),
  ),
  walletCommand(
    {
      name: `${NAME} change-password`,
      summary: 'encrypts the wallet file with another password',
      options: { ...fileOptions, generatePassword: creationOptions.generatePassword, ...jsonOption },
      examples: [{ line: `${NAME} change-password`, says: 'asks for the old and the new one' }],
    },
    (values, _, terminal) => runChangePassword(values, terminal, terminalPrompt),
  ),
  walletCommand(
    {
      name: `${NAME} daemon`,
      summary: 'runs the wallet for other programs: JSON-RPC and events',
      options: daemonOptions,
      examples: [{ line: `${NAME} daemon --confirmations 6`, says: 'with the event `confirmations` after six cuts' }],
    },
    (values, _, terminal) => runDaemon(values, terminal, terminalPrompt),
  ),
  walletCommand(
    { name: `${NAME} status`, summary: 'state of the wallet and its node', options: sessionOptions },
    (values, _, terminal) => showStatus({ values, terminal, prompt: terminalPrompt }),
  ),
  walletCommand(
    { name: `${NAME} balance`, summary: 'what the wallet holds', options: sessionOptions },
    (values, _, terminal) => showBalance({ values, terminal, prompt: terminalPrompt }),
  ),
  walletCommand(
    { name: `${NAME} addresses`, summary: 'addresses that were handed out', options: sessionOptions },
    (values, _, terminal) => showAddresses({ values, terminal, prompt: terminalPrompt }),
  ),
  walletCommand(
    {
      name: `${NAME} new-address`,
      summary: 'hands out a fresh address',
      options: { ...sessionOptions, label: text({ help: 'a name for it', default: '' }) },
      examples: [{ line: `${NAME} new-address --label 'invoice 17'`, says: 'one address for each payer' }],
    },
    (values, _, terminal) => makeAddress({ values, terminal, prompt: terminalPrompt }, values.label),
  ),
  walletCommand(
    {
      name: `${NAME} send`,
      summary: 'pays an amount to an address; asks first',
      options: {
        ...sessionOptions,
        yes,
        requestId: text({ help: 'your own id for this payment: the same command with the same id never pays twice' }),
        compoundFirst: flag({ help: 'merge outputs first when the payment needs more than 8' }),
        subtractFee: flag({ help: 'take the fee out of the amount' }),
        payload: text({ help: 'text for the recipient, public on the chain' }),
      },
      operands: [
        { name: 'ADDRESS', help: 'who is paid' },
        { name: 'AMOUNT', help: 'in coins, such as 1.25' },
      ],
      examples: [
        { line: `${NAME} send dsvc1... 1.25`, says: 'asks before it sends' },
        {
          line: `${NAME} send dsvc1... 1.25 --yes --json --request-id invoice-17`,
          says: 'from a script; the same line again pays nothing and shows what became of it',
        },
      ],
    },
    (values, [to = '', amount = ''], terminal) => {
      const terms = {
        ...(values.compoundFirst ? { compound_first: true } : {}),
        ...(values.subtractFee ? { subtract_fee: true } : {}),
        ...(values.payload === undefined ? {} : { payload_text: values.payload }),
      };
      const wish = { to, amount, yes: values.yes, requestId: values.requestId, terms };
      return send({ values, terminal, prompt: terminalPrompt }, wish);
    },
  ),
  walletCommand(
    {
      name: `${NAME} history`,
      summary: 'incoming and outgoing amounts, newest first',
      options: { ...sessionOptions, limit: integer({ help: 'entries to show', min: 1, max: 1_000_000, default: 50 }) },
    },
    (values, _, terminal) => showHistory({ values, terminal, prompt: terminalPrompt }, values.limit),
  ),
  ...stakingCommands(NAME),
  ...validatorCommands(NAME),
  ...validatorChangeCommands(NAME),
  ...keyExportCommands(NAME),
  genesisRegistrationCommand(NAME),
  faucetCommand(NAME),
  doctorCommand(NAME, daemonOptions, (values) => walletDoctor(values, steadyMillis)),
  multisigCommands(NAME),
  chatCommands(NAME),
  walletCommand(
    {
      name: `${NAME} prove-address`,
      summary: 'answers an ownership request from a file or standard input',
      options: { ...sessionOptions, yes: flag({ help: 'sign without asking', short: 'y' }) },
      operands: [{ name: 'FILE', help: 'the request as JSON (default: standard input, with --yes)', optional: true }],
      examples: [
        {
          line: `${NAME} prove-address request.json > proof.json`,
          says: 'shows address and purpose on standard error, and asks',
        },
      ],
    },
    (values, [file], terminal) => proveAddress({ values, terminal, prompt: terminalPrompt }, file, values.yes),
  ),
  walletCommand(
    {
      name: `${NAME} call`,
      summary: 'any method of the daemon, with its parameters as JSON',
      options: { ...sessionOptions, yes },
      operands: [
        { name: 'METHOD', help: 'such as received' },
        { name: 'PARAMS', help: 'such as \'{"since_height":0}\'', optional: true },
      ],
      examples: [
        { line: `${NAME} call received '{"since_height":0}'`, says: 'the methods are listed in docs/wallet.md' },
      ],
    },
    (values, [method = '', params = '{}'], terminal) => {
      if (method === '') throw new UsageError('usage_operand_missing', 'METHOD is missing', 'see --help');
      return callMethod({ values, terminal, prompt: terminalPrompt }, method, params, values.yes);
    },
  ),
];

export const walletProgram = commandTable(
  NAME,
  'Wallet: keys, payments, and the daemon that pools and exchanges pay through.\nExit codes: 0 done, 1 refused, failed or answered with no, 2 wrong usage (docs/programs.md).',
  commands,
);
