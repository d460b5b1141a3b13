/**
 * Books under attack while everybody who checks them looks on: strangers invent workers of a miner's address, workers and accounts of their own, and all of them
 * fall silent at once, which is news for the miner. Nobody accuses the pool, and the miner is told of each payment and of its own silent rig. The same
 * with all programs, for ten minutes: under-attack.deep.slow.test.ts.
 */
import { expect, onTestFinished, test } from 'vitest';
import { audit } from '../../pool/audit/audit.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import type { JournalRecord } from '../../pool/journal/journal-record.ts';
import { noteSilentWorkers } from '../../pool/stats/silence.ts';
import { feedNews, ROOM } from '../../pool/webhooks/news-queue.ts';
import { formatAddress } from '../../protocol/address.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { count, seed } from '../level.ts';
import { openAuditBed, POOL } from '../pool/audit-bed.ts';
import { account, type BooksBed } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { publishedPool } from '../pool/published-pool.ts';
import { randomOf } from '../random.ts';

/** A miner of the audit bed: it works in most slices, and both payouts pay it. */
const VICTIM = account('miner 1');
const ATTACKS = count({ full: 150, deep: 2_000 });
/** Work of an honest share: a name that does less than an eighth of it has no figures of its own. */
const HONEST = 1_000n;
const NOW = Date.now();
/** Of the audit bed, which pays after it. */
const LAST_SLICE = 4;

const share = (payload: Uint8Array<ArrayBuffer>, worker: string, work: bigint, atMillis = NOW): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: payload,
  worker,
  work,
  atMillis,
  identity: freshIdentity(),
});

test('under attack nobody who checks the books accuses the pool, and no payment and no news of one is missed', async () => {
  const draw = randomOf(seed);
  let [sent, inBooks, silent] = [0n, 0n, 0];
  const sumOf = async ({ sql }: BooksBed) =>
    BigInt((await sql<{ sum: string }[]>`select coalesce(sum(work), 0)::text as sum from shares`)[0]?.sum ?? 0);
  const besides = async (books: BooksBed, slice: number) => {
    const records = [share(VICTIM, 'rig', HONEST)];
    if (slice === 0) records.push(share(VICTIM, 'old-rig', HONEST, NOW - 3_600_000));
    for (let i = 0; i < ATTACKS; i++) {
      const kind = draw(8);
      const who = kind < 5 ? VICTIM : account(kind < 7 ? 'stranger' : `stranger ${slice}-${i}`);
      // Most as cheap as can be, some with enough work for figures of their own.
      const work = draw(3) === 0 ? HONEST / 4n : BigInt(1 + draw(16));
      records.push(share(who, `cheap-${slice}-${i}`, work, NOW - 3_600_000));
    }
    const before = await sumOf(books);
    await books.take(records);
    sent += records.reduce((sum, record) => sum + (record.kind === 'share' ? record.work : 0n), 0n);
    inBooks += (await sumOf(books)) - before;
    if (slice === LAST_SLICE) {
      // As if all had been kept for days, and the own rig for longer: now their silence is news, before the pool pays anybody.
      await books.sql`update workers set since = now() - interval '2 days'`;
      await books.sql`update workers set since = now() - interval '9 days' where name = 'old-rig'`;
      await books.sql`update workers set last_taken_at = last_share_at`;
      silent = await books.fenced((transaction) => noteSilentWorkers(transaction, 60_000));
    }
    if (slice > 0) return;
    await books.sql`insert into miner_webhooks (account_id, url, secret, set_millis)
      select id, 'https://miner.example/', 'secret', 1 from accounts where payload = ${Buffer.from(VICTIM)}`;
    await feedNews(books.sql, NOW);
  };
  const { books, ledger } = await openAuditBed(150, besides);
  onTestFinished(() => books.close());
  const { sql } = books;
  expect(inBooks).toBe(sent);

  expect(silent).toBeGreaterThan(2 * ROOM.workers);
  while (await feedNews(sql, NOW));
  type News = { readonly kind: string; readonly data: Readonly<Record<string, unknown>> };
  const news = await sql<News[]>`select kind, data from miner_news`;
  const told = (kind: string, field: string) =>
    news.filter((each) => each.kind === kind).map(({ data }) => data[field]);
  const paid = await sql<{ id: string }[]>`select p.id from payouts p join payout_items i on i.payout_id = p.id
    join accounts a on a.id = i.account_id where a.payload = ${Buffer.from(VICTIM)} and p.state = 'finalized'`;
  expect(paid.length).toBeGreaterThan(0);
  expect(told('payout_final', 'payout_id').sort()).toEqual(paid.map(({ id }) => id).sort());
  expect(told('worker_silent', 'worker')).toContain('old-rig');
  expect(told('worker_silent', 'worker').length).toBeLessThanOrEqual(ROOM.workers);

  expect((await audit(sql, { network: 'development', ledger: { node: ledger, poolAddress: POOL } })).findings).toEqual(
    [],
  );
  expect((await balanceSheet(sql)).gap).toBe(0n);
  const pool = publishedPool(sql);
  const report = await auditPublic({ pool, node: ledger as never });
  expect([report.findings, report.suspicions]).toEqual([[], []]);
  const address = formatAddress(VICTIM, 'development');
  const verdicts: string[] = [];
  for (let slice = 0; slice <= LAST_SLICE; slice++) {
    const proof = (await pool(`proofs/pplns/${slice}?address=${address}`)) as PoolProof;
    verdicts.push(judgeProof(proof, await gatherEvidence(proof, { pool, node: ledger as never })).verdict);
  }
  expect(verdicts).toEqual(Array.from({ length: LAST_SLICE + 1 }, () => 'proven'));
});
