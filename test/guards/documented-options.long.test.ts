/** The documents name programs that are there, with options that their help has. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { commandsOn, PAGES } from './page-commands.ts';
import { ROOT } from './project-files.ts';

const bins: Record<string, string> = packageJson.bin;
/** Packages that the docs name like programs. */
const PACKAGES = ['svc-wasm', 'svc-common', 'svc-node'];

type Documented = { readonly where: string; readonly words: readonly string[]; readonly options: readonly string[] };

/** Lines that start one of the programs; words without options are its command, and maybe an operand, which does not change the help. */
function programLines(): Documented[] {
  return PAGES.flatMap((page) =>
    commandsOn(page).flatMap((line) => {
      const match = /^(?:npx |\.?\/?bin\/)?(svcd|svc-[a-z]+)((?: .*)?)$/.exec(line);
      if (match === null) return [];
      const [, name = '', rest = ''] = match;
      if (PACKAGES.includes(name) && rest === '') return [];
      const words = /^(?: [a-z][a-z-]*(?= |$))*/.exec(rest)?.[0].trim().split(' ') ?? [];
      const options = [...rest.matchAll(/(?<=\s)--([a-z][a-z-]*)/g)].map((found) => found[1] as string);
      return [{ where: `${page}: ${line}`, words: [name, ...words.filter((word) => word !== '')], options }];
    }),
  );
}

function helpOf(commands: readonly string[]): Map<string, string> {
  const asked = JSON.stringify(commands.map((words) => words.split(' ')));
  const { stdout } = spawnSync(process.execPath, [join(ROOT, 'test/guards/print-help.ts'), asked], {
    encoding: 'utf8',
  });
  const texts = JSON.parse(stdout) as string[];
  return new Map(commands.map((words, i) => [words, texts[i] as string]));
}

test('every svc command in the docs is a program, and its options are in its help', () => {
  const lines = programLines();
  expect(lines.filter(({ words }) => !((words[0] as string) in bins)).map(({ where }) => where)).toEqual([]);
  const withOptions = lines.filter(({ options }) => options.length > 0);
  expect(withOptions.length).toBeGreaterThan(20);
  const help = helpOf([...new Set(withOptions.map(({ words }) => words.join(' ')))]);
  const wrong = withOptions.flatMap(({ where, words, options }) => {
    const text = help.get(words.join(' ')) as string;
    return options
      .filter((option) => !text.includes(`--${option}`) && !text.includes(`]${option}`))
      .map((option) => `${where}: --${option}`);
  });
  expect(wrong).toEqual([]);
});
