/**
 * Tracks announcements and their senders. The library delivers a message once, and tells a second announcer that it is
 * known: so the first announcer alone would decide whether the item ever arrives. Therefore all announcers of a pending
 * message are remembered; if one does not deliver, the next is asked; if it is slow, twice as many as before, so that a
 * crowd of announcers that have nothing costs little time. An undelivered message stays open for a while for later
 * announcers.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import type { BucketRate } from '../../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Finding, PeerName, Topic, Verdict } from './host-types.ts';

/** Bytes of gossip of one peer that are processed. */
const GOSSIP: BucketRate = { perSecond: 2 * 1_024 * 1_024, burst: 8 * 1_024 * 1_024 };
/** The same of all peers together, which they share: the library keeps 580 bytes of each message for two minutes. */
const GOSSIP_OF_ALL: BucketRate = { perSecond: 8 * 1_024 * 1_024, burst: 32 * 1_024 * 1_024 };
/** Handing a message to the other thread and back costs as much as reading this many bytes. */
const LEAST_BYTES = 4_096;
/** After this time others are asked too. */
export const HASTE_MILLIS = 1_500;
/** How long a message waits for delivery. */
const OPEN_MILLIS = 30_000;
/** Announcers that are asked at one time. */
const MAX_AT_ONCE = 8;
/** Bytes of messages that a peer was the first to announce and that are not settled. */
const OPEN_BYTES = 1_024 * 1_024;
/** Undelivered messages, kept for later announcers; and messages that were not handed on. */
const MAX_LAPSED = 10_000;

export type GossipDeskDependencies = {
  judge(peer: PeerName, topic: Topic, data: Uint8Array): Promise<Finding>;
  flood(peer: PeerName): void;
  readonly steady: SteadyClock;
};

type Open = {
  readonly topic: Topic;
  readonly data: Uint8Array;
  /** Those that are connected, each once: as many as `--max-peers` at most. */
  readonly announcers: PeerName[];
  /** Of them, where its bytes are counted. */
  holder: PeerName;
  /** Number of announcers asked so far. */
  tried: number;
  asking: number;
  /** How many are asked the next time. */
  width: number;
  /** It may be open again by then, for others: what is found afterwards ends nothing. */
  isOver: boolean;
  readonly settle: (verdict: Verdict) => void;
  readonly verdict: Promise<Verdict>;
  readonly timers: Set<NodeJS.Timeout>;
};

export class GossipDesk {
  readonly #with: GossipDeskDependencies;
  readonly #open = new Map<string, Open>();
  readonly #lapsed = new BoundedMap<string, Topic>(MAX_LAPSED);
  readonly #heldBack = new BoundedMap<string, true>(MAX_LAPSED);
  readonly #rates = new Buckets(GOSSIP);
  readonly #all: FairShare;
  readonly #bytes = new Map<PeerName, number>();

  constructor(dependencies: GossipDeskDependencies) {
    this.#with = dependencies;
    this.#all = new FairShare(GOSSIP_OF_ALL, dependencies.steady());
  }

  get open(): number {
    return this.#open.size;
  }

  /** What nobody else announced is given up: under ever new names a stranger would leave more and more open. */
  left(peer: PeerName): void {
    this.#rates.delete(peer);
    for (const [key, open] of [...this.#open]) {
      const place = open.announcers.indexOf(peer);
      if (place < 0) continue;
      open.announcers.splice(place, 1);
      if (place < open.tried) open.tried--;
      if (open.holder !== peer) continue;
      const next = open.announcers.find((other) => this.#hasRoom(other, open.data));
      if (next === undefined) this.#lapse(key, open);
      else {
        this.#count(peer, -open.data.length);
        this.#count(next, open.data.length);
        open.holder = next;
      }
    }
  }

  #hasRoom(peer: PeerName, { length }: Uint8Array): boolean {
    return (this.#bytes.get(peer) ?? 0) + length <= OPEN_BYTES;
  }

  #count(peer: PeerName, bytes: number): void {
    const held = (this.#bytes.get(peer) ?? 0) + bytes;
    if (held > 0) this.#bytes.set(peer, held);
    else this.#bytes.delete(peer);
  }

  /** It waits no more; a later announcer may bring it. */
  #lapse(key: string, open: Open): void {
    this.#lapsed.set(key, open.topic);
    open.settle('ignore');
  }

  close(): void {
    for (const { settle } of [...this.#open.values()]) settle('ignore');
  }

  /**
   * Whether a message of a peer is processed, known or not. One that exceeds its own part breaks a rule; the common part may be others' doing.
   * `holder`: the address that it shares with others: a new name must not have a part of its own.
   */
  mayCome(peer: PeerName, { length }: Uint8Array, holder: string = peer): boolean {
    const now = this.#with.steady();
    const cost = Math.max(LEAST_BYTES, length);
    if (this.#rates.take(peer, now, cost)) return this.#all.take(holder, now, cost);
    this.#with.flood(peer);
    return false;
  }

  /**
   * This node announces the message itself: it has by another way what a peer named. Where that is still open, it is handed
   * on. True if it was not handed on before: the library has seen it, and would not send it.
   */
  own(key: string): boolean {
    this.#open.get(key)?.settle('accept');
    return this.#heldBack.delete(key);
  }

  /** Batches of transactions are all different: this node never announces one of a peer's. */
  #holdBack(key: string, topic: Topic): void {
    if (topic !== 'transactions') this.#heldBack.set(key, true);
  }

  /** A message that may come, and that the library or this node takes for new: perhaps both, as the library forgets sooner. */
  judge(peer: PeerName, topic: Topic, key: string, data: Uint8Array): Promise<Verdict> {
    const known = this.#open.get(key);
    if (known !== undefined) return known.verdict;
    if (!this.#hasRoom(peer, data)) {
      this.#lapsed.set(key, topic);
      this.#holdBack(key, topic);
      return Promise.resolve('ignore');
    }
    this.#count(peer, data.length);
    const { promise: verdict, resolve } = Promise.withResolvers<Verdict>();
    const open: Open = {
      topic,
      data,
      announcers: [peer],
      holder: peer,
      tried: 0,
      asking: 0,
      width: 1,
      isOver: false,
      verdict,
      timers: new Set(),
      settle: (found) => {
        if (open.isOver) return;
        open.isOver = true;
        this.#open.delete(key);
        for (const timer of open.timers) clearTimeout(timer);
        this.#count(open.holder, -data.length);
        if (found !== 'accept') this.#holdBack(key, topic);
        resolve(found);
      },
    };
    this.#open.set(key, open);
    this.#later(open, OPEN_MILLIS, () => this.#lapse(key, open));
    this.#hurry(open);
    return verdict;
  }

  /** Another peer announced it too. `data` is set if the message itself arrived, and not only its id. */
  announced(peer: PeerName, key: string, data?: Uint8Array): void {
    const open = this.#open.get(key);
    if (open !== undefined) {
      if (open.announcers.includes(peer)) return;
      open.announcers.push(peer);
      if (open.asking === 0) this.#next(open);
      return;
    }
    const topic = this.#lapsed.get(key);
    if (topic === undefined || data === undefined) return;
    // The library does not relay it any more; peers that connect or ask for waiting items get it.
    this.#lapsed.delete(key);
    void this.judge(peer, topic, key, data);
  }

  #later(open: Open, millis: number, run: () => void): void {
    const timer = setTimeout(() => {
      open.timers.delete(timer);
      run();
    }, millis);
    timer.unref();
    open.timers.add(timer);
  }

  #hurry(open: Open): void {
    for (let i = 0; i < open.width; i++) this.#next(open);
    open.width = Math.min(MAX_AT_ONCE, 2 * open.width);
    this.#later(open, HASTE_MILLIS, () => this.#hurry(open));
  }

  #next(open: Open): void {
    const peer = open.announcers[open.tried];
    if (peer === undefined || open.isOver) return;
    open.tried++;
    open.asking++;
    this.#with.judge(peer, open.topic, open.data).then(
      (finding) => this.#found(open, finding),
      () => this.#found(open, 'undelivered'),
    );
  }

  #found(open: Open, finding: Finding): void {
    open.asking--;
    if (finding === 'undelivered') this.#next(open);
    else open.settle(finding);
  }
}
