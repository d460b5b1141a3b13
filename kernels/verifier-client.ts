/**
 * A thread's own handle on the verification workers: a bounded queue, batches, and one port ("lane") to each worker.
 * What a dead worker held is computed again by another; a header over which two workers died is refused, as a fault of
 * ours. Used by the creator and by every attached thread alike.
 */
import type { Bytes } from '../protocol/bytes.ts';
import { HEADER_BYTES } from '../protocol/ledger/header.ts';
import { BATCH_HEADERS, SEARCH_WIDTH } from './cpu/kernel.ts';
import type { HashAnswer, HashRequest } from './cpu/thread-tasks.ts';
import { KernelError } from './kernel-error.ts';

type Call = {
  readonly epoch: number;
  readonly hashes: Uint8Array<ArrayBuffer>[];
  left: number;
  resolve(hashes: Uint8Array<ArrayBuffer>[]): void;
  reject(error: KernelError): void;
};

/** One header of a call: `place` is where its hash goes. */
type Item = { readonly call: Call; readonly place: number; readonly header: Bytes; failures: number };

type Lane = { readonly port: MessagePort; readonly batches: Map<number, Item[]> };

/** One batch computed and one waiting: a worker never idles for want of a message. */
const BATCHES_PER_LANE = 2;

export class VerifierClient {
  readonly #queueLimit: number;
  readonly #lanes = new Map<number, Lane>();
  #waiting: Item[] = [];
  #queued = 0;
  #nextBatch = 1;
  #scheduled = false;
  #closed = false;

  constructor(options: { queueLimit: number }) {
    this.#queueLimit = options.queueLimit;
  }

  get queued(): number {
    return this.#queued;
  }

  /** Takes the port to worker `index`, in place of the one it had before. */
  addLane(index: number, port: MessagePort): void {
    this.#loseLane(index);
    const lane: Lane = { port, batches: new Map() };
    this.#lanes.set(index, lane);
    port.onmessage = (event: MessageEvent<HashAnswer>) => this.#take(lane, event.data);
    port.addEventListener('close', () => {
      if (this.#lanes.get(index) === lane) this.#loseLane(index);
    });
    this.#schedule();
  }

  hashMany(epoch: number, headers: readonly Bytes[]): Promise<Uint8Array<ArrayBuffer>[]> {
    if (this.#closed) return Promise.reject(new KernelError('kernel_closed', 'the verifier is closed'));
    for (const header of headers)
      if (header.length !== HEADER_BYTES)
        throw new RangeError(`a header has ${HEADER_BYTES} bytes, got ${header.length}`);
    if (headers.length === 0) return Promise.resolve([]);
    if (this.#queued + headers.length > this.#queueLimit)
      return Promise.reject(
        new KernelError('kernel_busy', 'too many headers wait to be verified', {
          queued: this.#queued,
          limit: this.#queueLimit,
        }),
      );
    return new Promise((resolve, reject) => {
      const call: Call = { epoch, hashes: new Array(headers.length), left: headers.length, resolve, reject };
      for (let place = 0; place < headers.length; place++)
        this.#waiting.push({ call, place, header: headers[place] as Bytes, failures: 0 });
      this.#queued += headers.length;
      this.#schedule();
    });
  }

  close(): void {
    this.#closed = true;
    const error = new KernelError('kernel_closed', 'the verifier is closed');
    for (const lane of this.#lanes.values()) {
      for (const items of lane.batches.values()) for (const item of items) this.#refuse(item, error);
      lane.batches.clear();
      lane.port.close();
    }
    this.#lanes.clear();
    for (const item of this.#waiting) this.#refuse(item, error);
    this.#waiting = [];
  }

  /** After the calls of this moment, so that they share a batch. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#dispatch();
    });
  }

  #dispatch(): void {
    let at = 0;
    for (;;) {
      const lane = this.#freeLane();
      if (lane === undefined || at >= this.#waiting.length) break;
      const share = Math.ceil((this.#waiting.length - at) / this.#lanes.size);
      const most = Math.min(BATCH_HEADERS, Math.max(SEARCH_WIDTH, share));
      const first = this.#waiting[at] as Item;
      let end = at + 1;
      while (end < this.#waiting.length && end - at < most && this.#waiting[end]?.call.epoch === first.call.epoch)
        end++;
      this.#send(lane, first.call.epoch, this.#waiting.slice(at, end));
      at = end;
    }
    if (at > 0) this.#waiting = this.#waiting.slice(at);
  }

  #freeLane(): Lane | undefined {
    let best: Lane | undefined;
    for (const lane of this.#lanes.values())
      if (lane.batches.size < (best?.batches.size ?? BATCHES_PER_LANE)) best = lane;
    return best;
  }

  #send(lane: Lane, epoch: number, items: Item[]): void {
    const id = this.#nextBatch++;
    const headers = new Uint8Array(items.length * HEADER_BYTES);
    for (let i = 0; i < items.length; i++) headers.set((items[i] as Item).header, i * HEADER_BYTES);
    lane.batches.set(id, items);
    const request: HashRequest = { id, epoch, headers };
    lane.port.postMessage(request, [headers.buffer]);
  }

  #take(lane: Lane, { id, hashes }: HashAnswer): void {
    const items = lane.batches.get(id) ?? [];
    lane.batches.delete(id);
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as Item;
      const { call, place } = item;
      if (hashes === undefined) {
        const { epoch } = call;
        this.#refuse(item, new KernelError('kernel_epoch_not_ready', `epoch ${epoch} is not prepared`, { epoch }));
        continue;
      }
      this.#queued--;
      call.hashes[place] = hashes.slice(32 * i, 32 * i + 32);
      if (--call.left === 0) call.resolve(call.hashes);
    }
    this.#dispatch();
  }

  #refuse(item: Item, error: KernelError): void {
    this.#queued--;
    item.call.reject(error);
  }

  #loseLane(index: number): void {
    const lane = this.#lanes.get(index);
    if (lane === undefined) return;
    this.#lanes.delete(index);
    lane.port.close();
    const again: Item[] = [];
    for (const items of lane.batches.values())
      for (const item of items) {
        item.failures++;
        if (item.failures < 2) again.push(item);
        else this.#refuse(item, new KernelError('kernel_worker_failed', 'two verification workers failed in turn'));
      }
    this.#waiting = [...again, ...this.#waiting];
    this.#schedule();
  }
}
