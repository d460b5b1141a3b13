/** The order in which nodes tell of cuts, which the price of a farm's headers follows. */
import { expect, test } from 'vitest';
import { PLACE_MILLIS, ToldCuts } from '../../bridge/nodes/told-cuts.ts';
import { ConnectionCounter, connectionNumberMemory } from '../../bridge/session/extranonce.ts';

const made = () => {
  const memory = connectionNumberMemory();
  const counter = new ConnectionCounter(new Uint8Array(8), 1, memory);
  const clock = { now: 0 };
  return { cuts: new ToldCuts(memory, () => clock.now), counter, clock };
};

test('a cut keeps the place of its first telling, whoever tells of it again', () => {
  const { cuts, counter, clock } = made();
  const places = ['a', 'b', 'a', 'c', 'b'].map((cut) => {
    clock.now += PLACE_MILLIS;
    return cuts.tell(cut);
  });
  expect(places).toEqual([1, 2, 1, 3, 2]);
  expect(counter.toldCuts).toBe(3);
});

test('all that a node tells of while it catches up takes one place in two seconds', () => {
  const { cuts, counter, clock } = made();
  for (let cut = 0; cut < 1_000; cut++) {
    expect(cuts.tell(`${cut}`)).toBe(1 + Math.floor((cut * 10) / PLACE_MILLIS));
    clock.now += 10;
  }
  expect(counter.toldCuts).toBe(5);
});

test('a thread that begins anew names no connection as one before it, whatever nodes told of and prefixes are in use', () => {
  const names = (isBusy: boolean): Uint8Array[] => {
    const memory = connectionNumberMemory(new Uint8Array(16).fill(7));
    const thread = () => new ConnectionCounter(new Uint8Array(8), 1, memory);
    const before = Array.from({ length: 20 }, () => thread().next());
    if (isBusy) {
      new ToldCuts(memory, () => 0).tell('a');
      const counter = thread();
      for (let i = 0; i < 0x1_0000; i++) counter.takePrefix();
    }
    return [...before, ...Array.from({ length: 20 }, () => thread().next())];
  };
  // One key for all of them: under another one the numbers of before could come again.
  expect(names(true)).toEqual(names(false));
});
