/**
 * Structured log of all programs. A line is a constant message plus fields; text for people or JSON lines for
 * machines, to standard error or to a file that rotates (log-file.ts). Levels are set per module in the form known from
 * RUST_LOG: `info,node=debug,bridge.vardiff=trace`; the longest module prefix wins.
 */
import { type WallClock, wallMillis } from '../clock/clock.ts';
import { choice, integer, parsed, path, size } from '../command-line/command-line.ts';
import { type LogSink, openLogFile } from './log-file.ts';
import { visible } from './visible.ts';

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  trace(message: string, fields?: LogFields): void;
  /** Whether a line of this level would be written; asked before costly fields are gathered. */
  enabled(level: LogLevel): boolean;
  /** The logger of a part: `log.child('vardiff')` of `bridge` is `bridge.vardiff`. */
  child(module: string): Logger;
}

export interface LevelFilter {
  readonly base: number;
  readonly modules: readonly { readonly module: string; readonly rank: number }[];
}

const OFF = -1;

const STANDARD: LevelFilter = { base: LOG_LEVELS.indexOf('info'), modules: [] };

function rank(word: string): number {
  const found = LOG_LEVELS.indexOf(word.toLowerCase() as LogLevel);
  if (found < 0 && word.toLowerCase() !== 'off')
    throw new Error(`has the unknown level '${word}'; levels are off, ${LOG_LEVELS.join(', ')}`);
  return found < 0 ? OFF : found;
}

/** Throws an Error that says which part of the text is wrong. What the text does not say is as in `standard`. */
export function readLevelFilter(text: string, standard: LevelFilter = STANDARD): LevelFilter {
  let base: number | undefined;
  const modules = new Map<string, number>();
  for (const part of text.split(',')) {
    const [left = '', right, ...more] = part.trim().split('=');
    if (more.length > 0 || (right !== undefined && left === ''))
      throw new Error(`has the part '${part}', which is neither LEVEL nor MODULE=LEVEL`);
    if (right !== undefined) modules.set(left, rank(right));
    else if (left !== '') base = rank(left);
  }
  // A level for all leaves nothing of the standard; one of a module nothing of that module's parts.
  const kept = base === undefined ? standard.modules.filter(({ module }) => !isIn(module, modules.keys())) : [];
  const own = [...modules].map(([module, level]) => ({ module, rank: level }));
  return {
    base: base ?? standard.base,
    modules: [...own, ...kept].sort((a, b) => b.module.length - a.module.length),
  };
}

const isIn = (module: string, modules: Iterable<string>): boolean =>
  [...modules].some((entry) => module === entry || module.startsWith(`${entry}.`));

function rankOf(filter: LevelFilter, module: string): number {
  const found = filter.modules.find((entry) => isIn(module, [entry.module]));
  return found?.rank ?? filter.base;
}

const MAX_TEXT = 4_096;

/** Values that JSON cannot hold become text. Long text is cut: a log line must not be a way to fill a disk. */
function plain(value: unknown, depth = 0): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}...` : value;
  if (value instanceof Error) {
    const code = (value as { code?: unknown }).code;
    return `${value.name}: ${plain(value.message)}${typeof code === 'string' ? ` [${code}]` : ''}`;
  }
  if (value instanceof Uint8Array) return plain(Buffer.from(value.subarray(0, MAX_TEXT)).toString('hex'));
  if (typeof value !== 'object' || value === null) return typeof value === 'function' ? 'function' : value;
  if (depth > 3) return '...';
  if (Array.isArray(value)) return value.slice(0, 64).map((entry) => plain(entry, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, plain(entry, depth + 1)]));
}

const BARE = /^[\w.:/@+-]+$/;

/** Text that holds anything but plain word characters is quoted, so that no worker name can forge a line or a field. */
export function shownField(value: unknown): string {
  const simple = plain(value);
  if (typeof simple === 'string' && BARE.test(simple)) return simple;
  return visible(JSON.stringify(simple) ?? 'undefined');
}

export type LogEntry = {
  readonly atMillis: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
};

export interface LogOptions {
  readonly filter: LevelFilter;
  readonly format: 'text' | 'json';
  /** Writes text lines in another way, without their end: for a person at a terminal. */
  readonly shape?: ((entry: LogEntry) => string) | undefined;
}

export interface LogDependencies {
  readonly sink: LogSink;
  readonly now: WallClock;
}

export function createLogger(module: string, options: LogOptions, dependencies: LogDependencies): Logger {
  const limit = rankOf(options.filter, module);
  const { sink, now } = dependencies;
  const line = (level: LogLevel, message: string, fields: LogFields): string => {
    const atMillis = now();
    if (options.format === 'text' && options.shape !== undefined)
      return `${options.shape({ atMillis, level, message, fields })}\n`;
    const time = new Date(atMillis).toISOString();
    if (options.format === 'json')
      return `${visible(JSON.stringify({ time, level, module, message, ...(plain(fields) as object) }))}\n`;
    // What there is not is left out, as JSON does.
    const there = Object.entries(fields).filter(([, value]) => value !== undefined);
    const pairs = there.map(([key, value]) => ` ${key}=${shownField(value)}`);
    return `${time} ${level.toUpperCase().padEnd(5)} ${module}: ${message}${pairs.join('')}\n`;
  };
  const at = (level: LogLevel) => {
    const own = LOG_LEVELS.indexOf(level);
    return (message: string, fields: LogFields = {}): void => {
      if (own > limit) return;
      sink.write(line(level, message, fields));
      // An error is often the last line of a process.
      if (level === 'error') sink.flush();
    };
  };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    enabled: (level) => LOG_LEVELS.indexOf(level) <= limit,
    child: (name) => createLogger(`${module}.${name}`, options, dependencies),
  };
}

const GROUP = 'Logging';

/** The options every program spreads into its table. What RUST_LOG says wins over --log-level. */
export const logOptions = {
  logLevel: parsed(
    { help: 'levels, such as info,node=debug; what RUST_LOG says wins', group: GROUP, placeholder: 'LEVELS' },
    (text) => ({ text, filter: readLevelFilter(text) }),
  ),
  logFormat: choice({ help: 'text for people or JSON lines', group: GROUP, default: 'text' }, ['text', 'json']),
  logFile: path({ help: 'write the log to this file instead of standard error', group: GROUP }),
  logFileSize: size({ help: 'rotate the log file at this size', group: GROUP, default: '64MiB' }),
  logFileCount: integer({ help: 'rotated log files to keep', group: GROUP, min: 1, max: 100, default: 5 }),
} as const;

export interface LogValues {
  readonly logLevel: { readonly filter: LevelFilter } | undefined;
  readonly logFormat: 'text' | 'json';
  readonly logFile: string | undefined;
  readonly logFileSize: number;
  readonly logFileCount: number;
}

export interface OpenLog {
  readonly log: Logger;
  close(): void;
}

export const standardErrorSink: LogSink = {
  write: (line) => void process.stderr.write(line),
  flush: () => undefined,
  close: () => undefined,
};

/** Opens the log of a program from its parsed options; without a file it goes to `elsewhere`, in that shape. A bad RUST_LOG is reported and ignored. */
export function openLog(
  module: string,
  values: LogValues,
  env: Readonly<Record<string, string | undefined>>,
  elsewhere: LogSink = standardErrorSink,
  shape?: LogOptions['shape'],
): OpenLog {
  const sink =
    values.logFile === undefined
      ? elsewhere
      : openLogFile({ path: values.logFile, maxBytes: values.logFileSize, keep: values.logFileCount });
  let filter = values.logLevel?.filter ?? STANDARD;
  let complaint: string | undefined;
  try {
    filter = readLevelFilter(env.RUST_LOG ?? '', filter);
  } catch (error) {
    complaint = (error as Error).message;
  }
  const log = createLogger(
    module,
    { filter, format: values.logFormat, shape: values.logFile === undefined ? shape : undefined },
    { sink, now: wallMillis },
  );
  if (complaint !== undefined) log.warn('RUST_LOG ignored', { reason: `RUST_LOG ${complaint}` });
  return { log, close: () => sink.close() };
}
