/**
 * The simulated world of one run: time, a queue of what happens next, randomness from one seed, the cuts that were ever made, and the network between nodes. One thread,
 * no real clock: the same seed gives the same run, event by event.
 */
import type { Message, Proposal } from '../../node/consensus/engine/effects.ts';
import { type CutName, PREVOTE, type Vote } from '../../node/consensus/engine/votes.ts';
import { type Random, randomOf } from '../random.ts';

type Entry = { at: number; order: number; run: () => void };

/** A binary heap by time; what is due at the same moment runs in the order in which it was planned. */
class Agenda {
  readonly #heap: Entry[] = [];
  #order = 0;

  get next(): Entry | undefined {
    return this.#heap[0];
  }

  add(at: number, run: () => void): void {
    const heap = this.#heap;
    const entry = { at, order: this.#order++, run };
    let i = heap.length;
    heap.push(entry);
    while (i > 0) {
      const above = (i - 1) >> 1;
      if (!before(entry, heap[above] as Entry)) break;
      heap[i] = heap[above] as Entry;
      i = above;
    }
    heap[i] = entry;
  }

  take(): Entry {
    const heap = this.#heap;
    const first = heap[0] as Entry;
    const last = heap.pop() as Entry;
    if (heap.length > 0) {
      let i = 0;
      for (;;) {
        let child = 2 * i + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && before(heap[child + 1] as Entry, heap[child] as Entry)) child++;
        if (!before(heap[child] as Entry, last)) break;
        heap[i] = heap[child] as Entry;
        i = child;
      }
      heap[i] = last;
    }
    return first;
  }
}

const before = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** A cut as the simulated ledger knows it. */
export type SimCut = {
  readonly name: CutName;
  readonly height: number;
  readonly parent: CutName;
  readonly timestamp: number;
  readonly valid: boolean;
};

export type Freight = 'proposal' | 'prevote' | 'precommit' | 'again';

export const evenLoss = (share: number): Weather['loss'] => ({
  proposal: share,
  prevote: share,
  precommit: share,
  again: share,
});

const freightOf = (message: Message): Freight => {
  if (message.type === 'proposal') return 'proposal';
  if (message.type === 'vote') return message.vote.kind === PREVOTE ? 'prevote' : 'precommit';
  return 'again';
};

/** What the network does to messages until it heals. */
export type Weather = {
  /** Of votes and proposals by kind, and of everything that sends them again. */
  readonly loss: Readonly<Record<Freight, number>>;
  readonly twice: number;
  readonly slowest: number;
  /** Some messages take many time-outs. */
  readonly stray: number;
};

export class World {
  readonly random: Random;
  readonly cuts = new Map<CutName, SimCut>();
  now = 0;
  events = 0;
  failure: string | undefined;
  weather: Weather;
  /** Which side of a partition each node is on; messages between sides are lost. */
  sides: readonly number[] | undefined;
  /** Messages that a hostile network loses on purpose. */
  plot: ((message: Message, to: number) => boolean) | undefined;
  readonly #agenda = new Agenda();
  #cuts = 0;

  constructor(seed: number, weather: Weather) {
    this.random = randomOf(seed);
    this.weather = weather;
  }

  /** True once in `of` times `share`. */
  chance(share: number): boolean {
    return share > 0 && this.random(1_000_000) < share * 1_000_000;
  }

  after(millis: number, run: () => void): void {
    this.#agenda.add(this.now + millis, run);
  }

  /** Runs until `stop` says so, or nothing is left to happen before `until`. */
  run(until: number, stop: () => boolean): void {
    for (let next = this.#agenda.next; next !== undefined && next.at <= until; next = this.#agenda.next) {
      this.#agenda.take();
      this.now = next.at;
      this.events++;
      next.run();
      if (this.failure !== undefined || stop()) return;
    }
    this.now = until;
  }

  fail(why: string): void {
    this.failure ??= `at ${this.now} ms: ${why}`;
  }

  makeCut(height: number, parent: CutName, timestamp: number, valid: boolean): SimCut {
    const name = `cut ${height}/${this.#cuts++}`.padEnd(48, '.');
    const cut = { name, height, parent, timestamp, valid };
    this.cuts.set(name, cut);
    return cut;
  }

  /** Brings a message from one node to another, or not, or twice. */
  carry(from: number, to: number, message: Message, deliver: () => void): void {
    const { loss, twice, slowest, stray } = this.weather;
    if (this.sides !== undefined && this.sides[from] !== this.sides[to]) return;
    if (this.sides === undefined && this.plot?.(message, to)) return;
    if (this.chance(loss[freightOf(message)])) return;
    const arrive = () => {
      if (this.sides === undefined || this.sides[from] === this.sides[to]) deliver();
    };
    this.after(1 + this.random(this.chance(stray) ? 8_000 : slowest), arrive);
    if (this.chance(twice)) this.after(1 + this.random(4 * slowest), arrive);
  }

  /** Cuts one node off from all others, among whom everything arrives quickly: whoever decided alone stays alone, and the others may do what they like. */
  ambush(node: number, nodes: number, until: number): void {
    const { weather } = this;
    this.sides = Array.from({ length: nodes }, (_, other) => (other === node ? 1 : 0));
    this.weather = { loss: { ...evenLoss(0), again: 0.8 }, twice: 0, slowest: 50, stray: 0 };
    this.after(1_000 + this.random(6_000), () => {
      if (this.now >= until) return;
      this.sides = undefined;
      this.weather = weather;
    });
  }
}

/** A simulated signature names the node whose key made it. Only that node's code calls this. */
export const signatureOf = (node: number): Uint8Array<ArrayBuffer> => SIGNATURES[node] as Uint8Array<ArrayBuffer>;
const SIGNATURES = Array.from({ length: 64 }, (_, node) => Uint8Array.of(node, 1));
export const FORGED = Uint8Array.of(255, 0);

export const isSignedBy = (node: number | undefined, { signature }: Vote | Proposal): boolean =>
  node !== undefined && signature.length === 2 && signature[0] === node && signature[1] === 1;

export type Deliver = (message: Message, from: number) => void;
