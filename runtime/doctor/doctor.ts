/**
 * The command `doctor` of a program: looks at what the program needs with the options that it would be started with, and
 * says in one line each what is well, what is doubtful and what is wrong, with the remedy. It changes nothing.
 */
import { arch, availableParallelism, platform, release, totalmem } from 'node:os';
import { flag, type OptionTable, path, type ValuesOf } from '../command-line/command-line.ts';
import { writeDurably } from '../files/durable-file.ts';
import { visible } from '../log/visible.ts';
import { type Command, command, version } from '../program.ts';
import { hider, shownOptions } from './shown-options.ts';

export type Finding = {
  readonly state: 'ok' | 'warn' | 'bad';
  readonly says: string;
  /** What to do; always there if it is not well. */
  readonly remedy?: string;
};

export type Check = { readonly name: string; look(): Promise<Finding> | Finding };

export const ok = (says: string): Finding => ({ state: 'ok', says });
export const warn = (says: string, remedy: string): Finding => ({ state: 'warn', says, remedy });
export const bad = (says: string, remedy: string): Finding => ({ state: 'bad', says, remedy });

const LOOK_MILLIS = 15_000;
const NAME_WIDTH = 18;

export const doctorOptions = {
  json: flag({ help: 'print the findings as JSON' }),
  report: path({
    help: 'write the findings, the options without secrets, and this machine to a file, for somebody who helps you',
    placeholder: 'FILE',
  }),
} as const;

/** `program`: its name as typed, without `run`. The options are those that it is started with. */
export function doctorCommand<const T extends OptionTable>(
  program: string,
  options: T,
  checksOf: (values: ValuesOf<T>) => readonly Check[],
): Command {
  return command(
    {
      name: `${program} doctor`,
      summary: 'Checks what the program needs, before or while it runs: one line each, with the remedy.',
      options: { ...options, ...doctorOptions },
      exits: [
        { code: 0, says: 'nothing is wrong' },
        { code: 1, says: 'something is wrong; the lines that begin with bad say what' },
        { code: 2, says: 'the command line is wrong' },
      ],
      examples: [
        { line: `${program} doctor`, says: 'with the options that the program is started with' },
        { line: `${program} doctor --report report.json`, says: 'for a question to somebody who helps you' },
      ],
    },
    async (values, _operands, terminal) => {
      const findings: (Finding & { readonly check: string })[] = [];
      const hidden = hider(values);
      for (const check of checksOf(values as ValuesOf<T>)) {
        const { state, says, remedy } = await look(check);
        const finding = {
          check: check.name,
          state,
          says: hidden(says),
          ...(remedy !== undefined && { remedy: hidden(remedy) }),
        };
        findings.push(finding);
        if (!values.json) terminal.out(lineOf(finding));
      }
      const count = (state: Finding['state']) => findings.filter((finding) => finding.state === state).length;
      const machine = {
        system: `${platform()} ${release()} ${arch()}`,
        node: process.version,
        cores: availableParallelism(),
        memory_mib: Math.round(totalmem() / 1_048_576),
      };
      const report = { program, version: version(), machine, findings };
      if (values.report !== undefined)
        await writeDurably(
          values.report,
          `${JSON.stringify({ ...report, options: shownOptions(values) }, undefined, 2)}\n`,
        );
      terminal.out(
        values.json
          ? `${JSON.stringify(report)}\n`
          : `${findings.length} checks: ${count('ok')} ok, ${count('warn')} doubtful, ${count('bad')} bad\n`,
      );
      return count('bad') > 0 ? 1 : 0;
    },
  );
}

async function look(check: Check): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    const remedy = 'look whether the system or the server behind it is overloaded, and try again';
    timer = setTimeout(() => resolve(bad(`no answer within ${LOOK_MILLIS / 1000} s`, remedy)), LOOK_MILLIS);
  });
  try {
    return await Promise.race([check.look(), late]);
  } catch (error) {
    return bad((error as Error).message, 'remove the cause that the text names, and try again');
  } finally {
    clearTimeout(timer);
  }
}

/** Texts may come from a server. */
function lineOf({ check, state, says, remedy }: Finding & { readonly check: string }): string {
  const line = `${state.padEnd(4)}  ${check.padEnd(NAME_WIDTH)}  ${visible(says)}\n`;
  return remedy === undefined ? line : `${line}${' '.repeat(NAME_WIDTH + 8)}-> ${visible(remedy)}\n`;
}
