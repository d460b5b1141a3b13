/** What a shell needs to complete the words of a program, from its option tables. */
import { allCommands, type CommandTree, lastWord } from './command-line.ts';
import { type OptionSpec, optionName } from './options.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

type Option = {
  readonly name: string;
  readonly help: string;
  readonly takesValue: boolean;
  readonly values: readonly string[];
};

/** Values that an option can have, where they are a few words. */
const valuesOf = ({ flag, placeholder }: OptionSpec<unknown>): readonly string[] =>
  !flag && /^[a-z0-9-]+(\|[a-z0-9-]+)+$/.test(placeholder) ? placeholder.split('|') : [];

const optionsOf = ({ spec }: CommandTree): Option[] => [
  ...Object.entries(spec.options).flatMap(([property, option]) => {
    const one = { help: option.help, takesValue: !option.flag, values: valuesOf(option) };
    const name = `--${optionName(property)}`;
    const off = `--no-${optionName(property)}`;
    return option.flag && option.fallback === true
      ? [
          { ...one, name },
          { ...one, name: off },
        ]
      : [{ ...one, name }];
  }),
  { name: '--config', help: 'JSON file with any of these options by their long names', takesValue: true, values: [] },
  { name: '--help', help: 'show the help', takesValue: false, values: [] },
  { name: '--version', help: 'show the version', takesValue: false, values: [] },
];

/** Words of the command below the program: empty for the program itself. */
const pathOf = ({ spec }: CommandTree): string => spec.name.split(' ').slice(1).join(' ');
const wordsOf = (tree: CommandTree): string =>
  [...(tree.commands ?? []).map(lastWord), ...optionsOf(tree).map(({ name }) => name)].join(' ');
const functionName = (name: string): string => `_${name.replaceAll('-', '_')}`;
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** `case` of the commands' words, of the values of the option before, and of the words that may follow; the same for bash and zsh. */
function cases(program: CommandTree): { known: string; values: string; words: string } {
  const all = allCommands(program);
  const values = new Map(
    all.flatMap((tree) =>
      optionsOf(tree).flatMap((option) => (option.takesValue ? [[option.name, option.values] as const] : [])),
    ),
  );
  const known = all.filter((tree) => tree !== program).map((tree) => quoted(` ${pathOf(tree)}`));
  return {
    known: known.length === 0 ? quoted('no command') : known.join('|'),
    values: [...values].map(([name, words]) => `    ${name}) words=${quoted(words.join(' '))} ;;`).join('\n'),
    words: all
      .map((tree) => `      ${quoted(tree === program ? '' : ` ${pathOf(tree)}`)}) words=${quoted(wordsOf(tree))} ;;`)
      .join('\n'),
  };
}

function bash(program: CommandTree): string {
  const { name } = program.spec;
  const { known, values, words } = cases(program);
  return `# Completions of ${name} for bash.
${functionName(name)}() {
  local word path='' words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in ${known}) path="$path $word" ;; esac
  done
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${values}
    *) case "$path" in
${words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F ${functionName(name)} ${name}
`;
}

function zsh(program: CommandTree): string {
  const { name } = program.spec;
  const { known, values, words: byPath } = cases(program);
  return `#compdef ${name}
# Completions of ${name} for zsh.
_${name}() {
  local word path_='' words_=''
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$path_ $word" in (${known}) path_="$path_ $word" ;; esac
  done
  case "$words[CURRENT-1]" in
${values.replaceAll(' words=', ' words_=')}
    *) case "$path_" in
${byPath.replaceAll(' words=', ' words_=')}
    esac ;;
  esac
  if [[ -n "$words_" ]]; then compadd -- \${=words_}; else _files; fi
}
# A file of zsh's own path is called when it is read for the first time; one that is sourced is not.
if [[ "$funcstack[1]" = _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

function fish(program: CommandTree): string {
  const { name } = program.spec;
  const lines = allCommands(program).flatMap((tree) => {
    const path = pathOf(tree)
      .split(' ')
      .filter((word) => word !== '');
    const below = (tree.commands ?? []).map(lastWord);
    const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`);
    const unseen = below.length > 0 ? [`not __fish_seen_subcommand_from ${below.join(' ')}`] : [];
    const when = [...seen, ...unseen].join('; and ');
    const begin = `complete -c ${name}${when === '' ? '' : ` -n ${quoted(when)}`}`;
    return [
      ...(tree.commands ?? []).map(
        (entry) => `${begin} -f -a ${lastWord(entry)} -d ${quoted(entry.spec.summary.split('\n')[0] as string)}`,
      ),
      ...optionsOf(tree).map(({ name: option, help, takesValue, values }) => {
        const chosen = values.length > 0 ? ` -f -a ${quoted(values.join(' '))}` : '';
        return `${begin} -l ${option.slice(2)}${takesValue ? ' -r' : ''}${chosen} -d ${quoted(help)}`;
      }),
    ];
  });
  return `# Completions of ${name} for fish.\n${lines.join('\n')}\n`;
}

const WRITERS: Readonly<Record<Shell, (program: CommandTree) => string>> = { bash, zsh, fish };

export const completions = (program: CommandTree, shell: Shell): string => WRITERS[shell](program);
