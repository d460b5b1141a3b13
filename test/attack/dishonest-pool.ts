/** A pool of the audit bed that lies, long after all that it has to publish was due, and a ledger on which it did what it hides. */
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { auditPublic } from '../../pool/audit/public.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { type PoolListPage, type ProofBlock, poolListId } from '../../protocol/books/pool-proof.ts';
import { feeOf, leavesOf } from '../../protocol/books/pplns.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import { POOL } from '../pool/audit-bed.ts';
import { publishedPool } from '../pool/published-pool.ts';

export const THEFT = 'ab'.repeat(48);
/** Long after everything that is due. */
export const LATER = 300;

export type Reads = Pick<LedgerReads, 'addressChanges' | 'cutTransactions' | 'block'>;
type Asked<K extends keyof Reads> = Parameters<Reads[K]>[0];
export type Lie = (path: string, answer: never) => unknown;

/** The ledger at cut LATER, with a transaction in cut 160 that spends all of `from` and makes `outputs`. */
export async function ledgerWith(
  ledger: LedgerReads,
  outputs: readonly { address: string; amount: bigint }[],
  from = POOL,
): Promise<LedgerReads> {
  const reads = ledger as Reads;
  const { changes } = await reads.addressChanges({ addresses: [POOL], after_height: 0 });
  const last = changes.at(-1) as (typeof changes)[number];
  const spent = outputs.reduce((sum, { amount }) => sum + amount, 0n);
  const rest = from === POOL ? [{ address: POOL, amount: BigInt(last.amount) - spent }] : [];
  const all = [...outputs, ...rest].map(({ address, amount }) => ({ address, amount: String(amount) }));
  const made = all.map(({ address, amount }, output_index) => ({
    finalized_height: 160,
    address,
    kind: 'received',
    source: 'regular',
    amount,
    transaction_id: THEFT,
    outpoint: { transaction_id: THEFT, output_index },
  }));
  const took = from === POOL ? [{ ...last, finalized_height: 160, kind: 'spent', transaction_id: THEFT }] : [];
  const document = {
    transaction_id: THEFT,
    outcome: 'finalized',
    fee: '0',
    payload_hex: '',
    outputs: all,
    inputs: [{ address: from, amount: String(spent), outpoint: last.outpoint }],
  };
  return {
    ...ledger,
    addressChanges: async (asked: Asked<'addressChanges'>) => {
      const page = await reads.addressChanges(asked);
      const own = [...took, ...made].filter(({ address }) => outputs.length > 0 && asked.addresses.includes(address));
      const after = own.filter((each) => each.finalized_height > asked.after_height);
      return { ...page, changes: [...page.changes, ...after], indexed_height: LATER };
    },
    cutTransactions: async (asked: Asked<'cutTransactions'>) => {
      const page = await reads.cutTransactions(asked);
      return asked.height === 160 ? { ...page, transactions: [...page.transactions, document] } : page;
    },
  } as unknown as LedgerReads;
}

/** The same ledger before the pool paid anybody. */
export function unpaidLedger(ledger: LedgerReads): LedgerReads {
  const reads = ledger as Reads;
  return {
    ...ledger,
    addressChanges: async (asked: Asked<'addressChanges'>) => {
      const page = await reads.addressChanges(asked);
      const rewards = page.changes.filter(({ kind, source }) => kind === 'received' && source === 'work_reward');
      return { ...page, changes: rewards, indexed_height: LATER };
    },
    cutTransactions: async () => ({ transactions: [] }),
  } as unknown as LedgerReads;
}

/** The same ledger with other payloads in the transactions that spent from the pool's address. */
export function ledgerCarrying(ledger: LedgerReads, payload: (before: string) => string): LedgerReads {
  const reads = ledger as Reads;
  return {
    ...ledger,
    addressChanges: async (asked: Asked<'addressChanges'>) => ({
      ...(await reads.addressChanges(asked)),
      indexed_height: LATER,
    }),
    cutTransactions: async (asked: Asked<'cutTransactions'>) => {
      const page = await reads.cutTransactions(asked);
      const transactions = page.transactions.map((each) => ({ ...each, payload_hex: payload(each.payload_hex) }));
      return { ...page, transactions };
    },
  } as unknown as LedgerReads;
}

/** The pool says that it is at cut LATER too, unless the lie says another. */
export const auditLie = async (sql: Sql, node: LedgerReads, lie: Lie = (_, answer) => answer) => {
  const pool = publishedPool(sql, (path, answer) =>
    lie(path, (path === 'terms' ? { ...(answer as object), height: LATER } : answer) as never),
  );
  return auditPublic({ pool, node: node as never });
};

/** A list of solo as a pool makes it, of other blocks. */
export function soloList(list: PoolListPage, blocks: readonly ProofBlock[]): PoolListPage {
  const ppm = BigInt(list.fee_ppm);
  const credits = new Map<string, bigint>();
  let [reward, fee] = [0n, 0n];
  for (const block of blocks) {
    const key = toHex(parseAddress(block.finder).payload);
    const own = feeOf(BigInt(block.reward), ppm);
    credits.set(key, (credits.get(key) ?? 0n) + BigInt(block.reward) - own);
    [reward, fee] = [reward + BigInt(block.reward), fee + own];
  }
  const { root } = sumTree(leavesOf(credits, fromHex));
  const made = {
    ...list,
    blocks,
    reward: String(reward),
    fee: String(fee),
    credited: String(reward - fee),
    credit_accounts: root.count,
    credit_root: toHex(root.hash),
    credits: [...credits].map(([key, amount]) => ({
      address: formatAddress(fromHex(key), 'development'),
      amount: String(amount),
    })),
  };
  return { ...made, list_id: poolListId(made) };
}

/** The slices of a service as a pool publishes them that shows everybody this list. */
export function publishing(list: PoolListPage, path: string, answer: object): object {
  if (!path.startsWith(`slices/${list.service}?`)) return answer;
  const { slices } = answer as { slices: { slice: number; credits: object | null }[] };
  const sums = {
    reward_atoms: list.reward,
    fee_atoms: list.fee,
    credited_atoms: list.credited,
    root: list.credit_root,
  };
  return { ...answer, slices: slices.map((each) => (each.slice === list.slice ? { ...each, credits: sums } : each)) };
}
