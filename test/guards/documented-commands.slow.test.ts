/**
 * Every program line of README.md and docs/ is parsed by the program's own option tables: command, options, values and operands. Only what
 * a command then does is left out: test/documented runs them.
 */
import { expect, test, vi } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import { type Command, command, type Terminal } from '../../runtime/program.ts';
import { programWords, shellLines } from './documented-lines.ts';

const programs = vi.hoisted(() => new Map<string, Command>());

vi.mock('../../runtime/program.ts', async (original) => {
  const real = await original<typeof import('../../runtime/program.ts')>();
  return {
    ...real,
    command: ((spec) => real.command(spec, () => 0)) as typeof real.command,
    runProgram: async (program: Command) => void programs.set(program.spec.name, program),
  };
});

await import('../../node/main.ts');
await import('../../wallet/main.ts');
await import('../../bridge/main.ts');
await import('../../pool/main.ts');
await import('../../proxy/main.ts');
// Its main file starts to mine.
const { minerCommand } = await import('../../miner/options.ts');
programs.set(
  'svc-miner',
  command(minerCommand, () => 0),
);

const ADDRESS = formatAddress(Uint8Array.of(1, ...new Uint8Array(48).fill(7)), 'development');
/** What a reader puts in the place of a word in capitals. */
const MEANT: readonly (readonly [RegExp, string])[] = [
  [/\b(?:FEE_ADDRESS|ADDRESS|FROM)\b|\b[a-z]*svc1\.\.\./g, ADDRESS],
  [/\b(?:CUT_ID|VALIDATOR_ID|POSITION_ID|ENDPOINT_HEX)\b/g, 'ab'.repeat(48)],
  [/\bKEY_INDEX\b/g, '2147483647'],
  [/\bHEIGHT\b/g, '7'],
  [/\bPOOL-MACHINE\b/g, 'pool.example'],
];

const filled = (word: string): string => MEANT.reduce((text, [what, by]) => text.replaceAll(what, by), word);

async function complaintOf(line: string): Promise<string | undefined> {
  const found = programWords(line);
  if (found === undefined) return undefined;
  const program = programs.get(found.program);
  if (program === undefined) return 'there is no such program';
  let said = '';
  const terminal: Terminal = {
    out: () => undefined,
    err: (text) => {
      said += text;
    },
    readText: () => '{}',
    env: {},
  };
  return (await program.start(found.words.map(filled), terminal)) === 0 ? undefined : said.trim();
}

test('every program line of the documents is one that its program takes', async () => {
  const lines = shellLines().filter(({ line }) => programWords(line) !== undefined);
  expect(lines.length).toBeGreaterThan(60);
  const wrong: string[] = [];
  for (const { page, line } of lines) {
    const says = await complaintOf(line);
    if (says !== undefined) wrong.push(`${page}: ${line}: ${says}`);
  }
  expect(wrong).toEqual([]);
});

test('a wrong command, option, value or operand would be found', async () => {
  for (const line of [
    'svcd rum',
    'svcd run --data-dri x',
    'svcd prune --keep-cuts many',
    'svc-wallet balance now',
    'svc-x',
  ])
    expect(await complaintOf(line), line).toBeDefined();
});
