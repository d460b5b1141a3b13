/**
 * Fetches the blocks of proven cuts from several peers at once and returns them in the order of execution. Buffered
 * bytes are bounded; a peer that has none, or sends wrong ones, is not asked again for this batch, and one that did not
 * answer rests. Blocks that a peer does not send soon are also requested from another. Who is asked next follows from what peers delivered per second;
 * those that did not show it take neither all places nor a second one.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { blockId } from '../../../protocol/ledger/header.ts';
import { nameOf } from '../../ledger/registration.ts';
import { faultOf, isBusy, PeerFault } from '../peers/peer-fault.ts';
import type { PeerName } from '../thread/host-types.ts';
import type { DeliveryPace } from './delivery-pace.ts';
import { type AnsweredBlock, decodeBlocksAnswer, encodeSyncQuestion, MAX_BLOCKS } from './sync-messages.ts';

export const WAITING_BYTES = 16 * 1_024 * 1_024;
const AT_ONCE = 4;
/** Questions in flight to peers that have not shown a good pace. */
const OF_OTHERS = AT_ONCE - 1;
/** Requests per peer in flight: while one answer is transferred the next one is prepared. */
const PER_PEER = 2;
/** Two mebibytes take this long over a slow line. */
export const HASTE_MILLIS = 3_000;
/** The same for the block that is executed next, while it is under way from a peer without a good pace. */
export const NEXT_MILLIS = 1_000;

/** Then one that was busy or did not answer has its turn again: strangers may come for ever, and it may be all there is. */
const REST_MILLIS = 2_000;
/** Where nobody else is left, one that is busy is waited for so often: what it sent of the batch is of use. */
const MAX_PUT_OFF = 8;
/** The block that is executed next is requested of at most so many at one time: of one more each time that nothing came. */
const MAX_COPIES = 4;

export type FetchedBlock = AnsweredBlock & { readonly id: Bytes; readonly from: PeerName };

export type BlockFetchDependencies = {
  /** Peers that have the cuts. */
  readonly peers: () => readonly PeerName[];
  readonly ask: (peer: PeerName, question: Uint8Array) => Promise<Uint8Array>;
  readonly blame: (error: unknown, peer: PeerName) => void;
  readonly pace: DeliveryPace;
  /** Whether the block came by another way. */
  readonly isHere: (id: Bytes) => boolean;
};

type Question = {
  readonly peer: PeerName;
  readonly ids: readonly Bytes[];
  /** Too slow for the block that is executed next. */
  isSlow: boolean;
  /** Its blocks are requested elsewhere too. */
  isLate: boolean;
};

export class BlockFetch {
  readonly #with: BlockFetchDependencies;
  #wanted: Bytes[];
  readonly #arrived = new Map<string, FetchedBlock>();
  /** Identifiers of blocks that have not arrived. */
  readonly #lacking = new Set<string>();
  readonly #excluded = new Set<PeerName>();
  readonly #resting = new Map<PeerName, NodeJS.Timeout>();
  /** How often they were busy since they last sent something. */
  readonly #putOff = new Map<PeerName, number>();
  /** Pending. Peers with a late one get no others. */
  readonly #questions = new Set<Question>();
  #bytes = 0;
  /** Questions for the block that is waited for that brought nothing, or not soon. */
  #inVain = 0;
  #taker: { readonly id: Bytes; readonly here: PromiseWithResolvers<FetchedBlock | undefined> } | undefined;
  #closed = false;

  constructor(ids: readonly Bytes[], dependencies: BlockFetchDependencies) {
    this.#with = dependencies;
    this.#wanted = [...ids];
    for (const id of ids) this.#lacking.add(nameOf(id));
    this.#fill();
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#resting.values()) clearTimeout(timer);
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
    this.#inVain = 0;
    const taker = { id, here: Promise.withResolvers<FetchedBlock | undefined>() };
    this.#taker = taker;
    for (const question of this.#questions) if (question.isSlow) this.#hurry(question);
    // It was not asked for, because it was here, and is gone.
    if (![...this.#questions].some(({ ids }) => ids.some((other) => equalBytes(other, id)))) this.#wantAgain([id]);
    // It may be given up at once.
    this.#fill();
    this.look();
    return await taker.here.promise;
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
      const usable = this.#with.peers().filter((peer) => !this.#excluded.has(peer) && !this.#resting.has(peer));
      const peer = this.#choose(usable);
      if (peer === undefined) {
        if (usable.length === 0 && !this.#mayCome()) this.#giveUp();
        return;
      }
      this.#tryAnother(usable, peer);
      // Each peer gets a part, so that a slow one does not delay everything.
      this.#wantTakersFirst();
      const share = usable.length > 1 ? MAX_BLOCKS / 2 : MAX_BLOCKS;
      const ids = this.#wanted.splice(0, share).filter((id) => this.#lacking.has(nameOf(id)) && !this.#with.isHere(id));
      if (ids.length > 0) void this.#askFor(peer, ids);
    }
  }

  /** The block that is waited for is also asked of one without a good pace: nobody waits for it, and it may show that it is quick. */
  #tryAnother(usable: readonly PeerName[], chosen: PeerName): void {
    const { pace } = this.#with;
    if (this.#taker === undefined || pace.rank(chosen) !== 'good' || !this.#isTakerWanted() || !pace.isTryDue()) return;
    const isAsked = (peer: PeerName) => [...this.#questions].some((question) => question.peer === peer);
    const [other] = pace.sorted(usable.filter((peer) => pace.rank(peer) !== 'good' && !isAsked(peer)));
    if (other === undefined) return;
    pace.tried();
    void this.#askFor(other, [this.#taker.id], true);
  }

  #wantTakersFirst(): void {
    const { id } = this.#taker ?? {};
    const at = id === undefined ? -1 : this.#wanted.findIndex((other) => equalBytes(other, id));
    if (at > 0) this.#wanted.unshift(...this.#wanted.splice(at, 1));
  }

  /** More blocks do not help the taker while its own is under way. */
  #isTakerWanted(): boolean {
    return this.#isTakers(this.#wanted);
  }

  /**
   * The quickest that is free, always for the block that is waited for. Beside it one that is not known yet is tried,
   * so that a quicker one is found.
   */
  #choose(usable: readonly PeerName[]): PeerName | undefined {
    const { pace } = this.#with;
    const inFlight = [...this.#questions];
    const others = inFlight.filter(({ peer, isLate }) => !isLate && pace.rank(peer) !== 'good').length;
    const isFree = (peer: PeerName) => {
      const own = inFlight.filter((question) => question.peer === peer);
      if (own.some(({ isLate }) => isLate)) return false;
      return pace.rank(peer) === 'good' ? own.length < PER_PEER : own.length === 0 && others < OF_OTHERS;
    };
    const free = pace.sorted(usable.filter(isFree));
    const mayTry = others === 0 && this.#inFlight() > 0 && !this.#isTakerWanted();
    const tried = mayTry ? free.find((peer) => pace.rank(peer) === 'unknown') : undefined;
    return tried ?? free[0];
  }

  #inFlight(): number {
    // Peers that take too long do not delay the others.
    return [...this.#questions].filter(({ isLate }) => !isLate).length;
  }

  /** Whether there is somebody to wait for. */
  #mayCome(): boolean {
    const isBusy = (peer: PeerName) => (this.#putOff.get(peer) ?? MAX_PUT_OFF) < MAX_PUT_OFF;
    return this.#inFlight() > 0 || [...this.#resting.keys()].some(isBusy);
  }

  #giveUp(): void {
    this.#taker?.here.reject(new Error('no peer has the blocks of a proven cut'));
    this.#taker = undefined;
  }

  /** `isLate`: its blocks are requested elsewhere too, from the first. */
  async #askFor(peer: PeerName, ids: readonly Bytes[], isLate = false): Promise<void> {
    const { ask, blame, pace } = this.#with;
    const question: Question = { peer, ids, isSlow: false, isLate };
    this.#questions.add(question);
    pace.asked(peer);
    if (this.#isTakers(ids) && this.#copies() <= Math.min(this.#inVain, MAX_COPIES - 1)) this.#late(question);
    const timers = [
      setTimeout(() => {
        question.isSlow = pace.rank(peer) !== 'good';
        if (question.isSlow && this.#hurry(question)) this.#fill();
      }, NEXT_MILLIS),
      setTimeout(() => {
        this.#late(question);
        this.#fill();
      }, HASTE_MILLIS),
    ];
    const since = pace.steady();
    let missing: readonly Bytes[] = ids;
    try {
      missing = this.#receive(peer, ids, since, await ask(peer, encodeSyncQuestion({ type: 'blocks', ids })));
      // An answer has no room for the last ones at most. Who leaves out the first one would be asked for it for ever.
      if (missing[0] !== undefined && missing[0] === ids[0]) this.#excluded.add(peer);
      this.#putOff.delete(peer);
    } catch (error) {
      const fault = faultOf(error);
      if (isBusy(error)) {
        this.#putOff.set(peer, (this.#putOff.get(peer) ?? 0) + 1);
        pace.busy(peer, since, ids.length);
      } else this.#putOff.delete(peer);
      if (fault === undefined || fault === 'unanswered') this.#rest(peer);
      else this.#excluded.add(peer);
      // One that is busy may be quick.
      if (fault !== undefined) pace.measured(peer, since, [], ids.length);
      blame(error, peer);
    } finally {
      for (const timer of timers) clearTimeout(timer);
      this.#questions.delete(question);
      if (this.#isTakers(missing) && !isLate) this.#inVain++;
      if (!question.isLate) this.#wantAgain(missing);
      this.#fill();
    }
  }

  #rest(peer: PeerName): void {
    if (this.#closed || this.#resting.has(peer)) return;
    const over = () => {
      this.#resting.delete(peer);
      this.#fill();
    };
    this.#resting.set(peer, setTimeout(over, REST_MILLIS));
  }

  /** Whether the block that is executed next is in it, and is now requested elsewhere too. */
  #hurry(question: Question): boolean {
    if (question.isLate || !this.#isTakers(question.ids)) return false;
    this.#inVain++;
    this.#late(question);
    return true;
  }

  /** Whether the block that is waited for is among them. */
  #isTakers(ids: readonly Bytes[]): boolean {
    const { id } = this.#taker ?? {};
    return id !== undefined && ids.some((other) => equalBytes(other, id));
  }

  /** Questions in flight for the block that is waited for. */
  #copies(): number {
    return [...this.#questions].filter(({ ids }) => this.#isTakers(ids)).length;
  }

  #late(question: Question): void {
    if (question.isLate) return;
    question.isLate = true;
    this.#wantAgain(question.ids);
  }

  #wantAgain(ids: readonly Bytes[]): void {
    const wanted = new Set(this.#wanted.map(nameOf));
    const lacking = ids.filter((id) => this.#lacking.has(nameOf(id)) && !wanted.has(nameOf(id)));
    this.#wanted = [...lacking, ...this.#wanted];
  }

  /** Those that did not come. */
  #receive(peer: PeerName, ids: readonly Bytes[], since: number, answer: Uint8Array): readonly Bytes[] {
    const blocks = decodeBlocksAnswer(answer);
    if (blocks.length !== ids.length) throw new PeerFault(peer, 'malformed', 'another number of blocks than asked for');
    const missing: Bytes[] = [];
    const lengths = blocks.flatMap((block) => (block === undefined ? [] : [block.body.length]));
    this.#with.pace.measured(peer, since, lengths, ids.length);
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
