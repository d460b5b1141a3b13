/**
 * The wallet's records (docs/wallet.md, State): plain data with one JSON form each. Amounts are decimal text on disk.
 */
import type { OutputSource } from '../../protocol/api/values.ts';
import type { ChatMessage } from '../../protocol/messenger/chats.ts';
import type { Branch } from '../keys/derivation.ts';

export type AddressRecord = {
  readonly address: string;
  /** Kind byte and hash in hex, as in outputs. */
  readonly payload: string;
  readonly branch: Branch;
  readonly index: number;
  /** Handed out or paid; the rest is watched ahead of use. */
  readonly given: boolean;
  readonly label: string;
  readonly createdMillis: number;
  /** Some payment arrived here. */
  readonly used: boolean;
  /** A finalized cut holds the key: spending needs only a signature. */
  readonly registered: boolean;
};

export type OwnedOutput = {
  /** `<transaction>:<output>`, the name of the output everywhere in the wallet. */
  readonly key: string;
  readonly amount: bigint;
  readonly address: string;
  readonly height: number;
  readonly source: OutputSource;
};

export const outputKey = (transaction: string, output: number): string => `${transaction}:${output}`;

export function outpointOf(key: string): { transaction: string; output: number } {
  const colon = key.indexOf(':');
  return { transaction: key.slice(0, colon), output: Number(key.slice(colon + 1)) };
}

export const MOVE_KINDS = ['sweep', 'compound', 'auto_compound', 'auto_sweep'] as const;
export const STAKING_KINDS = [
  'stake',
  'unstake',
  'withdraw',
  'validator_register',
  'reward_address',
  'validator_heartbeat',
  'validator_rotate',
  'validator_endpoint',
  'validator_commission',
  'validator_exit',
] as const;
export const REQUEST_KINDS = ['payment', 'burn', ...MOVE_KINDS, ...STAKING_KINDS] as const;
export type MoveKind = (typeof MOVE_KINDS)[number];
export type StakingKind = (typeof STAKING_KINDS)[number];
export type RequestKind = (typeof REQUEST_KINDS)[number];

export type Recipient = { readonly to: string; readonly amount: bigint };

/** The values that an operation sets, for its answer: a repeated call may have other parameters. */
export type OperationTerms = {
  readonly commissionBps?: number;
  readonly rewardAddress?: string;
  /** Of the consensus key that it registers or rotates to. */
  readonly consensusKeyIndex?: number;
  /** Epoch of the accepted quote: in another one it is refused. */
  readonly epoch?: number;
};

/** The staking operation that a transaction carries. */
export type OperationRecord = {
  readonly kind: StakingKind;
  /** As it is signed: type byte and data. */
  readonly type: number;
  readonly dataHex: string;
  /** The address whose key signs it. */
  readonly owner: string;
  /** Where that is a consensus key: its index. */
  readonly keyIndex?: number;
  readonly validator: string;
  /** The position it is about; null where it makes one. */
  readonly position: string | null;
  /** The amount staked, unstaked or withdrawn; 0 if none. */
  readonly amount: bigint;
  /** The amount that moves from outputs into a position. */
  readonly bonded: bigint;
  /** Splits a part off its position, which becomes a separate position. */
  readonly splits: boolean;
  readonly terms?: OperationTerms;
  /** The last cut that can carry it out, where that is known. */
  readonly lastHeight?: number;
};

export type OutgoingState = 'signed' | 'submitted' | 'refused' | 'finalized' | 'void';
export const isFinal = (state: OutgoingState): boolean => state === 'finalized' || state === 'void';

/** A transaction this wallet signed. It is on disk, with its inputs reserved, before its first byte is sent. */
export type OutgoingRecord = {
  readonly transaction: string;
  readonly requestId: string;
  readonly purpose: 'pay' | 'merge';
  readonly state: OutgoingState;
  /** Dropped once the fate is final: the chain has it then, or never will. */
  readonly wireHex: string;
  readonly inputs: readonly string[];
  readonly recipients: readonly Recipient[];
  readonly change: bigint;
  readonly fee: bigint;
  readonly validUntilHeight: number;
  readonly createdMillis: number;
  readonly finalHeight: number | null;
  /** Why it is void, or what the node said when it refused. */
  readonly reason: string | null;
  readonly operation?: OperationRecord;
  /**
   * It was final, or void, in a chain that was rolled back. Its bytes were dropped then, so it is not sent again; its
   * fate is open until it expires. Another one may spend the same outputs.
   */
  readonly reopened?: true;
};

/** A payment when the node has the chain that was read only up to `soundHeight`: above that nothing is final. */
export const asOf = (record: OutgoingRecord, soundHeight: number): OutgoingRecord =>
  isFinal(record.state) && (record.finalHeight ?? 0) > soundHeight
    ? { ...record, state: 'submitted', finalHeight: null, reason: null }
    : record;

/** The remaining steps of a payment with `compound_first`. */
export type MergeProgress = {
  readonly recipients: readonly Recipient[];
  readonly payloadHex: string;
  readonly subtractFee: boolean;
  readonly feePerMass: bigint;
  /** Where merged outputs and change go, when it is not the change address. */
  readonly fromAddress?: string | undefined;
  readonly operation?: OperationRecord | undefined;
  /** Outputs the request holds: those not in a running merge. */
  readonly held: readonly string[];
  /** Merges whose fate is awaited. */
  readonly round: readonly string[];
};

export type RequestState = 'merging' | 'sent' | 'failed';

export type RequestRecord = {
  readonly requestId: string;
  readonly kind: RequestKind;
  /** Digest of the parameters: a repetition with others gets the same answer, and is logged. */
  readonly paramsDigest: string;
  readonly createdMillis: number;
  readonly state: RequestState;
  readonly recipients: readonly Recipient[];
  readonly fee: bigint;
  readonly feePerMass: bigint;
  readonly transactions: readonly string[];
  /** Of a sweep or compound that could not take everything in one call. */
  readonly remainingOutputs: number;
  readonly merge: MergeProgress | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly operation?: OperationRecord;
};

/** A message of a chat, without its text: that is in the history, encrypted. */
export type ChatMessageRecord = Omit<ChatMessage, 'text'>;

export const HISTORY_KINDS = ['received', 'reward', 'sent', 'moved', 'staked', 'withdrawn', 'genesis'] as const;
export type HistoryKind = (typeof HISTORY_KINDS)[number];

/** One transaction as the wallet saw it in a finalized cut. */
export type HistoryEntry = {
  readonly height: number;
  readonly transaction: string;
  readonly kind: HistoryKind;
  readonly received: bigint;
  readonly spent: bigint;
  readonly fee: bigint | null;
  readonly outputs: readonly { readonly output: number; readonly address: string; readonly amount: bigint }[];
  readonly recipients: readonly { readonly address: string; readonly amount: bigint }[];
  readonly payloadHex: string;
  readonly senders: readonly string[];
  readonly requestId: string | null;
};

/** A watched multisig address. This wallet cannot spend its outputs alone. */
export type MultisigRecord = {
  readonly address: string;
  readonly descriptorHex: string;
  readonly label: string;
  readonly createdMillis: number;
};

/** Fields that hold amounts, by name: the JSON form writes them as decimal text and reads them back. */
const AMOUNTS: ReadonlySet<string> = new Set(['amount', 'bonded', 'change', 'fee', 'feePerMass', 'received', 'spent']);

export const encodeRecord = (record: object): string => JSON.stringify(withTexts(record));

/** A copy with text for amounts: several times quicker than having JSON.stringify ask about every value. */
function withTexts(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withTexts);
  const copy: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) copy[name] = withTexts(field);
  return copy;
}

export const decodeRecord = <T>(text: string): T =>
  JSON.parse(text, (name, value: unknown) =>
    typeof value === 'string' && AMOUNTS.has(name) ? BigInt(value) : value,
  ) as T;
