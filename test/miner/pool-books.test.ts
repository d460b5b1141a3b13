/** svc-miner's own files: an alarm is on record only when its evidence is on disk. */
import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PoolBooks } from '../../miner/books/pool-books.ts';
import { fetchFromNode, type TlsOptions } from '../../miner/client/transport-node.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { OTHER_FINGERPRINT, TEST_CERTIFICATE, TEST_FINGERPRINT } from './certificate.ts';
import { booksOf, convictedPool, type Noted, raised } from './convicted-pool.ts';

/** Miners of several addresses may share a directory: a file is named by the address too. */
const fileOf = (dataDir: string, address: string): string =>
  join(dataDir, `evidence-books-less-pplns-77-pool-${address.slice(-12)}.json`);

test('what is saved of an alarm is never ahead of its evidence', async () => {
  const pool = await convictedPool();
  const dataDir = temporaryDirectory();
  const written: unknown[] = [];
  const books = booksOf(dataDir, pool, ({ evidence }) => void written.push(evidence));
  // A slow disk: the evidence waits for other writes of its file.
  const evidence = fileOf(dataDir, pool.address);
  let isRaised = false;
  const disk = (async () => {
    while (!isRaised) await Promise.all(Array.from({ length: 20 }, () => writeDurably(evidence, '{}')));
  })();
  await raised(books);
  isRaised = true;
  await books.stop();
  expect(readFileSync(join(dataDir, 'books-development.json'), 'utf8')).toContain('books_less pplns/77');
  expect(written).toEqual([evidence]);
  await disk;
});

test('evidence that cannot be written is reported with its alarm, is no alarm on record, and is tried again', async () => {
  const pool = await convictedPool();
  const dataDir = temporaryDirectory();
  const alarms: Noted[] = [];
  const books = booksOf(dataDir, pool, (fields) => void alarms.push(fields));
  // A directory where the file should be.
  mkdirSync(fileOf(dataDir, pool.address));
  await raised(books);
  await until(() => alarms.length > 0);
  expect(alarms).toEqual([expect.objectContaining({ alarm: 'books_less', evidence_lost: expect.any(String) })]);
  expect(books.figures.unwritten).toBe(1);
  await books.stop();
  const saved = () => readFileSync(join(dataDir, 'books-development.json'), 'utf8');
  expect(saved()).not.toContain('books_less pplns/77');
  // Room again: what waits is written with the next look, and by nothing but that.
  rmdirSync(fileOf(dataDir, pool.address));
  books.check();
  await until(() => alarms.length > 1);
  expect(alarms[1]).toEqual({ pool: 'pool', alarm: 'books_less', evidence: fileOf(dataDir, pool.address) });
  await books.stop();
  expect(books.figures.unwritten).toBe(0);
  expect(saved()).toContain('books_less pplns/77');
});

test.each<[string, TlsOptions, string | undefined]>([
  ['the authority of --tls-ca', { pins: [], authorities: TEST_CERTIFICATE.cert }, undefined],
  ['the fingerprint of --tls-pin', { pins: [TEST_FINGERPRINT] }, undefined],
  ['neither', { pins: [] }, 'self-signed certificate'],
  ['another fingerprint', { pins: [OTHER_FINGERPRINT] }, 'self-signed certificate'],
])(
  'books behind a certificate of their own, with %s: read, or the cause is named at the first try',
  async (_name, tls, cause) => {
    let asked = 0;
    const server = createSecureServer(TEST_CERTIFICATE, (_request, answer) => {
      asked++;
      answer.end(JSON.stringify({ kept_from: 1, newest: 7, through: 7, more: false, slices: [] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    onTestFinished(() => server.closeAllConnections());
    const api = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const notes: { level: string; message: string; reason: unknown }[] = [];
    const pool = await convictedPool();
    const books = new PoolBooks(
      {
        dataDir: temporaryDirectory(),
        network: 'development',
        pools: ['pool'],
        address: pool.address,
        worker: '',
        api,
        poolKey: undefined,
        payoutThreshold: undefined,
        nodeApi: undefined,
      },
      {
        note: (level, message, { reason }) => void notes.push({ level, message, reason }),
        now: () => performance.now(),
        wall: () => Date.now(),
        random: () => 1,
        fetch: fetchFromNode(tls),
      },
    );
    books.of(0)?.offered({ key: pool.key, api } as ReceiptsOffer);
    const unread = () => notes.filter(({ message }) => message === 'the books could not be read');
    if (cause === undefined) await until(() => asked >= 2);
    else await until(() => unread().length > 0);
    await books.stop();
    expect(unread()).toEqual(
      cause === undefined ? [] : [expect.objectContaining({ level: 'warn', reason: expect.stringContaining(cause) })],
    );
  },
);
