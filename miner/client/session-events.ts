/**
 * Inputs and outputs of a session (session.ts): events and actions, shares, jobs, and the state that a lost connection
 * passes to the next one.
 */

import type { Receipt } from '../../protocol/books/receipt.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { ErrorReply } from '../../protocol/stratum/errors.ts';
import type { FarmJob } from '../../protocol/stratum/farm.ts';
import type { Job, Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import type { ReceiptsOffer } from '../../protocol/stratum/receipt-messages.ts';
import type { Refusal } from '../miner-error.ts';
import type { FromServer, ToServer } from './wire.ts';

export const SESSION_DEFAULTS = {
  openMillis: 10_000,
  loginMillis: 15_000,
  /** How long a pool may take from the login to its first job before another one is tried. */
  firstJobMillis: 60_000,
  pingMillis: 20_000,
  pongMillis: 20_000,
  notReadyMillis: 5_000,
  /** How long a server may report that it is not ready before another one is tried. */
  unreadyMillis: 60_000,
  /** A chain has a new anchor every few seconds: a server without a new job for this long does not follow it. */
  jobMillis: 600_000,
  /** Ticks further apart than this mean that the machine slept: then deadlines do not count. */
  sleepMillis: 10_000,
  /** Shares waiting for an answer; more means that the pool judges nothing. */
  maxPending: 4_096,
  /** Refusals, less a quarter of the shares that were accepted since, after which another pool is tried. */
  maxRefused: 50,
  /** A share on a job that was superseded for longer may be late; before that the operator of no pool refuses it. */
  lateMillis: 5_000,
  /** A job is good for this long after a newer one came (S50), of which a miner without a connection does not hear. */
  graceMillis: 30_000,
  /** A server keeps a session this long after its connection broke (S-resume). */
  resumeMillis: 120_000,
} as const;

export type SessionTimes = { readonly [K in keyof typeof SESSION_DEFAULTS]: number };

export type SessionOptions = {
  readonly network: NetworkName;
  readonly address: string;
  readonly own: Bytes;
  readonly worker: string;
  /** As it is when the miner logs in. */
  readonly password: string | (() => string);
  /** Hashes per second that the devices will make, as far as that is known when a connection is made. */
  readonly expectedRate?: () => number | undefined;
  readonly agent: string;
  readonly tag: string;
  /** Payload of --expect-payout. */
  readonly pinned: Bytes | undefined;
  /** Ask for receipts. */
  readonly receipts?: boolean;
  /** Ask for a farm session of this many rigs (S70). */
  readonly farmRigs?: number;
};

/** A share as the devices found it, already recomputed. */
export type Share = {
  readonly session: string;
  readonly jobId: number;
  readonly nonce: Bytes;
  readonly work: bigint;
  /** Work that its own hash would have met. */
  readonly hashWork?: number;
  readonly device: number;
  /** Set for a share of a farm job: what its header was made with, and who found it. */
  readonly farm?: { readonly generation: number; readonly rig: string };
};

/** A job that passed every check, with what the session adds to it. */
export type PoolJob = {
  /** Of a farm job: that of its first generation. */
  readonly job: Job;
  readonly farm?: FarmJob;
  /** Submits of the farm that the server takes in a second. */
  readonly submitsPerSecond?: number;
  /** As the server named it; null on a bridge. */
  readonly pool: Subscribed['pool'];
  readonly session: string;
  readonly prefix: Bytes;
  /** Of its anchor, as its header says. */
  readonly height: number;
  /** Work of one share of it. */
  readonly work: bigint;
};

export type Verdict = 'accepted' | 'stale' | 'rejected' | 'lost';

/** State that a lost connection passes to the next one to the same server. */
export type SessionMemory = {
  readonly session: string;
  readonly prefix: Bytes;
  readonly brokenAt: number;
  readonly unanswered: readonly Share[];
};

export type SessionEvent =
  | { readonly kind: 'opened' }
  | { readonly kind: 'received'; readonly message: FromServer }
  | { readonly kind: 'garbage'; readonly reason: string }
  | { readonly kind: 'closed'; readonly refusal: Refusal }
  | { readonly kind: 'share'; readonly share: Share }
  | { readonly kind: 'tick' };

export type SessionAction =
  | { readonly kind: 'send'; readonly message: ToServer }
  /** The server does not have the session that was to be resumed: jobs of before are dead. */
  | { readonly kind: 'forgotten' }
  | { readonly kind: 'ready'; readonly subscribed: Subscribed; readonly resumed: boolean }
  | { readonly kind: 'job'; readonly job: PoolJob }
  | {
      readonly kind: 'verdict';
      readonly share: Share;
      readonly verdict: Verdict;
      readonly error: ErrorReply | undefined;
      readonly blockId: Bytes | undefined;
      /** The work that the server said it accepts for it; undefined where it did not say so itself. */
      readonly told: bigint | undefined;
    }
  | { readonly kind: 'receipts'; readonly offer: ReceiptsOffer }
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  | { readonly kind: 'note'; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: 'move'; readonly reconnect: Reconnect }
  /** Closes the connection; the pool is not tried again before `retryAfterMillis`. */
  | { readonly kind: 'end'; readonly refusal: Refusal; readonly retryAfterMillis: number };
