/** The file of what a front end signed: no damage of it makes the front end sign another record of a slice. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { nameOfDoubled } from '../../pool/journal/doubled-shares.ts';
import { SignedSlices } from '../../pool/receipts/signed-slices.ts';
import { temporaryDirectory } from '../temporary.ts';

/** A database in which nobody has told anything. */
const sql = (async () => []) as unknown as Sql;
const SLICES = [9, 10];
const sheet = (slice: number) => ({
  service: 'pplns' as const,
  slice,
  boot: 'ab'.repeat(8),
  first: slice,
  last: slice + 5,
  passedOver: nameOfDoubled([slice]),
});
const record = (name: string) => ({ chain: name, root: name, accounts: 1, total_work: '1' });

async function signed(): Promise<{ readonly directory: string; readonly path: string; readonly bytes: Buffer }> {
  const directory = temporaryDirectory();
  const slices = SignedSlices.open(directory);
  for (const slice of SLICES) expect(await slices.keep(sql, sheet(slice), record(`own ${slice}`))).toBe(true);
  const path = join(directory, 'signed-slices');
  return { directory, path, bytes: readFileSync(path) };
}

/** Whether it would sign another record of one of the slices. */
async function signsOther(directory: string): Promise<boolean> {
  let slices: SignedSlices;
  try {
    slices = SignedSlices.open(directory);
  } catch {
    return false;
  }
  for (const slice of SLICES) if (await slices.allows(sql, 'pplns', slice, record('other'))) return true;
  return false;
}

test('a flipped bit at any place, or a missing end, is noticed', async () => {
  const { directory, path, bytes } = await signed();
  expect(await signsOther(directory)).toBe(false);
  const bad: string[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] as number) ^ 1;
    writeFileSync(path, flipped, { mode: 0o600 });
    if (await signsOther(directory)) bad.push(`flipped at ${at}`);
    writeFileSync(path, bytes.subarray(0, at), { mode: 0o600 });
    if (await signsOther(directory)) bad.push(`cut at ${at}`);
  }
  expect(bad).toEqual([]);
});

test('a file without a checksum, of a release of before, is read and gets one', async () => {
  const { directory, path, bytes } = await signed();
  const lines = bytes
    .toString()
    .split('\n')
    .slice(1)
    .map((line) => line.split(' ').slice(0, 3).join(' '))
    .join('\n');
  writeFileSync(path, lines, { mode: 0o600 });
  expect(await signsOther(directory)).toBe(false);
  await SignedSlices.open(directory).keep(sql, sheet(12), record('own 12'));
  expect(readFileSync(path, 'utf8')).toContain(lines);
  expect(readFileSync(path, 'utf8')).toMatch(/^[0-9a-f]{8}\n/);
});

test('the sheets that were signed are known after a start, besides those of other machines', async () => {
  const { directory } = await signed();
  const slices = SignedSlices.open(directory);
  expect(await slices.sheetsOf(sql, [10, 11, 12])).toEqual([sheet(10)]);
  const again = { ...sheet(10), last: 99 };
  expect(await slices.keep(sql, again, record('own 10'))).toBe(true);
  expect(await SignedSlices.open(directory).sheetsOf(sql, [10])).toEqual([sheet(10), again]);
});
