/** What was acknowledged is booked or reported, whatever happens to the files of a journal; and no file goes that was not understood. */
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { placeOfEntry } from '../../pool/books/intake.ts';
import { JournalKeep } from '../../pool/feed/journal-keep.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { Journal } from '../../pool/journal/journal.ts';
import { fromUtf8, toHex, utf8 } from '../../protocol/bytes.ts';
import { count } from '../level.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';

const ANSWERED = ['a', 'bb', 'ccc', 'dd', 'e'];
const bootId = new Uint8Array(8).fill(0xaa);
const boot = toHex(bootId);
const FIRST = `${'0'.repeat(16)}.journal`;

/** A journal of two segments, closed. */
async function written(directory: string, texts: readonly string[] = ANSWERED): Promise<void> {
  const journal = await Journal.open({ directory, bootId, segmentBytes: 50 });
  for (const text of texts) await journal.append([utf8(text)]);
  await journal.close();
}

/** Starts with the journals of a directory: everything is taken into books, and kept until its time is over. */
async function start(directory: string) {
  const said: string[] = [];
  const say = (message: string) => void said.push(message);
  const log = { ...quietLog, warn: say, error: say };
  const outbox = await Outbox.open({ directory, bootId: '0'.repeat(16) }, { log });
  const booked = new Map<number, string>();
  const lost: number[] = [];
  let position = -1;
  outbox.standAt(boot, position);
  for (let batch = await outbox.next(100); batch !== undefined; batch = await outbox.next(100)) {
    for (const entry of batch.entries) {
      const place = placeOfEntry(entry, position);
      if (place.kind !== 'next') throw new Error(`${entry.sequence} after ${position}: ${place.kind}`);
      for (let i = 1; i <= place.lost; i++) lost.push(position + i);
      position = entry.sequence;
      if (!place.isLost) booked.set(position, fromUtf8(entry.record));
    }
    outbox.taken(boot, position);
  }
  let millis = Date.now();
  const options = { directory, keepMillis: 1_000, maxBytes: 1e9 };
  const keep = new JournalKeep(options, { outbox, log, now: () => millis });
  await keep.round();
  millis += 10_000;
  await keep.round();
  return { booked, lost, said, damaged: keep.damaged };
}

async function filesOf(directory: string): Promise<string[]> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Damages one file of a fresh copy, and proves the property of it. */
async function prove(original: string, file: string, change: (bytes: Buffer) => Buffer, what: string) {
  const directory = temporaryDirectory();
  await cp(original, directory, { recursive: true });
  const path = join(directory, boot, file);
  const damage = change(await readFile(path));
  await writeFile(path, damage);
  const { booked, lost, said, damaged } = await start(directory);
  const reported = [...booked.keys(), ...lost].sort((a, b) => a - b);
  expect(reported, what).toEqual(ANSWERED.map((_, i) => i));
  for (const [sequence, text] of booked) expect(text, what).toBe(ANSWERED[sequence]);
  const kept = await Promise.all((await filesOf(directory)).map((each) => readFile(each)));
  expect(
    kept.some((bytes) => bytes.equals(damage)),
    `${what}: the file is not there any more`,
  ).toBe(true);
  expect(said.length, what).toBeGreaterThan(0);
  expect(damaged, what).toBe(1);
  await rm(directory, { recursive: true });
  return lost;
}

test('an undamaged journal is booked whole and deleted without a word', async () => {
  const directory = temporaryDirectory();
  await written(directory);
  const { booked, lost, said, damaged } = await start(directory);
  expect([...booked.values()]).toEqual(ANSWERED);
  expect({ lost, said, damaged, files: await filesOf(directory) }).toEqual({
    lost: [],
    said: [],
    damaged: 0,
    files: [],
  });
});

test(
  'a flipped bit anywhere in the files of a journal costs at most the entry that it hit, which is reported',
  lasts(120, 'hundreds of journals are damaged and read'),
  async () => {
    const original = temporaryDirectory();
    await written(original);
    const files = await readdir(join(original, boot));
    expect(files).toHaveLength(3);
    for (const file of files) {
      const { size } = await stat(join(original, boot, file));
      // Below the deep level two or three bits of every byte, each time others.
      for (let bit = 0; bit < size * 8; bit += count({ full: 3, deep: 1 })) {
        const flip = (bytes: Buffer) => {
          bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
          return bytes;
        };
        const lost = await prove(original, file, flip, `${file}, bit ${bit}`);
        expect(lost.length, `${file}, bit ${bit}`).toBe(file === 'answered' ? 0 : 1);
      }
    }
  },
);

test('a journal that was cut at any offset is reported entry by entry', async () => {
  const original = temporaryDirectory();
  await written(original);
  for (const file of (await readdir(join(original, boot))).filter((name) => name.endsWith('.journal'))) {
    const { size } = await stat(join(original, boot, file));
    // An empty file is deleted: nothing in it was not understood. Its entries are reported.
    for (let length = 1; length < size; length++)
      await prove(original, file, (bytes) => bytes.subarray(0, length), `${file}, cut to ${length}`);
  }
});

test('doubled, zeroed and removed blocks of a journal hide nothing', async () => {
  const original = temporaryDirectory();
  await written(original);
  const { size } = await stat(join(original, boot, FIRST));
  for (let from = 0; from < size; from += 3)
    for (const length of [8, 17, 34]) {
      const to = Math.min(size, from + length);
      const parts = (bytes: Buffer) => [bytes.subarray(0, from), bytes.subarray(from, to), bytes.subarray(to)] as const;
      const changes = {
        doubled: (bytes: Buffer) => Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]),
        zeroed: (bytes: Buffer) => Buffer.concat([parts(bytes)[0], Buffer.alloc(to - from), parts(bytes)[2]]),
        removed: (bytes: Buffer) => Buffer.concat([parts(bytes)[0], parts(bytes)[2]]),
      };
      for (const [name, change] of Object.entries(changes))
        if (name !== 'removed' || to - from < size) await prove(original, FIRST, change, `${name} ${from} to ${to}`);
    }
});

test('a journal whose files are gone is reported by its count of answered entries', async () => {
  const directory = temporaryDirectory();
  await written(directory);
  for (const file of await readdir(join(directory, boot)))
    if (file.endsWith('.journal')) await rm(join(directory, boot, file));
  expect(await start(directory)).toMatchObject({ lost: [0, 1, 2, 3, 4] });
});

test('a journal of an earlier release without the count, of which nothing can be read, is moved aside with its mode', async () => {
  const directory = temporaryDirectory();
  await mkdir(join(directory, boot));
  await writeFile(join(directory, boot, FIRST), new Uint8Array(64).fill(7), { mode: 0o600 });
  await writeFile(join(directory, boot, 'notes of the operator'), 'x');
  const { said, damaged } = await start(directory);
  expect({ said: said.length > 0, damaged }).toEqual({ said: true, damaged: 2 });
  expect((await stat(join(directory, 'damaged', boot, FIRST))).mode & 0o777).toBe(0o600);
});
