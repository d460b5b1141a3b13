/**
 * Refused, half-open and reset connections in their thousands against each door: within a minute the process holds as many
 * sockets and as much memory as before, and serves as before.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { count, level } from '../level.ts';
import { attack, stroke } from './door-strokes.ts';
import { DOOR_NAMES, type DoorName, Doors } from './doors-fixture.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(() => doors.close());

const MEBIBYTE = 1 << 20;
/** What may be left on the heap: caches, and what the collector has not got to. */
const MEMORY = 8 * MEBIBYTE;

/** Sockets and memory, once they are what they were, or after some minutes what they have become. */
async function settled(before: number): Promise<{ seconds: number; held: number; heap: number; rss: number }> {
  const began = performance.now();
  for (;;) {
    const held = doors.held();
    const { heap, rss, errors, faults } = await doors.figures();
    expect({ errors, faults }).toEqual({ errors: [], faults: 0 });
    const seconds = (performance.now() - began) / 1_000;
    if (seconds > 240 || (held === 0 && heap <= before + MEMORY)) return { seconds, held, heap, rss };
    await sleep(250);
  }
}

const connections = count({ quick: 100, full: 300, deep: 20_000 });
// In turn where each is attacked for minutes; together where it only takes their time limits to pass.
const rounds: readonly (readonly DoorName[])[] = level === 'deep' ? DOOR_NAMES.map((name) => [name]) : [DOOR_NAMES];

test.each(rounds.map((names) => [names.join(', '), names] as const))(
  '%s',
  async (_title, names) => {
    // Those that are over at once have the code compiled and the caches filled.
    await Promise.all(
      names.map((name) => Promise.all(Array.from({ length: 30 }, (_, i) => stroke(doors.ports[name], name, 3 * i)))),
    );
    await settled(Number.POSITIVE_INFINITY);
    const before = await doors.figures();
    await Promise.all(names.map((name) => attack(doors.ports[name], name, connections)));
    const after = await settled(before.heap);
    if (level === 'deep')
      console.log(
        `${names.join()}: ${connections} connections; after ${after.seconds.toFixed(1)} s ${after.held} sockets, ` +
          `heap ${((after.heap - before.heap) / MEBIBYTE).toFixed(1)} MiB, rss ${((after.rss - before.rss) / MEBIBYTE).toFixed(1)} MiB more`,
      );
    expect(after.held).toBe(0);
    expect(after.heap - before.heap).toBeLessThanOrEqual(MEMORY);
    expect(doors.isAlive).toBe(true);
    await doors.expectServed();
  },
  1_200_000,
);
