/**
 * How a program starts: finds the command, parses its words against the option table, prints help, version or a usage
 * error (exit 2), or runs it. All outside dependencies of a program are passed in as `Terminal`.
 */
import { readFileSync } from 'node:fs';
import { steadyMillis } from './clock/clock.ts';
import {
  type CommandSpec,
  type CommandTree,
  nearest,
  type OptionTable,
  type Parsed,
  parseCommandLine,
  USAGE_EXIT,
  UsageError,
  type ValuesOf,
} from './command-line/command-line.ts';
import { completions, SHELLS, type Shell } from './command-line/completions.ts';
import { PROGRAM_ROWS, section } from './command-line/help.ts';
import { manPage } from './command-line/man-page.ts';
import { readConfigText } from './files/private-file.ts';
import { giveBackIdleMemory } from './idle-memory.ts';
import { InvariantError } from './invariant.ts';
import { type Logger, type LogValues, openLog } from './log/log.ts';
import { visible } from './log/visible.ts';
import { DEFAULT_SHUTDOWN_LIMIT_MS, Shutdown } from './shutdown.ts';

export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  readText(path: string): string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A command ready to be run; the exit code is its result. */
export interface Command extends CommandTree {
  start(words: readonly string[], terminal: Terminal): Promise<number>;
}

/** The config file, if there is one, and the options as they are when it is read again. */
export type Config<T extends OptionTable> = { readonly file: string | undefined; readonly parse: () => Parsed<T> };

export function command<const T extends OptionTable>(
  spec: CommandSpec<T>,
  run: (
    values: ValuesOf<T>,
    operands: readonly string[],
    terminal: Terminal,
    config: Config<T>,
  ) => Promise<number> | number,
): Command {
  return {
    spec,
    async start(words, terminal) {
      let file: string | undefined;
      const parse = () =>
        parseCommandLine(spec, words, (path) => {
          file = path;
          return terminal.readText(path);
        });
      const parsed = parse();
      const begin = () => (parsed.kind === 'run' ? run(parsed.values, parsed.operands, terminal, { file, parse }) : 0);
      if (parsed.kind === 'run') return await attempt(spec.name, begin, terminal);
      if (parsed.kind === 'usage') return refuse(spec.name, parsed.error, terminal);
      terminal.out(
        parsed.kind === 'help'
          ? parsed.text
          : `${spec.typed === undefined ? spec.name.split(' ')[0] : spec.name} ${version()}\n`,
      );
      return 0;
    },
  };
}

/** A program with several commands: the first word that is no option names one (`svc-wallet send`). */
export function commandTable(name: string, summary: string, commands: readonly Command[]): Command {
  const shortName = (entry: Command) => entry.spec.name.slice(name.length + 1);
  const help = `${summary}\n\nUsage: ${name} COMMAND [options]\n\n${section(
    'Commands',
    commands.map((entry) => ({ left: shortName(entry), right: entry.spec.summary })),
  )}\n${name.includes(' ') ? '' : `${section('General', PROGRAM_ROWS)}\n`}${name} COMMAND --help shows the options of a command.\n`;
  return {
    spec: { name, summary, options: {} },
    commands,
    async start(words, terminal) {
      const [word, ...rest] = words;
      if (word === undefined || word === '--help' || word === '-h' || word === 'help') {
        (word === undefined ? terminal.err : terminal.out)(help);
        return word === undefined ? USAGE_EXIT : 0;
      }
      if (word === '--version' || word === '-V') {
        terminal.out(`${name} ${version()}\n`);
        return 0;
      }
      const found = commands.find((entry) => shortName(entry) === word);
      if (found !== undefined) return await found.start(rest, terminal);
      const near = nearest(word, commands.map(shortName));
      const remedy = near === undefined ? `${name} --help lists the commands` : `did you mean ${near}?`;
      return refuse(name, new UsageError('usage_unknown_command', `there is no command '${word}'`, remedy), terminal);
    },
  };
}

/**
 * Errors that the user can fix, in one line: our own errors with a code, and those of the system or a server. Undefined
 * for a bug, which shows its stack. The message may contain text from a server.
 */
export function mistakeText(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof InvariantError) return undefined;
  const { code } = error as { code?: unknown };
  // Node's own ERR_ codes report a wrong call.
  if (typeof code !== 'string' || code.startsWith('ERR_')) return undefined;
  return `${visible(error.message)} [${code}]`;
}

/** The line of a user error, or the stack of a bug. */
export const failureText = (error: unknown): string =>
  mistakeText(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));

async function attempt(name: string, run: () => Promise<number> | number, terminal: Terminal): Promise<number> {
  try {
    return await run();
  } catch (error) {
    const says = mistakeText(error);
    if (says === undefined) throw error;
    terminal.err(`${name}: ${says}\n`);
    return 1;
  }
}

/** Says what is wrong with the words, and how to go on. The exit code. */
export function refuse(name: string, error: UsageError, terminal: Terminal): number {
  terminal.err(`${name}: ${error.message} (${error.remedy}) [${error.code}]\n`);
  return USAGE_EXIT;
}

export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  readText: readConfigText,
  env: process.env,
};

/** Exit code of a program that was ended by a bug; a supervisor may restart it. */
export const DEFECT_EXIT = 70;

/** Printed when an uncaught error ends the program: the broken invariant, or the stack. */
export function defectText(name: string, error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return error instanceof InvariantError
    ? `${name}: ended because an invariant is broken: ${error.message} [${error.code}]\n${stack}\n`
    : `${name}: ended by a defect of its own, please report it\n${stack}\n`;
}

/** What a program prints about itself from its option tables; undefined for any other words. */
function describe(program: Command, [word, shell = '']: readonly string[]): string | UsageError | undefined {
  if (word === '--man') return manPage(program, version());
  if (word !== '--completions') return undefined;
  if (SHELLS.some((known) => known === shell)) return completions(program, shell as Shell);
  return new UsageError('usage_value', `--completions needs a shell`, `one of ${SHELLS.join(', ')}`);
}

export async function startProgram(program: Command, words: readonly string[], terminal: Terminal): Promise<number> {
  const described = describe(program, words);
  if (described === undefined) return await program.start(words, terminal);
  if (described instanceof UsageError) return refuse(program.spec.name, described, terminal);
  terminal.out(described);
  return 0;
}

/** The program itself, unless its first word names one of the others. */
export function withCommands(program: Command, others: readonly Command[]): Command {
  const { spec } = program;
  return {
    spec,
    commands: others,
    start: (words, terminal) => {
      const other = others.find((each) => each.spec.name === `${spec.name} ${words[0]}`);
      return other === undefined ? program.start(words, terminal) : other.start(words.slice(1), terminal);
    },
  };
}

export type Running = { readonly log: Logger; readonly shutdown: Shutdown; readonly version: string };

/** For a program that serves until it is asked to end; what `begin` starts it adds to the shutdown. The exit code. */
export async function serve(
  name: string,
  values: LogValues & { readonly drainTime?: number },
  terminal: Terminal,
  begin: (running: Running) => Promise<unknown>,
): Promise<number> {
  const { log, close } = openLog(name.replace(/^svc-| run$/g, ''), values, terminal.env);
  const limitMs = DEFAULT_SHUTDOWN_LIMIT_MS + (values.drainTime ?? 0);
  const shutdown = new Shutdown({ limitMs }, { log, process, now: steadyMillis });
  shutdown.add('log', close);
  return await shutdown.run(
    () => begin({ log, shutdown, version: version() }),
    (error) => {
      terminal.err(`${name}: ${failureText(error)}\n`);
      return 1;
    },
  );
}

/** The last line of every `main.ts`. The process ends by itself once nothing is open any more. */
export async function runProgram(program: Command): Promise<void> {
  process.on('uncaughtException', (error) => {
    processTerminal.err(defectText(program.spec.name, error));
    process.exit(DEFECT_EXIT);
  });
  giveBackIdleMemory();
  process.exitCode = await startProgram(program, process.argv.slice(2), processTerminal);
}
