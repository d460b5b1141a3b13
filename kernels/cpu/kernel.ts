/**
 * One thread's view of the CPU kernel: the WebAssembly module on a memory, with its own scratch. Synchronous; the
 * threads around it are in kernels/cpu/thread.ts. Runs in Node and in browsers.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { POW_CACHE_PASSES } from '../../protocol/crypto/pow-counts.ts';
import { HEADER_BYTES } from '../../protocol/ledger/header-layout.ts';
import { KernelError } from '../kernel-error.ts';
import { INDEX_OFFSET, IO_OFFSET, type Layout, scratchAt, WASM_PAGE } from './layout.ts';

/** How many hashes, and dataset items, one thread keeps in flight; measured, docs/lab/cpu.md. */
export const SEARCH_WIDTH = 32;
export const LIGHT_WIDTH = 8;
export const ITEM_WIDTH = 32;

/** Headers a thread takes at once: what its scratch holds. */
export const BATCH_HEADERS = 128;
const HITS_ROOM = 1_024;
const HIT_BYTES = 40;
const IO_RESULTS = IO_OFFSET + BATCH_HEADERS * HEADER_BYTES;
const IO_HITS = IO_OFFSET + 64;

type Exports = {
  cacheChain(cache: number, seed: number, from: number, to: number): void;
  cachePass(cache: number, log2: number, scratch: number, from: number, to: number): void;
  items(cache: number, log2: number, scratch: number, to: number, count: number): number;
  datasetSlice(
    cache: number,
    log2: number,
    scratch: number,
    dataset: number,
    from: number,
    to: number,
    width: number,
  ): number;
  preHash(scratch: number, header: number, to: number): void;
  hashFull(
    scratch: number,
    headers: number,
    to: number,
    count: number,
    dataset: number,
    pagesLog2: number,
    width: number,
  ): number;
  hashLight(
    scratch: number,
    headers: number,
    to: number,
    count: number,
    cache: number,
    cacheLog2: number,
    pagesLog2: number,
    width: number,
  ): number;
  searchFull(
    scratch: number,
    nonce: bigint,
    count: number,
    hits: number,
    room: number,
    dataset: number,
    pagesLog2: number,
    width: number,
  ): number;
  searchLight(
    scratch: number,
    nonce: bigint,
    count: number,
    hits: number,
    room: number,
    cache: number,
    cacheLog2: number,
    pagesLog2: number,
    width: number,
  ): number;
};

export type FoundNonce = { readonly nonce: Uint8Array<ArrayBuffer>; readonly hash: Uint8Array<ArrayBuffer> };

/** A new memory for the layout; a refusal by the engine is the typed error that names what light mode would need. */
export function createMemory(layout: Layout, shared: boolean): WebAssembly.Memory {
  const pages = layout.bytes / WASM_PAGE;
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared });
  } catch {
    throw memoryInsufficient(layout);
  }
}

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20).toLocaleString('en')} MiB`;

export function memoryInsufficient(layout: Layout, available?: number): KernelError {
  const light = layout.bytes - layout.datasetBytes;
  const has = available === undefined ? 'the machine refuses that much' : `${mebibytes(available)} are free`;
  const advice =
    layout.mode === 'full'
      ? `; light mode needs ${mebibytes(light)} and verifies each hash from the cache, about 40 times slower`
      : '';
  return new KernelError(
    'kernel_memory_insufficient',
    `${layout.mode} mode needs ${mebibytes(layout.bytes)} of memory, and ${has}${advice}`,
    { neededBytes: layout.bytes, lightBytes: light, ...(available === undefined ? {} : { availableBytes: available }) },
  );
}

export class Kernel {
  readonly layout: Layout;
  readonly memory: WebAssembly.Memory;
  readonly #exports: Exports;
  readonly #bytes: Uint8Array;
  readonly #scratch: number;

  constructor(module: WebAssembly.Module, memory: WebAssembly.Memory, layout: Layout, slot: number) {
    this.layout = layout;
    this.memory = memory;
    this.#exports = new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as Exports;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#scratch = scratchAt(slot);
  }

  /** Steps of the cache: a first chain and three passes over all items. */
  get cacheSteps(): number {
    return this.layout.cacheItems * (1 + POW_CACHE_PASSES);
  }

  /** Steps `from` to `to` of the cache; the ones before must be done. */
  buildCache(seed: Bytes, from: number, to: number): void {
    const { cache, cacheItems, parameters } = this.layout;
    const io = this.#scratch + IO_OFFSET;
    this.#bytes.set(seed, io);
    for (let at = from; at < to; ) {
      const pass = Math.floor(at / cacheItems);
      const first = at - pass * cacheItems;
      const last = Math.min(cacheItems, first + to - at);
      if (pass === 0) this.#exports.cacheChain(cache, io, first, last);
      else this.#exports.cachePass(cache, parameters.cacheLog2, this.#scratch, first, last);
      at += last - first;
    }
  }

  /** Dataset items `from` to `to`, both multiples of ITEM_WIDTH, into their place. */
  buildItems(from: number, to: number): void {
    const { cache, dataset, parameters } = this.layout;
    this.#exports.datasetSlice(cache, parameters.cacheLog2, this.#scratch, dataset, from, to, ITEM_WIDTH);
  }

  /** Whether the page in memory is what the cache says it is. */
  isPageRight(page: number): boolean {
    const { cache, dataset, parameters } = this.layout;
    const indices = new Uint32Array(this.memory.buffer, this.#scratch + INDEX_OFFSET, 4);
    indices.set([2 * page, 2 * page + 1, 2 * page, 2 * page + 1]);
    const io = this.#scratch + IO_OFFSET;
    this.#exports.items(cache, parameters.cacheLog2, this.#scratch, io, 4);
    for (let i = 0; i < 128; i++) if (this.#bytes[io + i] !== this.#bytes[dataset + 128 * page + i]) return false;
    return true;
  }

  item(index: number): Uint8Array<ArrayBuffer> {
    const io = this.#scratch + IO_OFFSET;
    new Uint32Array(this.memory.buffer, this.#scratch + INDEX_OFFSET, 4).fill(index);
    this.#exports.items(this.layout.cache, this.layout.parameters.cacheLog2, this.#scratch, io, 4);
    return new Uint8Array(this.#bytes.subarray(io, io + 64));
  }

  /** `headers` holds whole headers one after the other, any number of them; so does the answer, 32 bytes each. */
  hash(headers: Bytes): Uint8Array<ArrayBuffer> {
    const count = headers.length / HEADER_BYTES;
    if (!Number.isInteger(count)) throw new RangeError(`headers have ${HEADER_BYTES} bytes each`);
    const hashes = new Uint8Array(32 * count);
    const [io, results] = [this.#scratch + IO_OFFSET, this.#scratch + IO_RESULTS];
    for (let done = 0; done < count; done += BATCH_HEADERS) {
      const now = Math.min(BATCH_HEADERS, count - done);
      this.#bytes.set(headers.subarray(done * HEADER_BYTES, (done + now) * HEADER_BYTES), io);
      this.#hashAt(io, results, now);
      hashes.set(this.#bytes.subarray(results, results + 32 * now), 32 * done);
    }
    return hashes;
  }

  #hashAt(headers: number, to: number, count: number): void {
    const { cache, dataset, mode, parameters } = this.layout;
    const { cacheLog2, pagesLog2 } = parameters;
    if (mode === 'full') this.#exports.hashFull(this.#scratch, headers, to, count, dataset, pagesLog2, SEARCH_WIDTH);
    else this.#exports.hashLight(this.#scratch, headers, to, count, cache, cacheLog2, pagesLog2, LIGHT_WIDTH);
  }

  preHash(header: Bytes): Uint8Array<ArrayBuffer> {
    const io = this.#scratch + IO_OFFSET;
    this.#bytes.set(header, io);
    this.#exports.preHash(this.#scratch, io, io);
    return new Uint8Array(this.#bytes.subarray(io, io + 32));
  }

  /**
   * Tries `count` nonces from `nonce` on, counted in the 8 bytes as a little-endian integer. Undefined when there were
   * more hits than there is room for: ask for fewer nonces.
   */
  search(preHash: Bytes, target: Bytes, nonce: bigint, count: number): FoundNonce[] | undefined {
    const { cache, dataset, mode, parameters } = this.layout;
    const { cacheLog2, pagesLog2 } = parameters;
    const scratch = this.#scratch;
    this.#bytes.set(preHash, scratch + IO_OFFSET);
    this.#bytes.set(target, scratch + IO_OFFSET + 32);
    const hits = scratch + IO_HITS;
    const found =
      mode === 'full'
        ? this.#exports.searchFull(scratch, nonce, count, hits, HITS_ROOM, dataset, pagesLog2, SEARCH_WIDTH)
        : this.#exports.searchLight(scratch, nonce, count, hits, HITS_ROOM, cache, cacheLog2, pagesLog2, LIGHT_WIDTH);
    if (found > HITS_ROOM) return undefined;
    return Array.from({ length: found }, (_, i) => {
      const at = hits + i * HIT_BYTES;
      return {
        nonce: new Uint8Array(this.#bytes.subarray(at, at + 8)),
        hash: new Uint8Array(this.#bytes.subarray(at + 8, at + HIT_BYTES)),
      };
    });
  }
}
