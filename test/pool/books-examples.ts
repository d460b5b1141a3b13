/** The JSON examples of docs/protocol/books.md, by route, and what a real answer must share with them: names and types of all fields. */
import { readFileSync } from 'node:fs';

const TEXT = readFileSync(new URL('../../docs/protocol/books.md', import.meta.url), 'utf8');

/** The example whose line begins with this route. */
export function exampleOf(route: string): unknown {
  const found = new RegExp(
    `\\n\`${route.replace(/[?]/g, '\\$&')}[^\\n]*\\n[^\`]*?(?:\`[^\`]+\`[^\`]*?)*\\n\`\`\`json\\n([\\s\\S]*?)\\n\`\`\``,
  ).exec(TEXT);
  if (found === null) throw new Error(`docs/protocol/books.md has no example of ${route}`);
  return JSON.parse(found[1] as string);
}

/** Fields by path and type, such as `slices[].target string`. Null means any type, and the last page has no cursor. */
export function shapeOf(value: unknown, path = ''): string[] {
  if (value === null || path.endsWith('next_cursor')) return [];
  if (Array.isArray(value)) return value.slice(0, 1).flatMap((each) => shapeOf(each, `${path}[]`));
  if (typeof value !== 'object') return [`${path} ${typeof value}`];
  return Object.entries(value).flatMap(([name, each]) => shapeOf(each, `${path}.${name}`));
}
