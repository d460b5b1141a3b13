/**
 * The system's clock, watched against the monotonic one. A jump is counted and reported once. Until it has lasted a
 * minute the old time continues: a clock that is wrong for a few seconds must not affect a chain, whose times can only
 * increase. Small corrections are followed at once.
 */
import type { Logger } from '../log/log.ts';
import { type LedgerClock, type MonotonicClock, monotonicMillis, type WallClock, wallMillis } from './clock.ts';

/** Less than this is a correction, not a jump. */
const JUMP_MILLIS = 2_000;
/** A new time is taken over when it has lasted this long. */
export const SETTLE_MILLIS = 60_000;
/** Both clocks are read at one moment; a reading that took longer, because the thread was not scheduled, is ignored. */
const READING_MILLIS = 100;
const WATCH_MILLIS = 1_000;

export type ClockNews = {
  /** `jumped`: the system's time changed. `returned`: it is as before. `settled`: the new time is taken over. */
  readonly kind: 'jumped' | 'returned' | 'settled';
  /** How far the system's clock is ahead of where it was; behind when negative. */
  readonly millis: number;
};

export type WatchedClockDependencies = {
  readonly wall: WallClock;
  readonly monotonic: MonotonicClock;
  readonly onNews: (news: ClockNews) => void;
};

export class WatchedClock {
  readonly #with: WatchedClockDependencies;
  /** Wall time at monotonic time zero. */
  #offset: number;
  #jump: { offset: number; since: number } | undefined;

  constructor(dependencies: WatchedClockDependencies) {
    this.#with = dependencies;
    this.#offset = dependencies.wall() - dependencies.monotonic();
  }

  /** Milliseconds since 1970. */
  readonly now = (): number => {
    const { monotonic, wall } = this.#with;
    const before = monotonic();
    const offset = wall() - before;
    if (monotonic() - before <= READING_MILLIS) this.#look(offset, before);
    return Math.floor(before + this.#offset);
  };

  #look(offset: number, at: number): void {
    const change = offset - this.#offset;
    if (Math.abs(change) < JUMP_MILLIS) {
      this.#offset = offset;
      if (this.#jump === undefined) return;
      this.#jump = undefined;
      this.#tell('returned', 0);
    } else if (this.#jump === undefined || Math.abs(offset - this.#jump.offset) >= JUMP_MILLIS) {
      this.#jump = { offset, since: at };
      this.#tell('jumped', change);
    } else if (at - this.#jump.since >= SETTLE_MILLIS) {
      this.#offset = offset;
      this.#jump = undefined;
      this.#tell('settled', change);
    }
  }

  #tell(kind: ClockNews['kind'], millis: number): void {
    this.#with.onNews({ kind, millis: Math.round(millis) });
  }
}

/** Jumps of the system's clock since the start of this process. */
export const clockJumps = { total: 0 };

const MESSAGES = {
  jumped: 'the system clock jumped',
  returned: 'the system clock is back',
  settled: 'the new system time is taken over',
} as const;

let shared: { readonly clock: WatchedClock; readonly timer: NodeJS.Timeout; users: number } | undefined;

/** One for all parts of a process: it is the same clock, and a jump is reported once. */
export function watchClock(log: Logger): { readonly now: LedgerClock; stop(): void } {
  if (shared === undefined) {
    const onNews = ({ kind, millis }: ClockNews): void => {
      if (kind === 'jumped') clockJumps.total++;
      log[kind === 'jumped' ? 'warn' : 'info'](MESSAGES[kind], { millis });
    };
    const clock = new WatchedClock({ wall: wallMillis, monotonic: monotonicMillis, onNews });
    const timer = setInterval(clock.now, WATCH_MILLIS);
    // The watch does not keep a process alive.
    timer.unref();
    shared = { clock, timer, users: 0 };
  }
  const watched = shared;
  watched.users++;
  let stopped = false;
  return {
    now: watched.clock.now,
    stop() {
      if (stopped) return;
      stopped = true;
      if (--watched.users > 0) return;
      clearInterval(watched.timer);
      if (shared === watched) shared = undefined;
    },
  };
}
