/** A flipped bit in the ends of slices moves no acknowledged share into a slice to come. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SliceMarks } from '../../pool/feed/slice-marks.ts';
import { SLICES_FILE } from '../../pool/journal/journal.ts';

const BOOT = 'ab'.repeat(8);

test('every flip of one bit: an entry is in a slice that closed around it, or in the next one', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-marks-'));
  await mkdir(join(directory, BOOT));
  const marks = new SliceMarks(directory);
  await marks.know(BOOT);
  const ends = [
    { slice: 1_233, through: 100 },
    { slice: 1_234, through: 180 },
    { slice: 1_235, through: 250 },
  ];
  for (const end of ends) await marks.look(async () => new Map([[BOOT, [end]]]));
  const path = join(directory, BOOT, SLICES_FILE);
  const bytes = await readFile(path);
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const flipped = Uint8Array.from(bytes);
    flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
    await writeFile(path, flipped);
    const read = new SliceMarks(directory);
    await read.know(BOOT);
    const sliceAt = (sequence: number) => read.sliceOf(BOOT, sequence).slice ?? 1_234;
    for (const [sequence, slice] of [
      [101, 1_234],
      [150, 1_234],
      [200, 1_235],
      [300, 1_236],
    ] as const)
      expect(Math.abs(sliceAt(sequence) - slice), `bit ${bit}, entry ${sequence}`).toBeLessThanOrEqual(2);
    // A flipped line break joins two lines.
    expect(read.of(BOOT).length, `bit ${bit}`).toBeGreaterThanOrEqual(ends.length - 2);
  }
  await rm(directory, { recursive: true });
});
