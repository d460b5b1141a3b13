/** The shell lines of README.md and docs/: what a reader copies into a terminal. */
import { FILES, read } from './project-files.ts';

export type ShellLine = { readonly page: string; readonly line: string };

const PAGES = FILES.filter((path) => path === 'README.md' || /^docs\/.*\.md$/.test(path));
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

/** Pages name a program by its folder or as one of the path: the same line. */
export const fromPath = (line: string): string => line.replace(/^bin\//, '');
