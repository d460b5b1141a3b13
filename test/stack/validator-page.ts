/**
 * docs/validator.md as the program that it is: its lines in code blocks and its `node.json`, with the names of one machine in place of those that the page uses. Which lines were
 * run is kept, so that a test can say that none was left out.
 */
import { readFileSync } from 'node:fs';

const PAGE = readFileSync(new URL('../../docs/validator.md', import.meta.url), 'utf8');

/** By what the page writes. */
export type Fill = Readonly<Record<string, string>>;

function fill(text: string, names: Fill): string {
  let filled = text;
  for (const [name, value] of Object.entries(names)) filled = filled.replaceAll(name, value);
  const left = /\b(?:[A-Z]{2,}_)*(?:ID|HEX|ADDRESS|INDEX)\b|mainnet|example\.org|\/etc\/svc|\/var\/lib\/svc/.exec(
    filled,
  );
  if (left !== null) throw new Error(`nothing was put in place of ${left[0]} in: ${text}`);
  return filled;
}

const blocks = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'gm'))].map(
    ([, indent = '', text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );

export class ValidatorPage {
  /** In the order of the page. */
  readonly lines: readonly string[] = blocks('sh').flatMap((block) => block.trim().split('\n'));
  readonly #run = new Set<string>();

  /** The words of the page's line that begins so and has these words too; the first that was not run yet, else the first. */
  words(start: string, names: Fill, ...also: string[]): string[] {
    const found = this.lines.filter(
      (line) => `${line} `.startsWith(`${start} `) && also.every((word) => line.includes(word)),
    );
    const line = found.find((one) => !this.#run.has(one)) ?? found[0];
    if (line === undefined) throw new Error(`the page has no line '${start}'`);
    this.#run.add(line);
    return fill(line, names).split(' ');
  }

  get notRun(): string[] {
    return [...new Set(this.lines)].filter((line) => !this.#run.has(line));
  }

  nodeConfig(names: Fill): Record<string, unknown> & { validator_overlay: Record<string, unknown> } {
    const [text = ''] = blocks('json');
    return JSON.parse(fill(text, names));
  }
}
