/**
 * Ends a test that hangs. A test has a limit of its own, and ends earlier when nothing that it waits for has moved for a while; both in quiet time
 * (quiet-time.ts), so a busy machine ends no good test. The failure says what was waited for, and what its programs printed last.
 *
 * What moves: a value that is looked at (test/until.ts, `expect.poll`) or the text of a page that is waited for (pages.ts) brings something new (seen.ts), what is waited for
 * comes, a wait of a new kind begins, a program prints a line of a new kind. That a look asks again, loads a page again or waits within itself does not count. Where a test does not say
 * what it waits for, its own work and that of its programs count too.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Programs } from './programs.ts';
import { Machine, type Work } from './quiet-time.ts';
import { kindOf, Seen } from './seen.ts';

const TICK_MILLIS = 1_000;
/** Most ticks that one counts for: where more time passed, this process itself could not run. */
const MOST_TICKS = 2;
/** Short tests are not measured. */
const FREE_TICKS = 3;
/** A poll that has not looked for so long has ended. */
const FORGOTTEN_TICKS = 5;
const SHOWN_CHARACTERS = 600;
const MOST_WHY_CHARACTERS = 4_000;

export type Limits = {
  /** Quiet milliseconds of all of it. */
  readonly millis: number;
  /** Quiet milliseconds without any movement. */
  readonly stillMillis: number;
};

class Hung extends Error {}

export type Time = {
  nowMillis(): number;
  every(millis: number, tick: () => void): { stop(): void };
  readonly machine: { forget(): void; look(passedMillis: number): Work };
};

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
  /** What is looked at each second while it waits, where it has no look of its own: the page on which an element must appear. Never rejects. Only this moves, and no end of such a wait. */
  readonly glance?: () => Promise<unknown>;
};

type Wait = {
  readonly what: string;
  readonly said: Said;
  readonly begun: number;
  /** Those that run while it begins: when they have ended, nobody waits any more. */
  readonly within: readonly Guarded[];
  /** It ends by itself when nobody looks any more: of a poll nobody says when it has ended. */
  readonly isPoll: boolean;
  readonly seen: Seen;
  shown: string;
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
const REAL: Time = {
  nowMillis: () => Number(hrtime() / 1_000_000n),
  every: (millis, tick) => {
    const timer = setInterval(tick, millis).unref();
    return { stop: () => clearInterval(timer) };
  },
  machine: new Machine(),
};

export class Watch {
  readonly #tickMillis: number;
  readonly #time: Time;
  readonly #programs = new Programs(() => this.#move());
  readonly #waits = new Set<Wait>();
  readonly #guarded = new Set<Guarded>();
  /** Kinds of waits that began. */
  readonly #kinds = new Set<string>();
  readonly #glances = new Map<() => Promise<unknown>, Seen>();
  /** Those of waits since the last tick. */
  readonly #due = new Set<() => Promise<unknown>>();
  /** What runs within a look is a part of it: its waits say nothing that the value of the look does not. */
  readonly #within = new AsyncLocalStorage<Wait>();
  #timer: { stop(): void } | undefined;
  #tickAt = 0;
  #since = 0;
  #moved = false;
  #stillMillis = 0;
  #waited = false;
  #stillestMillis = 0;

  constructor(tickMillis = TICK_MILLIS, time = REAL) {
    this.#tickMillis = tickMillis;
    this.#time = time;
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
    const now = this.#time.nowMillis();
    const within = [...this.#guarded];
    const seen = new Seen();
    const wait: Wait = { what, said, begun: now, within, isPoll, seen, shown: '', lookedAt: now, isLooking: false };
    this.#waits.add(wait);
    this.#waited = true;
    if (said.glance) this.#due.add(said.glance);
    if (this.#within.getStore() !== undefined) return wait;
    const kind = kindOf(what);
    // Of a poll nobody says when it ends; that another begins says that it has.
    if (isPoll || !this.#kinds.has(kind)) this.#move();
    this.#kinds.add(kind);
    return wait;
  }

  #end(wait: Wait, came: boolean): void {
    this.#waits.delete(wait);
    if (came && wait.said.glance === undefined && this.#within.getStore() === undefined) this.#move();
  }

  async #ended<T>(wait: Wait, promise: Promise<T>): Promise<T> {
    let came = false;
    try {
      const value = await promise;
      came = true;
      return value;
    } finally {
      this.#end(wait, came);
    }
  }

  /** A wait whose end somebody else says. */
  begin(what: string, said: Said): { end(): void } {
    const wait = this.#begin(what, said);
    return { end: () => this.#end(wait, true) };
  }

  #isOver({ within }: Wait): boolean {
    return within.length > 0 && within.every((guarded) => !this.#guarded.has(guarded));
  }

  async #look<T>(wait: Wait, look: () => T | Promise<T>): Promise<T> {
    wait.isLooking = true;
    let seen: unknown;
    try {
      const value = await this.#within.run(wait, look);
      seen = value;
      return value;
    } catch (error) {
      seen = error;
      throw error;
    } finally {
      wait.isLooking = false;
      const now = this.#time.nowMillis();
      // What comes soon costs nothing, and of many looks in a second one is enough.
      if (
        now - wait.begun > FREE_TICKS * this.#tickMillis &&
        (wait.shown === '' || now - wait.lookedAt > this.#tickMillis)
      ) {
        const value = wait.said.seen === undefined ? seen : wait.said.seen();
        if (wait.seen.moves(value) && this.#within.getStore() === undefined) this.#move();
        wait.shown = shown(value);
        wait.lookedAt = now;
      }
    }
  }

  /** Waits for something, and says so. */
  async waitFor<T>(what: string, promise: Promise<T>): Promise<T> {
    return await this.#ended(this.#begin(what), promise);
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
    return await this.#ended(wait, act(watched));
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
      this.#waited = true;
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
      if (this.#guarded.size === 0) this.#timer?.stop();
    }
  }

  #enter(guarded: Guarded): void {
    if (this.#guarded.size === 0) {
      this.#waits.clear();
      this.#kinds.clear();
      this.#glances.clear();
      this.#programs.forgetEnded();
      this.#since = this.#tickAt = this.#time.nowMillis();
      this.#time.machine.forget();
      this.#timer = this.#time.every(this.#tickMillis, () => this.#tick());
    }
    this.#stillMillis = 0;
    this.#guarded.add(guarded);
  }

  #tick(): void {
    const now = this.#time.nowMillis();
    const passed = Math.min(now - this.#tickAt, MOST_TICKS * this.#tickMillis);
    this.#tickAt = now;
    if (now - this.#since >= FREE_TICKS * this.#tickMillis) this.#glance();
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

  /** Which part of the time was quiet. Sees, too, what the test and its programs do. */
  #measure(passedMillis: number): number {
    const { share, computes, works } = this.#time.machine.look(passedMillis);
    if (!this.#waited && this.#waits.size === 0 && (computes || works)) this.#move();
    this.#waited = false;
    return share;
  }

  #glance(): void {
    const waits = [...this.#waits].filter(({ said }) => said.glance !== undefined);
    const due = new Set([...this.#due, ...waits.map(({ said }) => said.glance as () => Promise<unknown>)]);
    this.#due.clear();
    for (const glance of due) {
      const seen = this.#glances.get(glance) ?? new Seen();
      this.#glances.set(glance, seen);
      void glance().then((value) => {
        if (seen.moves(value)) this.#move();
        for (const wait of waits) if (wait.said.glance === glance) wait.shown = shown(value);
      });
    }
  }

  #fail(guarded: Guarded, why: string): void {
    const now = this.#time.nowMillis();
    const waits = [...this.#waits].map(({ what, begun, shown, said }) => {
      const last = shown === '' ? '' : `\n    last seen: ${shown}`;
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
