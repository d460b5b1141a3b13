/** The facts of the specification against programs that were started for it. docs/conformance.md is made from what was found. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { wait } from './client.ts';
import { checkAll, type Result } from './fact.ts';
import { FACTS } from './facts.ts';
import { startPrograms } from './programs.ts';
import { HELP } from './run.ts';

let results: readonly Result[] = [];
let stop: (() => Promise<void>) | undefined;

beforeAll(async () => {
  // A busy machine makes no fact differ: what really hangs is ended by the watch.
  wait.seconds = 300;
  const programs = await startPrograms();
  stop = programs.stop;
  results = await checkAll(FACTS, programs.target);
});
afterAll(() => stop?.());

/** No pool is started here: test/pool/no-metrics.test.ts asks one. */
const NOT_STARTED = 'needs --pool-web';

const found = (section: string, fact: string): Result | undefined =>
  results.find((one) => one.section === section && one.fact === fact);

describe.each([...new Set(FACTS.map(({ section }) => section))])('%s', (section) => {
  test.each(FACTS.filter((fact) => fact.section === section).map(({ fact }) => fact))('%s', (fact) => {
    const one = found(section, fact);
    expect(one).toEqual(
      one?.why === NOT_STARTED
        ? { section, fact, state: 'not checked', why: NOT_STARTED }
        : { section, fact, state: 'kept' },
    );
  });
});

test('docs/conformance.md says what was found', async () => {
  const lines = [
    '# Conformance: facts asked of running programs',
    '',
    "Made by test/conformance/conformance.slow.test.ts from what it found. Its checks know the specification's text and nothing of the project;",
    '`npm run conformance` asks them of any implementation that runs, whoever started it:',
    '',
    '| option | what is asked there |',
    '|---|---|',
    ...HELP.map(([option, what]) => `| \`${option}\` | ${what} |`),
    '',
    'It prints a table of the sections and what is not kept with its reason. What no option names is not checked. Exit code 0: no fact differs; 1: some do; 2: it could not ask.',
    'For `npm start`: `npm run conformance -- --mining http://127.0.0.1:28702 --wallet http://127.0.0.1:28703 --token-file .data/stack/pool-wallet.json.token --stratum 127.0.0.1:28710 --pool-web http://127.0.0.1:28740 --bridge-stats http://127.0.0.1:28771 --miner-stats http://127.0.0.1:28770`;',
    'for `npm start -- --validators 4` the token is in `.data/stack/validators-4/`.',
    '',
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
