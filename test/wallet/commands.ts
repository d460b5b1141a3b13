/** Commands of `svc-wallet` inside the test's process: the same words and the same output, without a start for each. */
import type { Command } from '../../runtime/program.ts';
import { genesisRegistrationCommand } from '../../wallet/command/genesis-registration-command.ts';
import { keyExportCommands } from '../../wallet/command/key-export-commands.ts';
import { stakingCommands } from '../../wallet/command/staking-commands.ts';
import { validatorChangeCommands } from '../../wallet/command/validator-change-commands.ts';
import { validatorCommands } from '../../wallet/command/validator-commands.ts';

const NAME = 'svc-wallet';
const COMMANDS: ReadonlyMap<string, Command> = new Map(
  [
    ...stakingCommands(NAME),
    ...validatorCommands(NAME),
    ...validatorChangeCommands(NAME),
    ...keyExportCommands(NAME),
    genesisRegistrationCommand(NAME),
  ].map((one) => [one.spec.name.slice(NAME.length + 1), one]),
);

export type Ran = { readonly status: number; readonly stdout: string; readonly stderr: string };

export async function runCommand([name = '', ...words]: readonly string[]): Promise<Ran> {
  const found = COMMANDS.get(name);
  if (found === undefined) throw new Error(`there is no command ${name}`);
  let [stdout, stderr] = ['', ''];
  const status = await found.start(words, {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
    readText: () => '',
    env: {},
  });
  return { status, stdout, stderr };
}

export type Shown = Record<string, unknown> & { error?: { code: string; message: string } };

export const runJson = async (words: readonly string[]): Promise<Shown> =>
  JSON.parse((await runCommand([...words, '--json'])).stdout) as Shown;
