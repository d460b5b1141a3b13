/** Which slice a journal's entries were in: the first word of the books counts, and a crash in the middle of a line costs that line. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readMarks, SliceMarks } from '../../pool/feed/slice-marks.ts';
import { temporaryDirectory } from '../temporary.ts';

const BOOT = 'aa'.repeat(8);
const told =
  (...ends: { slice: number; through: number | undefined }[]) =>
  async () =>
    new Map([[BOOT, ends]]);

test('entries are in the slice of the mark that covers them, and after the last mark in the next', async () => {
  const directory = temporaryDirectory();
  await mkdir(join(directory, BOOT));
  const marks = new SliceMarks(directory);
  await marks.know(BOOT);
  expect(marks.sliceOf(BOOT, 0).slice).toBeUndefined();
  await marks.look(told({ slice: 7, through: undefined }));
  expect(marks.sliceOf(BOOT, 0)).toMatchObject({ slice: 8 });
  await marks.look(told({ slice: 8, through: 10 }, { slice: 9, through: undefined }, { slice: 10, through: 25 }));
  for (const each of [marks, new SliceMarks(directory)]) {
    await each.know(BOOT);
    expect(each.sliceOf(BOOT, 0)).toEqual({ slice: 8, until: 10 });
    expect(each.sliceOf(BOOT, 10)).toEqual({ slice: 8, until: 10 });
    expect(each.sliceOf(BOOT, 11)).toEqual({ slice: 10, until: 25 });
    expect(each.sliceOf(BOOT, 26)).toMatchObject({ slice: 11 });
  }
  // The books are asked only for what is not known yet.
  const asked: (number | undefined)[] = [];
  await marks.look(async (known) => {
    asked.push(known.get(BOOT));
    return new Map();
  });
  expect(asked).toEqual([10]);
});

test('a line that was torn anywhere, by a crash or a full disk, is ignored and does not swallow the next; nothing is known of entries before the first mark', async () => {
  const directory = temporaryDirectory();
  await mkdir(join(directory, BOOT));
  const path = join(directory, BOOT, 'slices');
  const marks = new SliceMarks(directory);
  await marks.know(BOOT);
  await marks.look(told({ slice: 5, through: 3 }));
  const before = await readFile(path, 'utf8');
  await marks.look(told({ slice: 6, through: 441_234 }));
  const line = (await readFile(path, 'utf8')).slice(before.length);
  for (let cut = 0; cut <= line.length; cut++) {
    await writeFile(path, before + line.slice(0, cut));
    // The process that could not write it has it in memory, and writes it again; one that starts asks the books again.
    const started = new SliceMarks(directory);
    await started.know(BOOT);
    await started.look(
      async (known) => new Map([[BOOT, known.get(BOOT) === 6 ? [] : [{ slice: 6, through: 441_234 }]]]),
    );
    const again = new SliceMarks(directory);
    await again.know(BOOT);
    expect(again.sliceOf(BOOT, 3), `cut ${cut}`).toEqual({ slice: undefined, until: 3 });
    expect(again.sliceOf(BOOT, 4), `cut ${cut}`).toEqual({ slice: 6, until: 441_234 });
  }
  const [five = ''] = before.trim().split('\n');
  expect(readMarks(`x y\n6 20\n${five}\n${five}\n7 40\n`)).toEqual([{ slice: 5, through: 3 }]);
});

test('a boot that begins right after a fall of the books begins after every slice that its machine knew to be closed', async () => {
  const directory = temporaryDirectory();
  const NEXT = 'bb'.repeat(8);
  for (const boot of [BOOT, NEXT]) await mkdir(join(directory, boot));
  const marks = new SliceMarks(directory);
  await marks.know(BOOT);
  await marks.look(told({ slice: 7, through: undefined }, { slice: 8, through: 10 }));
  const again = new SliceMarks(directory);
  for (const boot of [BOOT, NEXT]) await again.know(boot);
  // The books have fallen back to before slice 6 closed.
  await again.look(async () => new Map([[NEXT, [{ slice: 5, through: undefined }]]]));
  expect(again.sliceOf(NEXT, 0)).toMatchObject({ slice: 9 });
  // And where they have no closed slice at all.
  const none = new SliceMarks(directory);
  const LAST = 'cc'.repeat(8);
  await mkdir(join(directory, LAST));
  for (const boot of [BOOT, LAST]) await none.know(boot);
  await none.look(async () => new Map());
  expect(none.sliceOf(LAST, 0)).toMatchObject({ slice: 9 });
});

test('two looks at once keep each mark once, in order', async () => {
  const directory = temporaryDirectory();
  await mkdir(join(directory, BOOT));
  const marks = new SliceMarks(directory);
  await marks.know(BOOT);
  const all = [4, 5, 6, 7].map((slice) => ({ slice, through: slice * 10 }));
  let closed = 1;
  // The first answer is slow, and tells less than the second.
  const ends = async (known: ReadonlyMap<string, number | undefined>) => {
    const then = all.slice(0, closed++).filter(({ slice }) => slice > (known.get(BOOT) ?? -1));
    await new Promise((resolve) => setTimeout(resolve, 40 - 10 * closed));
    return new Map([[BOOT, then]]);
  };
  await Promise.all([marks.look(ends), marks.look(ends), marks.look(ends)]);
  expect(marks.sliceOf(BOOT, 41)).toEqual({ slice: 5, until: 50 });
  expect(marks.sliceOf(BOOT, 61)).toMatchObject({ slice: 7 });
});
