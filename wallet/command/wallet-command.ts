/** Common parts of the `svc-wallet` commands: how refusals are shown, and the confirmation before money moves. */
import { flag, type OptionTable, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import { jsonText } from '../../runtime/log/visible.ts';
import { type Command, command, type Terminal } from '../../runtime/program.ts';
import { WalletError } from '../wallet-error.ts';
import { visible } from './foreign-text.ts';
import { CallError } from './session.ts';

/** A command whose refusals are one line with their code, or one JSON object with --json. */
export function walletCommand<const T extends OptionTable>(
  spec: Parameters<typeof command<T>>[0],
  run: (values: ValuesOf<T>, operands: readonly string[], terminal: Terminal) => Promise<number>,
): Command {
  return command(spec, async (values, operands, terminal) => {
    try {
      return await run(values, operands, terminal);
    } catch (error) {
      if (!(error instanceof WalletError) && !(error instanceof CallError)) throw error;
      const json = (values as { json?: unknown }).json === true;
      if (json) terminal.out(`${jsonText({ error: { code: error.code, rpc: error.rpc, message: error.message } })}\n`);
      else terminal.err(`${spec.name}: ${visible(error.message)} [${visible(error.code)}]\n`);
      return 1;
    }
  });
}

export const yes = flag({ help: 'do not ask before money moves', short: 'y' });
