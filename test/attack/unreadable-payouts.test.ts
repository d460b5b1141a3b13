/**
 * A pool that told its history anew after a payout, and sees to it that the payout is hard to read: it lists one of a cut that no node has, or rows of another form, and lets dust and merges
 * come before it. What the checker's node shows is compared all the same.
 */
import { expect, test } from 'vitest';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { type BooksSources, gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { truth } from '../miner/watched-lists.ts';
import { LEDGER_LIES } from '../protocol/books-ledger-lies.ts';
import type { Lie } from '../protocol/books-liar.ts';
import { sourcesOf } from '../protocol/books-sources.ts';

const LIE = LEDGER_LIES['an old slice told anew after a payout'] as () => Lie;
const ID = 'cd'.repeat(48);
const FAR = 2 ** 52;
const listed = (final_height: number) => ({
  number: 1,
  state: 'finalized',
  transaction_id: ID,
  final_height,
  slice: null,
  head: null,
});

type World = {
  /** What the pool answers for its commitments. */
  readonly rows: readonly unknown[];
  /** Dust that the address received, and merges that it made, before the payout. */
  readonly dust?: number;
  readonly merges?: number;
  /** Cuts up to this one were pruned. */
  readonly prunedThrough?: number;
};

/** The payouts of the evidence are what spent from the pool's address. */
function worldOf(lie: Lie, { rows, dust = 0, merges = 0, prunedThrough = -1 }: World): BooksSources {
  const told = sourcesOf(lie);
  const node = told.node as NonNullable<BooksSources['node']>;
  const payouts = (lie.evidence.commitments ?? []).map(({ transaction_id, height }) => ({ transaction_id, height }));
  const first = payouts[0]?.height ?? 0;
  const noise = (kind: string, count: number) =>
    Array.from({ length: count }, (_, i) => ({ kind, transaction_id: `${kind} ${i}`, finalized_height: first }));
  const spends = payouts.map(({ transaction_id, height }) => ({
    kind: 'spent',
    transaction_id,
    finalized_height: height,
  }));
  const history = [...noise('received', dust), ...noise('spent', merges), ...spends];
  const addressChanges = async (asked: { after_height: number; limit: number; cursor?: string }) => {
    // Rewards are asked for from the slice on, and are not what this is about.
    if (asked.after_height < truth.proof.slice) return node.addressChanges(asked as never);
    const from = Number(asked.cursor ?? 0);
    const { changes } = await node.addressChanges(asked as never);
    const all = [...changes, ...history].filter((each) => each.finalized_height > asked.after_height);
    const next = from + asked.limit < all.length ? { next_cursor: String(from + asked.limit) } : {};
    return { changes: all.slice(from, from + asked.limit), indexed_height: 1_000_000, ...next };
  };
  const cutTransactions = async (asked: { height: number }) => {
    if (asked.height > 1_000_000) throw new ApiError('cut_unknown', 404, 'no such cut');
    if (asked.height <= prunedThrough) throw new ApiError('cut_pruned', 410, 'deleted');
    return node.cutTransactions(asked as never);
  };
  return {
    ...told,
    pool: async (path) => (path.startsWith('commitments') ? { commitments: rows } : told.pool(path)),
    node: { ...node, addressChanges, cutTransactions } as never,
  };
}

const verdictOf = async (lie: Lie, world: World) =>
  judgeProof(lie.proof, await gatherEvidence(lie.proof, worldOf(lie, world)));
const FALSE = { verdict: 'false', reason: 'commitment' };

test.each<World & { what: string }>([
  { what: 'no payout', rows: [] },
  { what: 'a payout of a cut that nobody has', rows: [listed(FAR)] },
  { what: 'a payout of a cut that the node has deleted', rows: [listed(1)], prunedThrough: 1 },
  { what: 'no payout, behind dust', rows: [], dust: 3_000 },
  { what: 'no payout, behind merges', rows: [], merges: 12 },
])('$what: the payout that the node shows is compared', async ({ what: _, ...world }) => {
  expect(await verdictOf(LIE(), world)).toEqual(FALSE);
});

test('rows of another form are false, and none of them makes the payouts unchecked', async () => {
  for (const row of [null, 7, { ...listed(1), final_height: 'x' }, { ...listed(1), transaction_id: 'x'.repeat(1_000) }])
    await expect(verdictOf(LIE(), { rows: [row] })).rejects.toThrow(ProtocolError);
});

test('of an honest pool: what cannot be read is not checked, and nothing is false', async () => {
  const proven = await verdictOf(truth, { rows: [] });
  expect(proven).toMatchObject({ verdict: 'proven', committed: { height: expect.any(Number) } });
  const unchecked = { verdict: 'unchecked', missing: ['commitments'] };
  expect(await verdictOf(truth, { rows: [listed(FAR)] })).toMatchObject(unchecked);
  expect(await verdictOf(truth, { rows: [], prunedThrough: 1_000_000 })).toMatchObject(unchecked);
  expect(await verdictOf(truth, { rows: [], dust: 20_000 })).toMatchObject(unchecked);
  expect(await verdictOf(truth, { rows: [], merges: 100 })).toMatchObject(unchecked);
});
