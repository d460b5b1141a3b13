/**
 * Ends a test that hangs. A test has a limit of its own, and ends earlier when nothing that it waits for has moved for a while; both in quiet time
 * (quiet-time.ts), so a busy machine ends no good test. The failure says what was waited for, and what its programs printed last.
 *
 * What moves: a value that is looked at (test/until.ts, `expect.poll`) changes, a wait begins or ends, a program prints a line of a new kind, the test
 * itself computes. Where it does not say what it waits for, any work of its programs counts too.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Programs } from './programs.ts';
import { diskWaited, processTree, quietShare, type Threads, threadsOf, useBetween } from './quiet-time.ts';

const TICK_MILLIS = 1_000;
/** Most ticks that one counts for: where more time passed, this process itself could not run. */
const MOST_TICKS = 2;
/** Short tests are not measured. */
const FREE_TICKS = 3;
/** A poll that has not looked for so long has ended. */
const FORGOTTEN_TICKS = 5;
/** Of one core: a test that computes all the time, and programs that do something. */
const COMPUTES = 0.5;
const WORKS = 0.1;
const SHOWN_CHARACTERS = 600;
const MOST_WHY_CHARACTERS = 4_000;

export type Limits = {
  /** Quiet milliseconds of all of it. */
  readonly millis: number;
  /** Quiet milliseconds without any movement. */
  readonly stillMillis: number;
};

class Hung extends Error {}

type Guarded = {
  readonly title: string;
  readonly limits: Limits;
  readonly hung: (error: Hung) => void;
  quietMillis: number;
};

/** Of a wait that knows more than what its look returns. */
type Said = {
  /** What moves. */
  readonly seen?: () => unknown;
  /** What helps when it does not. */
  readonly why?: () => string;
};

type Wait = {
  readonly what: string;
  readonly said: Said;
  readonly begun: number;
  /** Those that run while it begins: when they have ended, nobody waits any more. */
  readonly within: readonly Guarded[];
  /** It ends by itself when nobody looks any more: of a poll nobody says when it has ended. */
  readonly isPoll: boolean;
  seen: string;
  lookedAt: number;
  isLooking: boolean;
};

const shown = (value: unknown): string =>
  (typeof value === 'string'
    ? value
    : inspect(value, { depth: 4, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 50 })
  ).slice(0, SHOWN_CHARACTERS);

// Tests replace the clock and the timers.
const { setInterval, clearInterval } = globalThis;
const hrtime = process.hrtime.bigint;
const nowMillis = (): number => Number(hrtime() / 1_000_000n);

export class Watch {
  readonly #tickMillis: number;
  readonly #programs = new Programs(() => this.#move());
  readonly #waits = new Set<Wait>();
  readonly #guarded = new Set<Guarded>();
  #timer: NodeJS.Timeout | undefined;
  #tickAt = 0;
  #since = 0;
  #moved = false;
  #stillMillis = 0;
  #threads: Threads | undefined;
  #disk = 0;
  #stillestMillis = 0;

  constructor(tickMillis = TICK_MILLIS) {
    this.#tickMillis = tickMillis;
  }

  /** The longest quiet time without movement since it was last asked for: how near the limit is. */
  takeStillest(): number {
    const stillest = this.#stillestMillis;
    this.#stillestMillis = 0;
    return stillest;
  }

  #move(): void {
    this.#moved = true;
  }

  #begin(what: string, said: Said = {}, isPoll = false): Wait {
    const now = nowMillis();
    const within = [...this.#guarded];
    const wait: Wait = { what, said, begun: now, within, isPoll, seen: '', lookedAt: now, isLooking: false };
    this.#waits.add(wait);
    this.#move();
    return wait;
  }

  #end(wait: Wait): void {
    this.#waits.delete(wait);
    this.#move();
  }

  #isOver({ within }: Wait): boolean {
    return within.length > 0 && within.every((guarded) => !this.#guarded.has(guarded));
  }

  async #look<T>(wait: Wait, look: () => T | Promise<T>): Promise<T> {
    wait.isLooking = true;
    let seen: unknown;
    try {
      const value = await look();
      seen = value;
      return value;
    } catch (error) {
      seen = error;
      throw error;
    } finally {
      wait.isLooking = false;
      const now = nowMillis();
      // What comes soon costs nothing, and of many looks in a second one is enough.
      if (
        now - wait.begun > FREE_TICKS * this.#tickMillis &&
        (wait.seen === '' || now - wait.lookedAt > this.#tickMillis)
      ) {
        const text = shown(wait.said.seen === undefined ? seen : wait.said.seen());
        if (text !== wait.seen) this.#move();
        wait.seen = text;
        wait.lookedAt = now;
      }
    }
  }

  /** Waits for something, and says so. */
  async waitFor<T>(what: string, promise: Promise<T>): Promise<T> {
    const wait = this.#begin(what);
    try {
      return await promise;
    } finally {
      this.#end(wait);
    }
  }

  /** Hands out a look that is watched. It throws when the test was ended meanwhile. */
  async lookFor<T, R>(
    what: string,
    look: () => T | Promise<T>,
    act: (look: () => Promise<T>) => Promise<R>,
    said: Said = {},
  ): Promise<R> {
    const wait = this.#begin(what, said);
    const watched = () => {
      if (this.#isOver(wait)) throw new Hung('the test was ended');
      return this.#look(wait, look);
    };
    try {
      return await act(watched);
    } finally {
      this.#end(wait);
    }
  }

  /** A look of `expect.poll`. When the test was ended, it never comes back: the poll would look for ever. */
  polled<T>(
    look: (context: { signal: AbortSignal }) => T | Promise<T>,
  ): (context: { signal: AbortSignal }) => Promise<T> {
    let wait: Wait | undefined;
    return async (context) => {
      wait ??= this.#begin(`expect.poll(${look})`, {}, true);
      if (this.#isOver(wait)) return await new Promise(() => {});
      this.#waits.add(wait);
      return await this.#look(wait, () => look(context));
    };
  }

  /** Runs it, and rejects when it hangs. */
  async guard<T>(title: string, limits: Limits, act: () => T | PromiseLike<T>): Promise<T> {
    const { promise: hung, reject } = Promise.withResolvers<never>();
    const guarded: Guarded = { title, limits, hung: reject, quietMillis: 0 };
    this.#enter(guarded);
    try {
      return await Promise.race([act(), hung]);
    } finally {
      this.#guarded.delete(guarded);
      if (this.#guarded.size === 0) clearInterval(this.#timer);
    }
  }

  #enter(guarded: Guarded): void {
    if (this.#guarded.size === 0) {
      this.#waits.clear();
      this.#programs.forgetEnded();
      this.#since = this.#tickAt = nowMillis();
      this.#threads = undefined;
      this.#timer = setInterval(() => this.#tick(), this.#tickMillis).unref();
    }
    this.#stillMillis = 0;
    this.#guarded.add(guarded);
  }

  #tick(): void {
    const now = nowMillis();
    const passed = Math.min(now - this.#tickAt, MOST_TICKS * this.#tickMillis);
    this.#tickAt = now;
    const quiet = passed * (now - this.#since < FREE_TICKS * this.#tickMillis ? 1 : this.#measure(passed));
    for (const wait of this.#waits)
      if (wait.isPoll && !wait.isLooking && now - wait.lookedAt > FORGOTTEN_TICKS * this.#tickMillis)
        this.#waits.delete(wait);
    this.#stillMillis = this.#moved ? 0 : this.#stillMillis + quiet;
    this.#moved = false;
    this.#stillestMillis = Math.max(this.#stillestMillis, this.#stillMillis);
    for (const guarded of this.#guarded) {
      guarded.quietMillis += quiet;
      const { millis, stillMillis } = guarded.limits;
      if (this.#stillMillis >= stillMillis)
        this.#fail(guarded, `nothing that it waits for has moved for ${Math.round(stillMillis / 1_000)} s`);
      else if (guarded.quietMillis >= millis)
        this.#fail(guarded, `it took longer than its limit of ${Math.round(millis / 1_000)} s`);
    }
    this.#note();
  }

  /** Which part of the time was quiet. Sees, too, whether the test computes. */
  #measure(passedMillis: number): number {
    const nanos = passedMillis * 1e6;
    const [own, ...others] = processTree(process.pid);
    const before = this.#threads;
    const [ownThreads, otherThreads] = [threadsOf([own as number]), threadsOf(others)];
    this.#threads = new Map([...ownThreads, ...otherThreads]);
    const [disk, diskBefore] = [diskWaited(), this.#disk];
    this.#disk = disk;
    if (before === undefined) return 1;
    const use = useBetween(before, this.#threads);
    const share = quietShare(use, nanos, Math.min(1, (disk - diskBefore) / nanos));
    const could = nanos * share;
    if (useBetween(before, ownThreads).ran >= COMPUTES * could) this.#move();
    if (this.#waits.size === 0 && use.ran >= WORKS * could) this.#move();
    return share;
  }

  #fail(guarded: Guarded, why: string): void {
    const now = nowMillis();
    const waits = [...this.#waits].map(({ what, begun, seen, said }) => {
      const last = seen === '' ? '' : `\n    last seen: ${seen}`;
      const why = said.why?.().slice(-MOST_WHY_CHARACTERS) ?? '';
      return `  for ${Math.round((now - begun) / 1_000)} s: ${what.slice(0, SHOWN_CHARACTERS)}${last}${why === '' ? '' : `\n    ${why}`}`;
    });
    const waited = waits.length === 0 ? 'it does not say what it waits for' : `it waits:\n${waits.join('\n')}`;
    guarded.hung(new Hung([`${why}: ${guarded.title}`, waited, this.#programs.show()].join('\n')));
  }

  /** For scripts/ready/run-watch.mjs: that this process lives, and what it does. */
  #note(): void {
    const directory = process.env.SVC_RUNNING;
    if (directory === undefined) return;
    const titles = [...this.#guarded].map(({ title }) => title);
    const still = Math.round(this.#stillMillis / 1_000);
    try {
      writeFileSync(join(directory, `${process.pid}`), `${titles.join(', ')}; nothing has moved for ${still} s\n`);
    } catch {
      // Of no use to the test.
    }
  }
}

const KEY = Symbol.for('svc.test.watch');
const shared = globalThis as { [KEY]?: Watch };
/** One for a process, however often this module is loaded. */
shared[KEY] ??= new Watch();
export const watch: Watch = shared[KEY];
