import {
  appendFile,
  type FileHandle,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { dropJournal, Journal, journalBoots, readFrames, readJournal } from '../../pool/journal/journal.ts';
import { decodeRecord, encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { seed } from '../level.ts';
import { fuzzDecoder } from '../protocol/fuzz.ts';
import { temporaryDirectory } from '../temporary.ts';
import { freshIdentity } from './fresh-identity.ts';

const bootId = pattern('boot', 8);
const account = Uint8Array.of(0, ...pattern('account', 48));
const common = { service: 'pplns', account, worker: 'rig-1' } as const;
const records: JournalRecord[] = [
  {
    kind: 'terms',
    service: 'solo',
    from: 7,
    through: 2_000_000_000,
    windowThousandths: 8_000,
    feePpm: 10_000,
    atMillis: 1_767_225_600_000,
  },
  { kind: 'ownership', ...common, owner: pattern('owner', 13) },
  { kind: 'share', ...common, work: 123_456_789n, atMillis: 1_767_225_600_000, identity: freshIdentity(7) },
  // As an earlier version wrote it.
  { kind: 'share', ...common, work: 5n, atMillis: 1_767_225_600_000, identity: null },
  {
    kind: 'block',
    ...common,
    service: 'solo',
    blockId: pattern('block', 48),
    anchorHeight: 99,
    target: (1n << 240n) + 7n,
    extranonce: pattern('extranonce', 36),
    atMillis: 5,
  },
  {
    kind: 'block',
    ...common,
    service: 'pplns',
    blockId: pattern('another block', 48),
    anchorHeight: 100,
    target: 7n,
    extranonce: pattern('extranonce', 40),
    atMillis: 6,
    carried: { fees: 12_345n, mass: 1_700_000 },
  },
];

async function all(directory: string, boot: string, after = -1) {
  const found = [];
  for await (const batch of readJournal(directory, boot, after)) found.push(...batch);
  return found;
}

test('records survive the journal in order, across segments, and any suffix can be read', async () => {
  const directory = temporaryDirectory();
  const journal = await Journal.open({ directory, bootId, segmentBytes: 200 });
  const written = Array.from({ length: 50 }, (_, i) => utf8(`record ${i}`));
  await Promise.all(written.map((record) => journal.append([record])));
  await journal.append([utf8('a'), utf8('b')]);
  await journal.close();
  expect(await journalBoots(directory)).toEqual([journal.bootId]);
  const found = await all(directory, journal.bootId);
  expect(found.map((entry) => entry.sequence)).toEqual(Array.from({ length: 52 }, (_, i) => i));
  expect(new TextDecoder().decode(found[37]?.record)).toBe('record 37');
  expect((await all(directory, journal.bootId, 40)).map((entry) => entry.sequence)[0]).toBe(41);
  await dropJournal(directory, journal.bootId);
  expect(await journalBoots(directory)).toEqual([]);
});

test('a torn or flipped tail loses only what was never answered', async () => {
  const directory = temporaryDirectory();
  const journal = await Journal.open({ directory, bootId });
  await journal.append([utf8('kept'), utf8('kept too')]);
  await journal.append([utf8('last')]);
  await journal.close();
  const path = join(directory, journal.bootId, (await readdir(join(directory, journal.bootId)))[0] as string);
  const whole = await readFile(path);
  for (let length = 0; length < whole.length; length++) {
    const { entries, unread } = readFrames(whole.subarray(0, length));
    expect(unread).toBe(length - ([0, 20, 44][entries.length] as number));
    expect(entries.length).toBe(length < 20 ? 0 : length < 44 ? 1 : 2);
  }
  await truncate(path, whole.length - 1);
  // It was answered: the journal says that it is missing.
  expect((await all(directory, journal.bootId)).map(({ record }) => record.length)).toEqual([4, 8, 0]);
  await rm(join(directory, journal.bootId, 'answered'));
  expect((await all(directory, journal.bootId)).length).toBe(2);
  await writeFile(path, whole);
  await appendFile(path, new Uint8Array(100));
  expect((await all(directory, journal.bootId)).length).toBe(3);
  const flipped = Uint8Array.from(whole);
  flipped[flipped.length - 1] = (flipped.at(-1) as number) ^ 1;
  expect(readFrames(flipped).entries.length).toBe(2);
});

test('a full disk refuses the append, takes no more, and goes on when there is room', async () => {
  const directory = temporaryDirectory();
  const journal = await Journal.open({ directory, bootId });
  await journal.append([utf8('before')]);
  const path = join(directory, journal.bootId);
  // A directory that is gone makes the next segment fail as a full disk does; the open one is left behind first.
  await journal.close();
  await rename(path, `${path}-away`);
  await expect(journal.append([utf8('lost')])).rejects.toThrow();
  expect(journal.accepting).toBe(false);
  await rename(`${path}-away`, path);
  await journal.append([utf8('after')]);
  expect(journal.accepting).toBe(true);
  await journal.close();
  const texts = (await all(directory, journal.bootId)).map((entry) => new TextDecoder().decode(entry.record));
  expect(texts).toEqual(['before', 'after']);
});

test('a share is answered when its bytes, the name of its file and that of its folder are flushed', async () => {
  const directory = temporaryDirectory();
  const probe = await open(join(directory, 'probe'), 'w');
  const handles: FileHandle = Object.getPrototypeOf(probe);
  await probe.close();
  const flushed: bigint[] = [];
  for (const name of ['sync', 'datasync'] as const) {
    const real = handles[name];
    const spy = vi.spyOn(handles, name).mockImplementation(async function (this: FileHandle) {
      flushed.push((await this.stat({ bigint: true })).ino);
      await real.call(this);
    });
    onTestFinished(() => spy.mockRestore());
  }
  const inode = async (path: string) => (await stat(path, { bigint: true })).ino;
  const journal = await Journal.open({ directory, bootId, segmentBytes: 50 });
  const own = join(directory, journal.bootId);
  expect(flushed.splice(0)).toEqual([await inode(directory)]);
  const segment = async (first: number) => inode(join(own, `${String(first).padStart(16, '0')}.journal`));
  await journal.append([utf8('a record that is longer than a segment is: '.padEnd(60, '.'))]);
  expect(flushed.splice(0)).toEqual([await inode(own), await segment(0)]);
  await journal.append([utf8('in the next file')]);
  expect(flushed.splice(0)).toEqual([await inode(own), await segment(1)]);
  await journal.append([utf8('in the same file')]);
  expect(flushed.splice(0)).toEqual([await segment(1)]);
  await journal.close();
});

test('records encode back to what they were decoded from', () => {
  for (const record of records) expect(decodeRecord(encodeRecord(record))).toEqual(record);
  fuzzDecoder({
    name: 'journal record',
    decode: decodeRecord,
    encode: encodeRecord,
    samples: records.map(encodeRecord),
  });
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: (1n << 96n) - 1n }), (work) => {
      expect(decodeRecord(encodeRecord({ kind: 'share', ...common, work, atMillis: 1, identity: null }))).toMatchObject(
        { work },
      );
    }),
    { seed },
  );
});
