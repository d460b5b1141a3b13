/**
 * The command line of every program: an option table that is the one place of an option's name, type, default and help
 * text. From it come the parsed values (types inferred), the merge with a JSON config file and, in
 * help.ts, the `--help` text. Pure: the config file's text is read by a function passed in.
 *
 * A table is keyed by the property name; `logFile` is `--log-file` on the command line and `"log-file"` in the file. An option with a `configPath` is in a section of the file.
 * What the command line says wins over the config file, which wins over the default.
 */
import { renderHelp } from './help.ts';
import { asTyped, type CommandSpec, type OptionSpec, type OptionTable, optionName, UsageError } from './options.ts';

export * from './options.ts';

export type ValueOf<O> = O extends OptionSpec<infer V> ? V : never;
export type ValuesOf<T extends OptionTable> = { readonly [K in keyof T]: ValueOf<T[K]> };

export type Parsed<T extends OptionTable> =
  | { readonly kind: 'run'; readonly values: ValuesOf<T>; readonly operands: readonly string[] }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  | { readonly kind: 'usage'; readonly error: UsageError };

/** Returns the text of the file; throws when it cannot be read. */
export type ReadText = (path: string) => string;

interface Found {
  readonly property: string;
  readonly option: OptionSpec<unknown>;
  readonly negated: boolean;
}

/** The values given for each option, in order. */
type Given = Map<string, string[]>;

export function parseCommandLine<const T extends OptionTable>(
  command: CommandSpec<T>,
  words: readonly string[],
  readText: ReadText,
): Parsed<T> {
  try {
    const { given, operands, asked, config } = readWords(command, words);
    if (asked === 'help') return { kind: 'help', text: renderHelp(command) };
    if (asked === 'version') return { kind: 'version' };
    const fromFile = new Set<string>();
    if (config !== undefined)
      for (const [property, texts] of readConfig(command, config, readText)) {
        if (given.has(property)) continue;
        given.set(property, texts);
        fromFile.add(property);
      }
    checkOperands(command, operands);
    const file = (property: string) => (fromFile.has(property) ? config : undefined);
    return { kind: 'run', values: readValues(command, given, file), operands };
  } catch (error) {
    if (error instanceof UsageError) return { kind: 'usage', error };
    throw error;
  }
}

function readWords(command: CommandSpec<OptionTable>, words: readonly string[]) {
  const given: Given = new Map();
  const operands: string[] = [];
  let config: string | undefined;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    if (word === '--') {
      operands.push(...words.slice(i + 1));
      break;
    }
    if (!word.startsWith('-') || word === '-') {
      operands.push(word);
      continue;
    }
    if (word === '--help' || word === '-h') return { given, operands, config, asked: 'help' as const };
    if (word === '--version' || word === '-V') return { given, operands, config, asked: 'version' as const };
    const equals = word.startsWith('--') ? word.indexOf('=') : -1;
    const name = equals < 0 ? word : word.slice(0, equals);
    const inline = equals < 0 ? undefined : word.slice(equals + 1);
    const value = (): string => {
      if (inline !== undefined) return inline;
      const next = words[++i];
      if (next === undefined) throw new UsageError('usage_value_missing', `${name} needs a value`, `${name} VALUE`);
      return next;
    };
    if (name === '--config') {
      if (config !== undefined) throw new UsageError('usage_repeated', '--config is given twice', 'name one file');
      config = value();
      continue;
    }
    const found = find(command.options, name);
    if (found === undefined) throw unknownOption(command, name);
    const { property, option, negated } = found;
    let text: string;
    if (!option.flag) text = value();
    else if (negated && inline !== undefined)
      throw new UsageError('usage_value', `${name} takes no value`, `write ${name} alone`);
    else text = negated ? 'false' : (inline ?? 'true');
    const texts = given.get(property);
    if (texts === undefined) given.set(property, [text]);
    else if (option.repeatable) texts.push(text);
    else
      throw new UsageError('usage_repeated', `--${optionName(property)} is given twice`, 'remove all but one of them');
  }
  return { given, operands, config, asked: undefined };
}

function find(options: OptionTable, name: string): Found | undefined {
  for (const [property, option] of Object.entries(options)) {
    const long = optionName(property);
    if (
      name === `--${long}` ||
      (option.formerly !== undefined && name === `--${option.formerly}`) ||
      (option.short !== undefined && name === `-${option.short}`)
    )
      return { property, option, negated: false };
    if (option.flag && name === `--no-${long}`) return { property, option, negated: true };
  }
  return undefined;
}

function unknownOption(command: CommandSpec<OptionTable>, name: string): UsageError {
  const names = ['--help', '--version', '--config', ...Object.keys(command.options).map((p) => `--${optionName(p)}`)];
  const near = nearest(name, names);
  const remedy = near === undefined ? `${asTyped(command)} --help lists the options` : `did you mean ${near}?`;
  return new UsageError('usage_unknown_option', `there is no option ${name}`, remedy);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|\n/g;

type RepeatedKey = { readonly key: string; readonly line: number };

/** The first key that an object of this JSON text names twice: JSON.parse silently takes the last. The text must be JSON. */
function repeatedKey(json: string): RepeatedKey | undefined {
  const open: (Set<string> | undefined)[] = [];
  let line = 1;
  let last = '';
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '\n') {
      line++;
      continue;
    }
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      const key = JSON.parse(last) as string;
      const keys = open.at(-1) as Set<string>;
      if (keys.has(key)) return { key, line };
      keys.add(key);
    }
    last = token;
  }
  return undefined;
}

/** Config values are JSON of the option's own type: true/false for a switch, a list for a repeatable option. */
function readConfig(command: CommandSpec<OptionTable>, path: string, readText: ReadText): Given {
  let text: string;
  try {
    text = readText(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      'config_unreadable',
      `cannot read the config file ${path}: ${why}`,
      'check its path and rights',
    );
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError('config_syntax', `${path} is not JSON: ${why}`, 'correct the file; JSON has no comments');
  }
  const twice = repeatedKey(text);
  if (twice !== undefined)
    throw new UsageError(
      'config_syntax',
      `${path} names "${twice.key}" twice, the second time in line ${twice.line}`,
      'remove one of the two',
    );
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new UsageError('config_syntax', `${path} does not hold a JSON object`, 'write { "option-name": value, ... }');
  // An option of a section may also stand under its long name, as the command line has it.
  const properties = new Map(
    Object.entries(command.options).flatMap(([p, { configPath }]) =>
      [optionName(p), ...(configPath === undefined ? [] : [configPath])].map((key) => [key, p] as const),
    ),
  );
  const former = new Map(Object.entries(command.options).map(([p, { formerly }]) => [formerly, p]));
  const given: Given = new Map();
  for (const [key, value] of configEntries(json, [...properties.keys()])) {
    const property = properties.get(key) ?? former.get(key);
    if (property === undefined) {
      const names = [...properties.keys()];
      const near = names.find((name) => key.includes('.') && name.startsWith(key)) ?? nearest(key, names);
      const remedy =
        near === undefined
          ? `${asTyped(command)} has no such option: remove it, or leave the file out if it is of another command`
          : `did you mean "${near}"?`;
      throw new UsageError('config_unknown_key', `${path} has the unknown key "${key}"`, remedy);
    }
    if (given.has(property))
      throw new UsageError(
        'config_syntax',
        `${path} names "${optionName(property)}" twice, under two names`,
        'remove one of the two',
      );
    given.set(property, configTexts(path, key, value, command.options[property] as OptionSpec<unknown>));
  }
  return given;
}

/** Keys with their values; those inside a section have its name before theirs. */
function configEntries(json: object, known: readonly string[], before = ''): [string, unknown][] {
  return Object.entries(json).flatMap(([name, value]): [string, unknown][] => {
    const key = before + name;
    const isSection = known.some((other) => other.startsWith(`${key}.`));
    if (!isSection || typeof value !== 'object' || value === null || Array.isArray(value)) return [[key, value]];
    return configEntries(value, known, `${key}.`);
  });
}

function configTexts(path: string, key: string, value: unknown, option: OptionSpec<unknown>): string[] {
  const wrong = (expected: string) =>
    new UsageError('config_value', `"${key}" in ${path} must be ${expected}`, `for example "${key}": ${option.sample}`);
  if (option.flag) {
    if (typeof value !== 'boolean') throw wrong('true or false');
    return [String(value)];
  }
  // A value in a section may be one text or a list of them.
  const values = option.repeatable && (option.configPath === undefined || Array.isArray(value)) ? value : [value];
  if (!Array.isArray(values)) throw wrong('a list');
  return values.map((entry: unknown) => {
    if (typeof entry !== 'string' && typeof entry !== 'number')
      throw wrong(option.repeatable ? 'a list of texts or numbers' : 'a text or a number');
    return String(entry);
  });
}

function checkOperands(command: CommandSpec<OptionTable>, operands: readonly string[]): void {
  const wanted = command.operands ?? [];
  const missing = wanted.find((operand, i) => !operand.optional && operands[i] === undefined);
  if (missing !== undefined)
    throw new UsageError(
      'usage_operand_missing',
      `${missing.name} is missing`,
      `${asTyped(command)} --help shows the form`,
    );
  if (operands.length > wanted.length && !wanted.at(-1)?.rest)
    throw new UsageError(
      'usage_operand_unexpected',
      `unexpected word '${operands[wanted.length]}'`,
      `${asTyped(command)} --help shows the form`,
    );
}

function readValues<T extends OptionTable>(
  command: CommandSpec<T>,
  given: Given,
  fileOf: (property: string) => string | undefined,
): ValuesOf<T> {
  const values: Record<string, unknown> = {};
  for (const [property, option] of Object.entries(command.options)) {
    const texts = given.get(property);
    if (texts !== undefined) values[property] = readValue(property, option, texts, fileOf(property));
    else if (option.required)
      throw new UsageError(
        'usage_option_missing',
        `--${optionName(property)} is missing`,
        `add --${optionName(property)} ${option.placeholder}`,
      );
    else values[property] = option.fallback;
  }
  return values as ValuesOf<T>;
}

/** What is wrong in a config file is named as it stands there: nobody who starts a service has typed the option. */
function readValue(
  property: string,
  option: OptionSpec<unknown>,
  texts: readonly string[],
  file: string | undefined,
): unknown {
  const name = `--${optionName(property)}`;
  try {
    return option.read(texts, name);
  } catch (error) {
    if (file === undefined || !(error instanceof UsageError)) throw error;
    const key = `"${option.configPath ?? optionName(property)}"`;
    const why = error.message.slice(name.length);
    throw new UsageError('config_value', `${key} in ${file}${why}`, `for example ${key}: ${option.sample}`);
  }
}

/** The closest of the names by edit distance, when it is close enough to be a typing error. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 4)) + 1;
  if (word.length > 64) return undefined;
  for (const name of names) {
    const distance = editDistance(word, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** A program as its manual page and the completions of shells see it: a command, and those below it. */
export interface CommandTree {
  readonly spec: CommandSpec<OptionTable>;
  readonly commands?: readonly CommandTree[];
}

/** A command with all below it, itself first. */
export const allCommands = (tree: CommandTree): CommandTree[] => [tree, ...(tree.commands ?? []).flatMap(allCommands)];

/** The word that names a command within the one above it. */
export const lastWord = ({ spec }: CommandTree): string => spec.name.slice(spec.name.lastIndexOf(' ') + 1);

/** Commands with options or a work of their own; the others only hold commands. */
export const hasOwnWork = ({ spec, commands = [] }: CommandTree): boolean =>
  commands.length === 0 || Object.keys(spec.options).length > 0;
