/**
 * Fetches the blocks of proven cuts from several peers at once and returns them in the order of execution. Buffered
 * bytes are bounded; a peer that has none, or sends wrong ones, is not asked again for this batch. Blocks that a peer
 * does not send soon are also requested from another.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/header.ts';
import { nameOf } from '../ledger/registration.ts';
import { PeerFault } from './peer-fault.ts';
import { type AnsweredBlock, decodeBlocksAnswer, encodeSyncQuestion, MAX_BLOCKS } from './sync-messages.ts';
import type { PeerName } from './thread/host-types.ts';

export const WAITING_BYTES = 16 * 1_024 * 1_024;
const AT_ONCE = 4;
/** Requests per peer in flight: while one answer is transferred the next one is prepared. */
const PER_PEER = 2;
/** Two mebibytes take this long over a slow line. */
export const HASTE_MILLIS = 3_000;

export type FetchedBlock = AnsweredBlock & { readonly id: Bytes; readonly from: PeerName };

export type BlockFetchDependencies = {
  /** Peers that have the cuts. */
  readonly peers: () => readonly PeerName[];
  readonly ask: (peer: PeerName, question: Uint8Array) => Promise<Uint8Array>;
  readonly blame: (error: unknown, peer: PeerName) => void;
};

export class BlockFetch {
  readonly #with: BlockFetchDependencies;
  #wanted: Bytes[];
  readonly #arrived = new Map<string, FetchedBlock>();
  /** Identifiers of blocks that have not arrived. */
  readonly #lacking = new Set<string>();
  readonly #excluded = new Set<PeerName>();
  /** Requests that took too long: their peers get no others while there are alternatives. */
  readonly #late = new Map<PeerName, number>();
  /** Pending requests per peer. */
  readonly #asking = new Map<PeerName, number>();
  #bytes = 0;
  #taker: { readonly id: Bytes; readonly here: PromiseWithResolvers<FetchedBlock> } | undefined;
  #closed = false;

  constructor(ids: readonly Bytes[], dependencies: BlockFetchDependencies) {
    this.#with = dependencies;
    this.#wanted = [...ids];
    for (const id of ids) this.#lacking.add(nameOf(id));
    this.#fill();
  }

  close(): void {
    this.#closed = true;
  }

  /** Rejects when no peer is left to ask. */
  async take(id: Bytes): Promise<FetchedBlock> {
    const name = nameOf(id);
    const found = this.#arrived.get(name);
    if (found !== undefined) {
      this.#arrived.delete(name);
      this.#bytes -= found.body.length;
      this.#fill();
      return found;
    }
    const taker = { id, here: Promise.withResolvers<FetchedBlock>() };
    this.#taker = taker;
    // It may be given up at once.
    this.#fill();
    return await taker.here.promise;
  }

  /** The received block is wrong: another peer is asked. */
  again(id: Bytes, from?: PeerName): void {
    if (from !== undefined) this.#distrust(from);
    this.#lacking.add(nameOf(id));
    this.#wanted.unshift(id);
  }

  /** Its other blocks are dropped too. */
  #distrust(peer: PeerName): void {
    this.#excluded.add(peer);
    for (const [name, { id, from, body }] of this.#arrived)
      if (from === peer) {
        this.#arrived.delete(name);
        this.#bytes -= body.length;
        this.#lacking.add(name);
        this.#wanted.unshift(id);
      }
  }

  #fill(): void {
    while (!this.#closed && this.#wanted.length > 0 && this.#inFlight() < AT_ONCE) {
      if (this.#bytes >= WAITING_BYTES && !this.#isTakerWanted()) return;
      const usable = this.#with.peers().filter((peer) => !this.#excluded.has(peer));
      const free = usable.filter((peer) => (this.#asking.get(peer) ?? 0) < PER_PEER && !this.#late.has(peer));
      const peer = free[Math.floor((this.#wanted.length / MAX_BLOCKS) % Math.max(1, free.length))];
      if (peer === undefined) {
        if (usable.length === 0) this.#giveUp();
        return;
      }
      // Each peer gets a part, so that a slow one does not delay everything.
      const share = usable.length > 1 ? MAX_BLOCKS / 2 : MAX_BLOCKS;
      const ids = this.#wanted.splice(0, share).filter((id) => this.#lacking.has(nameOf(id)));
      if (ids.length > 0) void this.#askFor(peer, ids);
    }
  }

  /** More blocks do not help the taker while its own is under way. */
  #isTakerWanted(): boolean {
    const { id } = this.#taker ?? {};
    return id !== undefined && this.#wanted.some((other) => equalBytes(other, id));
  }

  #inFlight(): number {
    let count = 0;
    for (const questions of this.#asking.values()) count += questions;
    // Peers that take too long do not delay the others.
    for (const questions of this.#late.values()) count -= questions;
    return count;
  }

  #giveUp(): void {
    this.#taker?.here.reject(new Error('no peer has the blocks of a proven cut'));
    this.#taker = undefined;
  }

  async #askFor(peer: PeerName, ids: readonly Bytes[]): Promise<void> {
    this.#asking.set(peer, (this.#asking.get(peer) ?? 0) + 1);
    let isLate = false;
    const hurry = setTimeout(() => {
      isLate = true;
      this.#late.set(peer, (this.#late.get(peer) ?? 0) + 1);
      this.#wantAgain(ids);
      this.#fill();
    }, HASTE_MILLIS);
    let missing: readonly Bytes[] = ids;
    try {
      const answer = await this.#with.ask(peer, encodeSyncQuestion({ type: 'blocks', ids }));
      missing = this.#receive(peer, ids, answer);
      if (missing.length === ids.length) this.#excluded.add(peer);
    } catch (error) {
      this.#excluded.add(peer);
      this.#with.blame(error, peer);
    } finally {
      clearTimeout(hurry);
      this.#asking.set(peer, (this.#asking.get(peer) ?? 1) - 1);
      const late = (this.#late.get(peer) ?? 0) - 1;
      if (isLate && late > 0) this.#late.set(peer, late);
      else if (isLate) this.#late.delete(peer);
      else this.#wantAgain(missing);
      this.#fill();
    }
  }

  #wantAgain(ids: readonly Bytes[]): void {
    const wanted = new Set(this.#wanted.map(nameOf));
    const lacking = ids.filter((id) => this.#lacking.has(nameOf(id)) && !wanted.has(nameOf(id)));
    this.#wanted = [...lacking, ...this.#wanted];
  }

  /** Those that did not come. */
  #receive(peer: PeerName, ids: readonly Bytes[], answer: Uint8Array): readonly Bytes[] {
    const blocks = decodeBlocksAnswer(answer);
    if (blocks.length !== ids.length) throw new PeerFault(peer, 'malformed', 'another number of blocks than asked for');
    const missing: Bytes[] = [];
    for (const [i, block] of blocks.entries()) {
      const id = ids[i] as Bytes;
      if (block === undefined) missing.push(id);
      else if (!equalBytes(blockId(block.header), id))
        throw new PeerFault(peer, 'bad_block', 'a block that was not asked for');
      else this.#keep({ ...block, id, from: peer });
    }
    return missing;
  }

  #keep(block: FetchedBlock): void {
    const { id } = block;
    // Another peer was faster.
    if (!this.#lacking.delete(nameOf(id))) return;
    if (this.#taker !== undefined && equalBytes(this.#taker.id, id)) {
      this.#taker.here.resolve(block);
      this.#taker = undefined;
      return;
    }
    this.#arrived.set(nameOf(id), block);
    this.#bytes += block.body.length;
  }
}
