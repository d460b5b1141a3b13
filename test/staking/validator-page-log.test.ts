/** docs/validator.md explains what the node of a validator logs: every line of its table is in the code, and every warning of the code that concerns an operator is in the table. */
import { expect, test } from 'vitest';
import { FILES, read } from '../guards/project-files.ts';

const table = read('docs/validator.md').split('## What the log says')[1] as string;
const rows = [...table.matchAll(/^\| (`[^|]+`[^|]*) \|/gm)].map(([, cell]) => cell as string);
const lines = rows.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, line]) => line as string));
/** What speaks of this validator, its votes, heartbeats and evidence. */
const SPEAKERS = [
  'validator/heartbeats',
  'validator/evidence',
  'validator/seat-watch',
  'consensus/driver/driver',
  'consensus/one-signer/signing-log',
];
/** Defects, and what one stranger's message is. */
const NOT_FOR_OPERATORS = ['a message could not be read'];

test('every log line that the page explains is in the code', () => {
  const code = FILES.filter((file) => /^node\/.*\.ts$/.test(file))
    .map(read)
    .join('\n');
  expect(lines.length).toBeGreaterThan(15);
  expect(lines.filter((line) => line !== 'member' && !code.includes(`'${line}'`))).toEqual([]);
});

test('every warning about a validator is explained on the page', () => {
  const said = SPEAKERS.flatMap((name) =>
    [...read(`node/${name}.ts`).matchAll(/log\.(?:warn|error)\(\s*'([^']+)'/g)].map(([, line]) => line as string),
  );
  expect(said.length).toBeGreaterThan(10);
  expect(said.filter((line) => !lines.includes(line) && !NOT_FOR_OPERATORS.includes(line))).toEqual([]);
});
