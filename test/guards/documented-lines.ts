/** The shell lines of README.md and docs/: what a reader copies into a terminal. */
import { FILES, read } from './project-files.ts';

export type ShellLine = { readonly page: string; readonly line: string };

/** The history speaks of commands as they were. */
const PAGES = FILES.filter(
  (path) => path === 'README.md' || (/^docs\/.*\.md$/.test(path) && path !== 'docs/lab/changelog.md'),
);
/** A block without a language is a shell block when it begins with a command. */
const COMMAND = /^\s*(?:bin\/)?(?:svcd|svc-[a-z]+|npm|npx|git|systemctl|docker|curl|tar|install)\b/;
const isShell = (language: string, text: string): boolean =>
  ['sh', 'bash', 'shell', 'console'].includes(language) || (language === '' && COMMAND.test(text));

/** Without prompts and remarks; a line that ends in a backslash goes on. */
export const shellLines = (): ShellLine[] =>
  PAGES.flatMap((page) =>
    [...read(page).matchAll(/^[ \t]*```([a-z]*)\n([\s\S]*?)^[ \t]*```/gm)]
      .filter(([, language = '', text = '']) => isShell(language, text))
      .flatMap(([, , text = '']) => text.replaceAll(/\\\n\s*/g, ' ').split('\n'))
      .map((line) =>
        line
          .replace(/\s+#.*$/, '')
          .replace(/^\s*(?:\$\s+)?/, '')
          .trim(),
      )
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => ({ page, line })),
  );

const PROGRAM = /^(?:bin\/)?(svcd|svc-[a-z]+)(?: (.*))?$/;

/** The program and its words as a shell would pass them; undefined for a line that starts something else. */
export function programWords(line: string): { readonly program: string; readonly words: string[] } | undefined {
  const [, program, rest = ''] = PROGRAM.exec(line) ?? [];
  if (program === undefined) return undefined;
  const words = [...rest.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  return { program, words };
}

/** Commands in the text of a page: a program and at least one word. */
export const inlineCommands = (): ShellLine[] =>
  PAGES.flatMap((page) =>
    [
      ...read(page)
        .replaceAll(/^[ \t]*```[\s\S]*?^[ \t]*```/gm, '')
        .matchAll(/`([^`\n]+)`/g),
    ]
      .map(([, line = '']) => line)
      .filter((line) => /^(?:bin\/)?(?:svcd|svc-[a-z]+) \S/.test(line) || line.startsWith('curl '))
      .map((line) => ({ page, line })),
  );

/** Pages name a program by its folder or as one of the path, and the pool's machine by two names: the same line. */
export const sameLine = (line: string): string => line.replace(/^bin\//, '').replaceAll('pool.example', 'POOL-MACHINE');

/** Whether a page has the line, whole; tables of commands leave out the program's name. */
export const isDocumented = (line: string): boolean =>
  shellLines().some((one) => sameLine(one.line) === sameLine(line)) ||
  PAGES.some((page) => read(page).includes(`\`${line}\``) || read(page).includes(`\`${line.replace(/^\S+ /, '')}\``));

const QUOTED = /'((?:[^'\\\n]|\\.)*)'/g;

/** What the flows of test/documented quote: among it the lines that they run. */
export const quotedByFlows = (isOf: (path: string) => boolean = () => true): ReadonlySet<string> =>
  new Set(
    FILES.filter((path) => path.startsWith('test/documented/') && isOf(path))
      .flatMap((path) => [...read(path).matchAll(QUOTED)])
      .map(([, text = '']) => sameLine(text.replaceAll("\\'", "'"))),
  );

/** Whether a line is, or has, all that a command in the text says; words in capitals stand for anything. */
export function covers(line: string, command: string): boolean {
  const has = new Set(line.split(' '));
  const [program, first] = command.split(' ');
  if (line.split(' ')[0] !== program || (first?.startsWith('-') === false && line.split(' ')[1] !== first))
    return false;
  return command.split(' ').every((word) => has.has(word) || /^[A-Z]{2}/.test(word));
}
