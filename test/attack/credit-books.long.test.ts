/**
 * The same miner against a pool's books: what is in the books when all journals are taken in, in pieces, some of them twice,
 * by one accountant after the other, is not more than the hashes done. And not even when the stratum server lets every
 * nonce through under every id: the books refuse a second of the same header by themselves.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { StratumService } from '../../bridge/service.ts';
import { Intake } from '../../pool/books/intake.ts';
import { Journal, readJournal } from '../../pool/journal/journal.ts';
import { PoolSink } from '../../pool/journal/share-sink.ts';
import { toHex } from '../../protocol/bytes.ts';
import { accountOf, addressOf } from '../bridge/stratum-client.ts';
import { count, seed } from '../level.ts';
import { type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { quietLog } from '../quiet-log.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { judgeByJobId } from './credit/mutations.ts';
import { credit, type Ledger, play, sigmasOf, tell } from './credit/play.ts';

const POOL: StratumService = {
  name: 'pplns',
  listen: { host: '127.0.0.1', port: 0 },
  listenWs: { host: '127.0.0.1', port: 0 },
  pool: { payout: accountOf(0), address: addressOf(0), name: 'pool' },
  tag: 'miner',
};

let books: BooksBed;
beforeAll(async () => {
  books = await openBooks();
  await books.height(1_000);
});
afterAll(() => books.close());

/** Journals of all starts, and the books that they end in. */
async function pool(): Promise<Ledger> {
  const directory = temporaryDirectory();
  const journals: Journal[] = [];
  await books.sql`truncate open_work, later_work, later_starts`;
  const open = async (bootId: Uint8Array) => {
    const journal = await Journal.open({ directory, bootId });
    journals.push(journal);
    return new PoolSink({ journal, outbox: { push: () => {} }, log: quietLog, now: Date.now });
  };
  let work: Promise<ReadonlyMap<string, number>> | undefined;
  return {
    sinks: { service: POOL, open },
    credited: async (number) => {
      work ??= takeAll(directory, journals);
      return (await work).get(toHex(accountOf(number))) ?? 0;
    },
  };
}

async function takeAll(directory: string, journals: readonly Journal[]): Promise<ReadonlyMap<string, number>> {
  const random = randomOf(seed);
  for (const journal of journals) await journal.close();
  let intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
  for (const { bootId } of journals)
    for await (const entries of readJournal(directory, bootId, -1))
      for (let at = 0; at < entries.length; ) {
        const batch = entries.slice(Math.max(0, at - random(50)), at + 1 + random(2_000));
        at = entries.indexOf(batch.at(-1) as (typeof entries)[0]) + 1;
        await books.fenced((transaction) => intake.take(transaction, batch));
        if (random(4) === 0) intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
      }
  const rows = await books.sql<{ payload: Buffer; work: string }[]>`select a.payload, sum(o.work)::text as work
    from (select account_id, work from open_work union all select account_id, work from later_work) o
    join accounts a on a.id = o.account_id group by a.payload`;
  return new Map(rows.map(({ payload, work }) => [payload.toString('hex'), Number(work)]));
}

test(
  'over random strategies, no more work is in the books than hashes were done',
  lasts(120, 'it mines for many rounds of attacks'),
  async () => {
    const results = await play(pool, { strategies: count({ full: 2, deep: 96 }) });
    tell('credit in the books', results);
    for (const result of results) expect(sigmasOf(result)).toBeLessThan(5);
    expect(credit(results)).toBeGreaterThan(0.2);
  },
);

test.each(['newest', 'best'] as const)(
  'a stratum server that counts a nonce under every id does not get it past the books: %s anchors',
  async (anchors) => {
    onTestFinished(judgeByJobId());
    const counted = async () => {
      const [refused] = await books.sql<{ count: bigint }[]>`select count from refused_shares
      where result = 'counted_before'`;
      return Number(refused?.count ?? 0);
    };
    const before = await counted();
    const results = await play(pool, { strategies: count({ full: 1, deep: 4 }), anchors });
    tell(`credit in the books, duplicates by job id, ${anchors} anchors`, results);
    for (const result of results) expect(sigmasOf(result)).toBeLessThan(5);
    expect((await counted()) - before).toBeGreaterThan(100);
  },
);
