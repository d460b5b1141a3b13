/**
 * Fetches parts of a snapshot from several peers at once. A part comes completely from one peer, so that the sender of
 * a false one is known; it is verified on arrival and passed on in order. Prefetched bytes are bounded. If a peer is
 * slow, another one is asked for the same part; if all are slow, the fetch ends, so that another snapshot can be tried.
 * Those that delivered are asked before others, and these in turn: strangers may have the snapshot and never send it.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { SnapshotError } from '../../snapshot/snapshot-error.ts';
import type { PartRule } from '../../snapshot/snapshot-parts.ts';
import { PeerFault } from '../peers/peer-fault.ts';
import { encodeSyncQuestion } from '../sync/sync-messages.ts';
import { WakeUp } from '../sync/wake-up.ts';
import type { PeerName } from '../thread/host-types.ts';
import { decodeChunk, isWholeChunk } from './snapshot-messages.ts';

/** Of one peer. */
const AT_ONCE = 2;
const MAX_TURNS = 1_024;
/** Bytes fetched but not written yet, by the maximum length of parts; one part is always allowed. */
const AHEAD_BYTES = 32 * 1_024 * 1_024;
const AHEAD_PARTS = 64;
/** Bytes of parts that are not whole yet, of all peers: nothing of them is proven, and several may be asked for the same one. More than the longest part. */
const HELD_BYTES = 96 * 1_024 * 1_024;
const HASTE_MILLIS = 3_000;
/** The same for a peer that has not delivered yet. */
const NEXT_MILLIS = 1_000;
/** Delay after a failure that may be this node's own, or a busy peer. */
const REST_MILLIS = 2_000;
const LOOK_MILLIS = 500;

/**
 * Within `provenMillis` this many parts or bytes must be proven, and the snapshot may be without a peer for at most
 * `heldMillis`: peers that are always busy or very slow would make a node wait for ever.
 */
export type Patience = { readonly provenMillis: number; readonly heldMillis: number };
const LEAST = { parts: 8, bytes: 4 * 1_024 * 1_024 };
export const PATIENCE = {
  /** For a proven snapshot. Its peers may be restarting. */
  fetch: { provenMillis: 120_000, heldMillis: 60_000 },
  /** For its first part only, to check whether it is proven. */
  look: { provenMillis: 60_000, heldMillis: 0 },
} as const satisfies Record<string, Patience>;
const FIRST_PART = 1 / 8;

/** An eighth at first, and twice as much each time that the snapshot is tried again: strangers offer many, and send hardly anything. */
export const patienceOf = ({ provenMillis, heldMillis }: Patience, tries: number): Patience => ({
  provenMillis: provenMillis * Math.min(1, FIRST_PART * 2 ** tries),
  heldMillis,
});

export type PartFetchDependencies = {
  /** Those that say they have the snapshot. */
  holders(): readonly PeerName[];
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  blame(error: unknown, peer: PeerName): void;
  /** It does not have the snapshot, or what it sent is not of it. */
  drop(peer: PeerName): void;
  readonly steady: SteadyClock;
};

/** No peer has the snapshot any more, or none delivers it. */
export class LostSnapshot extends Error {}

class NotThere extends Error {}

/** A part on its way from a peer. */
type Reading = { chunks: Uint8Array[]; bytes: number; length: number; askedAt: number; isGivenUp: boolean };

type WantedPart<T> = {
  readonly part: number;
  readonly rule: PartRule<T>;
  readonly asked: Map<PeerName, number>;
  /** What a peer was too busy to send the rest of. */
  readonly begun: Map<PeerName, Reading>;
  found?: { readonly value: T; readonly bytes: Uint8Array };
};

export class PartFetch {
  readonly #height: number;
  readonly #patience: Patience;
  readonly #with: PartFetchDependencies;
  readonly #asking = new Map<PeerName, number>();
  readonly #resting = new BoundedMap<PeerName, number>(MAX_TURNS);
  /** Their last answer was a proven part. */
  readonly #delivering = new Set<PeerName>();
  readonly #turns = new BoundedMap<PeerName, number>(MAX_TURNS);
  #turn = 0;
  readonly #news = new WakeUp();
  readonly #readings = new Set<Reading>();
  #heldAt: number;
  #proven = { since: 0, parts: 0, bytes: 0 };
  #closed: Error | undefined;

  constructor(height: number, patience: Patience, dependencies: PartFetchDependencies) {
    this.#height = height;
    this.#patience = patience;
    this.#with = dependencies;
    this.#heldAt = dependencies.steady();
  }

  close(reason: Error): void {
    this.#closed ??= reason;
    for (const reading of this.#readings) giveUp(reading);
    this.wake();
  }

  /** Something changed. */
  wake(): void {
    this.#news.wake();
  }

  /** The parts from number `first` on, one for each rule; `taken` gets them in order. */
  async run<T>(
    first: number,
    rules: Iterable<PartRule<T>>,
    taken: (value: T, bytes: Uint8Array) => Promise<void>,
  ): Promise<void> {
    this.#beginAnew();
    const source = rules[Symbol.iterator]();
    const window: WantedPart<T>[] = [];
    let ahead = 0;
    let next = first;
    let coming = source.next();
    for (;;) {
      for (let front = window[0]; front?.found !== undefined; front = window[0]) {
        await taken(front.found.value, front.found.bytes);
        ahead -= front.rule.maxBytes;
        window.shift();
      }
      while (coming.done !== true && this.#hasRoom(window.length, ahead + coming.value.maxBytes)) {
        ahead += coming.value.maxBytes;
        window.push({ part: next++, rule: coming.value, asked: new Map(), begun: new Map() });
        coming = source.next();
      }
      if (window.length === 0) return;
      if (this.#closed !== undefined) throw this.#closed;
      this.#put(window);
      await this.#news.wait(LOOK_MILLIS);
    }
  }

  #hasRoom(parts: number, bytes: number): boolean {
    return parts === 0 || (parts < AHEAD_PARTS && bytes <= AHEAD_BYTES);
  }

  #beginAnew(): void {
    this.#proven = { since: this.#with.steady(), parts: 0, bytes: 0 };
  }

  #count(bytes: number): void {
    this.#proven.parts++;
    this.#proven.bytes += bytes;
    if (this.#proven.parts >= LEAST.parts || this.#proven.bytes >= LEAST.bytes) this.#beginAnew();
  }

  #put<T>(window: readonly WantedPart<T>[]): void {
    const now = this.#with.steady();
    const holders = this.#with.holders();
    if (holders.length > 0) this.#heldAt = now;
    else if (now - this.#heldAt >= this.#patience.heldMillis)
      throw new LostSnapshot('no peer has the snapshot any more');
    if (now - this.#proven.since >= this.#patience.provenMillis)
      throw new LostSnapshot('those that have the snapshot do not deliver it');
    for (const peer of this.#inTurn(holders))
      while ((this.#asking.get(peer) ?? 0) < AT_ONCE && (this.#resting.get(peer) ?? 0) <= now) {
        const wanted = this.#next(window, peer, now);
        if (wanted === undefined) break;
        this.#turns.set(peer, ++this.#turn);
        this.#asking.set(peer, (this.#asking.get(peer) ?? 0) + 1);
        wanted.asked.set(peer, now);
        void this.#get(peer, wanted);
      }
  }

  /** Who comes is after those that wait. */
  #inTurn(holders: readonly PeerName[]): readonly PeerName[] {
    for (const peer of holders) if (!this.#turns.has(peer)) this.#turns.set(peer, ++this.#turn);
    const turn = (peer: PeerName) => (this.#delivering.has(peer) ? 0 : (this.#turns.get(peer) ?? 0));
    return [...holders].sort((a, b) => turn(a) - turn(b));
  }

  #next<T>(window: readonly WantedPart<T>[], peer: PeerName, now: number): WantedPart<T> | undefined {
    const open = window.filter(({ found, asked }) => found === undefined && !asked.has(peer));
    const haste = (other: PeerName) => (this.#delivering.has(other) ? HASTE_MILLIS : NEXT_MILLIS);
    const isLate = ({ asked }: WantedPart<T>) => [...asked].every(([other, since]) => now - since >= haste(other));
    return open.find(({ asked }) => asked.size === 0) ?? open.find(isLate);
  }

  async #get<T>(peer: PeerName, wanted: WantedPart<T>): Promise<void> {
    const { blame, drop, steady } = this.#with;
    try {
      const bytes = await this.#whole(peer, wanted);
      if (wanted.found === undefined) {
        wanted.found = { value: wanted.rule.read(bytes), bytes };
        this.#count(bytes.length);
        for (const reading of wanted.begun.values()) this.#readings.delete(reading);
      }
      this.#delivering.add(peer);
    } catch (error) {
      this.#delivering.delete(peer);
      const isFalse = error instanceof SnapshotError;
      if (isFalse || error instanceof PeerFault || error instanceof NotThere) drop(peer);
      blame(isFalse ? new PeerFault(peer, 'false_proof', error.message) : error, peer);
      this.#resting.set(peer, steady() + REST_MILLIS);
    } finally {
      wanted.asked.delete(peer);
      const left = (this.#asking.get(peer) ?? 1) - 1;
      if (left > 0) this.#asking.set(peer, left);
      else this.#asking.delete(peer);
      this.wake();
    }
  }

  async #whole<T>(peer: PeerName, wanted: WantedPart<T>): Promise<Uint8Array> {
    const begun = wanted.begun.get(peer);
    wanted.begun.delete(peer);
    if (begun !== undefined) this.#readings.delete(begun);
    const reading =
      begun?.isGivenUp === false ? begun : { chunks: [], bytes: 0, length: 1, askedAt: 0, isGivenUp: false };
    this.#readings.add(reading);
    let isToContinue = false;
    try {
      while (reading.bytes < reading.length) {
        if (this.#closed !== undefined || wanted.found !== undefined)
          throw new Error('the part is not needed any more');
        const { bytes: from } = reading;
        reading.askedAt = this.#with.steady();
        const question = { type: 'part', height: this.#height, part: wanted.part, from } as const;
        // A peer that is busy now and then would bring no long part, if it were begun anew each time.
        isToContinue = true;
        const answer = await this.#with.ask(peer, encodeSyncQuestion(question));
        isToContinue = false;
        const chunk = decodeChunk(answer);
        if (reading.isGivenUp) throw new Error('others sent more meanwhile');
        if (chunk.length === 0) throw new NotThere('it does not have the part');
        if (from === 0) reading.length = chunk.length;
        if (reading.length > wanted.rule.maxBytes)
          throw new PeerFault(peer, 'false_proof', `part ${wanted.part} is longer than it may be`);
        if (!isWholeChunk(chunk, reading.length, from))
          throw new PeerFault(peer, 'malformed', `bytes of part ${wanted.part} are missing`);
        reading.chunks.push(chunk.bytes);
        reading.bytes += chunk.bytes.length;
        this.#makeRoom(reading);
      }
    } finally {
      const isNeeded = reading.bytes > 0 && wanted.found === undefined && this.#closed === undefined;
      if (isToContinue && isNeeded) wanted.begun.set(peer, reading);
      else this.#readings.delete(reading);
    }
    return reading.chunks.length === 1 ? (reading.chunks[0] as Uint8Array) : Buffer.concat(reading.chunks);
  }

  /** Of parts that are not whole yet. */
  get heldBytes(): number {
    return [...this.#readings].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Those are given up that have not sent anything for longest. */
  #makeRoom(latest: Reading): void {
    let held = this.heldBytes;
    const others = [...this.#readings].filter((reading) => reading !== latest && reading.bytes > 0);
    for (const reading of others.sort((a, b) => a.askedAt - b.askedAt)) {
      if (held <= HELD_BYTES) return;
      held -= reading.bytes;
      giveUp(reading);
    }
  }
}

/** Its peer may take its time to answer: nothing is held until then. */
function giveUp(reading: Reading): void {
  Object.assign(reading, { chunks: [], bytes: 0, isGivenUp: true });
}
