/**
 * A pool's API and a node over honest books in memory (vectors/generate/honest-books.ts), as the public audit reads them. A liar changes
 * answers of the pool. No server and no database.
 */
import { auditPublic, type PublicReport } from '../../pool/audit/public.ts';
import { formatAddress } from '../../protocol/address.ts';
import { UNIQUE_BYTES } from '../../protocol/books/block-service.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import {
  Books,
  blockIdOf,
  type Decisions,
  honestDecisions,
  poolAddress,
  SLICE_CUTS,
} from '../../vectors/generate/honest-books.ts';

const SLICES = 14;
const FIRST = 3;
/** The cut that pool and node have reached. */
export const HEIGHT = (FIRST + SLICES) * SLICE_CUTS + 5;
/** It pays all of the first list. */
const PAYOUT = { number: 1, slice: 14 };
const NETWORK_FEE = 100n;
const EXTRANONCE = toHex(encodeExtranonce('', new Uint8Array(UNIQUE_BYTES)));

/** Blocks are found in these slices alone: their rewards are paid, and their lists made, when the last slice closes. */
function booksOf(found: readonly number[], change: Partial<Decisions>): Books {
  const decisions = honestDecisions(SLICES);
  const blocks = decisions.blocks.filter(({ slice, service }) => found.includes(slice) && service === 'pplns');
  return new Books({ ...decisions, blocks, pays: blocks, ...change });
}

const sum = (amounts: readonly { readonly amount: string }[]): bigint =>
  amounts.reduce((all, { amount }) => all + BigInt(amount), 0n);

export function publishedBooks({
  found = [3, 4, 5],
  ...decisions
}: Partial<Decisions> & { readonly found?: number[] } = {}) {
  const books = booksOf(found, decisions);
  const listed = found[0] as number;
  const { terms, targets } = books.evidence(listed);
  const payout = books.commitment(PAYOUT.slice, PAYOUT.number);
  const { credits } = books.list(listed);

  const change = (
    kind: string,
    source: string,
    from: string,
    amount: bigint,
    by: string,
    finalized_height: number,
  ) => ({
    address: poolAddress,
    kind,
    source,
    amount: String(amount),
    transaction_id: by,
    finalized_height,
    outpoint: { transaction_id: from, output_index: 0 },
  });
  const rewardsOf = (slice: number) =>
    books.decisions.pays
      .filter((pay) => pay.slice === slice)
      .map(({ reward }, i) => {
        const transaction = rewardTransaction(blockIdOf(slice, 'pplns', i));
        return change('received', 'work_reward', transaction, reward, transaction, slice * SLICE_CUTS + 97);
      });
  const spent = rewardsOf(listed);
  const left = sum(spent) - sum(credits) - NETWORK_FEE;
  const { transaction_id, height: final_height } = payout;
  const changes = [
    ...found.flatMap(rewardsOf),
    ...spent.map(({ transaction_id: from, amount }) =>
      change('spent', '', from, BigInt(amount), transaction_id, final_height),
    ),
    change('received', 'regular', transaction_id, left, transaction_id, final_height),
  ];
  const transaction = {
    transaction_id,
    outcome: 'finalized',
    payload_hex: payout.payload_hex,
    inputs: spent.map(({ amount }) => ({ address: poolAddress, amount })),
    outputs: [...credits, { address: poolAddress, amount: String(left) }],
  };

  /** A node whose index has reached a cut. */
  const nodeAt = (height: number) => ({
    addressChanges: async ({ after_height: after }: { after_height: number }) => ({
      changes: changes.filter(({ finalized_height: at }) => at > after && at <= height),
      indexed_height: height,
    }),
    cutTransactions: async ({ height: at }: { height: number }) => ({
      transactions: at === final_height ? [transaction] : [],
    }),
    cuts: async ({ before }: { before: number }) => ({
      cuts: [{ height: before - 1, target: targets?.get(before - 1) }],
    }),
    block: async () => ({ extranonce: EXTRANONCE }),
  });

  /** What an honest pool answers to a path below api/v1/. */
  function answerTo(path: string): unknown {
    const [route = '', words = ''] = path.split('?');
    const [kind, service, number, what] = route.split('/');
    const slice = Number(number);
    if (kind === 'terms') return { ...terms, height: HEIGHT };
    if (kind === 'payments') {
      const paid = { payout_id: '1', state: 'finalized', transaction_id, created_millis: 0, final_height };
      return { payments: credits.map((credit) => ({ ...paid, ...credit })) };
    }
    if (kind === 'commitments')
      return { commitments: [{ ...PAYOUT, state: 'finalized', transaction_id, final_height, head: null }] };
    if (kind === 'proofs') return books.list(slice);
    const own = service === 'pplns' ? books.blocks(slice, 'pplns') : [];
    if (what === 'blocks')
      return { blocks: own.map(({ block_id }) => ({ block_id, state: 'paid', credited_with: slice })) };
    if (what === 'leaves') {
      const leaves = [...(books.decisions.slices[slice - FIRST] ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1));
      const address = (key: string): string => formatAddress(fromHex(key), 'development');
      return { leaves: leaves.map(([key, work]) => ({ address: address(key), work: String(work) })) };
    }
    const before = Number.parseInt(new URLSearchParams(words).get('cursor') ?? '999999', 10);
    const rows = (service === 'pplns' ? books.records : books.solo).filter((record) => record.slice < before).reverse();
    const creditsOf = (at: number) =>
      service === 'pplns' && found.includes(at) ? { root: books.list(at).credit_root } : null;
    return { slices: rows.map((row) => ({ ...row, credits: creditsOf(row.slice) })) };
  }

  /** The audit of a pool that changes its answers so. */
  const audit = (
    lie: (path: string, answer: never) => unknown = (_, answer) => answer,
    node: ReturnType<typeof nodeAt> | null = nodeAt(HEIGHT),
  ): Promise<PublicReport> =>
    auditPublic({
      pool: async (path) => lie(path, structuredClone(answerTo(path)) as never),
      node: node as never,
    });
  return { books, audit, nodeAt };
}
