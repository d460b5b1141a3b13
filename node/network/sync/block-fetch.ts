/**
 * Fetches the blocks of proven cuts from several peers at once and returns them in the order of execution. Buffered
 * bytes are bounded. The blocks that come next are asked of the best peers; the others have at most half of the
 * places, in turn, for the blocks that are needed last. Who has pruned the next blocks is asked for later ones. The one that is executed next is searched for (search.ts):
 * where it takes long it is asked of others too, alone.
 */
import { type Bytes, concat, equalBytes } from '../../../protocol/bytes.ts';
import { MAX_BODY_BYTES } from '../../../protocol/ledger/body.ts';
import { blockId, HEADER_BYTES } from '../../../protocol/ledger/header.ts';
import { nameOf } from '../../ledger/registration.ts';
import { faultOf, PeerFault } from '../peers/peer-fault.ts';
import { CHUNK_BYTES, decodeChunk, isWholeChunk } from '../snapshots/snapshot-messages.ts';
import type { PeerName } from '../thread/host-types.ts';
import type { AskOrder } from './ask-order.ts';
import { HASTE_MILLIS, Search } from './search.ts';
import { type AnsweredBlock, decodeBlocksAnswer, encodeSyncQuestion, MAX_BLOCKS } from './sync-messages.ts';

export const WAITING_BYTES = 16 * 1_024 * 1_024;
const AT_ONCE = 4;
/** Of these, for those that are not among the best. */
const OF_STRANGERS = AT_ONCE / 2;
/** Questions of one peer in flight: while one answer is transferred the next one is prepared. */
const PER_PEER = 2;
/** Two mebibytes take this long over a slow line. Then all blocks of a question are asked of others too. */
export const LATE_MILLIS = 4_000;
/** Four times as many would have come in time. */
const SOON_MILLIS = LATE_MILLIS / 4;

export type FetchedBlock = AnsweredBlock & { readonly id: Bytes; readonly from: PeerName };

export type BlockFetchDependencies = {
  /** Who may have this block. One that has pruned some may have those that are executed later. */
  readonly peers: (id: Bytes) => readonly PeerName[];
  /** Of these, who is asked first where none brought anything: who says that it has them. */
  readonly claims?: (peer: PeerName) => boolean;
  readonly ask: (peer: PeerName, question: Uint8Array) => Promise<Uint8Array>;
  readonly blame: (error: unknown, peer: PeerName) => void;
  readonly order: AskOrder;
  /** Whether the block came by another way. */
  readonly isHere: (id: Bytes) => boolean;
};

type Question = {
  readonly peer: PeerName;
  readonly ids: readonly Bytes[];
  /** In turn, and not because its peer is one of the best. */
  readonly isInTurn: boolean;
  /** Its blocks are asked of others too: it takes no place. */
  isLate: boolean;
};

/** The parts of a block that a peer sent. */
type Begun = { readonly id: Bytes; readonly parts: Bytes[]; length: number };

type Taker = { readonly id: Bytes; readonly here: PromiseWithResolvers<FetchedBlock | undefined> };

const has = (ids: readonly Bytes[], id: Bytes): boolean => ids.some((other) => equalBytes(other, id));

export class BlockFetch {
  readonly #with: BlockFetchDependencies;
  /** In the order of execution. */
  #wanted: Bytes[];
  readonly #places: ReadonlyMap<string, number>;
  readonly #arrived = new Map<string, FetchedBlock>();
  /** Identifiers of blocks that have not arrived. */
  readonly #lacking: Set<string>;
  readonly #excluded = new Set<PeerName>();
  /** Those that did not have the first block that they were last asked for. */
  readonly #without = new Set<PeerName>();
  /** Pending. */
  readonly #questions = new Set<Question>();
  /** What is to be continued, of each peer one block. */
  readonly #begun = new Map<PeerName, Begun>();
  #bytes = 0;
  #taker: Taker | undefined;
  #closed = false;

  constructor(ids: readonly Bytes[], dependencies: BlockFetchDependencies) {
    this.#with = dependencies;
    this.#wanted = [...ids];
    this.#places = new Map(ids.map((id, place) => [nameOf(id), place]));
    this.#lacking = new Set(this.#places.keys());
    this.#fill();
  }

  close(): void {
    this.#closed = true;
    this.look(true);
  }

  /** Undefined if the block came by another way, or is not needed any more. Rejects when no peer is left to ask. */
  async take(id: Bytes): Promise<FetchedBlock | undefined> {
    const name = nameOf(id);
    const found = this.#arrived.get(name);
    if (found !== undefined) {
      this.#arrived.delete(name);
      this.#bytes -= found.body.length;
      this.#fill();
      return found;
    }
    const taker: Taker = { id, here: Promise.withResolvers() };
    this.#taker = taker;
    const best = this.#best(id);
    const under = [...this.#questions].filter(({ ids }) => has(ids, id));
    for (const question of under)
      if (question.isInTurn && best !== undefined && best !== question.peer) this.#late(question);
    // It was not asked for, because it was here, and is gone.
    if (under.length === 0) this.#wantAgain([id]);
    this.#fill();
    this.look();
    const search = this.#searchFor(id);
    search.start();
    try {
      return await taker.here.promise;
    } finally {
      search.close();
    }
  }

  /** The block that is waited for may have come by another way, or is not needed any more. */
  look(isOver = false): void {
    if (this.#taker === undefined || !(isOver || this.#with.isHere(this.#taker.id))) return;
    this.#taker.here.resolve(undefined);
    this.#taker = undefined;
  }

  /** The received block is wrong: another peer is asked. */
  again(id: Bytes, from?: PeerName): void {
    if (from !== undefined) this.#distrust(from);
    this.#lacking.add(nameOf(id));
    this.#wantAgain([id]);
  }

  /** Its other blocks are dropped too. */
  #distrust(peer: PeerName): void {
    this.#excluded.add(peer);
    const dropped = [...this.#arrived.values()].filter(({ from }) => from === peer);
    for (const { id, body } of dropped) {
      this.#arrived.delete(nameOf(id));
      this.#bytes -= body.length;
      this.#lacking.add(nameOf(id));
    }
    this.#wantAgain(dropped.map(({ id }) => id));
  }

  #usable(id: Bytes): readonly PeerName[] {
    return this.#with.peers(id).filter((peer) => !this.#excluded.has(peer));
  }

  /** However many questions it holds. */
  #best(id: Bytes): PeerName | undefined {
    return this.#with.order.best(this.#usable(id), Number.POSITIVE_INFINITY);
  }

  /** Those that hold no late question. */
  #free(id: Bytes): readonly PeerName[] {
    const late = [...this.#questions].filter(({ isLate }) => isLate).map(({ peer }) => peer);
    return this.#usable(id).filter((peer) => !late.includes(peer));
  }

  /** From which of the wanted blocks on this peer may have them: it has those of newer cuts. */
  #firstOf(peer: PeerName): number {
    let [low, high] = [0, this.#wanted.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#with.peers(this.#wanted[middle] as Bytes).includes(peer)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Until it is here, or nobody can have it. */
  #searchFor(id: Bytes): Search {
    const { order } = this.#with;
    const since = order.steady();
    const under = () => [...this.#questions].filter(({ ids }) => has(ids, id));
    return new Search({
      order,
      places: PER_PEER + 1,
      peers: () => {
        const asked = under().map(({ peer }) => peer);
        return this.#usable(id).filter((peer) => !asked.includes(peer));
      },
      missingSince: () => since,
      isServed: () => order.steady() - since < HASTE_MILLIS && under().some(({ isLate }) => !isLate),
      ask: (peer) => this.#get(peer, [id]),
      failed: (peer, error) => this.#fault(peer, error),
      stuck: () => this.#giveUp(id),
    });
  }

  #giveUp(id: Bytes): void {
    if (this.#questions.size > 0 || !this.#usable(id).every((peer) => this.#without.has(peer))) return;
    this.#taker?.here.reject(new Error('no peer has the blocks of a proven cut'));
    this.#taker = undefined;
  }

  #fill(): void {
    while (!this.#closed && this.#wanted.length > 0) {
      // More blocks do not help the taker while its own is under way.
      if (this.#pending() >= AT_ONCE || this.#bytes >= WAITING_BYTES) return;
      const [next, newest] = [this.#wanted[0], this.#wanted.at(-1)] as [Bytes, Bytes];
      // Who has pruned the next ones may have later ones: they have half of the room.
      const hasNext = this.#whoHas(next);
      const found = hasNext ?? (this.#bytes < WAITING_BYTES / 2 ? this.#whoHas(newest) : undefined);
      if (found === undefined) return;
      const { peer, isInTurn, isLast } = found;
      // Each peer gets a part, so that a slow one does not delay everything.
      const most = this.#usable(newest).length > 1 ? MAX_BLOCKS / 2 : MAX_BLOCKS;
      const share = Math.max(1, Math.floor(this.#with.order.portionOf(peer) * most));
      const first = hasNext === undefined ? this.#firstOf(peer) : 0;
      const some = this.#wanted.splice(isLast ? Math.max(first, this.#wanted.length - share) : first, share);
      const ids = some.filter((id) => this.#lacking.has(nameOf(id)) && !this.#with.isHere(id));
      if (ids.length > 0) void this.#askFor({ peer, ids, isInTurn, isLate: false });
    }
  }

  #pending(isInTurn = false): number {
    return [...this.#questions].filter((one) => !one.isLate && (one.isInTurn || !isInTurn)).length;
  }

  /** Whom to ask for this block and those after it, or for the last ones, if anybody has room. */
  #whoHas(id: Bytes): { readonly peer: PeerName; readonly isInTurn: boolean; readonly isLast: boolean } | undefined {
    const { order, claims = () => true } = this.#with;
    const [best, free] = [this.#best(id), this.#free(id)];
    const quick = best === undefined ? undefined : order.best(free, PER_PEER);
    const isInTurn = best === undefined || quick === undefined || !order.isAsGood(quick, best);
    const isLast = isInTurn && best !== undefined;
    if (isLast && this.#pending(true) >= OF_STRANGERS) return undefined;
    const peer = isInTurn ? (order.next(free.filter(claims)) ?? order.next(free)) : quick;
    return peer === undefined ? undefined : { peer, isInTurn, isLast };
  }

  async #askFor(question: Question): Promise<void> {
    const { order } = this.#with;
    const { peer, ids } = question;
    this.#questions.add(question);
    const held = order.asked(peer, question.isInTurn);
    const late = setTimeout(() => {
      this.#late(question);
      this.#fill();
    }, LATE_MILLIS);
    let won = 0;
    try {
      won = await this.#get(peer, ids);
    } catch (error) {
      this.#fault(peer, error);
    }
    clearTimeout(late);
    order.over(held, won);
    this.#questions.delete(question);
    if (!question.isLate) this.#wantAgain(ids);
    this.#fill();
  }

  #late(question: Question): void {
    question.isLate = true;
    this.#wantAgain(question.ids);
  }

  #fault(peer: PeerName, error: unknown): void {
    const fault = faultOf(error);
    // One that is busy or did not answer may have them.
    if (fault !== undefined && fault !== 'unanswered') this.#excluded.add(peer);
    this.#with.blame(error, peer);
  }

  #wantAgain(ids: readonly Bytes[]): void {
    const absent = ids.filter((id) => this.#lacking.has(nameOf(id)));
    if (absent.length === 0) return;
    const wanted = new Set(this.#wanted.map(nameOf));
    const lacking = absent.filter((id) => !wanted.has(nameOf(id)));
    const place = (id: Bytes) => this.#places.get(nameOf(id)) ?? -1;
    this.#wanted = [...lacking, ...this.#wanted].sort((a, b) => place(a) - place(b));
  }

  /** What it brought. */
  async #get(peer: PeerName, ids: readonly Bytes[]): Promise<number> {
    const { ask, order } = this.#with;
    const [asked, since] = [ids.length / MAX_BLOCKS, order.steady()];
    const isInParts = ids.length === 1 && order.portionOf(peer) <= asked;
    try {
      const blocks = isInParts
        ? await this.#inParts(peer, ids[0] as Bytes)
        : decodeBlocksAnswer(await ask(peer, encodeSyncQuestion({ type: 'blocks', ids })));
      const won = typeof blocks === 'number' ? blocks : this.#receive(peer, ids, blocks);
      if (won === 1 && order.steady() - since <= SOON_MILLIS) order.took(peer, asked, 'soon');
      return won;
    } finally {
      if (order.steady() - since >= LATE_MILLIS) order.took(peer, asked, 'late');
    }
  }

  /** One block may be too long for a line that is too slow for more. Where it came from another meanwhile: how much of it this peer had brought in the same time. */
  async #inParts(peer: PeerName, id: Bytes): Promise<readonly (AnsweredBlock | undefined)[] | number> {
    const begun = this.#takeBegun(peer, id);
    for (let from = begun.parts.length * CHUNK_BYTES; from < begun.length; from += CHUNK_BYTES) {
      if (this.#closed || !this.#lacking.has(nameOf(id))) return from / begun.length;
      const part = decodeChunk(await this.#askForPart(peer, begun, from));
      if (part.length === 0) return [undefined];
      if (from === 0) begun.length = part.length;
      const { length } = begun;
      if (length < HEADER_BYTES || length > HEADER_BYTES + MAX_BODY_BYTES || !isWholeChunk(part, length, from))
        throw new PeerFault(peer, 'malformed', 'bytes of a block are missing, or too many');
      begun.parts.push(part.bytes);
    }
    const block = concat(...begun.parts);
    return [{ header: block.slice(0, HEADER_BYTES), body: block.subarray(HEADER_BYTES) }];
  }

  /** One that is busy at every second question would bring no long block, if its parts were asked for anew. */
  async #askForPart(peer: PeerName, begun: Begun, from: number): Promise<Uint8Array> {
    try {
      return await this.#with.ask(peer, encodeSyncQuestion({ type: 'blockPart', id: begun.id, from }));
    } catch (error) {
      this.#begun.set(peer, begun);
      throw error;
    }
  }

  #takeBegun(peer: PeerName, id: Bytes): Begun {
    const here = this.#with.peers(id);
    // Under ever new names a stranger would leave more and more.
    for (const other of this.#begun.keys()) if (!here.includes(other)) this.#begun.delete(other);
    const begun = this.#begun.get(peer);
    this.#begun.delete(peer);
    return begun !== undefined && equalBytes(begun.id, id) ? begun : { id, parts: [], length: 1 };
  }

  /** The part of the blocks that came; 0 without the first, which every honest answer has room for. */
  #receive(peer: PeerName, ids: readonly Bytes[], blocks: readonly (AnsweredBlock | undefined)[]): number {
    if (blocks.length !== ids.length) throw new PeerFault(peer, 'malformed', 'another number of blocks than asked for');
    for (const [i, block] of blocks.entries()) {
      const id = ids[i] as Bytes;
      if (block === undefined) continue;
      if (!equalBytes(blockId(block.header), id))
        throw new PeerFault(peer, 'bad_block', 'a block that was not asked for');
      this.#keep({ ...block, id, from: peer });
    }
    if (blocks[0] === undefined) this.#without.add(peer);
    else this.#without.delete(peer);
    return blocks[0] === undefined ? 0 : blocks.filter((block) => block !== undefined).length / ids.length;
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
