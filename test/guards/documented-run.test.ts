/** Every command of README.md and docs/ is run by a flow of test/documented, or is on a short list with what stands in for it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NAMED_ONLY, NOT_RUN } from './documented-commands.ts';
import { covers, inlineCommands, quotedByFlows, sameLine, shellLines } from './documented-lines.ts';
import { ROOT } from './project-files.ts';

const VALIDATOR_PAGE = 'docs/validator.md';
const quoted = quotedByFlows();
const isListed = (line: string) => NOT_RUN.some(({ what }) => what.test(line));

test('every line of a code block is run, or is listed with the reason why not', () => {
  const left = shellLines().filter(({ page, line }) => page !== VALIDATOR_PAGE && !quoted.has(sameLine(line)));
  expect(left.filter(({ line }) => !isListed(line)).map(({ page, line }) => `${page}: ${line}`)).toEqual([]);
  const idle = NOT_RUN.filter(({ what }) => !left.some(({ line }) => what.test(line)));
  expect(idle.map(({ what }) => what.source)).toEqual([]);
});

test('every command in the text is run too, as it stands or with more words', () => {
  const lines = [...quoted, ...shellLines().map(({ line }) => sameLine(line))];
  const left = inlineCommands().filter(({ line }) => !lines.some((one) => covers(one, sameLine(line))));
  const unlisted = left.filter(({ line }) => !NAMED_ONLY.some(({ what }) => what.test(line)));
  expect(unlisted.map(({ page, line }) => `${page}: ${line}`)).toEqual([]);
  const idle = NAMED_ONLY.filter(({ what }) => !left.some(({ line }) => what.test(line)));
  expect(idle.map(({ what }) => what.source)).toEqual([]);
});

test('what stands in for a command exists', () => {
  for (const { instead } of [...NOT_RUN, ...NAMED_ONLY])
    if (instead !== undefined) expect(existsSync(join(ROOT, instead)), instead).toBe(true);
});

test('a line that no flow runs would be found', () => {
  expect(quoted.has('svc-wallet new-address')).toBe(true);
  expect(quoted.has('svc-wallet new-adress')).toBe(false);
  expect(covers('svcd run --data-dir .data/third --storage pruned', 'svcd run --storage MODE')).toBe(true);
  expect(covers('svcd run --data-dir .data/third --storage pruned', 'svcd run --snapshot')).toBe(false);
});
