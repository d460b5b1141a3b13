/**
 * The matrix of clock jumps on a node and on what a bridge makes of its templates, on simulated clocks: forward and back, 8 seconds, an hour, two days, over after
 * a moment or lasting, with the watched clock of `svcd` and with the bare one. Mining never stops, cuts stay in order, no block is lost.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import { checkTemplate } from '../../bridge/nodes/template.ts';
import { nextCutMillis } from '../../node/chain/cut-clock.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { WatchedClock, watchClock } from '../../runtime/clock/watched-clock.ts';
import { Bed, type BedSettings, START_MILLIS, searchNonce, silentLog } from '../node/bed.ts';

const HOUR = 3_600_000;
const JUMPS = [8_000, -8_000, HOUR, -HOUR, 48 * HOUR, -48 * HOUR];
const PACE = 2_500;
const alice = developmentKey('alice').address;

/** A node whose cuts come every 2.5 s of true time; its machine's clock is off by `off`. */
class Machine {
  bed!: Bed;
  off = 0;
  #mono = 0;
  readonly times: number[] = [];

  static async open(watched: boolean, settings: BedSettings = {}): Promise<Machine> {
    const machine = new Machine();
    const wall = () => START_MILLIS + machine.#mono + machine.off;
    const clock = new WatchedClock({ wall, monotonic: () => machine.#mono, onNews: () => undefined });
    machine.bed = await Bed.open({
      ...settings,
      dependencies: { now: watched ? clock.now : wall, steady: () => START_MILLIS + machine.#mono },
    });
    onTestFinished(() => machine.bed.close());
    return machine;
  }

  get wall(): number {
    return START_MILLIS + this.#mono + this.off;
  }

  pass(millis: number): void {
    this.#mono += millis;
  }

  /** A miner's turn in the middle of a cut: a template that a bridge takes, a block that the node takes and the next cut registers. */
  async turn(bridgeOff = this.off): Promise<void> {
    const { node } = this.bed;
    this.pass(PACE / 2);
    const template = node.template({ payout: alice, maxTransactions: 10 });
    const nowMillis = Math.max(START_MILLIS + this.#mono + bridgeOff, START_MILLIS + this.#mono);
    const { header, anchor, parents, transactions, payout, extranonce, fees, pow } = template;
    const checked = checkTemplate(
      { header, anchorMillis: anchor.timestampMillis, body: { payout, extranonce, parents, transactions }, fees, pow },
      { network: NETWORKS.development, headHeight: anchor.height, nowMillis },
    );
    expect(checked).toMatchObject({ ok: true });
    this.pass(PACE / 2);
    const outcome = await node.submitBlock(searchNonce(header, template.target), template.body);
    expect(outcome).toMatchObject({ status: 'accepted' });
    const cut = await node.seal();
    expect(cut.registered.length).toBe(1);
    this.times.push(cut.header.timestampMillis);
  }

  async turns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.turn();
  }
}

const isRising = (times: readonly number[]): boolean =>
  times.every((time, i) => i === 0 || time > (times[i - 1] as number));

for (const jump of JUMPS)
  for (const watched of [true, false])
    test(`a jump by ${jump / 1_000} s, ${watched ? 'watched' : 'bare'} clock: blocks are taken before, during and after it`, async () => {
      const machine = await Machine.open(watched);
      await machine.turns(3);
      machine.off = jump;
      await machine.turns(4);
      machine.off = 0;
      await machine.turns(4);
      // Again, and this time it stays.
      machine.off = jump;
      await machine.turns(26);
      machine.off = 0;
      await machine.turns(8);
      expect(isRising(machine.times)).toBe(true);
      if (watched && Math.abs(jump) > 2_000) {
        // Eight seconds and more of a wrong clock leave no trace: a cut is dated as if nothing had happened.
        expect(machine.times.slice(0, 11)).toEqual(
          machine.times.slice(0, 11).map((_, i) => START_MILLIS + PACE * (i + 1)),
        );
      }
    });

test('a job that is out when the clock jumps is still good afterwards', async () => {
  for (const jump of JUMPS) {
    const machine = await Machine.open(true);
    await machine.turns(2);
    const { node } = machine.bed;
    machine.off = jump;
    machine.pass(1_000);
    const during = node.template({ payout: alice, maxTransactions: 0 });
    machine.off = 0;
    machine.pass(1_000);
    const header = searchNonce(during.header, during.target);
    expect([jump, await node.submitBlock(header, during.body)]).toMatchObject([jump, { status: 'accepted' }]);
  }
});

test('a bridge whose own clock is wrong takes a right node’s templates', async () => {
  const machine = await Machine.open(true);
  for (const jump of JUMPS) {
    await machine.turn(jump);
    await machine.turn(0);
  }
});

test('a node that starts with a wrong clock, or whose clock is right again after a restart, goes on', async () => {
  for (const jump of JUMPS) {
    // A program that has just started knows no time but the system's.
    const machine = await Machine.open(false);
    await machine.turns(2);
    machine.off = jump;
    await machine.bed.reopen();
    await machine.turns(4);
    machine.off = 0;
    await machine.bed.reopen();
    await machine.turns(4);
    expect(isRising(machine.times)).toBe(true);
  }
});

test('behind the last cut, cuts are half a pace apart until the clock has caught up', () => {
  expect(nextCutMillis(1_000, 900, 100)).toBe(1_000);
  expect(nextCutMillis(1_000, 1_000, 100)).toBe(1_050);
  expect(nextCutMillis(1_000, 5_000, 100)).toBe(5_050);
  expect(nextCutMillis(1_000, 5_000, 0)).toBe(5_001);
  // An hour behind is caught up with in two.
  let [last, cuts] = [HOUR, 0];
  for (let now = 0; last > now; now += PACE, cuts++) last = nextCutMillis(now, last, PACE);
  expect(cuts).toBeLessThanOrEqual((2 * HOUR) / PACE + 2);
  expect(cuts).toBeGreaterThan(HOUR / PACE);
});

test('the cut maker keeps its pace when the system’s clock jumps: no burst, no stall', async () => {
  const real = Date.now;
  let off = 0;
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => real.call(Date) + off);
  const clock = watchClock(silentLog);
  onTestFinished(() => {
    clock.stop();
    spy.mockRestore();
  });
  const pace = 25;
  const bed = await Bed.open({ options: { cutMillis: pace }, dependencies: { now: clock.now } });
  onTestFinished(() => bed.close());
  for (const jump of [...JUMPS, 0]) {
    off = jump;
    const [from, began] = [bed.node.chain.head().height, performance.now()];
    await expect.poll(() => bed.node.chain.head().height, { interval: 5 }).toBeGreaterThan(from + 8);
    const made = bed.node.chain.head().height - from;
    expect(made).toBeLessThanOrEqual((performance.now() - began) / pace + 2);
  }
});
