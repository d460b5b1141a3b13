/** `validator-genesis-registration`: the file that `svcd genesis --validator` reads. Needs only the wallet file. */
import { resolve } from 'node:path';
import { path } from '../../runtime/command-line/command-line.ts';
import type { Command } from '../../runtime/program.ts';
import { createFile, refuseTaken } from '../keys/new-file.ts';
import { unlock } from '../keys/password.ts';
import { genesisRegistration } from '../payments/genesis-registration.ts';
import { readAmount, readRewardAddress } from '../rpc/method.ts';
import { fileOptions, jsonOption, unaskedNode, walletFile } from './options.ts';
import { terminalPrompt } from './prompt.ts';
import { registrationOptions } from './validator-commands.ts';
import { walletCommand } from './wallet-command.ts';

/** Nothing in it is secret. */
const PUBLIC_MODE = 0o644;

export const genesisRegistrationCommand = (name: string): Command =>
  walletCommand(
    {
      name: `${name} validator-genesis-registration`,
      summary: 'writes the registration of a validator for the genesis of a new chain (svcd genesis)',
      options: {
        ...fileOptions,
        ...unaskedNode,
        ...jsonOption,
        ...registrationOptions,
        registrationFile: path({ help: 'the file to write; an existing one is never replaced', required: true }),
      },
      examples: [
        {
          line: `${name} validator-genesis-registration --registration-file a.json --amount 1000000 --overlay-endpoint-hex 01...`,
          says: 'for svcd genesis --validator a.json',
        },
      ],
    },
    async (values, _, terminal) => {
      const file = resolve(values.registrationFile);
      refuseTaken(file);
      const ask = terminalPrompt.interactive ? () => terminalPrompt.askHidden('Password: ') : undefined;
      const unlocked = await unlock(walletFile(values), values.passwordFile, ask);
      const { network } = unlocked;
      if (values.rewardAddress !== undefined) readRewardAddress(unlocked, values.rewardAddress, 'reward_address');
      const wish = {
        amount: readAmount(values.amount, 'amount'),
        commissionBps: values.commissionBps,
        endpointHex: values.overlayEndpointHex,
        consensusKeyIndex: values.consensusKeyIndex,
        rewardAddress: values.rewardAddress,
      };
      const { text, validator, owner, rewardAddress } = await genesisRegistration(unlocked, wish);
      await createFile(file, text, PUBLIC_MODE);
      const fields = {
        registration_file: file,
        validator,
        network,
        owner_address: owner,
        reward_address: rewardAddress,
        consensus_key_index: wish.consensusKeyIndex,
      };
      const lines = [
        `validator          ${validator}\n`,
        `owner              ${owner}\nrewards to         ${rewardAddress}\n`,
        `registration file  ${file} (written; nothing in it is secret)\n`,
        `send it to the maker of the genesis: svcd genesis --network ${network} --validator FILE\n`,
      ];
      terminal.out(values.json ? `${JSON.stringify(fields)}\n` : lines.join(''));
      return 0;
    },
  );
