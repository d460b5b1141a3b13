/** The manual page of a program (section 1, in roff), from its option tables. */
import { allCommands, type CommandTree, hasOwnWork, lastWord } from './command-line.ts';
import { optionGroups, usageWords } from './help.ts';

/** Text that roff takes for nothing but text. */
const plain = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^([.'])/gm, '\\&$1');

const paragraph = (left: string, right: string): string => `.TP\n\\fB${plain(left)}\\fR\n${plain(right)}\n`;

function commandText(tree: CommandTree, title: string): string {
  const { spec } = tree;
  const parts = [
    `${title}\n${plain(spec.summary)}\n.PP\n\\fB${plain(spec.name)}\\fR ${plain(usageWords(spec).join(' '))}\n`,
  ];
  for (const operand of spec.operands ?? []) parts.push(paragraph(operand.name, operand.help));
  for (const [group, rows] of optionGroups(spec)) {
    parts.push(`.PP\n${plain(group)}:\n`);
    for (const { left, right } of rows) parts.push(paragraph(left.trim(), right));
  }
  for (const { code, says } of spec.exits ?? []) parts.push(paragraph(`exit code ${code}`, says));
  for (const { line, says } of spec.examples ?? [])
    parts.push(`.PP\n${plain(says)}:\n.PP\n.RS 4\n.nf\n${plain(line)}\n.fi\n.RE\n`);
  return parts.join('');
}

export function manPage(program: CommandTree, version: string): string {
  const { name, summary } = program.spec;
  const firstLine = summary.split('\n')[0] as string;
  const commands = allCommands(program).filter((entry) => entry !== program && hasOwnWork(entry));
  const own = hasOwnWork(program)
    ? [commandText(program, '.SH DESCRIPTION')]
    : [`.SH DESCRIPTION\n${plain(summary)}\n`];
  return [
    `.TH ${name.toUpperCase().replaceAll('-', '\\-')} 1 "" "svc\\-stratum ${plain(version)}"\n`,
    `.SH NAME\n${plain(name)} \\- ${plain(firstLine.replace(/\.$/, ''))}\n`,
    `.SH SYNOPSIS\n\\fB${plain(name)}\\fR ${(program.commands ?? []).length > 0 ? '[\\fICOMMAND\\fR] ' : ''}[\\fIoptions\\fR]\n`,
    ...own,
    ...(commands.length > 0 ? ['.SH COMMANDS\n'] : []),
    ...commands.map((entry) =>
      commandText(entry, `.SS ${plain(entry.spec.name.slice(name.length + 1) || lastWord(entry))}`),
    ),
  ].join('');
}
