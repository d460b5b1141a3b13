/**
 * A pool that keeps its miners' rewards and arranges what it publishes so that no rule is broken by any one document: it moves deadlines, calls blocks
 * by another service, and pays without committing to its books. The books are real ones, out of PostgreSQL.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { publicReportText } from '../../pool/audit/report.ts';
import { formatAddress } from '../../protocol/address.ts';
import { commitmentPayload, headAt, readCommitment } from '../../protocol/books/books-commitment.ts';
import type { SliceRecord } from '../../protocol/books/books-slice.ts';
import type { PublishedTerms } from '../../protocol/books/books-terms.ts';
import type { PoolListPage } from '../../protocol/books/pool-proof.ts';
import { openAuditBed } from '../pool/audit-bed.ts';
import { account, type BooksBed } from '../pool/books-bed.ts';
import { publishedPool } from '../pool/published-pool.ts';
import { auditLie, LATER, type Lie, ledgerCarrying, publishing, soloList, unpaidLedger } from './dishonest-pool.ts';

let books: BooksBed;
let ledger: LedgerReads;
beforeAll(async () => {
  ({ books, ledger } = await openAuditBed());
  await books.height(LATER);
});
afterAll(() => books.close());

const thief = formatAddress(account('thief'), 'development');

type Slices = { slices: { slice: number; credits: unknown }[] };

/** Before the first payout; some lies more. */
const unpaid = async (...lies: Lie[]) =>
  auditLie(books.sql, unpaidLedger(ledger), (path, answer: object) => {
    const bare = /^(payments|commitments)/.test(path) ? { payments: [], commitments: [] } : answer;
    return lies.reduce((told: object, lie) => lie(path, told as never) as object, bare);
  });

/** No list of a service and slice. */
const unlisted =
  (service: string, slices: readonly number[]): Lie =>
  (path, answer: Slices) =>
    path.startsWith(`slices/${service}?`)
      ? {
          ...answer,
          slices: answer.slices.map((each) => (slices.includes(each.slice) ? { ...each, credits: null } : each)),
        }
      : answer;
const ALL = [0, 1, 2, 3, 4];
const withoutLists: Lie = (path, answer) => unlisted('pplns', ALL)(path, unlisted('solo', ALL)(path, answer) as never);

test('before its first payout an honest pool holds', async () => {
  const report = await unpaid();
  expect(report.findings).toEqual([]);
  expect(report.verdict).toBe('holds');
  expect((await unpaid(withoutLists)).verdict).toBe('false');
});

test('a deadline is not moved by the cut that the pool says it is at, when it is asked for the first time', async () => {
  let asked = 0;
  const report = await unpaid(withoutLists, (path, answer: object) =>
    path === 'terms' && asked++ === 0 ? { ...answer, height: 0 } : answer,
  );
  expect(report.verdict).not.toBe('holds');
});

test('a deadline is not moved by terms of a far future', async () => {
  for (const service of ['pplns', 'solo'] as const) {
    const report = await unpaid(withoutLists, (path, answer: PublishedTerms) => {
      if (path !== 'terms') return answer;
      const [first] = answer.terms[service];
      const future = { ...first, from_slice: 1_000_000, slice_cuts: 4_000_000_000 };
      return { ...answer, terms: { ...answer.terms, [service]: [...answer.terms[service], future] } };
    });
    expect(report.verdict, service).toBe('false');
  }
});

test('a deadline is not moved to a list of a far future, and no later list is taken on the pool’s word', async () => {
  const credited =
    (list: number): Lie =>
    (path, answer: { blocks: object[] }) =>
      /^slices\/\w+\/\d+\/blocks/.test(path)
        ? { ...answer, blocks: answer.blocks.map((each) => ({ ...each, credited_with: list })) }
        : answer;
  expect((await unpaid(withoutLists, credited(1_000_000))).verdict).toBe('false');
  // The slice that is open then, whenever somebody looks.
  expect((await unpaid(withoutLists, credited(75))).verdict).toBe('unchecked');
});

test('all PPLNS blocks of a slice called solo, found by the pool’s friend', async () => {
  const pool = publishedPool(books.sql);
  const list = async (service: string) => (await pool(`proofs/${service}/4/list?limit=200`)) as PoolListPage;
  const [pplns, solo] = [await list('pplns'), await list('solo')];
  const taken = pplns.blocks.map((block) => ({ ...block, finder: thief }));
  const told = soloList(
    solo,
    [...solo.blocks, ...taken].sort((a, b) => (a.block_id < b.block_id ? -1 : 1)),
  );
  const report = await unpaid(unlisted('pplns', [4]), (path, answer: { blocks: object[] }) => {
    if (path === 'slices/pplns/4/blocks') return { ...answer, blocks: [] };
    if (path === 'slices/solo/4/blocks')
      return {
        ...answer,
        blocks: told.blocks.map(({ block_id }) => ({ block_id, state: 'paid', credited_with: 4 })),
      };
    return path.startsWith('proofs/solo/4/list') ? told : publishing(told, path, answer);
  });
  expect(report.findings.map(({ computed }) => computed)).toContain('false: block_service');
});

test('payouts that carry nothing, with their commitments left out', async () => {
  const report = await auditLie(
    books.sql,
    ledgerCarrying(ledger, () => ''),
    (path, answer: object) => (path.startsWith('commitments') ? { ...answer, commitments: [] } : answer),
  );
  expect(report.verdict).toBe('false');
});

test('payouts that carry another head, and that the pool says are not final yet', async () => {
  const other = (payload: string) => {
    const carried = readCommitment(payload);
    return carried === undefined ? payload : commitmentPayload({ ...carried, head: 'cd'.repeat(48) });
  };
  const node = ledgerCarrying(ledger, other);
  const pending: Lie = (path, answer: { commitments: object[] }) =>
    path.startsWith('commitments')
      ? {
          ...answer,
          commitments: answer.commitments.map((each) => ({ ...each, state: 'pending', final_height: null })),
        }
      : answer;
  const report = await auditLie(books.sql, node, pending);
  // Not only by the lists, of which each looks at a few payouts.
  expect(report.findings.map(({ what }) => what).join()).toMatch(/payout 1/);
});

test('payouts that all commit to the first slice hold nothing of what came later', async () => {
  const pool = publishedPool(books.sql);
  const first = async (service: string) => {
    const { slices } = (await pool(`slices/${service}?limit=1&cursor=1-0`)) as { slices: SliceRecord[] };
    return (slices[0] as SliceRecord).chain;
  };
  const head = headAt({ pplns: await first('pplns'), solo: await first('solo') });
  const old = (payload: string) => {
    const carried = readCommitment(payload);
    return carried === undefined ? payload : commitmentPayload({ ...carried, slice: 0, head });
  };
  const report = await auditLie(books.sql, ledgerCarrying(ledger, old), (path, answer: { commitments: object[] }) =>
    path.startsWith('commitments')
      ? {
          ...answer,
          commitments:
            path.includes('slice=') && !path.includes('slice=0')
              ? []
              : answer.commitments.map((each) => ({ ...each, slice: 0, head })),
        }
      : answer,
  );
  expect(report.findings).toEqual([]);
  expect(report.verdict).toBe('unchecked');
});

test('books that stand still are suspicious: by the cut that they name, nothing of the last hours is due', async () => {
  const reads = unpaidLedger(ledger) as Pick<LedgerReads, 'addressChanges'>;
  const node = (height: number) =>
    ({
      ...reads,
      addressChanges: async (asked: never) => ({ ...(await reads.addressChanges(asked)), indexed_height: height }),
    }) as LedgerReads;
  const at = (height: number) =>
    auditLie(books.sql, node(height), (path, answer: object) =>
      /^(payments|commitments)/.test(path) ? { payments: [], commitments: [] } : answer,
    );
  const late = await at(LATER + 1_440);
  expect([late.verdict, late.suspicions]).toEqual(['unchecked', []]);
  const stopped = await at(LATER + 1_441);
  expect([stopped.findings, stopped.verdict]).toEqual([[], 'suspicious']);
  expect(stopped.suspicions).toEqual([{ name: 'books_behind', says: 'by 1441 cuts' }]);
  expect(publicReportText(stopped)).toMatch(/SUSPICION \(books_behind\)[\s\S]*Verdict: suspicious/);
});
