/**
 * Checks all spends of the pool's address (books rule 25). The pool pays only from that address and change returns to
 * it, so every payment is a publicly visible spend of that address. An output of such a transaction is a listed
 * payment, change, or money that the pool took for itself. Its own withdrawals and the network's fees must never exceed
 * the fees of its lists and deposits by others.
 */
import { ApiError } from '../../protocol/api/client-calls.ts';
import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import { type CutReader, changesOf } from './cut-reader.ts';
import { type Findings, REMEDIES } from './findings.ts';
import type { UnreadRows } from './public-unread.ts';

export type LedgerNode = NonNullable<BooksSources['node']>;

export type LedgerReward = { readonly transaction: string; readonly height: number; readonly amount: bigint };
/** `returned`: the part that came back to the address. */
type Spend = LedgerReward & { readonly returned: bigint };

/** The history of the pool's address, read before any answer of the pool: later answers then cover all of it. */
export type AddressMoney = {
  readonly address: string;
  /** Everything up to this cut. */
  readonly height: number;
  /** Transactions that spent from the address, in the order of cuts. */
  readonly spends: readonly Spend[];
  /** Amount received for blocks. */
  readonly rewards: readonly LedgerReward[];
  /**
   * Deposits: amounts other than rewards, received by transactions that spent nothing from it; and spent outputs from
   * before the first cut.
   */
  readonly deposits: bigint;
};

export async function readAddressMoney(node: LedgerNode, address: string): Promise<AddressMoney> {
  const spends = new Map<string, { transaction: string; height: number; amount: bigint; returned: bigint }>();
  const rewards: LedgerReward[] = [];
  const received: { transaction: string; amount: bigint }[] = [];
  const known = new Set<string>();
  let deposits = 0n;
  const changes = changesOf(node, [address], 0);
  for (let step = await changes.next(); ; step = await changes.next()) {
    if (step.done === true) {
      for (const { transaction, amount } of received) {
        const spend = spends.get(transaction);
        if (spend === undefined) deposits += amount;
        else spend.returned += amount;
      }
      return { address, height: step.value, spends: [...spends.values()], rewards, deposits };
    }
    const { kind, source, amount, outpoint, transaction_id: transaction, finalized_height: height } = step.value;
    const name = `${outpoint.transaction_id}:${outpoint.output_index}`;
    if (kind === 'received') {
      known.add(name);
      if (source === 'work_reward') rewards.push({ transaction, height, amount: BigInt(amount) });
      else received.push({ transaction, amount: BigInt(amount) });
      continue;
    }
    // An output of the genesis document: nobody mined it.
    if (!known.delete(name)) deposits += BigInt(amount);
    const spend = spends.get(transaction) ?? { transaction, height, amount: 0n, returned: 0n };
    spend.amount += BigInt(amount);
    spends.set(transaction, spend);
  }
}

/** Whether a transaction of a cut spent from the address. True also of cuts that the history does not have. */
export function spendsOf(money: AddressMoney | undefined): (transaction: string, height: number) => boolean {
  const heights = new Map(money?.spends.map((spend) => [spend.transaction, spend.height]));
  return (transaction, height) => money === undefined || height > money.height || heights.get(transaction) === height;
}

/** Money that the pool took for itself. */
export type Withdrawal = { readonly transaction_id: string; readonly height: number; readonly amount: string };

export type MoneyReport = {
  /** Fees of the lists, and deposits by others. */
  readonly allowed: string;
  readonly network_fees: string;
  readonly withdrawn: string;
  /** What accounts were paid beyond their credits. */
  readonly overpaid: string;
  readonly withdrawals: readonly Withdrawal[];
};

/** The key of an output in the payments by transaction. */
export const outputText = ({ address, amount }: { readonly address: string; readonly amount: string }): string =>
  `${address} ${amount}`;

/** An account that was paid more than it was credited. */
export type Overpaid = { readonly address: string; readonly paid: bigint; readonly credited: bigint };

export type MoneyFacts = {
  /** The payments that the pool lists for each transaction. */
  readonly paid: ReadonlyMap<string, readonly string[]>;
  /** Totals of all lists. */
  readonly fees: bigint;
  /** Transactions that the books have not reached: their payments are not listed yet. */
  readonly unreached: ReadonlySet<string>;
  /** Their excess is the pool's own money: after a fall of the database it may have credited less than it had paid (rule 16). */
  readonly overpaid: readonly Overpaid[];
  /** Payments whose transactions the pool does not know yet: one that the node has deleted may have paid them. */
  readonly underWay: bigint;
};

/**
 * The amount that left the address by a transaction that the node has deleted: at least the part that neither came back
 * nor is listed, assuming that it paid all listed payments.
 */
function unseenSpend({ amount, returned }: Spend, listed: readonly string[], own: string) {
  let [paid, deposits] = [0n, 0n];
  for (const each of listed) {
    const [address, atoms] = each.split(' ') as [string, string];
    if (address === own) deposits += BigInt(atoms);
    else paid += BigInt(atoms);
  }
  const rest = amount - returned - paid;
  return { rest: rest > 0n ? rest : 0n, deposits };
}

export async function auditMoney(
  money: AddressMoney,
  { cuts, unread }: { readonly cuts: CutReader; readonly unread: UnreadRows },
  { paid, fees, unreached, overpaid, underWay }: MoneyFacts,
  findings: Findings,
): Promise<MoneyReport> {
  const withdrawals: (Withdrawal & { readonly to: string })[] = [];
  let { deposits } = money;
  let [left, withdrawn] = [0n, 0n];
  let isAnyUnseen = false;
  for (const spend of money.spends) {
    const { transaction, height, amount } = spend;
    if (unreached.has(transaction)) continue;
    const name = `transaction ${transaction} of cut ${height}`;
    const kind = 'spends of the pool’s address (whom they paid)';
    const read = await unread.read(kind, name, () => cuts.find(height, transaction));
    if (read === undefined) {
      const unseen = unseenSpend(spend, paid.get(transaction) ?? [], money.address);
      left += unseen.rest;
      deposits += unseen.deposits;
      isAnyUnseen = true;
      continue;
    }
    const found = read.value;
    if (found === undefined)
      throw new ApiError(
        'client_bad_answer',
        0,
        `the node lacks transaction ${transaction}, which spent from the address`,
      );
    const listed = [...(paid.get(transaction) ?? [])];
    let rest = amount;
    let taken = 0n;
    const to: string[] = [];
    for (const output of found.outputs) {
      const at = listed.indexOf(outputText(output));
      const isListed = at !== -1;
      if (isListed) listed.splice(at, 1);
      const isOwn = output.address === money.address;
      if (isListed || isOwn) rest -= BigInt(output.amount);
      else {
        taken += BigInt(output.amount);
        to.push(output.address);
      }
      // A payment to the pool's own account becomes its own money.
      if (isListed && isOwn) deposits += BigInt(output.amount);
    }
    left += rest;
    if (taken === 0n) continue;
    withdrawn += taken;
    withdrawals.push({ transaction_id: transaction, height, amount: String(taken), to: to.join(', ') });
  }
  const allowed = fees + deposits + (isAnyUnseen ? underWay : 0n);
  const beyond = overpaid.reduce((sum, each) => sum + each.paid - each.credited, 0n);
  let excess = left + beyond - allowed;
  for (const { address, paid: sum, credited } of overpaid) {
    if (excess <= 0n) break;
    findings.add(
      `payments to ${address}`,
      sum,
      `${credited} credited; with it, more left the address than the pool earned`,
      REMEDIES.published,
    );
    excess -= sum - credited;
  }
  for (const { transaction_id, height, amount, to } of withdrawals.toReversed()) {
    if (excess <= 0n) break;
    findings.add(
      `transaction ${transaction_id} of cut ${height}`,
      'no payment',
      `${amount} atoms of the pool’s address went to ${to}; with it, more left the address than the pool earned`,
      REMEDIES.published,
    );
    excess -= BigInt(amount);
  }
  if (excess > 0n)
    findings.add(
      'what the pool’s address holds',
      `network fees of ${left - withdrawn} atoms are paid by the pool`,
      `${excess} atoms of it are the miners’: its fees and what it put in are ${allowed}`,
      REMEDIES.published,
    );
  return {
    allowed: String(allowed),
    network_fees: String(left - withdrawn),
    withdrawn: String(withdrawn),
    overpaid: String(beyond),
    withdrawals: withdrawals.map(({ to: _, ...each }) => each),
  };
}
