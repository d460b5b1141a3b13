/**
 * Time as it would have passed on a machine with nothing else to do. Limits of tests count in it: four workers on two busy cores make a good test slow, and
 * must not make it fail, and one that really hangs still ends soon.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Of each thread, in nanoseconds: how long it ran, and how long it could have run and had to wait for a core. */
export type Threads = ReadonlyMap<string, readonly [ran: number, waited: number]>;

export type Use = {
  /** Nanoseconds of processor time of all threads. */
  readonly ran: number;
  /** Nanoseconds in which they had to wait for a core, added up. */
  readonly waited: number;
};

/** What one look at a machine says of the time since the look before. */
export type Work = {
  /** Which part of the time was quiet. */
  readonly share: number;
  /** The test itself computed all the time, with a core or in wait for one. */
  readonly computes: boolean;
  /** Something that it started did something. */
  readonly works: boolean;
};

/** Of one core. */
const COMPUTES = 0.5;
const WORKS = 0.1;
/** A tree that gets less than this of the machine still ends: after twenty times its limit. */
const LEAST_SHARE = 0.05;

/** What the threads did between two looks. Of those that ended in between nothing is known. */
export function useBetween(before: Threads, after: Threads): Use {
  const use = { ran: 0, waited: 0 };
  for (const [id, [ran, waited]] of after) {
    const [ranBefore, waitedBefore] = before.get(id) ?? [0, 0];
    use.ran += Math.max(0, ran - ranBefore);
    use.waited += Math.max(0, waited - waitedBefore);
  }
  return use;
}

/**
 * Which part of a time was quiet. Threads that hardly want to run are not held up, however busy the machine is; of those that want to, it is the part that
 * they got.
 */
export function quietShare({ ran, waited }: Use, nanos: number, diskShare = 0): number {
  const wanted = ran + waited;
  const got = wanted === 0 ? 1 : Math.max(ran / wanted, 1 - waited / nanos);
  return Math.max(LEAST_SHARE, got * (1 - diskShare));
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};
const list = (path: string): string[] => {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
};

/** A process and all that it started, and they started. Empty where there is no /proc. */
export function processTree(root: number): number[] {
  const found = [root];
  for (let i = 0; i < found.length; i++)
    for (const thread of list(`/proc/${found[i]}/task`))
      for (const child of read(`/proc/${found[i]}/task/${thread}/children`).split(' '))
        if (child.trim() !== '') found.push(Number(child));
  return found;
}

export function threadsOf(processes: readonly number[]): Threads {
  const threads = new Map<string, readonly [number, number]>();
  for (const pid of processes)
    for (const thread of list(`/proc/${pid}/task`)) {
      const [ran, waited] = read(`/proc/${pid}/task/${thread}/schedstat`).split(' ').map(Number);
      if (ran !== undefined && waited !== undefined) threads.set(`${pid}/${thread}`, [ran, waited]);
    }
  return threads;
}

/** Nanoseconds in which some process of the machine waited for its disk. */
export function diskWaited(): number {
  const [, micros = '0'] = /^some .*total=(\d+)/.exec(read('/proc/pressure/io')) ?? [];
  return Number(micros) * 1_000;
}

/** Of this process and all that it started. */
export class Machine {
  #threads: Threads | undefined;
  #disk = 0;

  /** What comes next is not compared with what was before. */
  forget(): void {
    this.#threads = undefined;
  }

  look(passedMillis: number): Work {
    const nanos = passedMillis * 1e6;
    const [own, ...others] = processTree(process.pid);
    const before = this.#threads;
    const [ownThreads, otherThreads] = [threadsOf([own as number]), threadsOf(others)];
    this.#threads = new Map([...ownThreads, ...otherThreads]);
    const [disk, diskBefore] = [diskWaited(), this.#disk];
    this.#disk = disk;
    if (before === undefined) return { share: 1, computes: false, works: false };
    const use = useBetween(before, this.#threads);
    const share = quietShare(use, nanos, Math.min(1, (disk - diskBefore) / nanos));
    const could = nanos * share;
    const computes = useBetween(before, ownThreads).ran >= COMPUTES * could;
    return { share, computes, works: use.ran >= WORKS * could };
  }
}
