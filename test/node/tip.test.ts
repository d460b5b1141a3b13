/** When a node says that it is synced (network rule 12): one decision for every role, over whatever happens to it. */
import { expect, test } from 'vitest';
import { isAtTip, Tip } from '../../node/chain/tip.ts';
import { PeerHeights } from '../../node/network/peers/peer-heights.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { randomOf } from '../random.ts';

const CUT_MILLIS = 2_500;
const facts = (ageCuts: number, behind = 0, cutMillis = CUT_MILLIS) => ({
  height: 100,
  proven: 100 + behind,
  ageMillis: ageCuts * cutMillis,
  cutMillis,
});

test.each([
  ['a node that starts with a cut of this moment is there', false, facts(1), true],
  ['a node that starts is not there while its newest cut is older than a cut takes', false, facts(5), false],
  ['a node that was there stays through rounds that fail', true, facts(20), true],
  ['a newest cut older than a quarter of the window is not the newest', true, facts(25), false],
  ['two cuts behind what is proven is there', true, facts(1, 2), true],
  ['three cuts behind what is proven is behind, however young the newest cut is', true, facts(0, 3), false],
  [
    'cut 0, which nobody signed, is no tip',
    false,
    { height: 0, proven: -1, ageMillis: 0, cutMillis: CUT_MILLIS },
    false,
  ],
  ['nothing proven changes nothing', false, { ...facts(1), proven: -1 }, true],
])('%s', (_, before, given, expected) => {
  expect(isAtTip(before, given)).toBe(expected);
});

test('a cut of the future, or two clocks that differ, say nothing about an age', () => {
  const head = { height: 5, timestampMillis: 1_000_000 };
  const look = (...times: number[]) =>
    new Tip({
      head: () => head,
      proven: () => -1,
      cutMillis: CUT_MILLIS,
      clocks: times.map((time) => () => time),
    }).look();
  expect(look(1_000_000)).toBe(true);
  // The machine slept for an hour: its own time shows it, the chain's clock takes it over a minute later.
  expect([look(1_000_000, 4_600_000), look(4_600_000, 1_000_000)]).toEqual([false, false]);
  expect(look(1_000_000 - 3_600_000)).toBe(false);
});

/** A chain that goes on at its pace, and a node that follows it, is cut off, sleeps, starts again, is lied to. */
class World {
  readonly #random;
  #now = 1_000_000_000;
  /** Of the real chain: the time of each cut. */
  readonly #cuts: number[] = [this.#now];
  #isCutOff = false;
  /** How wrong the node's clock is. */
  skew = 0;
  head = 0;
  /** As it is, and without the claims of the liar. */
  sides: readonly { readonly tip: Tip; readonly heights: PeerHeights }[];

  constructor(seed: number) {
    this.#random = randomOf(seed);
    this.sides = this.#start();
  }

  #start() {
    return [0, 1].map(() => {
      const heights = new PeerHeights();
      heights.joined('honest', 0);
      const tip = new Tip({
        head: () => ({ height: this.head, timestampMillis: this.#cuts[this.head] as number }),
        proven: () => heights.proven,
        cutMillis: CUT_MILLIS,
        clocks: [() => this.#now + this.skew],
      });
      return { tip, heights };
    });
  }

  get behind(): number {
    return this.#cuts.length - 1 - this.head;
  }

  get proven(): number {
    return this.sides[0]?.heights.proven ?? -1;
  }

  #pass(millis: number): void {
    this.#now += millis;
    for (let next = (this.#cuts.at(-1) as number) + CUT_MILLIS; next <= this.#now; next += CUT_MILLIS)
      this.#cuts.push(next);
  }

  readonly #steps: Readonly<Record<string, () => void>> = {
    restart: () => {
      this.sides = this.#start();
    },
    partition: () => {
      this.#isCutOff = !this.#isCutOff;
    },
    sleep: () => this.#pass(this.#random(400) * 1_000),
    time: () => this.#pass(this.#random(3) * CUT_MILLIS),
    proof: () => {
      const height = this.head + this.#random(this.behind + 1);
      if (!this.#isCutOff) for (const { heights } of this.sides) heights.proved('honest', height);
    },
    leave: () => {
      for (const { heights } of this.sides) {
        heights.left('honest');
        heights.joined('honest', 0);
      }
    },
    claim: () => {
      const heights = this.sides[0]?.heights;
      heights?.joined('liar', this.#random(1_000_000));
      // It knows the newest cut of the node, as everybody does.
      heights?.proved('liar', this.head);
      heights?.heard('liar', this.#random(1_000_000));
    },
    clock: () => {
      this.skew = this.#random(4) > 0 ? 0 : (this.#random(2_000) - 1_000) * 1_000;
    },
    cuts: () => {
      if (this.#isCutOff || this.behind === 0) return;
      this.head += this.#random(2) === 0 ? this.behind : 1 + this.#random(Math.min(96, this.behind));
    },
  };

  step(): string {
    const all = Object.entries(this.#steps);
    const [name, take] = all[this.#random(all.length)] as [string, () => void];
    take();
    return name;
  }
}

test('over any sequence of restarts, partitions, sleeps, proofs, claims and clocks: never synced behind a proof, past half a window, or by a claim', () => {
  let [synced, behind] = [0, 0];
  for (let seed = 1; seed <= 200; seed++) {
    const world = new World(seed);
    const told: string[] = [];
    for (let i = 0; i < 200; i++) {
      told.push(world.step());
      const [isSynced, without] = world.sides.map(({ tip }) => tip.look()) as [boolean, boolean];
      const wrong = (what: string) => expect.fail(`${what}; seed ${seed}: ${told.join(' ')}`);
      if (isSynced) synced++;
      if (world.proven - world.head > 2) behind++;
      if (isSynced !== without) wrong('a claim changed the verdict');
      if (isSynced && world.proven - world.head > 2) wrong('synced behind a proven height');
      // Of a wrong clock nothing follows.
      if (world.skew !== 0 || !isSynced) continue;
      if (world.behind >= REGISTRATION_WINDOW / 2) wrong('synced past half a window');
      if (told.at(-1) === 'restart' && world.behind > 4) wrong('synced before anything was learnt');
    }
  }
  // Both were there to be seen.
  expect(Math.min(synced, behind)).toBeGreaterThan(1_000);
});

test('a node that follows at the pace is synced all the time, also where its peers prove nothing', () => {
  let now = 1_000_000;
  const head = { height: 1, timestampMillis: now };
  const tip = new Tip({ head: () => head, proven: () => -1, cutMillis: CUT_MILLIS, clocks: [() => now] });
  for (let i = 0; i < 100; i++) {
    expect(tip.look()).toBe(true);
    // A round in five fails.
    now += i % 5 === 0 ? 2.2 * CUT_MILLIS : CUT_MILLIS;
    Object.assign(head, { height: head.height + 1, timestampMillis: now - 300 });
  }
});
