/**
 * What thousands of refused, half-open and reset connections leave behind, round after round: sockets, heap and resident memory a while after each.
 * `npm run bench -- doors [DOOR] [rounds=5] [connections=20000] [arenas=2]`; `arenas` sets MALLOC_ARENA_MAX.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { attack } from '../attack/door-strokes.ts';
import { DOOR_NAMES, type DoorName, Doors, type Figures } from '../attack/doors-fixture.ts';
import { bench } from './harness.ts';

const MEBIBYTE = 1 << 20;
const SETTLE_SECONDS = 60;

export default bench(
  'what refused, half-open and reset connections leave in a program, round after round',
  async (b) => {
    const number = (name: string): number | undefined => {
      const word = b.words.find((each) => each.startsWith(`${name}=`));
      return word === undefined ? undefined : Number(word.slice(name.length + 1));
    };
    const [rounds, connections] = [number('rounds') ?? 5, number('connections') ?? 20_000];
    const door: DoorName = DOOR_NAMES.find((name) => b.words.includes(name)) ?? 'api';
    const arenas = number('arenas');
    const doors = await Doors.open(arenas === undefined ? {} : { MALLOC_ARENA_MAX: String(arenas) });
    /** The least resident memory within a minute after the last connection: what the program gives back, it gives back by then. */
    const settled = async (): Promise<Figures & { readonly held: number }> => {
      const until = performance.now() + SETTLE_SECONDS * 1_000;
      let least = await doors.figures();
      while (performance.now() < until) {
        await sleep(1_000);
        const figures = await doors.figures();
        if (figures.rss < least.rss) least = figures;
      }
      return { ...least, held: doors.held() };
    };
    await attack(doors.ports[door], door, 100);
    const before = await doors.figures();
    b.figure(`${door}-rss-before`, before.rss / MEBIBYTE, 'MiB');
    for (let round = 1; round <= rounds; round++) {
      const began = performance.now();
      await attack(doors.ports[door], door, connections);
      const seconds = (performance.now() - began) / 1_000;
      const { rss, heap, held } = await settled();
      b.note(
        `round ${round}: ${connections} connections in ${seconds.toFixed(0)} s; ${held} sockets, ` +
          `heap ${((heap - before.heap) / MEBIBYTE).toFixed(1)} MiB more, rss ${((rss - before.rss) / MEBIBYTE).toFixed(1)} MiB more`,
      );
      b.figure(`${door}-rss-${round}`, rss / MEBIBYTE, 'MiB');
    }
    await doors.expectServed();
    await doors.close();
  },
);
