/**
 * The receiver of shares, blocks and logins. The server owns this interface; the plain bridge implements it with
 * counters (bridge/shares/counters.ts), the pool with its database. Calls come in batches from the main thread only.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { PassedShare } from '../nodes/origin-job.ts';
import type { Carried } from '../nodes/template-store.ts';

/** The account of a connection's blocks: recorded before its first block is sent, so every reward has a finder. */
export type Ownership = {
  /** The common part of the connection's extranonces (extranonce.ts, readExtranonce): boot id, thread and number. */
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
  /** Work that its own hash would have met: for statistics only, never for money. */
  readonly hashWork: number;
  /**
   * The newest cut when its job's template was published. The work was done after this cut, whatever anchor was drawn.
   */
  readonly cutHeight: number;
  readonly extranonce: Bytes;
  /** Names the header hashed (protocol/books/share-identity.ts): with the nonce it identifies the share. */
  readonly headerDigest: Bytes;
  readonly nonce: Bytes;
  readonly atMillis: number;
  /** Set where it goes on to the server that its job came from. */
  readonly passed?: PassedShare;
};

export type RefusedShare = {
  readonly service: string;
  readonly account: Bytes;
  readonly worker: string;
  /** Code of the stratum error table. */
  readonly code: number;
  /** Whether it counts for the worker whose name it came under, and not only for all. */
  readonly isOfWorker: boolean;
  readonly atMillis: number;
};

export type FoundBlock = AcceptedShare & {
  readonly blockId: Bytes;
  readonly anchorHeight: number;
  readonly payout: Bytes;
  readonly target: bigint;
  readonly header: Bytes;
  readonly carried: Carried;
};

/** What became of a block: sent to the nodes, then paid or expired according to the cuts. */
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
  /** False while the sink cannot store more shares: the server then answers code 31 instead of accepting them. */
  readonly accepting: boolean;
  /**
   * Registers connections that want jobs; rejects while their shares could not be stored. Nothing has to be durable
   * yet: anyone can log in, and a login without a share leaves no trace. Absent where no registration is needed: then a
   * login does not wait for the main thread.
   */
  own?(ownerships: readonly Ownership[]): Promise<void>;
  /** Why it may not mine here, asked after `own`. */
  refusal?(ownership: Ownership): string | undefined;
  /** Resolves when the shares are durable; only then are they answered. */
  shares(shares: readonly AcceptedShare[]): Promise<void>;
  /**
   * Which of these shares (protocol/books/share-identity.ts) are durable: they were on their way when these processes ended.
   * Absent where nothing is kept: then the session log alone tells.
   */
  stored?(identities: readonly Bytes[], boots: readonly Bytes[]): Promise<readonly boolean[]>;
  refused(shares: readonly RefusedShare[]): void;
  /** Called before the block is sent to the nodes; they wait for it a moment (found-blocks.ts). */
  block(block: FoundBlock): Promise<void>;
  /**
   * Whether the finder of a block is durably on record by its extranonce. Where it is not, the block is sent when
   * `block` has resolved, and `block` is called again should it reject. Absent where a block itself pays its finder.
   */
  knowsFinder?(block: FoundBlock): boolean;
  blockFate(blockId: Bytes, fate: BlockFate): Promise<void>;
  worker(event: WorkerEvent): void;
  /**
   * The amounts in `mining.stats` of an account: pending and paid atoms on a pool; undefined while they are not known.
   */
  balance?(service: string, account: Bytes): Promise<{ pending: bigint; paid: bigint } | undefined>;
}
