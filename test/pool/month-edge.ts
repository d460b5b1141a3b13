/**
 * Where the simulated month meets the pool: the calls that an accountant's process makes to the chain, to the wallet and to
 * the front end whose journal it reads. They pass between processes as messages, so either side may die at any point.
 */
import type { TakenEntries } from '../../pool/feed/entry-source.ts';
import type { PayoutWallet } from '../../pool/payout/payout-wallet.ts';
import type { BlockDocument } from '../../protocol/api/documents.ts';

export type MonthReward = {
  readonly block_id: string;
  readonly transaction_id: string;
  readonly output_index: number;
  readonly amount: string;
};

/** Cuts up to `to`; those between that pay something are named, or the whole range could not be replayed. */
export type MonthCuts = { readonly to: number; readonly isMissed: boolean; readonly paying: [number, MonthReward[]][] };

export type MonthEdge = {
  cuts(after: number): Promise<MonthCuts>;
  targetAt(height: number): Promise<bigint>;
  headHeight(): Promise<number>;
  block(blockId: string): Promise<BlockDocument | undefined>;
  begin(): Promise<void>;
  take(maxEntries: number, waitMillis: number): Promise<TakenEntries['entries']>;
  committed(bootId: string, through: number): Promise<void>;
  isCaughtUp(): Promise<boolean>;
  mayTell(bootId: string): Promise<boolean>;
} & PayoutWallet;

export type MonthCall = { readonly id: number; readonly what: keyof MonthEdge; readonly values: readonly unknown[] };
export type MonthAnswer = {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
  /** The month's clock, which runs some thousand times faster than ours. */
  readonly nowMillis: number;
};

/** What both sides must know of the pool. */
export const MONTH = {
  sliceCuts: 240,
  cutMillis: 2_500,
  startMillis: Date.UTC(2026, 2, 1),
  windowBlocks: 4n,
  feePpm: { pplns: 10_000n, solo: 5_000n },
  payoutMin: 300_000_000n,
  shareDays: 7,
} as const;
