/** Commands that README.md, docs/ and the READMEs of folders name. */
import { FILES, read } from './project-files.ts';

export const PAGES = FILES.filter((path) => path.endsWith('.md'));

/** Commands in code blocks and in `code`, with the page they stand on. */
export function commandsOn(page: string): string[] {
  const text = read(page);
  const blocks = [...text.matchAll(/```[a-z]*\n([\s\S]*?)```/g)].flatMap((match) => (match[1] as string).split('\n'));
  const inline = [...text.replace(/```[\s\S]*?```/g, '').matchAll(/`([^`\n]+)`/g)].map((match) => match[1] as string);
  return [...blocks, ...inline].map((line) => line.replace(/^\s*\$\s+/, '').trim());
}
