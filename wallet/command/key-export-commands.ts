/**
 * `validator-key-export` and `validator-heartbeat-fee-key-export` (specification: Operator commands). They need only
 * the wallet file: neither a node nor the daemon, which may keep running and never exports a key.
 */
import { integer, path, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import type { Command, Terminal } from '../../runtime/program.ts';
import { CONSENSUS_KEY_INDEXES } from '../keys/derivation.ts';
import { unlock } from '../keys/password.ts';
import { type Export, type Exported, exportValidatorKey } from '../keys/validator-key-export.ts';
import { fileOptions, jsonOption, unaskedNode, walletFile } from './options.ts';
import { terminalPrompt } from './prompt.ts';
import { walletCommand } from './wallet-command.ts';

const { first, last } = CONSENSUS_KEY_INDEXES;
const keyIndex = (help: string) => integer({ help, min: first, max: last, default: last });

const common = { ...fileOptions, ...unaskedNode, ...jsonOption } as const;

async function write(values: ValuesOf<typeof common>, wanted: Export): Promise<Exported> {
  const ask = terminalPrompt.interactive ? () => terminalPrompt.askHidden('Password: ') : undefined;
  return await exportValidatorKey(await unlock(walletFile(values), values.passwordFile, ask), wanted);
}

const line = (name: string, value: string): string => `${name.padEnd(16)}${value}\n`;

/** What was written and where, for people. */
function textOf({ keyFile, passwordFile, madePassword }: Exported, key: string, config: object): string {
  const password = madePassword
    ? `${passwordFile} (written: a random password, mode 600)`
    : `${passwordFile} (as it was)`;
  return [
    key,
    line('key file', `${keyFile} (written, mode 600)`),
    line('password file', password),
    `in node.json: "validator": ${JSON.stringify(config)}\n`,
  ].join('');
}

function told(terminal: Terminal, json: boolean, fields: object, text: string, warning: string): number {
  terminal.out(json ? `${JSON.stringify(fields)}\n` : text);
  if (!json) terminal.err(warning);
  return 0;
}

export const keyExportCommands = (name: string): Command[] => [
  walletCommand(
    {
      name: `${name} validator-key-export`,
      summary: "writes the encrypted consensus key of a validator's node",
      options: {
        ...common,
        validatorKeyFile: path({ help: 'the file to write; an existing one is never replaced', required: true }),
        validatorKeyPasswordFile: path({
          help: 'its password: the first line is used; a missing file is made with a random password',
          required: true,
        }),
        consensusKeyIndex: keyIndex('which key: the one that was or will be registered'),
      },
      examples: [
        {
          line: `${name} validator-key-export --validator-key-file consensus.json --validator-key-password-file consensus.password`,
          says: 'two files for one machine',
        },
      ],
    },
    async (values, _, terminal) => {
      const { validatorKeyFile: keyFile, validatorKeyPasswordFile: passwordFile, consensusKeyIndex: index } = values;
      const made = await write(values, { purpose: 'consensus', index, keyFile, passwordFile });
      const config = { consensus_key_file: made.keyFile, password_file: made.passwordFile };
      const fields = {
        validator_key_file: made.keyFile,
        validator_key_password_file: made.passwordFile,
        password_written: made.madePassword,
        consensus_key_index: index,
        consensus_key_address: made.address,
        network: made.network,
      };
      const key = line('consensus key', `${index} on ${made.network}`) + line('its address', made.address);
      const warning = 'One machine signs with it: where two do, the whole self-bond is lost.\n';
      return told(terminal, values.json, fields, textOf(made, key, config), warning);
    },
  ),
  walletCommand(
    {
      name: `${name} validator-heartbeat-fee-key-export`,
      summary: 'writes the encrypted key that pays for heartbeats, and shows the address to send coins to',
      options: {
        ...common,
        heartbeatFeeKeyFile: path({ help: 'the file to write; an existing one is never replaced', required: true }),
        heartbeatFeeKeyPasswordFile: path({
          help: 'its password: the first line is used; a missing file is made with a random password',
          required: true,
        }),
        heartbeatFeeKeyIndex: keyIndex('which key: each validator of this wallet needs one of its own'),
      },
      examples: [
        {
          line: `${name} validator-heartbeat-fee-key-export --heartbeat-fee-key-file fee.json --heartbeat-fee-key-password-file fee.password`,
          says: 'two files for one machine',
        },
      ],
    },
    async (values, _, terminal) => {
      const { heartbeatFeeKeyFile: keyFile, heartbeatFeeKeyPasswordFile: passwordFile } = values;
      const index = values.heartbeatFeeKeyIndex;
      const made = await write(values, { purpose: 'heartbeat-fee', index, keyFile, passwordFile });
      const config = { heartbeat: { fee_key_file: made.keyFile, fee_key_password_file: made.passwordFile } };
      const fields = {
        heartbeat_fee_address: made.address,
        heartbeat_fee_key_file: made.keyFile,
        heartbeat_fee_key_password_file: made.passwordFile,
        password_written: made.madePassword,
        heartbeat_fee_key_index: index,
        network: made.network,
      };
      const key = line('fee key', `${index} on ${made.network}`) + line('heartbeat_fee_address', ` ${made.address}`);
      const warning = 'Send a few coins to that address: this wallet does not spend them, the node does.\n';
      return told(terminal, values.json, fields, textOf(made, key, config), warning);
    },
  ),
];
