/** A trace that was recorded in the simulator, written as text and read again, gives the same effects and the same state. */
import { expect, test } from 'vitest';
import type { Event } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { listenFirst } from '../../node/consensus/engine/listening.ts';
import { createState, type Listening } from '../../node/consensus/engine/state.ts';
import { decodeTrace, encodeTrace, replay } from '../../node/consensus/log/trace.ts';
import { scenarioOf } from './scenario.ts';
import { seatOf } from './sim-place.ts';
import { simulate } from './simulation.ts';

test('a recorded member does the same again', () => {
  let traces = 0;
  for (let seed = 0; traces < 20; seed++) {
    const scenario = scenarioOf(seed);
    if (!scenario.mustProgress) continue;
    const number = [...Array(scenario.nodes).keys()].find((node) => !scenario.liars.has(node)) as number;
    // A restart begins a trace of its own.
    const events = simulate(seed, { record: number, scenario: { ...scenario, crashes: 0 } }).recorded as Event[];
    const { committee, seats } = seatOf(scenario, 1);
    const self = seats.indexOf(number);
    const state = createState(1, committee, self);
    listenFirst(state, -1);
    const start = {
      height: 1,
      committee,
      self,
      ownKey: { ...state.ownKey },
      listening: { ...(state.listening as Listening) },
    };
    const text = encodeTrace(start, events);
    expect(decodeTrace(text).events.length).toBe(events.length);
    const effects = events.map((event) => step(state, event));
    const again = replay(text);
    expect(encodeTrace(start, again.effects.flat() as never)).toBe(encodeTrace(start, effects.flat() as never));
    expect(again.state.height).toBeGreaterThan(1);
    expect({ height: again.state.height, round: again.state.round, own: again.state.own }).toEqual({
      height: state.height,
      round: state.round,
      own: state.own,
    });
    traces++;
  }
});

test('other text is no trace', () => {
  expect(() => decodeTrace('{"format":"other"}')).toThrow(TypeError);
});
