/**
 * The effects of a finalized cut on the wallet: outputs made and spent, history entries, payments to report, and the
 * fate of transactions this wallet signed. Pure; the follower reads the cut and writes the result.
 */
import type { ChangeDocument } from '../../protocol/api/address-documents.ts';
import type { TransactionDocument } from '../../protocol/api/transaction-documents.ts';
import {
  type AddressRecord,
  type HistoryEntry,
  type HistoryKind,
  type OutgoingRecord,
  type OwnedOutput,
  outputKey,
} from '../state/records.ts';

export type CutView = {
  readonly height: number;
  /** Changes of addresses of this wallet, in the order of the cut. */
  readonly changes: readonly ChangeDocument[];
  /** The transactions behind them; rewards have none. */
  readonly transactions: ReadonlyMap<string, TransactionDocument>;
};

export type Known = {
  readonly address: (text: string) => AddressRecord | undefined;
  readonly output: (key: string) => OwnedOutput | undefined;
  readonly open: ReadonlyMap<string, OutgoingRecord>;
  /** Whether every earlier output is known; false while the history is read again. */
  readonly isComplete: boolean;
};

export type CutEffects = {
  readonly outputsAdded: readonly OwnedOutput[];
  readonly outputsSpent: readonly string[];
  readonly history: readonly HistoryEntry[];
  readonly addresses: readonly AddressRecord[];
  /** Open transactions whose fate this cut decides. */
  readonly outgoing: readonly OutgoingRecord[];
};

/** An output that somebody paid, as opposed to change and merges. */
export const isPayment = (entry: HistoryEntry, output: HistoryEntry['outputs'][number]): boolean =>
  entry.spent === 0n || entry.recipients.some(({ address }) => address === output.address);

export function effectsOf(view: CutView, known: Known): CutEffects {
  const added = new Map<string, OwnedOutput>();
  const spent = new Set<string>();
  const spender = new Map<string, string>();
  const byTransaction = new Map<string, ChangeDocument[]>();
  const touched = new Map<string, AddressRecord>();
  for (const change of view.changes) {
    const record = touched.get(change.address) ?? known.address(change.address);
    if (record === undefined) continue;
    const key = outputKey(change.outpoint.transaction_id, change.outpoint.output_index);
    if (change.kind === 'received') {
      const amount = BigInt(change.amount);
      added.set(key, { key, amount, address: change.address, height: view.height, source: change.source });
      if (!record.used || !record.given) touched.set(change.address, { ...record, used: true, given: true });
    } else {
      spender.set(key, change.transaction_id);
      // Made and spent in one cut: the wallet never could spend it.
      if (!added.delete(key)) spent.add(key);
    }
    const list = byTransaction.get(change.transaction_id);
    if (list === undefined) byTransaction.set(change.transaction_id, [change]);
    else list.push(change);
  }
  return {
    outputsAdded: [...added.values()],
    outputsSpent: [...spent],
    history: [...byTransaction].map(([transaction, changes]) => entryOf(view, transaction, changes, known)),
    addresses: [...touched.values()],
    outgoing: [...known.open.values()].flatMap((record) => fateOf(record, view, spender, known)),
  };
}

/** Inputs that went to neither outputs nor the fee were bonded. */
function isStake({ inputs, outputs, fee }: TransactionDocument): boolean {
  let left = -BigInt(fee);
  for (const { amount } of inputs) {
    if (amount === null) return false;
    left += BigInt(amount);
  }
  for (const { amount } of outputs) left -= BigInt(amount);
  return left > 0n;
}

function kindOf(
  changes: readonly ChangeDocument[],
  document: TransactionDocument | undefined,
  mine: boolean,
): HistoryKind {
  if (document !== undefined && changes.some((change) => change.kind === 'spent') && isStake(document)) return 'staked';
  // Without the transaction (its body was pruned) the kind is unknown; nearly always it is 'sent'.
  if (changes.some((change) => change.kind === 'spent')) return mine && document !== undefined ? 'moved' : 'sent';
  const source = changes[0]?.source;
  if (document === undefined && (source === 'work_reward' || source === 'stake_reward')) return 'reward';
  if (source === 'stake_withdrawal') return 'withdrawn';
  return source === 'genesis' ? 'genesis' : 'received';
}

function entryOf(view: CutView, transaction: string, changes: readonly ChangeDocument[], known: Known): HistoryEntry {
  const document = view.transactions.get(transaction);
  const total = (kind: ChangeDocument['kind']) =>
    changes.reduce((sum, change) => (change.kind === kind ? sum + BigInt(change.amount) : sum), 0n);
  const inputs = new Set(document?.inputs.flatMap(({ address }) => address ?? []) ?? []);
  const spent = total('spent');
  // Change returns to the change branch, a merge to an address it spends from: neither is a recipient.
  const recipients = (document?.outputs ?? []).filter(({ address }) => {
    const record = known.address(address);
    return record === undefined || (record.branch === 'receive' && !inputs.has(address));
  });
  return {
    height: view.height,
    transaction,
    kind: kindOf(
      changes,
      document,
      recipients.every(({ address }) => known.address(address) !== undefined),
    ),
    received: total('received'),
    spent,
    fee: document === undefined || spent === 0n ? null : BigInt(document.fee),
    outputs: changes
      .filter((change) => change.kind === 'received')
      .map((change) => ({
        output: change.outpoint.output_index,
        address: change.address,
        amount: BigInt(change.amount),
      })),
    recipients: spent === 0n ? [] : recipients.map(({ address, amount }) => ({ address, amount: BigInt(amount) })),
    payloadHex: document?.payload_hex ?? '',
    senders: [...inputs],
    requestId: known.open.get(transaction)?.requestId ?? null,
  };
}

/**
 * The fate of a signed transaction, from this finalized cut alone: an input spent by it means finalized, by another one
 * conflict; its last valid height passed with the inputs unspent means expired. Nothing else makes a payment void.
 */
function fateOf(
  record: OutgoingRecord,
  view: CutView,
  spender: ReadonlyMap<string, string>,
  known: Known,
): OutgoingRecord[] {
  for (const key of record.inputs) {
    const by = spender.get(key);
    if (by === record.transaction) return [settled(record, 'finalized', view.height, null)];
    if (by !== undefined) return [settled(record, 'void', view.height, 'conflict')];
  }
  // Once everything was read, a missing input no longer exists: the transaction can never be executed.
  if (
    view.height > record.validUntilHeight &&
    (known.isComplete || record.inputs.every((key) => known.output(key) !== undefined))
  )
    return [settled(record, 'void', view.height, 'expired')];
  return [];
}

function settled(
  { reopened: _, ...record }: OutgoingRecord,
  state: 'finalized' | 'void',
  finalHeight: number,
  reason: string | null,
): OutgoingRecord {
  return { ...record, state, wireHex: '', finalHeight, reason };
}
