/**
 * Which nonces of a job are searched next: one run after the other, and again in halves where a run had more hits than slots.
 * A job is over once every nonce was searched and nothing of it is in flight.
 */
import { powNonce, powPreHash } from '../../protocol/crypto/pow.ts';
import { noncesPerBlock, type SearchJob } from '../backend.ts';
import { nonceBound } from './steer.ts';

export type NonceRun = { readonly nonce: bigint; readonly count: number };

export class NonceWalk {
  readonly job: SearchJob;
  readonly prefix: Uint32Array;
  readonly noncesPerBlock: number;
  /** The bytes of the nonce that the job gives. */
  readonly #fixed: bigint;
  readonly #most: number;
  #next: bigint;
  /** Runs whose hits did not fit the slots, to be searched again in pieces. */
  readonly #again: NonceRun[] = [];
  #flying = 0;

  constructor(job: SearchJob, slots: number) {
    this.job = job;
    this.prefix = new Uint32Array(powPreHash(job.header).buffer);
    const free = (1n << BigInt(8 * (8 - job.prefixBytes))) - 1n;
    this.#fixed = new DataView(powNonce(job.header).buffer).getBigUint64(0, true) & ~free;
    this.noncesPerBlock = noncesPerBlock(job);
    this.#most = nonceBound(job.target, slots);
    this.#next = job.nonces.from;
  }

  /** The next run, in flight from now on; undefined when there is none to start. */
  next(work: number): NonceRun | undefined {
    const run = this.#again.pop() ?? this.#fresh(work);
    if (run !== undefined) this.#flying++;
    return run;
  }

  #fresh(work: number): NonceRun | undefined {
    const left = this.job.nonces.to - this.#next;
    if (left <= 0n) return undefined;
    const wanted = BigInt(Math.min(work, this.#most));
    const count = left < wanted ? left : wanted;
    const nonce = this.#fixed | this.#next;
    this.#next += count;
    return { nonce, count: Number(count) };
  }

  /** A run came back. `fitted`: all its hits did. */
  settle({ nonce, count }: NonceRun, fitted: boolean): void {
    this.#flying--;
    if (fitted) return;
    const half = Math.floor(count / 2);
    this.#again.push({ nonce, count: half }, { nonce: nonce + BigInt(half), count: count - half });
  }

  get isOver(): boolean {
    return this.#next >= this.job.nonces.to && this.#again.length + this.#flying === 0;
  }
}
