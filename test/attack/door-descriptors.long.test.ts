/**
 * Refused, half-open and reset connections in their thousands against each door: minutes later at most the process holds as many
 * sockets and as much memory as before, and serves as before. Before: once some hundred connections have had the code
 * compiled and the caches filled. Memory is what the system counts as resident, and nothing makes the process collect.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { count, level } from '../level.ts';
import { attack } from './door-strokes.ts';
import { DOOR_NAMES, type DoorName, Doors } from './doors-fixture.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.openOwn();
});
afterAll(() => doors.close());

const MEBIBYTE = 1 << 20;
/** What may be left on the heap: caches, and what the collector has not got to. */
const HEAP = 8 * MEBIBYTE;
/** What may stay resident: what malloc keeps between what is in use (10 MiB), and growth that is not worth a collection (idle-memory.ts). */
const RESIDENT = 16 * MEBIBYTE;
/** Far more than it takes: some seconds, by the time limits of the doors, and on a busy machine more. */
const SECONDS = 300;

type Rest = { readonly seconds: number; readonly held: number; readonly resident: number };

/** Sockets and resident memory, once they are what they were, or minutes later what they have become. */
async function settled(before: number): Promise<Rest> {
  const began = performance.now();
  for (;;) {
    const rest = { seconds: (performance.now() - began) / 1_000, held: doors.held(), resident: doors.resident() };
    if (rest.seconds > SECONDS || (rest.held === 0 && rest.resident <= before + RESIDENT)) return rest;
    await sleep(250);
  }
}

const connections = count({ quick: 100, full: 300, deep: 20_000 });
const warmUp = count({ quick: 30, full: 30, deep: 200 });
// In turn where each is attacked for minutes; together where it only takes their time limits to pass.
const rounds: readonly (readonly DoorName[])[] = level === 'deep' ? DOOR_NAMES.map((name) => [name]) : [DOOR_NAMES];
const mebibytes = (bytes: number): string => (bytes / MEBIBYTE).toFixed(1);

test.each(rounds.map((names) => [names.join(', '), names] as const))('%s', async (_title, names) => {
  const all = (each: number) => Promise.all(names.map((name) => attack(doors.ports[name], name, each)));
  await all(warmUp);
  await settled(Number.POSITIVE_INFINITY);
  const { heap } = await doors.figures(true);
  const before = doors.resident();
  await all(connections);
  const peak = doors.resident();
  const after = await settled(before);
  const figures = await doors.figures(true);
  if (level === 'deep')
    console.log(
      `${names.join()}: ${connections} connections; resident ${mebibytes(before)} MiB before, ${mebibytes(peak)} at the end, ` +
        `${mebibytes(after.resident)} after ${after.seconds.toFixed(1)} s; ${after.held} sockets, heap ${mebibytes(figures.heap - heap)} MiB more`,
    );
  expect(figures).toMatchObject({ errors: [], faults: 0 });
  expect(after.held).toBe(0);
  expect(mebibytes(Math.max(0, after.resident - before - RESIDENT))).toBe('0.0');
  expect(figures.heap - heap).toBeLessThanOrEqual(HEAP);
  expect(doors.isAlive).toBe(true);
  await doors.expectServed();
});
