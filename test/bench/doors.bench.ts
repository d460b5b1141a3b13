/**
 * What thousands of refused, half-open and reset connections leave behind, round after round: sockets, heap and resident memory at the
 * end of each and a minute later. Nothing makes the process collect before the last round is over.
 * `npm run bench -- doors [DOOR] [rounds=5] [connections=20000]`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { attack } from '../attack/door-strokes.ts';
import { DOOR_NAMES, type DoorName, Doors } from '../attack/doors-fixture.ts';
import { bench } from './harness.ts';

const MEBIBYTE = 1 << 20;
const SETTLE_SECONDS = 60;
const WARM_UP = 200;

export default bench(
  'what refused, half-open and reset connections leave in a program, round after round',
  async (b) => {
    const number = (name: string): number | undefined => {
      const word = b.words.find((each) => each.startsWith(`${name}=`));
      return word === undefined ? undefined : Number(word.slice(name.length + 1));
    };
    const [rounds, connections] = [number('rounds') ?? 5, number('connections') ?? 20_000];
    const door: DoorName = DOOR_NAMES.find((name) => b.words.includes(name)) ?? 'api';
    const doors = await Doors.open();
    await attack(doors.ports[door], door, WARM_UP);
    const { heap } = await doors.figures(true);
    const before = doors.resident();
    b.figure(`${door}-resident-before`, before / MEBIBYTE, 'MiB');
    for (let round = 1; round <= rounds; round++) {
      const began = performance.now();
      await attack(doors.ports[door], door, connections);
      const seconds = (performance.now() - began) / 1_000;
      b.figure(`${door}-resident-${round}-end`, doors.resident() / MEBIBYTE, 'MiB');
      await sleep(SETTLE_SECONDS * 1_000);
      b.figure(`${door}-resident-${round}-after`, doors.resident() / MEBIBYTE, 'MiB');
      b.note(`round ${round}: ${connections} connections in ${seconds.toFixed(0)} s; ${doors.held()} sockets`);
    }
    const after = await doors.figures(true);
    b.note(`heap after a collection: ${((after.heap - heap) / MEBIBYTE).toFixed(1)} MiB more than before`);
    await doors.expectServed();
    await doors.close();
  },
);
