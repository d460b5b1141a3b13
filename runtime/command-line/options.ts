/**
 * The kinds of options a command line can have. Each kind knows how to read its text, what to show in the help, and the
 * type of its value: `V` when it is required or has a default, `V | undefined` otherwise.
 */

import { CodedError } from '../../protocol/coded-error.ts';
import { type ListenAddress, readListenAddress } from '../listen-address.ts';

export { type ListenAddress, readListenAddress, showListenAddress } from '../listen-address.ts';

export const USAGE_ERROR_CODES = [
  'usage_unknown_command',
  'usage_unknown_option',
  'usage_value_missing',
  'usage_value',
  'usage_repeated',
  'usage_option_missing',
  'usage_operand_missing',
  'usage_operand_unexpected',
  'config_unreadable',
  'config_syntax',
  'config_unknown_key',
  'config_value',
] as const;

export type UsageErrorCode = (typeof USAGE_ERROR_CODES)[number];

/** A usage error. Programs print `message (remedy)` and exit with USAGE_EXIT. */
export class UsageError extends CodedError<UsageErrorCode> {
  override readonly name = 'UsageError';
  readonly remedy: string;

  constructor(code: UsageErrorCode, message: string, remedy: string) {
    super(code, message);
    this.remedy = remedy;
  }
}

export const USAGE_EXIT = 2;

export interface OptionSpec<V> {
  readonly help: string;
  readonly group: string;
  readonly placeholder: string;
  /** Its place in a config file, `section.key`; otherwise its own name. */
  readonly configPath?: string | undefined;
  /** A long name that it had before, and that still works. */
  readonly formerly?: string | undefined;
  /** The value as written in a config file. */
  readonly sample: string;
  readonly short: string | undefined;
  readonly flag: boolean;
  readonly repeatable: boolean;
  readonly required: boolean;
  readonly fallback: V | undefined;
  /** How the help text shows the default; undefined shows none. */
  readonly fallbackText: string | undefined;
  read(texts: readonly string[], name: string): V;
}

export type OptionTable = Readonly<Record<string, OptionSpec<unknown>>>;

/** A word of the command line that is not an option, by position. Only the last one may be `rest` (any number). */
export interface Operand {
  readonly name: string;
  readonly help: string;
  readonly optional?: boolean;
  readonly rest?: boolean;
}

export interface Example {
  readonly line: string;
  readonly says: string;
}

export interface CommandSpec<T extends OptionTable> {
  /** As typed: `svc-bridge`, or `svc-miner self-test` for a command of a program that has several. */
  readonly name: string;
  /** As typed before options, where that is more than the name. */
  readonly typed?: string;
  readonly summary: string;
  readonly options: T;
  readonly operands?: readonly Operand[];
  readonly examples?: readonly Example[];
  /** Exit codes that mean more than done or failed. */
  readonly exits?: readonly { readonly code: number; readonly says: string }[];
}

/** What comes before the options where somebody types the command. */
export const asTyped = ({ name, typed = name }: Pick<CommandSpec<OptionTable>, 'name' | 'typed'>): string => typed;

/** `logFile` is `--log-file`. */
export const optionName = (property: string): string => property.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);

/** Settings common to all kinds. The default is written as the user would type it. */
export interface Settings {
  readonly help: string;
  readonly group?: string;
  readonly short?: string;
  readonly default?: string | number;
  readonly required?: true;
  readonly placeholder?: string;
  readonly configPath?: string;
  readonly formerly?: string;
}

type Filled<S, V> = S extends { default: string | number } | { required: true } ? V : V | undefined;

const DEFAULT_GROUP = 'Options';

/** An option of a kind of its own: `read` returns the value or throws an Error that says what is wrong with the text. */
export function parsed<const S extends Settings, V>(
  settings: S & { readonly placeholder: string },
  read: (text: string) => V,
): OptionSpec<Filled<S, V>> {
  const fallback = settings.default === undefined ? undefined : read(String(settings.default));
  return {
    help: settings.help,
    group: settings.group ?? DEFAULT_GROUP,
    placeholder: settings.placeholder,
    configPath: settings.configPath,
    formerly: settings.formerly,
    sample: JSON.stringify(settings.default ?? settings.placeholder),
    short: settings.short,
    flag: false,
    repeatable: false,
    required: settings.required ?? false,
    fallback: fallback as Filled<S, V>,
    fallbackText: settings.default === undefined ? undefined : String(settings.default),
    read(texts, name) {
      try {
        return read(texts[0] as string) as Filled<S, V>;
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        const example = settings.default === undefined ? settings.placeholder : String(settings.default);
        // An error with a code is a sentence of its own, any other goes on after the name.
        const after = 'code' in error ? ':' : '';
        throw new UsageError('usage_value', `${name}${after} ${error.message}`, `for example ${name} ${example}`);
      }
    },
  };
}

export const text = <const S extends Settings>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'TEXT' }, (word) => word);

export const path = <const S extends Settings>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'PATH' }, (word) => {
    if (word === '') throw new Error('must name a path');
    return word;
  });

type Bounds = { readonly min?: number; readonly max?: number; readonly multipleOf?: number };

export const integer = <const S extends Settings & Bounds>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'N' }, (word) => {
    const min = settings.min ?? 0;
    const max = settings.max ?? Number.MAX_SAFE_INTEGER;
    const value = /^-?\d{1,16}$/.test(word) ? Number(word) : Number.NaN;
    if (!(value >= min && value <= max))
      throw new Error(
        `must be a whole number ${max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`}, not '${word}'`,
      );
    if (settings.multipleOf !== undefined && value % settings.multipleOf !== 0)
      throw new Error(`must be a multiple of ${settings.multipleOf}, not '${word}'`);
    return value;
  });

/** A number with decimals, for figures that are not money (money is bigint and has `parsed` with a reader of its own). */
export const decimal = <const S extends Settings & { readonly min: number; readonly max: number }>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'X' }, (word) => {
    const value = /^-?\d{1,15}(\.\d{1,15})?$/.test(word) ? Number(word) : Number.NaN;
    if (!(value >= settings.min && value <= settings.max))
      throw new Error(`must be a number from ${settings.min} to ${settings.max}, not '${word}'`);
    return value;
  });

export const choice = <const S extends Settings, const C extends readonly string[]>(settings: S, choices: C) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? choices.join('|') }, (word): C[number] => {
    if (!choices.includes(word)) throw new Error(`must be one of ${choices.join(', ')}, not '${word}'`);
    return word as C[number];
  });

const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function readDuration(word: string): number {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(word);
  if (match === null) throw new Error(`must be a time such as 250ms, 10s, 5m, 2h or 7d, not '${word}'`);
  return Number(match[1]) * MILLISECONDS[match[2] as keyof typeof MILLISECONDS];
}

/** `250ms`, `10s`, `5m`, `2h`, `7d`: the value is in milliseconds. */
export const duration = <const S extends Settings & { readonly max?: string }>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'TIME' }, (word) => {
    const millis = readDuration(word);
    if (settings.max !== undefined && millis > readDuration(settings.max))
      throw new Error(`must be at most ${settings.max}, not '${word}'`);
    return millis;
  });

const BYTES = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;

/** `512KiB`, `64MiB`, `2GiB`, or a plain count of bytes. */
export const size = <const S extends Settings>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'SIZE' }, (word) => {
    const match = /^(\d{1,9})(KiB|MiB|GiB)?$/.exec(word);
    if (match === null) throw new Error(`must be a size such as 65536, 512KiB, 64MiB or 2GiB, not '${word}'`);
    return Number(match[1]) * (match[2] === undefined ? 1 : BYTES[match[2] as keyof typeof BYTES]);
  });

/** An address without a port has the port of the default. */
const standardPort = ({ default: standard = 'off' }: Settings): number | undefined =>
  standard === 'off' ? undefined : readListenAddress(String(standard)).port;

export const listenAddress = <const S extends Settings>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'HOST:PORT' }, (word) =>
    readListenAddress(word, standardPort(settings)),
  );

/** A listener that can be left out: `off` is its value then. */
export const listenAddressOrOff = <const S extends Settings>(settings: S) =>
  parsed({ ...settings, placeholder: settings.placeholder ?? 'HOST:PORT|off' }, (word): ListenAddress | 'off' =>
    word === 'off' ? 'off' : readListenAddress(word, standardPort(settings)),
  );

/** For `parsed`: an http or https URL. Programs could not send its user and password, and would print them. */
export const readHttpUrl =
  (example: string) =>
  (word: string): string => {
    const url = URL.canParse(word) ? new URL(word) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
      throw new Error(`must be a URL such as ${example}, without user and password`);
    return word.replace(/\/+$/, '');
  };

/** A switch: `--name`, `--no-name`, `--name=true`. Off unless the default says otherwise. */
export function flag(settings: {
  readonly help: string;
  readonly group?: string;
  readonly short?: string;
  readonly default?: boolean;
}): OptionSpec<boolean> {
  const fallback = settings.default ?? false;
  return {
    help: settings.help,
    group: settings.group ?? DEFAULT_GROUP,
    placeholder: '',
    sample: String(!fallback),
    short: settings.short,
    flag: true,
    repeatable: false,
    required: false,
    fallback,
    fallbackText: fallback ? 'on' : undefined,
    read([word], name) {
      if (word !== 'true' && word !== 'false')
        throw new UsageError('usage_value', `${name} must be true or false, not '${word}'`, `write ${name} alone`);
      return word === 'true';
    },
  };
}

/** May be given many times; the value is the list, empty when it is not given. */
export function repeated<V>(option: OptionSpec<V>): OptionSpec<readonly NonNullable<V>[]> {
  return {
    ...option,
    sample: `[${option.sample}]`,
    repeatable: true,
    fallback: option.fallback === undefined ? [] : [option.fallback as NonNullable<V>],
    read: (texts, name) => texts.map((word) => option.read([word], name) as NonNullable<V>),
  };
}
