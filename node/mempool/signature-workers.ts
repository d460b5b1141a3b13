/**
 * Checks signatures in worker threads. Concurrent checks are sent as one packed batch per worker; a worker has at most
 * two batches, the rest wait here, so the load is balanced. Those of blocks come first: a cut waits for them, and what
 * costs work is bounded by it, while anybody can send transactions. A worker that dies is replaced and its batches are
 * retried once.
 */
import { Worker } from 'node:worker_threads';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import type { SignatureCheck } from '../../protocol/transactions/witness-check.ts';
import { Queue } from '../../runtime/queue.ts';
import type { ChecksAside } from './checked-signatures.ts';

const RECORD = PUBLIC_KEY_BYTES + ID_BYTES + SIGNATURE_BYTES;
const MAX_BATCH = 32;
const BATCHES_PER_WORKER = 2;

type Job = {
  readonly check: SignatureCheck;
  readonly known: () => boolean | undefined;
  resolve(valid: boolean): void;
  reject(error: Error): void;
  tries: number;
};
type Hand = { worker: Worker; readonly batches: Map<number, Job[]> };

export class SignatureWorkers implements ChecksAside {
  readonly #threads: number;
  readonly #hands: Hand[] = [];
  readonly #first = new Queue<Job>();
  readonly #waiting = new Queue<Job>();
  /** For blocks. */
  readonly first: ChecksAside = {
    isFirst: true,
    verify: (check, known) => this.#enqueue(this.#first, check, known),
  };
  #nextBatch = 0;
  #scheduled = false;
  #closed = false;

  constructor(threads: number) {
    this.#threads = threads;
  }

  /** Starts the workers before there is anything to check: a thread takes longer to start than hundreds of checks. */
  warm(): void {
    while (!this.#closed && this.#hands.length < this.#threads) this.#hands.push(this.#start());
  }

  /** Workers that were not started before start with the first check. */
  verify(check: SignatureCheck, known: Job['known'] = () => undefined): Promise<boolean> {
    return this.#enqueue(this.#waiting, check, known);
  }

  #enqueue(queue: Queue<Job>, check: SignatureCheck, known: Job['known']): Promise<boolean> {
    return new Promise((resolve, reject) => {
      queue.push({ check, known, resolve, reject, tries: 0 });
      this.#schedule();
    });
  }

  get #count(): number {
    return this.#first.length + this.#waiting.length;
  }

  #next(): Job | undefined {
    return this.#first.length > 0 ? this.#first.shift() : this.#waiting.shift();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#handOut();
    });
  }

  #handOut(): void {
    if (this.#closed) {
      while (this.#count > 0) this.#next()?.reject(new Error('the signature workers are closed'));
      return;
    }
    const batches = this.#hands.reduce((sum, hand) => sum + hand.batches.size, 0);
    const wanted = Math.min(this.#threads, batches + this.#count);
    while (this.#hands.length < wanted) this.#hands.push(this.#start());
    for (let round = 0; round < BATCHES_PER_WORKER; round++)
      for (const hand of this.#hands) {
        if (this.#count === 0) return;
        if (hand.batches.size > round) continue;
        const share = Math.ceil(this.#count / this.#hands.length);
        this.#send(hand, this.#unknown(Math.min(MAX_BATCH, share)));
      }
  }

  /** The next checks. An execution that could not wait may have done some of them meanwhile. */
  #unknown(count: number): Job[] {
    const jobs: Job[] = [];
    while (jobs.length < count && this.#count > 0) {
      const job = this.#next() as Job;
      const known = job.known();
      if (known === undefined) jobs.push(job);
      else job.resolve(known);
    }
    return jobs;
  }

  #send(hand: Hand, jobs: Job[]): void {
    if (jobs.length === 0) return;
    const records = new Uint8Array(jobs.length * RECORD);
    jobs.forEach(({ check }, i) => {
      records.set(check.publicKey, i * RECORD);
      records.set(check.message, i * RECORD + PUBLIC_KEY_BYTES);
      records.set(check.signature, i * RECORD + PUBLIC_KEY_BYTES + ID_BYTES);
    });
    const batch = this.#nextBatch++;
    hand.batches.set(batch, jobs);
    hand.worker.postMessage({ batch, records }, [records.buffer]);
  }

  #start(): Hand {
    const worker = new Worker(new URL('./signature-worker.ts', import.meta.url));
    // A worker must not keep a program alive that has nothing else to do.
    worker.unref();
    const hand: Hand = { worker, batches: new Map() };
    worker.on('message', ({ batch, verdicts }: { batch: number; verdicts: Uint8Array }) => {
      const jobs = hand.batches.get(batch) ?? [];
      hand.batches.delete(batch);
      for (const [i, job] of jobs.entries()) job.resolve(verdicts[i] === 1);
      this.#handOut();
    });
    worker.on('error', (error) => this.#replace(hand, error));
    return hand;
  }

  #replace(hand: Hand, error: Error): void {
    this.#hands.splice(this.#hands.indexOf(hand), 1);
    for (const job of [...hand.batches.values()].flat())
      if (job.tries++ === 0) this.#first.push(job);
      else job.reject(error);
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#handOut();
    const closed = new Error('the signature workers are closed');
    for (const hand of this.#hands) for (const job of [...hand.batches.values()].flat()) job.reject(closed);
    await Promise.all(this.#hands.map(({ worker }) => worker.terminate()));
  }
}
