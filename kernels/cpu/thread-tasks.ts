/** Tasks and answers of the CPU kernel's threads. Plain data, sent by postMessage. */
import type { Bytes } from '../../protocol/bytes.ts';
import type { KernelErrorCode } from '../kernel-error.ts';
import type { Layout } from './layout.ts';

/** Without a memory the thread makes a plain one of its own (a browser page that is not isolated). */
export type OpenTask = {
  readonly kind: 'open';
  readonly epoch: number;
  readonly module: WebAssembly.Module;
  readonly memory?: WebAssembly.Memory;
  readonly layout: Layout;
  readonly slot: number;
};

/** One thread's part of a job: nonces are whole 64-bit integers, the server's prefix included. */
export type SearchTask = {
  readonly jobId: number;
  readonly epoch: number;
  readonly header: Bytes;
  readonly target: Bytes;
  readonly from: bigint;
  readonly to: bigint;
  /** Nonces of a batch in which all threads together find one block. */
  readonly batchPerBlock: number;
};

export type ThreadTask =
  | OpenTask
  | { readonly kind: 'close'; readonly epoch: number }
  | { readonly kind: 'cache'; readonly epoch: number; readonly seed: Bytes; readonly from: number; readonly to: number }
  | { readonly kind: 'items'; readonly epoch: number; readonly from: number; readonly to: number }
  /** Answers the number of pages, of those named, that the cache does not confirm. */
  | { readonly kind: 'sample'; readonly epoch: number; readonly pages: readonly number[] }
  | { readonly kind: 'search'; readonly job: SearchTask | undefined }
  | { readonly kind: 'pause'; readonly paused: boolean }
  /** Headers to verify come in through the port: HashRequest in, HashAnswer out. */
  | { readonly kind: 'attach'; readonly port: MessagePort };

export type ThreadAnswer = {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { code: KernelErrorCode; message: string; fields: Readonly<Record<string, unknown>> };
};

export type ThreadEvent =
  | { readonly event: 'searched'; readonly jobId: number; readonly hashes: number; readonly hits: readonly FoundHit[] }
  | { readonly event: 'exhausted'; readonly jobId: number };

export type FoundHit = { readonly nonce: Uint8Array<ArrayBuffer>; readonly hash: Uint8Array<ArrayBuffer> };

export type HashRequest = { readonly id: number; readonly epoch: number; readonly headers: Uint8Array<ArrayBuffer> };
/** No hashes: the thread does not hold the epoch. */
export type HashAnswer = { readonly id: number; readonly hashes?: Uint8Array<ArrayBuffer> };
