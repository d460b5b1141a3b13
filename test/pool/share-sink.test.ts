import { chmod, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConnectionCounter, connectionNumberMemory, extranonceOf } from '../../bridge/session/extranonce.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { Journal, readJournal } from '../../pool/journal/journal.ts';
import { decodeRecord } from '../../pool/journal/journal-record.ts';
import { PoolSink } from '../../pool/journal/share-sink.ts';
import { concat } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

const bootId = pattern('boot', 8);
const owner = new ConnectionCounter(bootId, 0, connectionNumberMemory()).next();
const extranonce = extranonceOf('tag', owner, 0);
const account = Uint8Array.of(0, ...pattern('account', 48));
const share = (service: string, atMillis: number) => ({
  service,
  account,
  worker: '<b>"quoted"</b>',
  work: 5n,
  // Of a block; a share is found by the newest cut of its time.
  anchorHeight: 3,
  hashWork: 4,
  cutHeight: 7,
  extranonce,
  headerDigest: pattern('header', 16),
  nonce: pattern('nonce', 8),
  atMillis,
});

async function bed(limits: { maxPendingBytes?: number } = {}) {
  const directory = temporaryDirectory();
  const journal = await Journal.open({ directory, bootId, ...limits });
  const outbox = await Outbox.open({ directory, bootId: journal.bootId }, { log: quietLog });
  let now = 10_000;
  const sink = new PoolSink({ journal, outbox, log: quietLog, now: () => now });
  return { directory, journal, outbox, sink, pass: (millis: number) => (now += millis) };
}

const found = { blockId: pattern('block', 48), payout: account, target: 9n, header: extranonce };
const block = { ...share('solo', 4), ...found, carried: { fees: 77n, mass: 4_000 } };

async function recordsOf(directory: string, journal: Journal) {
  const read = [];
  for await (const entries of readJournal(directory, journal.bootId, -1)) read.push(...entries);
  return { read, records: read.map((entry) => decodeRecord(entry.record)) };
}

test('shares and blocks are in the journal when their call resolves, and in the outbox; whose they are before the first', async () => {
  const { directory, journal, outbox, sink } = await bed();
  await sink.own([{ owner, service: 'solo', account, worker: 'w' }]);
  await sink.shares([share('solo', 1), share('pplns', 2)]);
  await sink.shares([share('pplns', 3)]);
  await sink.block(block);
  const { read, records } = await recordsOf(directory, journal);
  expect(records.map((record) => record.kind)).toEqual(['ownership', 'share', 'share', 'share', 'block']);
  expect(records[0]).toMatchObject({ owner, service: 'solo' });
  expect(records[1]).toMatchObject({
    worker: '<b>"quoted"</b>',
    work: 5n,
    service: 'solo',
    identity: { anchorHeight: 7, bytes: concat(pattern('header', 16), pattern('nonce', 8)) },
  });
  expect(records[4]).toMatchObject({ anchorHeight: 3, carried: { fees: 77n, mass: 4_000 } });
  const sent = (await outbox.next(100))?.entries ?? [];
  expect(sent.map((entry) => [entry.sequence, decodeRecord(entry.record)])).toEqual(
    read.map((entry, i) => [entry.sequence, records[i]]),
  );
  await expect(sink.shares([share('bridge', 1)])).rejects.toThrow(/no service/);
  await journal.close();
});

test('a login leaves nothing in the journal; a block that comes first brings its owner with it', async () => {
  const { directory, journal, sink } = await bed();
  for (let i = 0; i < 100; i++) await sink.own([{ owner, service: 'solo', account, worker: `w${i}` }]);
  expect((await recordsOf(directory, journal)).records).toEqual([]);
  expect(sink.knowsFinder(block)).toBe(false);
  await sink.block(block);
  expect(sink.knowsFinder(block)).toBe(true);
  const { records } = await recordsOf(directory, journal);
  expect(records.map((record) => record.kind)).toEqual(['ownership', 'block']);
  expect(records[0]).toMatchObject({ owner, service: 'solo', account, worker: block.worker });
  await journal.close();
});

test('logins are put off while the journal cannot be written, and find out that it can', async () => {
  const { directory, journal, sink, pass } = await bed();
  const login = () => sink.own(Array(50).fill({ owner, service: 'solo', account, worker: 'w' }));
  const own = join(directory, journal.bootId);
  await rm(own, { recursive: true });
  await login();
  await expect(sink.shares([share('pplns', 1)])).rejects.toThrow();
  await expect(login()).rejects.toThrow();
  pass(1_000);
  // Nobody is left who could send a share: the login itself is tried.
  await expect(login()).rejects.toThrow();
  await mkdir(own);
  pass(1_000);
  await login();
  await login();
  const { records } = await recordsOf(directory, journal);
  expect(records.map((record) => record.kind)).toEqual(['ownership']);
  await journal.close();
});

test('a journal that cannot be written refuses shares, is tried again after a while, and recovers', async () => {
  const { directory, journal, outbox, sink, pass } = await bed();
  const own = join(directory, journal.bootId);
  // A directory in the place of the segment file fails for every user, root too.
  await rm(own, { recursive: true });
  await expect(sink.shares([share('pplns', 1)])).rejects.toThrow();
  expect(sink.accepting).toBe(false);
  pass(1_000);
  expect(sink.accepting).toBe(true);
  await mkdir(own);
  await chmod(own, 0o755);
  // Of the write that failed nothing counts, whose connection it was neither.
  expect(sink.knowsFinder(block)).toBe(false);
  await sink.shares([share('pplns', 2)]);
  expect(sink.accepting).toBe(true);
  expect((await readdir(own)).sort()).toEqual([`${'0'.repeat(16)}.journal`, 'answered']);
  expect((await outbox.next(100))?.entries).toHaveLength(2);
  await journal.close();
});

test('while more waits for the disk than may, nobody logs in who could not send a share', async () => {
  const { journal, sink } = await bed({ maxPendingBytes: 1 });
  const writing = sink.shares([share('pplns', 1)]);
  await expect(sink.own([{ owner, service: 'solo', account, worker: 'w' }])).rejects.toThrow('the journal is behind');
  await writing;
  await sink.own([{ owner, service: 'solo', account, worker: 'w' }]);
  await journal.close();
});
