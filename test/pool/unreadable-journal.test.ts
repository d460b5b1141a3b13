/** A disk that cannot read some blocks of a journal (a bad sector) holds up neither the pool's start nor other entries; what is missing is reported. */
import { readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Outbox } from '../../pool/feed/outbox.ts';
import { readBlocks } from '../../pool/journal/damaged-blocks.ts';
import { Journal, readFrames, SLICES_FILE } from '../../pool/journal/journal.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

/** Linux answers EIO to who reads it from its beginning. */
const UNREADABLE = '/proc/self/mem';
const record = (n: number) => utf8(`record ${n}`.padEnd(84, '.'));

/** A journal of three segments with one entry each. */
async function ended(directory: string, boot: number): Promise<string> {
  const journal = await Journal.open({ directory, bootId: new Uint8Array(8).fill(boot), segmentBytes: 100 });
  for (let n = 0; n < 3; n++) await journal.append([record(n)]);
  await journal.close();
  return journal.bootId;
}

const replaced = async (directory: string, bootId: string, name: string): Promise<void> => {
  await rm(join(directory, bootId, name), { force: true });
  await symlink(UNREADABLE, join(directory, bootId, name));
};

test.each([
  ['a segment in the middle', '0000000000000001.journal', [0, 2], 1],
  ['the newest segment', '0000000000000002.journal', [0, 1], 1],
  ['the count of answered entries', 'answered', [0, 1, 2], 1],
  ['the ends of slices', SLICES_FILE, [0, 1, 2], 0],
])('%s cannot be read: all other entries are sent, and those of other boots', async (_, name, sent, damaged) => {
  const directory = temporaryDirectory();
  const [bad, good] = [await ended(directory, 1), await ended(directory, 2)];
  await replaced(directory, bad, name);
  const outbox = await Outbox.open({ directory, bootId: 'ff'.repeat(8) }, { log: quietLog });
  for (const boot of [bad, good]) outbox.standAt(boot, -1);
  const found = new Map<string, number[]>([bad, good].map((boot) => [boot, []]));
  for (let batch = await outbox.next(10); batch !== undefined; batch = await outbox.next(10))
    for (const { sequence, record: bytes } of batch.entries)
      if (bytes.length > 0) found.get(batch.bootId)?.push(sequence);
  expect(found.get(bad)).toEqual(sent);
  expect(found.get(good)).toEqual([0, 1, 2]);
  expect(outbox.damaged.size).toBe(damaged);
});

test('of a file with a bad block the entries before and behind it are read', async () => {
  const directory = temporaryDirectory();
  const journal = await Journal.open({ directory, bootId: new Uint8Array(8) });
  await journal.append(Array.from({ length: 200 }, (_, n) => record(n)));
  await journal.close();
  const bytes = await readFile(join(directory, journal.bootId, '0000000000000000.journal'));
  const file = {
    read: async (into: Buffer, offset: number, length: number, at: number) => {
      if (at === 8_192) throw Object.assign(new Error('i/o error'), { code: 'EIO' });
      bytes.copy(into, offset, at, at + length);
      return { bytesRead: length, buffer: into };
    },
  };
  const read = await readBlocks(file as never, bytes.length);
  const { entries, unread } = readFrames(read);
  // A hundred bytes each.
  const whole = Array.from({ length: 200 }, (_, n) => n).filter((n) => (n + 1) * 100 <= 8_192 || n * 100 >= 12_288);
  expect(entries.map(({ sequence }) => sequence)).toEqual(whole);
  expect(unread).toBe((200 - whole.length) * 100);
});
