/**
 * A mining backend. One backend is one device: a graphics card (kernels/gpu) or the processor's cores (kernels/cpu).
 * Both run in Node and in a browser, and the miner treats them alike.
 *
 * Usage: prepare(epoch) once per epoch, setJob() for every job, close() at the end. The next epoch may be prepared
 * during the search.
 */
import type { Bytes } from '../protocol/bytes.ts';
import { TARGET_OFFSET } from '../protocol/ledger/header-layout.ts';

export type BackendKind = 'wasm' | 'webgpu';

/** Half-open range of the free part of the nonce, the bytes before the server's prefix, as a little-endian integer. */
export type NonceRange = { readonly from: bigint; readonly to: bigint };

export type SearchJob = {
  /** The miner's own number, given back with every hit. */
  readonly id: number;
  readonly epoch: number;
  /** 312 bytes; the server's prefix is already in the last bytes of the nonce, the rest of it is ignored. */
  readonly header: Bytes;
  /** 32 bytes, big-endian: a hash at or below it is a hit. */
  readonly target: Bytes;
  /** Length of the server's prefix, the last bytes of the nonce. */
  readonly prefixBytes: number;
  /** The part of the free nonces that this backend may use: devices never search the same. */
  readonly nonces: NonceRange;
};

export type Hit = {
  readonly jobId: number;
  /** The 8 bytes as they go into the header. */
  readonly nonce: Uint8Array<ArrayBuffer>;
  readonly hash: Uint8Array<ArrayBuffer>;
};

/** `done` of `total` units of a stage; the time left is known once enough is done to tell. */
export type Progress = {
  readonly epoch: number;
  readonly stage: 'cache' | 'dataset' | 'load' | 'verify' | 'store';
  readonly done: number;
  readonly total: number;
  readonly secondsLeft?: number;
};

export type BackendEvents = {
  onHit(hit: Hit): void;
  /** Every nonce of the job's range was tried; the backend idles until the next job. */
  onExhausted?(jobId: number): void;
  /** The device is lost or hangs: nothing more comes from it. Ordinary errors of a call reject that call instead. */
  onFailure?(error: Error): void;
  onProgress?(progress: Progress): void;
};

/** How long a device worked and waited for work, in milliseconds of its own clock. */
export type DeviceUsage = { readonly busyMillis: number; readonly idleMillis: number };

export interface Backend {
  /** As shown to the user, e.g. "NVIDIA H200" or "CPU, 2 threads". */
  readonly name: string;
  readonly kind: BackendKind;
  /** Hashes tried since the start. Only grows. */
  readonly hashes: number;
  /** The same by thread, where there are threads. */
  readonly threadHashes?: readonly number[];
  /** Epochs that can be searched now. */
  readonly epochs: readonly number[];
  /** Present if the device times its own work, for measurements. */
  readonly usage?: DeviceUsage | undefined;
  /** Whether forms of the search are still being tried, on real work. */
  readonly isTuning?: boolean;
  /**
   * Resolves when the epoch's dataset is in place. At most two epochs are kept: the one furthest away is dropped, but
   * not the one of the job at hand. One is built at a time, and the newest request counts: an unfinished build of
   * another epoch may be cancelled, and is then rejected.
   */
  prepare(epoch: number): Promise<void>;
  /** Resolves when no prepared dataset is being written to disk any more; absent where none ever is. */
  stored?(): Promise<void>;
  /** Takes effect within one batch (20-50 ms); hits of the job before may still come until then, under their own id. */
  setJob(job: SearchJob | undefined): void;
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export const freeNonces = (prefixBytes: number): bigint => 1n << BigInt(8 * (8 - prefixBytes));

/** Cuts the free nonces into equal parts, one per device. */
export function splitNonces(range: NonceRange, parts: number): NonceRange[] {
  const share = (range.to - range.from) / BigInt(parts);
  return Array.from({ length: parts }, (_, i) => ({
    from: range.from + share * BigInt(i),
    to: i === parts - 1 ? range.to : range.from + share * BigInt(i + 1),
  }));
}

/** Nonces in which one hash is expected to meet the target (32 bytes, big-endian). */
export function noncesPerHit(target: Uint8Array): number {
  const view = new DataView(target.buffer, target.byteOffset);
  return 2 ** 64 / (view.getUint32(0) * 2 ** 32 + view.getUint32(4) + 1);
}

/**
 * A body is good for one block (S53): where a device finds several blocks of one job in a batch, all but the first are lost, the chain sees few of them and stays too easy.
 * So a batch is no longer than a block takes, as far as short ones are worth it.
 */
export const noncesPerBlock = ({ header }: Pick<SearchJob, 'header'>): number =>
  noncesPerHit(header.subarray(TARGET_OFFSET, TARGET_OFFSET + 32));
