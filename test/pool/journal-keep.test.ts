/** How long journals stay after the books have them, and what they may take of the disk. */
import { copyFile, readdir, readFile, stat, truncate, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { JournalKeep } from '../../pool/feed/journal-keep.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { DAMAGED_FOLDER, Journal, journalBoots, readJournal } from '../../pool/journal/journal.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

const KEEP_MILLIS = 1_000_000;

async function bed(directory: string, boot: number, maxBytes = 1e9) {
  const journal = await Journal.open({ directory, bootId: new Uint8Array(8).fill(boot), segmentBytes: 100 });
  const outbox = await Outbox.open({ directory, bootId: journal.bootId }, { log: quietLog });
  const clock = { millis: Date.now() };
  const options = { directory, keepMillis: KEEP_MILLIS, maxBytes };
  const keep = new JournalKeep(options, { outbox, log: quietLog, now: () => clock.millis });
  const add = async (records: number) => {
    for (let i = 0; i < records; i++) {
      const record = utf8(`record ${i}`.padEnd(84, '.'));
      outbox.push([{ bootId: journal.bootId, sequence: await journal.append([record]), record }]);
    }
  };
  const names = async () =>
    (await readdir(join(directory, journal.bootId))).filter((name) => name !== 'answered').sort();
  return { journal, outbox, keep, clock, add, names };
}

test('a segment stays until the books have had it for the whole time, and goes back to waiting when they lose it', async () => {
  const { journal, outbox, keep, clock, add, names } = await bed(temporaryDirectory(), 1);
  await add(4);
  const file = (sequence: number, end: string) => `${String(sequence).padStart(16, '0')}.${end}`;
  await keep.round();
  expect(await names()).toEqual([0, 1, 2, 3].map((n) => file(n, 'journal')));
  outbox.taken(journal.bootId, 1);
  await keep.round();
  expect(await names()).toEqual([file(0, 'taken'), file(1, 'taken'), file(2, 'journal'), file(3, 'journal')]);
  clock.millis += KEEP_MILLIS - 1_000;
  outbox.taken(journal.bootId, 3);
  await keep.round();
  // The newest is still being written.
  expect(await names()).toEqual([file(0, 'taken'), file(1, 'taken'), file(2, 'taken'), file(3, 'journal')]);
  outbox.standAt(journal.bootId, 0);
  await keep.round();
  expect(await names()).toEqual([file(0, 'taken'), file(1, 'journal'), file(2, 'journal'), file(3, 'journal')]);
  outbox.standAt(journal.bootId, 3);
  await keep.round();
  clock.millis += 2_000;
  await keep.round();
  // The time of those that the books lost and got again counts from then.
  expect(await names()).toEqual([file(1, 'taken'), file(2, 'taken'), file(3, 'journal')]);
  clock.millis += KEEP_MILLIS;
  await keep.round();
  expect(await names()).toEqual([file(3, 'journal')]);
  await journal.close();
});

test('what is kept is bounded by its size, oldest first; a boot that is over goes as a whole', async () => {
  const directory = temporaryDirectory();
  const first = await bed(directory, 1);
  await first.add(6);
  await first.journal.close();
  const second = await bed(directory, 2, 350);
  await second.keep.round();
  expect((await first.names()).length).toBe(6);
  second.outbox.standAt(first.journal.bootId, 5);
  await second.keep.round();
  expect(second.keep.bytes).toBe(300);
  expect((await first.names()).map((name) => Number(name.slice(0, 16)))).toEqual([3, 4, 5]);
  second.clock.millis += KEEP_MILLIS;
  await second.keep.round();
  expect(await journalBoots(directory)).toEqual([second.journal.bootId]);
  expect(second.outbox.lines().map((line) => line.bootId)).toEqual([second.journal.bootId]);
  await second.journal.close();
});

test('a mark from a clock that was ahead is set right and does not keep a segment for ever', async () => {
  const directory = temporaryDirectory();
  const { journal, outbox, keep, clock, add, names } = await bed(directory, 1);
  await add(2);
  outbox.taken(journal.bootId, 1);
  await keep.round();
  const path = join(directory, journal.bootId, (await names())[0] as string);
  await utimes(path, clock.millis / 1000 + 1e9, clock.millis / 1000 + 1e9);
  await keep.round();
  expect((await stat(path)).mtimeMs).toBeCloseTo(clock.millis, -3);
  clock.millis += KEEP_MILLIS;
  await keep.round();
  expect((await names()).length).toBe(1);
  await journal.close();
});

test('a position beyond the journal is reported as an error: what is added next would count nothing', async () => {
  const said: string[] = [];
  const log = { ...quietLog, error: (message: string) => void said.push(message) };
  const bootId = '01'.repeat(8);
  const outbox = await Outbox.open({ directory: temporaryDirectory(), bootId }, { log });
  outbox.standAt(bootId, -1);
  outbox.push([{ bootId, sequence: 0, record: utf8('one') }]);
  outbox.standAt(bootId, 0);
  expect(said).toEqual([]);
  outbox.standAt(bootId, 1_000);
  expect(said).toEqual([expect.stringContaining('entries that this journal never had')]);
});

/** The sequences that can be read of a journal. */
async function read(directory: string, bootId: string): Promise<number[]> {
  const found = new Set<number>();
  for await (const entries of readJournal(directory, bootId, -1))
    for (const { sequence, record } of entries) if (record.length > 0) found.add(sequence);
  return [...found];
}

test('a file of another name beside the segments hides none of their entries, and is kept when they go', async () => {
  const directory = temporaryDirectory();
  const first = await bed(directory, 1);
  await first.add(3);
  await first.journal.close();
  const { bootId } = first.journal;
  const path = (name: string) => join(directory, bootId, name);
  const copies = ['z-old.journal', '0000000000000001 (copy).journal', '1.taken'];
  for (const name of copies) await copyFile(path('0000000000000001.journal'), path(name));
  expect(await read(directory, bootId)).toEqual([0, 1, 2]);
  const second = await bed(directory, 2);
  second.outbox.standAt(bootId, 2);
  await second.keep.round();
  second.clock.millis += KEEP_MILLIS + 1;
  await second.keep.round();
  expect(await journalBoots(directory)).toEqual([second.journal.bootId]);
  expect((await readdir(join(directory, DAMAGED_FOLDER, bootId))).sort()).toEqual(copies.toSorted());
  await second.journal.close();
});

test('an older copy of a segment that was put back beside it replaces nothing: what it lacks is still read, and both are kept', async () => {
  const directory = temporaryDirectory();
  const first = await bed(directory, 1);
  await first.add(3);
  await first.journal.close();
  const { bootId } = first.journal;
  const path = (name: string) => join(directory, bootId, name);
  const second = await bed(directory, 2);
  second.outbox.standAt(bootId, 2);
  await second.keep.round();
  const whole = await readFile(path('0000000000000002.taken'));
  await copyFile(path('0000000000000002.taken'), path('0000000000000002.journal'));
  await truncate(path('0000000000000002.journal'), 40);
  expect(await read(directory, bootId)).toEqual([0, 1, 2]);
  await second.keep.round();
  expect(await readFile(path('0000000000000002.taken'))).toEqual(whole);
  expect(await readdir(join(directory, DAMAGED_FOLDER, bootId))).toEqual(['0000000000000002.journal']);
  // The database falls back: the entries are there, wherever a copy is put meanwhile.
  await copyFile(path('0000000000000002.taken'), path('0000000000000002.journal'));
  await truncate(path('0000000000000002.journal'), 40);
  second.outbox.standAt(bootId, 0);
  await second.keep.round();
  expect(await read(directory, bootId)).toEqual([0, 1, 2]);
  await second.journal.close();
});
