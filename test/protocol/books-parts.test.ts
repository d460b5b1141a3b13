/** What a checker of a pool's books reads, part by part: at its bounds, with something left out, or of another form. */
import { expect, test } from 'vitest';
import { newPayments, readPayoutTerms } from '../../protocol/books/account-payments.ts';
import { SOLO_MARK, serviceOfExtranonce, UNIQUE_BYTES } from '../../protocol/books/block-service.ts';
import { commitmentPayload } from '../../protocol/books/books-commitment.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { judgeList, judgeProof } from '../../protocol/books/books-verdict.ts';
import { readPayouts } from '../../protocol/books/ledger-payouts.ts';
import { checkPoolList, checkPoolProof } from '../../protocol/books/pool-proof.ts';
import { PoolOmission } from '../../protocol/books/pool-silence.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { encodeExtranonce, MAX_EXTRANONCE } from '../../protocol/ledger/tag.ts';
import { copy, honest, lyingBooks, renamed, SLICE, VICTIM } from './books-liar.ts';
import { sourcesOf } from './books-sources.ts';

const truth = { proof: honest.proof(SLICE, VICTIM), evidence: honest.evidence(SLICE) };
const first = honest.records[0]!.slice;

test('a pool whose first slice is number 0 has its lists proven, and its window may reach that slice', () => {
  const books = lyingBooks((decisions) => Object.assign(decisions, { firstSlice: 0 }));
  for (const { slice } of books.records)
    expect([slice, judgeList(books.list(slice), books.evidence(slice))]).toMatchObject([slice, { verdict: 'proven' }]);
});

test('a list or a window of slices from before the pool’s first is false, not only unproven', () => {
  const proof = renamed({ ...honest.proof(first, VICTIM), slice: first - 1 });
  // Where the terms are not known, the records tell it.
  const unknown = { terms: null };
  expect(judgeProof(proof, { ...honest.evidence(first), ...unknown })).toEqual({
    verdict: 'false',
    reason: 'slice_record',
  });
  const window = honest
    .proof(first + 1, VICTIM)
    .window.map((part, i, all) => (i === all.length - 1 ? { ...part, slice: first - 1 } : part));
  const reaching = renamed({ ...honest.proof(first + 1, VICTIM), window });
  expect(judgeProof(reaching, { ...honest.evidence(first + 1), ...unknown })).toEqual({
    verdict: 'false',
    reason: 'slice_record',
  });
});

/** The evidence of an honest pool that answers some paths otherwise. */
const gatheredWith = (change: (path: string, answer: never) => unknown, hasAllRecords = false) => {
  const { pool, ...rest } = sourcesOf(truth as never);
  return gatherEvidence(truth.proof, {
    ...rest,
    hasAllRecords,
    pool: async (path) => change(path, copy(await pool(path)) as never),
  });
};
type Slices = { slices: { slice: number }[] };
const isPage = (path: string): boolean => path.startsWith('slices/pplns?');

test('records that end early or begin late are an omission of the pool, unless the checker has read all of them', async () => {
  expect((await gatheredWith((_, answer) => answer)).records).toHaveLength(honest.records.length);
  for (const part of [
    (slices: Slices['slices']) => slices.slice(1),
    (slices: Slices['slices']) => slices.slice(0, 3),
    () => [],
  ]) {
    const cut = (path: string, answer: Slices) => (isPage(path) ? { slices: part(answer.slices) } : answer);
    await expect(gatheredWith(cut)).rejects.toThrow(PoolOmission);
    expect((await gatheredWith(cut, true)).records?.length).toBeLessThan(honest.records.length);
  }
});

test('terms and records of another form are refused, and none is longer than any pool makes it', async () => {
  const terms = truth.evidence.terms as object;
  for (const wrong of [
    null,
    {},
    { ...terms, address: 5 },
    { ...terms, terms: { pplns: [] } },
    { ...terms, terms: null },
  ])
    await expect(gatheredWith((path, answer) => (path === 'terms' ? wrong : answer))).rejects.toThrow('no such form');
  for (const wrong of [null, 5, 'x', { root: 'a'.repeat(4_096) }])
    await expect(
      gatheredWith((path, answer: Slices) => (isPage(path) ? { slices: [wrong, ...answer.slices] } : answer)),
    ).rejects.toThrow('no such form');
});

test('a document of whatever form is refused, and no reader of it ends', () => {
  const proof = honest.proof(SLICE, VICTIM);
  const list = honest.list(SLICE);
  const names = new Set([...Object.keys(proof), ...Object.keys(list)]);
  expect([checkPoolProof(proof).valid, checkPoolList(list).valid]).toEqual([true, true]);
  // Its name is what it says: receipts, credits and evidence name lists by it.
  const list_id = 'ab'.repeat(48);
  for (const verdict of [checkPoolProof({ ...proof, list_id }), checkPoolList({ ...list, list_id })])
    expect(verdict).toEqual({ valid: false, reason: 'list_id' });
  for (const name of names)
    for (const value of [null, 5, 'x', [null], {}, [{}]]) {
      const wrong = { [name]: value };
      if (name in proof)
        expect([name, value, checkPoolProof({ ...proof, ...wrong }).valid]).toEqual([name, value, false]);
      if (name in list) expect([name, value, checkPoolList({ ...list, ...wrong }).valid]).toEqual([name, value, false]);
    }
});

test('an extranonce shows its service only in the form that pools make', () => {
  const shown = (bytes: number, mark: number) => {
    const unique = new Uint8Array(bytes);
    unique[8] = mark;
    return serviceOfExtranonce(encodeExtranonce('', unique));
  };
  expect([shown(UNIQUE_BYTES, 1), shown(UNIQUE_BYTES, SOLO_MARK | 1)]).toEqual(['pplns', 'solo']);
  for (const bytes of [UNIQUE_BYTES - 1, UNIQUE_BYTES + 1]) expect(shown(bytes, SOLO_MARK)).toBeUndefined();
  for (const bytes of [0, MAX_EXTRANONCE + 1]) expect(serviceOfExtranonce(new Uint8Array(bytes))).toBeUndefined();
});

const paid = (n: number) => ({
  payout_id: `p${n}`,
  state: 'finalized',
  address: 'miner',
  amount: '5',
  transaction_id: `t${n}`,
  final_height: 100,
});
const asked = { address: 'miner', payer: 'pool', known: new Map(), fromHeight: 0 };

test('a payment is denied by a node that has read its cut without it, and not by one that has not read the cut', async () => {
  const pool = async () => ({ payments: [paid(1)] });
  const read = (indexed: number, outputs: number) =>
    newPayments(asked, {
      pool,
      node: {
        addressChanges: async ({ addresses }: { addresses: string[] }) => ({
          indexed_height: indexed,
          changes: Array.from({ length: outputs }, () => ({
            kind: addresses[0] === 'pool' ? 'spent' : 'received',
            transaction_id: 't1',
            amount: '5',
            finalized_height: 100,
          })),
        }),
      } as never,
    });
  expect(await read(100, 1)).toEqual({ found: new Map([['t1', { atoms: 5n, height: 100 }]]), denied: 0 });
  expect(await read(100, 0)).toEqual({ found: new Map(), denied: 1 });
  expect(await read(99, 0)).toEqual({ found: new Map(), denied: 0 });
});

test('a check reads a few payouts of a pool, however many it made and whatever it lists', async () => {
  const reads: number[] = [];
  const hexOf = (n: number) => n.toString(16).padStart(96, '0');
  const carrying = (n: number) => commitmentPayload({ number: n + 1, slice: SLICE, head: 'ab'.repeat(48) });
  const readWith = async (payload: (n: number) => string, rows: readonly unknown[] = []) => {
    reads.length = 0;
    return await readPayouts(
      { slice: SLICE, address: 'pool', sliceCuts: 10 },
      {
        pool: async () => ({ commitments: rows }),
        node: {
          addressChanges: async ({ after_height: after }: { after_height: number }) => ({
            changes: Array.from({ length: 500 }, (_, n) => ({
              kind: n % 2 === 0 ? 'spent' : 'received',
              transaction_id: hexOf(n),
              finalized_height: after + 1 + n,
            })),
            indexed_height: 10_000,
          }),
          cutTransactions: async ({ height }: { height: number }) => {
            const n = height - (SLICE + 1) * 10 - 1;
            reads.push(n);
            const transaction = { transaction_id: hexOf(n), outcome: 'finalized', payload_hex: payload(n) };
            return { transactions: [transaction] };
          },
        } as never,
      },
    );
  };
  const { found, isPartial } = await readWith(carrying);
  expect([found.length, isPartial, reads]).toEqual([4, false, [0, 2, 4, 6]]);
  // Merges hide no payout that is near; that none is found among so many proves nothing.
  expect((await readWith((n) => (n < 100 ? '' : carrying(n)))).found).toHaveLength(4);
  expect([await readWith(() => ''), reads.length]).toEqual([{ found: [], isPartial: true }, 64]);
  const row = { number: 1, state: 'finalized', transaction_id: hexOf(7), final_height: 5, slice: null, head: null };
  for (const wrong of [[null], [{ ...row, final_height: -1 }], [{ ...row, transaction_id: 5 }], [row, row, row]])
    await expect(readWith(carrying, wrong)).rejects.toThrow('no such form');
});

test('when a pool pays is read in one form, and its promises are bounded by what the ledger can show', async () => {
  const DAY = 86_400_000;
  const termsWith = (changes: object, account: object = {}, finals = 0) =>
    readPayoutTerms('miner', async (path) => {
      if (path === 'pool') return { payouts: { interval_seconds: 3_600, paused: false, ...changes } };
      if (path.startsWith('payments')) return { payments: Array.from({ length: finals }, (_, i) => paid(i)) };
      return { payout_minimum: '7', ...account };
    });
  const earlier = { amount: '9', until_millis: 5 };
  expect(await termsWith({}, { payout_minimums: [earlier] })).toEqual({
    minimum: 7n,
    earlier: [{ atoms: 9n, untilMillis: 5 }],
    intervalMillis: 3_600_000,
    isPaused: false,
    resumedMillis: undefined,
    advanced: 0n,
  });
  // Nobody waits for ever: longer than a week counts as a week.
  expect((await termsWith({ interval_seconds: 1e12, resumed_millis: 5 })).intervalMillis).toBe(7 * DAY);
  // What a pool says to have paid in advance counts as far as it lists payments.
  expect((await termsWith({}, { advanced: '100' }, 3)).advanced).toBe(15n);
  expect((await termsWith({}, { advanced: '12' }, 3)).advanced).toBe(12n);
  for (const [changes, account] of [
    [{ interval_seconds: '5' }],
    [{ interval_seconds: -1 }],
    [{ interval_seconds: null }],
    [{ paused: 'no' }],
    [{}, { payout_minimum: 7 }],
    [{}, { payout_minimum: '-7' }],
    [{}, { payout_minimums: null }],
    [{}, { payout_minimums: {} }],
    [{}, { payout_minimums: 'none' }],
    [{}, { payout_minimums: [null] }],
    [{}, { payout_minimums: [{ amount: '9', until_millis: 0.5 }] }],
    [{}, { payout_minimums: [{ amount: '0.5', until_millis: 5 }] }],
    [{}, { payout_minimums: Array(257).fill(earlier) }],
    [{}, { advanced: '-1' }],
  ] as const)
    await expect(termsWith(changes, account), JSON.stringify([changes, account])).rejects.toThrow(ProtocolError);
});

test('payments are read to the end of twenty pages, and a pool that lists more is not followed', async () => {
  const listed = (pages: number) => {
    let count = 0;
    const pool = async () => ({ payments: [paid(count)], ...(++count < pages ? { next_cursor: `${count}` } : {}) });
    return newPayments(asked, { pool, node: null }).then(
      ({ found }) => [count, found.size],
      (error: Error) => [count, error.message],
    );
  };
  expect([await listed(1), await listed(20), await listed(21), await listed(1e9)]).toEqual([
    [1, 1],
    [20, 20],
    [20, 'the pool lists too many payments'],
    [20, 'the pool lists too many payments'],
  ]);
});
