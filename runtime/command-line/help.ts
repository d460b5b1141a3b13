/** The `--help` text of a command, rendered from its option table: usage, options by group with defaults, exit codes, examples. */
import { asTyped, type CommandSpec, type OptionSpec, type OptionTable, optionName } from './options.ts';

const WIDTH = 110;
const WIDEST_NAME = 34;

export interface Row {
  readonly left: string;
  readonly right: string;
}

/** What follows the name of a command. */
export const usageWords = ({ operands = [] }: CommandSpec<OptionTable>): string[] => [
  '[options]',
  ...operands.map(({ name, optional, rest }) => {
    const word = rest ? `${name}...` : name;
    return optional ? `[${word}]` : word;
  }),
];

export function renderHelp(command: CommandSpec<OptionTable>): string {
  const operands = command.operands ?? [];
  const parts = [
    `${command.summary}\n\nUsage: ${[asTyped(command), ...usageWords(command)].join(' ')}\n`,
    ...(operands.length > 0
      ? [
          section(
            'Arguments',
            operands.map((o) => ({ left: o.name, right: o.help })),
          ),
        ]
      : []),
  ];
  for (const [title, rows] of optionGroups(command)) parts.push(section(title, rows));
  if (command.exits !== undefined)
    parts.push(
      section(
        'Exit codes',
        command.exits.map(({ code, says }) => ({ left: String(code), right: says })),
      ),
    );
  if (command.examples !== undefined && command.examples.length > 0)
    parts.push(`Examples:\n${command.examples.map(({ line, says }) => `  # ${says}\n  ${line}\n`).join('')}`);
  return parts.join('\n');
}

/** What every program can print about itself, before any command. */
export const PROGRAM_ROWS: readonly Row[] = [
  { left: '    --man', right: 'print the manual page' },
  { left: '    --completions SHELL', right: 'print what bash, zsh or fish needs to complete the words' },
];

/** Options by their group, in the order of the table; general ones last. */
export function optionGroups(command: CommandSpec<OptionTable>): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>();
  for (const [property, option] of Object.entries(command.options)) {
    const rows = groups.get(option.group) ?? [];
    rows.push({ left: optionLeft(property, option), right: optionRight(option) });
    groups.set(option.group, rows);
  }
  const general = groups.get('General') ?? [];
  groups.delete('General');
  groups.set('General', [
    ...general,
    { left: '    --config PATH', right: 'JSON file with any of these options by their long names' },
    { left: '-h, --help', right: 'show this text' },
    { left: '-V, --version', right: 'show the version' },
    // Of a whole program; one with commands names these in the list of them.
    ...(command.name.includes(' ') ? [] : PROGRAM_ROWS),
  ]);
  return groups;
}

function optionLeft(property: string, option: OptionSpec<unknown>): string {
  const short = option.short === undefined ? '    ' : `-${option.short}, `;
  const long = option.flag && option.fallback === true ? `[no-]${optionName(property)}` : optionName(property);
  return `${short}--${long}${option.placeholder === '' ? '' : ` ${option.placeholder}`}`;
}

function optionRight(option: OptionSpec<unknown>): string {
  const notes: string[] = [];
  if (option.required) notes.push('required');
  if (option.repeatable) notes.push('may be repeated');
  if (option.fallbackText !== undefined && option.fallbackText !== '') notes.push(`default ${option.fallbackText}`);
  return notes.length === 0 ? option.help : `${option.help} (${notes.join('; ')})`;
}

/** A titled table of two columns, the right one wrapped. */
export function section(title: string, rows: readonly Row[]): string {
  const indent = Math.min(WIDEST_NAME, Math.max(...rows.map((row) => row.left.length))) + 4;
  const lines = rows.flatMap(({ left, right }) => {
    const wrapped = wrap(right, WIDTH - indent);
    const head = `  ${left}`;
    if (head.length > indent - 2) return [head, ...wrapped.map((line) => ' '.repeat(indent) + line)];
    return wrapped.map((line, i) => (i === 0 ? head.padEnd(indent) : ' '.repeat(indent)) + line);
  });
  return `${title}:\n${lines.join('\n')}\n`;
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) as string;
    if (last === '') lines[lines.length - 1] = word;
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
