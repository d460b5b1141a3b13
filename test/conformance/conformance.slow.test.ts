/** The facts of the specification against programs that were started for it. docs/conformance.md is made from what was found. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkAll, type Result } from './fact.ts';
import { FACTS } from './facts.ts';
import { startPrograms } from './programs.ts';

let results: readonly Result[] = [];
let stop: (() => Promise<void>) | undefined;

beforeAll(async () => {
  const programs = await startPrograms();
  stop = programs.stop;
  results = await checkAll(FACTS, programs.target);
});
afterAll(() => stop?.());

const found = (section: string, fact: string): Result | undefined =>
  results.find((one) => one.section === section && one.fact === fact);

describe.each([...new Set(FACTS.map(({ section }) => section))])('%s', (section) => {
  test.each(FACTS.filter((fact) => fact.section === section).map(({ fact }) => fact))('%s', (fact) => {
    expect(found(section, fact)).toEqual({ section, fact, state: 'kept' });
  });
});

test('docs/conformance.md says what was found', async () => {
  const lines = [
    '# Conformance: facts asked of running programs',
    '',
    "Made by test/conformance/conformance.slow.test.ts from what it found. Its checks know the specification's text and nothing of the project;",
    '`npm run conformance -- --api URL --mining URL --wallet URL --token-file FILE --stratum HOST:PORT` asks them of any implementation that runs, and prints what differs.',
    'Rules that no running program shows within a minute, such as epochs and slashing, are in [the rows that tests show](conformance-tests.md). Where the words leave a choice: [decision 13](decisions/0013-words-of-the-specification.md).',
    '',
    '| section | kept | differ | not checked |',
    '|---|---|---|---|',
  ];
  const sections = [...new Set(FACTS.map(({ section }) => section))];
  for (const section of sections) {
    const count = (state: Result['state']) =>
      results.filter((one) => one.section === section && one.state === state).length;
    lines.push(`| ${section} | ${count('kept')} | ${count('differs')} | ${count('not checked')} |`);
  }
  for (const section of sections) {
    lines.push('', `## ${section}`, '', '| fact | state |', '|---|---|');
    for (const { fact, state } of results.filter((one) => one.section === section))
      lines.push(`| ${fact.replaceAll('|', '\\|')} | ${state} |`);
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('../../docs/conformance.md');
});
