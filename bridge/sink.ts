/**
 * What the stratum server hands on, and to whom. The server owns this interface; the plain bridge implements it with
 * counters (bridge/counters.ts), the pool with its books. Calls come in batches from the main thread only.
 */
import type { Bytes } from '../protocol/bytes.ts';
import type { Carried } from './template-store.ts';

/** Which account a connection's blocks belong to: on record before its first job, so every reward has a finder. */
export type Ownership = {
  /** What all extranonces of the connection share (extranonce.ts, readExtranonce): boot id, thread and number. */
  readonly owner: Bytes;
  /** The listener group that the miner connected to, such as `bridge`, `pplns` or `solo`. */
  readonly service: string;
  /** Address payload of the miner. */
  readonly account: Bytes;
  readonly worker: string;
};

export type AcceptedShare = {
  readonly service: string;
  readonly account: Bytes;
  readonly worker: string;
  /** Work of the job's own share target: what the share is worth. */
  readonly work: bigint;
  readonly anchorHeight: number;
  readonly extranonce: Bytes;
  /** Names the header hashed (protocol/share-identity.ts): with the nonce it is what a share is told from others by. */
  readonly headerDigest: Bytes;
  readonly nonce: Bytes;
  readonly atMillis: number;
};

export type RefusedShare = {
  readonly service: string;
  readonly account: Bytes;
  readonly worker: string;
  /** Code of the stratum error table. */
  readonly code: number;
  readonly atMillis: number;
};

export type FoundBlock = AcceptedShare & {
  readonly blockId: Bytes;
  readonly payout: Bytes;
  readonly target: bigint;
  readonly header: Bytes;
  readonly carried: Carried;
};

/** A block's way: sent to the nodes, then paid or expired as the cuts say. */
export type BlockFate =
  | { readonly state: 'accepted' | 'known' | 'late' | 'refused'; readonly reason?: string }
  | { readonly state: 'registered'; readonly height: number }
  | {
      readonly state: 'paid';
      readonly height: number;
      readonly transactionId: string;
      readonly outputIndex: number;
      readonly amount: bigint;
    }
  | { readonly state: 'expired'; readonly height: number };

export type WorkerEvent = {
  readonly kind: 'joined' | 'left';
  readonly service: string;
  readonly account: Bytes;
  readonly worker: string;
  readonly agent: string;
  readonly connection: string;
  readonly atMillis: number;
};

export interface ShareSink {
  /** False while the sink cannot keep more shares safe: the server answers code 31 instead of taking them. */
  readonly accepting: boolean;
  /** Resolves when the ownerships are durable; only then do the connections get jobs. */
  own(ownerships: readonly Ownership[]): Promise<void>;
  /** Resolves when the shares cannot be lost any more; only then are they answered. */
  shares(shares: readonly AcceptedShare[]): Promise<void>;
  refused(shares: readonly RefusedShare[]): void;
  /** Called before the nodes hear of the block; they wait for it a moment (found-blocks.ts). */
  block(block: FoundBlock): Promise<void>;
  blockFate(blockId: Bytes, fate: BlockFate): Promise<void>;
  worker(event: WorkerEvent): void;
  /** What `mining.stats` adds for an account: pending and paid atoms on a pool; undefined while that is not known. */
  balance?(service: string, account: Bytes): Promise<{ pending: bigint; paid: bigint } | undefined>;
}
