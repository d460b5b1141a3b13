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
