/** The interface of a verifier (verifier.ts), apart from its implementations so that both can import it. */
import type { Bytes } from '../protocol/bytes.ts';
import type { Network } from '../protocol/network.ts';
import type { Progress } from './backend.ts';

export type VerifierMode = 'full' | 'light';

/** Goes to another thread by postMessage, with `transfer`; good for one attachVerifier(). */
export type VerifierTicket = {
  readonly mode: VerifierMode;
  readonly queueLimit: number;
  readonly epochs: readonly number[];
  readonly control: MessagePort;
  readonly lanes: readonly MessagePort[];
  readonly transfer: readonly MessagePort[];
};

export interface Verifier {
  readonly mode: VerifierMode;
  /** Headers taken by this handle and not answered yet. */
  readonly queued: number;
  /** Epochs that can be hashed now. */
  readonly epochs: readonly number[];
  /** Builds or loads what the epoch needs. Asking twice costs nothing. At most two epochs are kept. */
  prepare(epoch: number): Promise<void>;
  /** The hash of one 312-byte header, 32 bytes. Calls of the same moment are computed as one batch. */
  hash(epoch: number, header: Bytes): Promise<Uint8Array<ArrayBuffer>>;
  /** As hash(), in the order of the headers. All or nothing: over the queue's bound none is computed. */
  hashMany(epoch: number, headers: readonly Bytes[]): Promise<Uint8Array<ArrayBuffer>[]>;
  /** A handle for another thread; only the creator gives them out. */
  share(): VerifierTicket;
  /** On the creator: ends the workers. On an attached handle: lets go of them. */
  close(): Promise<void>;
}

export type VerifierOptions = {
  readonly network: Network;
  readonly mode: VerifierMode;
  /** Verification workers; by default as many as cores. */
  readonly threads?: number;
  /** Headers a handle may have waiting at once, by default 16,384. */
  readonly queueLimit?: number;
  /** Where datasets are kept between runs; without it they are built each time. */
  readonly dataDir?: string;
  /** Guards against a chain or pool that names absurd epochs; by default every epoch is allowed. */
  readonly isEpochAllowed?: (epoch: number) => boolean;
};

export type VerifierDependencies = {
  readonly log?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly onProgress?: (progress: Progress) => void;
  /** Bytes of memory that may still be taken. */
  readonly availableMemory?: () => number;
};
