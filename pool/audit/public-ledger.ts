/**
 * Checks listed payments and commitments, and all spends of the pool's address, against the ledger (books rules 21 and
 * 25). Row by row: a row whose cut the node has deleted is not checked, all others are.
 */
import type { CommitmentRow } from '../../protocol/books/ledger-payouts.ts';
import type { PaymentDocument } from '../api/documents.ts';
import { CutReader } from './cut-reader.ts';
import type { Findings } from './findings.ts';
import { CommitmentAudit, type Reached, type Records } from './public-commitments.ts';
import { type AddressMoney, auditMoney, type LedgerNode, type MoneyReport } from './public-money.ts';
import { auditOutputs, PaymentsUnderWay, paidByTransaction, sumsOf } from './public-payments.ts';
import type { AuditSections } from './public-sections.ts';
import { UnreadRows } from './public-unread.ts';

/** `money`: the history of the pool's address, where the node has it. */
export type LedgerSide = { readonly node: LedgerNode; readonly money: AddressMoney | undefined };

export type PoolSide = {
  readonly address: string;
  readonly payments: readonly PaymentDocument[];
  readonly commitments: readonly CommitmentRow[];
  readonly records: Records;
  readonly reached: Reached;
  /** Totals of all lists. */
  readonly fees: bigint;
  /** Of all lists, by address. */
  readonly credited: ReadonlyMap<string, bigint>;
};

/** The current cut of the node's index. */
export async function indexedHeight(
  node: LedgerNode,
  { address, height }: Pick<AddressMoney, 'address' | 'height'>,
): Promise<number> {
  return (await node.addressChanges({ addresses: [address], after_height: height, limit: 1 })).indexed_height;
}

/** The same with a node that does not have the whole history of the address. */
async function newestIndexed(node: LedgerNode, address: string): Promise<number> {
  const [newest] = (await node.cuts({ limit: 1 })).cuts;
  return indexedHeight(node, { address, height: newest?.height ?? 0 });
}

/** The part of the address's rewards that no list has divided. */
function unlistedRewards({ rewards }: AddressMoney, { fees, credited }: Pick<PoolSide, 'fees' | 'credited'>): bigint {
  const listed = [...credited.values()].reduce((sum, atoms) => sum + atoms, fees);
  const rest = rewards.reduce((sum, { amount }) => sum + amount, -listed);
  return rest > 0n ? rest : 0n;
}

/** `money`: null if the spends of the address could not be judged. `isEachRead`: each payout of the ledger was compared with the records. */
type LedgerAudit = { readonly money: MoneyReport | null; readonly isEachRead: boolean };

export async function auditLedger(
  { node, money }: LedgerSide,
  { address, payments, commitments, records, reached, fees, credited }: PoolSide,
  sections: AuditSections,
  findings: Findings,
): Promise<LedgerAudit> {
  const cuts = new CutReader(node);
  const unread = new UnreadRows();
  const { notChecked } = sections;
  // The pool may have paid since its address was read: the node has advanced as well.
  const height = () => (money === undefined ? newestIndexed(node, address) : indexedHeight(node, money));
  const through = await sections.run('the ledger’s height', height, money?.height);
  if (through === undefined) return { money: null, isEachRead: false };
  const carried = new CommitmentAudit({ records, cuts, reached }, unread, findings);
  const hasRecords = sections.have('what payouts carry', ['slices']);
  const paid = paidByTransaction(payments);
  const underWay = new PaymentsUnderWay(payments, paid);
  let isEachRead = false;

  const listed = async (): Promise<void> => {
    const ofPayouts = () => (hasRecords ? carried.listed(commitments, through, money) : Promise.resolve(0));
    const ofPayments = () => auditOutputs(payments, { cuts, unread, through, address, money }, findings);
    const beyond =
      (await sections.run('commitments', ofPayouts, 0, 'commitments')) +
      (await sections.run('payments', ofPayments, 0));
    if (beyond > 0)
      notChecked.push(`${beyond} payouts and payments in cuts after ${through}: the node has not read them`);
  };

  const left = async (history: AddressMoney): Promise<MoneyReport | null> => {
    if (!sections.have('what left the pool’s address', ['payments', 'commitments'])) return null;
    const spends = () => carried.unlisted(commitments, history, { underWay, paid });
    const noted = await sections.run('what left the pool’s address', spends, [], 'spends');
    for (const each of noted) notChecked.push(`${each}: the pool says that it is still under way`);
    notChecked.push(...carried.notChecked);
    const [omitted] = carried.omitted;
    if (omitted !== undefined)
      sections.suspicions.push({
        name: 'payouts_unlisted',
        says: `${carried.omitted.length} payouts, the first ${omitted.name}`,
      });
    if (carried.stale !== undefined) notChecked.push(carried.stale);
    if (!sections.have('money that left the pool’s address', ['lists', 'spends'])) return null;
    isEachRead = carried.notChecked.length === 0;
    const { overpaid } = sumsOf([...payments, ...carried.omitted.flatMap((each) => each.paid)], credited);
    // Books that fell back may have yet to make the lists by which these payouts paid.
    const unlisted = omitted === undefined ? 0n : unlistedRewards(history, { fees, credited });
    const facts = { paid, fees: fees + unlisted, overpaid, unreached: carried.unreached, underWay: underWay.amount };
    const spent = () => auditMoney(history, { cuts, unread }, facts, findings);
    return sections.run('what left the pool’s address', spent, null);
  };

  await listed();
  const report = hasRecords && money !== undefined ? await left(money) : null;
  notChecked.push(...unread.lines);
  return { money: report, isEachRead: isEachRead && unread.lines.length === 0 };
}
