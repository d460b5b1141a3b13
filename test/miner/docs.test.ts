/** docs/miner.md has every option of the help, with its default, and every exit code. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { EXIT } from '../../miner/mine.ts';
import { minerOptions } from '../../miner/options.ts';
import { optionName } from '../../runtime/command-line/command-line.ts';

const text = readFileSync(new URL('../../docs/miner.md', import.meta.url), 'utf8');
const rows = text.split('\n').filter((line) => line.startsWith('|'));

test('every option is in the table, and nothing else is', () => {
  const documented = rows.flatMap((row) => /^\| (?:`-\w`, )?`--([\w-]+)/.exec(row)?.slice(1) ?? []);
  const known = Object.entries(minerOptions).map(([property, option]) =>
    option.fallback === true ? `no-${optionName(property)}` : optionName(property),
  );
  expect(documented.sort()).toEqual([...known, 'config'].sort());
});

test('defaults and short names are those of the help', () => {
  for (const [property, option] of Object.entries(minerOptions)) {
    if (option.flag) continue;
    const row = rows.find((line) => line.includes(`\`--${optionName(property)} `)) ?? '';
    if (option.fallbackText !== undefined) expect(row.split('|')[2]).toContain(option.fallbackText);
    if (option.short !== undefined) expect(row).toContain(`\`-${option.short}\``);
  }
});

test('every exit code is in the table', () => {
  for (const code of Object.values(EXIT)) expect(rows.some((row) => row.startsWith(`| ${code} |`))).toBe(true);
});
