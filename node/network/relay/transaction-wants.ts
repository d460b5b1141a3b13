/**
 * Announced transactions that this node lacks. All announcers are remembered; a transaction is requested from one of
 * them, batched with others, and if it does not arrive soon from more and more of the others. One that no peer has is
 * dropped. Only who is asked at once has to have it: the others are asked late, and a cut or a conflict may have taken
 * it meanwhile.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { MAX_TRANSACTION_BYTES, transactionIdOfWire } from '../../../protocol/transactions/transaction.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { nameOf } from '../../ledger/registration.ts';
import { ANSWER_BYTES } from '../sync/sync-messages.ts';
import { AnswersUnderWay } from '../thread/answers-under-way.ts';
import type { PeerName } from '../thread/host-types.ts';
import { decodeWires, encodeRelayQuestion, MAX_TRANSACTIONS } from './relay-messages.ts';

/** Requests to one peer at once: while one answer is transferred the next one is prepared. */
const PER_PEER = 2;
/** Transactions wanted from one peer. */
const MAX_WANTED = 4_096;
/** More than a node has peers by default. */
const MAX_SOURCES = 64;
/** Announcers of a slow transaction that are asked at one time, and at first. */
const [MAX_AT_ONCE, FIRST_AT_ONCE] = [8, 2];
/** How often a transaction that did not fit into an answer is requested again. */
const TRIES = 8;
const HASTE_MILLIS = 1_500;
/** Bytes of answers that wait until they may be checked, of all peers. */
const WAITING_BYTES = 64 * 1_024 * 1_024;
/** Who is asked within this time is asked at once. */
const AT_ONCE_MILLIS = 500;

/** The result: it was delivered, whatever the mempool says to it; refused as a peer's fault; or not delivered. */
export type Came = 'here' | 'bad' | 'nobody';

export type TransactionWantsDependencies = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  /** Resolves when so many bytes of the peer may be checked, or need not be any more. */
  allowed(peer: PeerName, bytes: number, isOver: () => boolean): Promise<void>;
  take(peer: PeerName, wire: Bytes): Promise<Exclude<Came, 'nobody'>>;
  readonly steady: SteadyClock;
  /** The peer announced these first, was asked at once, and did not deliver them. */
  missed(peer: PeerName, ids: readonly Bytes[]): void;
  failed(peer: PeerName, error: unknown): void;
  /** It came by another way, or a cut took it, as far as may be looked up for this announcer. */
  isHere(peer: PeerName, id: Bytes): boolean;
};

type Wanted = {
  readonly id: Bytes;
  /** Announcers that were not asked yet. */
  readonly sources: PeerName[];
  readonly known: Set<PeerName>;
  /** Queued requests, and unanswered ones. */
  pending: number;
  tries: number;
  /** The peers that were asked are slow: the next announcer is asked as soon as it is known. */
  isLate: boolean;
  /** How many announcers are asked the next time. */
  width: number;
  isBad: boolean;
  came: Came | undefined;
  readonly over: PromiseWithResolvers<Came>;
};

/** `owedUntil`: who announced it has it if it is asked until then. One that is asked because another did not deliver owes nothing. */
type Turn = { readonly wanted: Wanted; readonly owedUntil: number };

type Line = { readonly queue: Turn[]; asking: number };

export class TransactionWants {
  readonly #with: TransactionWantsDependencies;
  readonly #wanted = new Map<string, Wanted>();
  readonly #lines = new Map<PeerName, Line>();
  readonly #waiting: AnswersUnderWay;
  #closed = false;

  constructor(dependencies: TransactionWantsDependencies) {
    this.#with = dependencies;
    this.#waiting = new AnswersUnderWay(WAITING_BYTES, dependencies.steady);
  }

  has(id: Bytes): boolean {
    return this.#wanted.has(nameOf(id));
  }

  close(): void {
    this.#closed = true;
    for (const wanted of [...this.#wanted.values()]) this.#end(wanted, 'nobody');
  }

  /**
   * The peer announces these. Resolves when each is delivered by some peer or given up. Undefined if too many are
   * already wanted from the peer.
   */
  async want(peer: PeerName, ids: readonly Bytes[]): Promise<readonly Came[] | undefined> {
    if (this.#closed || (this.#lines.get(peer)?.queue.length ?? 0) + ids.length > MAX_WANTED) return undefined;
    const fresh = new Set(ids.filter((id) => !this.has(id)));
    const all = ids.map((id) => this.#note(peer, id));
    this.#pump(peer);
    const hurry = setInterval(() => {
      for (const wanted of all) if (fresh.has(wanted.id)) this.#hurry(wanted);
    }, HASTE_MILLIS);
    hurry.unref();
    const came = await Promise.all(all.map(({ over }) => over.promise));
    clearInterval(hurry);
    return came;
  }

  #line(peer: PeerName): Line {
    const line = this.#lines.get(peer) ?? { queue: [], asking: 0 };
    this.#lines.set(peer, line);
    return line;
  }

  #note(peer: PeerName, id: Bytes): Wanted {
    const name = nameOf(id);
    const found = this.#wanted.get(name);
    if (found !== undefined) {
      if (!found.known.has(peer) && found.known.size < MAX_SOURCES) {
        found.known.add(peer);
        found.sources.push(peer);
        if (found.isLate && found.pending < MAX_AT_ONCE) this.#passOn(found);
      }
      return found;
    }
    const state = { pending: 0, tries: 0, isLate: false, width: FIRST_AT_ONCE, isBad: false, came: undefined };
    const wanted: Wanted = { id, sources: [], known: new Set([peer]), ...state, over: Promise.withResolvers() };
    this.#wanted.set(name, wanted);
    this.#queue(peer, { wanted, owedUntil: this.#with.steady() + AT_ONCE_MILLIS });
    return wanted;
  }

  #queue(peer: PeerName, turn: Turn): void {
    turn.wanted.pending++;
    this.#line(peer).queue.push(turn);
  }

  #pump(peer: PeerName): void {
    const line = this.#line(peer);
    while (line.asking < PER_PEER && line.queue.length > 0) {
      const asked = line.queue.splice(0, MAX_TRANSACTIONS).filter(({ wanted }) => wanted.came === undefined);
      if (asked.length > 0) void this.#askFor(peer, line, asked);
    }
    if (line.asking === 0) this.#lines.delete(peer);
  }

  async #askFor(peer: PeerName, line: Line, asked: readonly Turn[]): Promise<void> {
    line.asking++;
    const askedAt = this.#with.steady();
    let hasMore = false;
    try {
      const ids = asked.map(({ wanted }) => wanted.id);
      const answer = await this.#with.ask(peer, encodeRelayQuestion({ type: 'transactions', ids }));
      const wires = decodeWires(answer, asked.length);
      const missing = asked.filter((_, i) => wires[i] === undefined);
      // Transactions that did not fit into the answer are requested again.
      hasMore = missing.length < asked.length && answer.length > ANSWER_BYTES - MAX_TRANSACTION_BYTES;
      await this.#receive(peer, asked, wires, answer.length);
      const owed = hasMore ? [] : missing.filter(({ owedUntil }) => askedAt <= owedUntil);
      if (owed.length > 0)
        this.#with.missed(
          peer,
          owed.map(({ wanted }) => wanted.id),
        );
    } catch (error) {
      this.#with.failed(peer, error);
    } finally {
      line.asking--;
      for (const turn of asked) {
        const { wanted } = turn;
        wanted.pending--;
        if (hasMore && wanted.came === undefined && !wanted.isBad && wanted.tries++ < TRIES) this.#queue(peer, turn);
        else this.#passOn(wanted);
      }
      this.#pump(peer);
    }
  }

  async #receive(
    peer: PeerName,
    asked: readonly Turn[],
    wires: readonly (Bytes | undefined)[],
    bytes: number,
  ): Promise<void> {
    for (const [i, wire] of wires.entries())
      if (wire !== undefined && !equalBytes(transactionIdOfWire(wire), (asked[i] as Turn).wanted.id))
        throw new ProtocolError('not_canonical', 'another transaction');
    const taking: Promise<void>[] = [];
    let isGivenUp = false;
    const waiting = this.#waiting.begin(peer, () => {
      isGivenUp = true;
    });
    this.#waiting.took(waiting, bytes);
    for (const [i, wire] of wires.entries()) {
      const { wanted } = asked[i] as Turn;
      const isOver = () => isGivenUp || wanted.came !== undefined;
      if (wire === undefined || isOver()) continue;
      // Each alone: others that bring little at once would leave no room for all together.
      await this.#with.allowed(peer, wire.length, isOver);
      // The next announcer is asked.
      if (isGivenUp) break;
      const taken = this.#take(peer, wanted, wire);
      taken.catch(() => undefined);
      taking.push(taken);
    }
    this.#waiting.over(waiting, true);
    await Promise.all(taking);
  }

  async #take(peer: PeerName, wanted: Wanted, wire: Bytes): Promise<void> {
    if (wanted.came !== undefined) return;
    const came = await this.#with.take(peer, wire);
    // The identifier does not cover witnesses: another peer may have valid ones.
    if (came === 'bad') wanted.isBad = true;
    else this.#end(wanted, came);
  }

  #hurry(wanted: Wanted): void {
    wanted.isLate = true;
    for (let i = 0; i < wanted.width; i++) this.#passOn(wanted);
    wanted.width = Math.min(MAX_AT_ONCE, 2 * wanted.width);
  }

  /** Moves on to the next announcer, unless it is here by now; gives up when all were asked. */
  #passOn(wanted: Wanted): void {
    if (wanted.came !== undefined) return;
    const next = wanted.sources.shift();
    if (next !== undefined) {
      if (this.#with.isHere(next, wanted.id)) {
        this.#end(wanted, 'here');
        return;
      }
      this.#queue(next, { wanted, owedUntil: Number.NEGATIVE_INFINITY });
      this.#pump(next);
    } else if (wanted.pending === 0) this.#end(wanted, wanted.isBad ? 'bad' : 'nobody');
  }

  #end(wanted: Wanted, came: Came): void {
    if (wanted.came !== undefined) return;
    wanted.came = came;
    this.#wanted.delete(nameOf(wanted.id));
    wanted.over.resolve(came);
  }
}
