/**
 * The sessions at the pool of addresses that rigs named themselves (--keep-addresses): one for each, at the pool where that of
 * the proxy's own address is, since all rigs are told one pool. One begins with a login, and ends when no rig of it had a share for a while.
 */
import { RIGS_OF_ADDRESS } from '../bridge/farms/farm-places.ts';
import { MOST_PARTS } from '../bridge/nodes/origin-job.ts';
import type { PoolJob } from '../miner/client/session-events.ts';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
import { MAX_RIGS } from '../protocol/stratum/farm.ts';
import type { MonotonicClock } from '../runtime/clock/clock.ts';
import type { PoolJobs } from './pool-jobs.ts';
import type { PoolLink } from './pool-link.ts';

export type KeptAddressesDependencies = {
  /** The address of the proxy. */
  readonly own: { readonly address: string; readonly account: Bytes };
  readonly jobs: Pick<PoolJobs, 'current' | 'set'>;
  readonly open: (account: Bytes, pool: number, onJob: (job: PoolJob | undefined) => void) => PoolLink;
  readonly now: MonotonicClock;
  readonly warn: (message: string, account: Bytes) => void;
};

/** Rigs of each: a pool bounds those of all sessions of one machine together, and the proxy's own may have the most. */
export const KEPT_RIGS = Math.floor((RIGS_OF_ADDRESS - MAX_RIGS) / (MOST_PARTS - 1));
/** Without a share of any rig for this long, a session ends. */
const IDLE_MILLIS = 600_000;
/** A silent one makes room for another no earlier: until then its shares may still be answered after a resume (S55). */
const LEAST_IDLE_MILLIS = 150_000;
/** After this long a pool that gave no farm session is asked once more. */
const REFUSED_MILLIS = 60_000;

type Kept = {
  readonly account: Bytes;
  readonly draw: number;
  link: PoolLink | undefined;
  /** Its last share, or when it began: a login costs nothing, so it keeps no place from others. */
  workedMillis: number;
  /** When the pool gave it no farm session. */
  refusedMillis: number | undefined;
};

export class KeptAddresses {
  readonly #dependencies: KeptAddressesDependencies;
  /** The one without a share for longest is the first. */
  readonly #kept = new Map<string, Kept>();
  #pool: number | undefined;

  constructor(dependencies: KeptAddressesDependencies) {
    this.#dependencies = dependencies;
  }

  get links(): readonly { readonly account: Bytes; readonly link: PoolLink | undefined }[] {
    return [...this.#kept.values()];
  }

  /** A rig of this address logs in: the address has a session from now on, or this is why not. */
  admit(account: Bytes): string | undefined {
    const key = toHex(account);
    const { own, jobs, now } = this.#dependencies;
    if (equalBytes(account, own.account)) return undefined;
    if (jobs.current !== undefined && jobs.current.farm === undefined)
      return `the pool has no farms, so everyone here works for ${own.address}`;
    const known = this.#kept.get(key);
    if (known?.refusedMillis !== undefined)
      return 'the pool gives no session for this address now: try again in a minute';
    if (known !== undefined) return undefined;
    const draw = this.#takeDraw();
    if (draw === undefined) return `there is work for ${MOST_PARTS} addresses here, and no more`;
    const kept: Kept = { account, draw, link: undefined, workedMillis: now(), refusedMillis: undefined };
    this.#kept.set(key, kept);
    this.#begin(kept);
    return undefined;
  }

  #takeDraw(): number | undefined {
    const [silent] = this.#kept.values();
    if (this.#kept.size >= MOST_PARTS - 1 && silent !== undefined)
      if (this.#dependencies.now() - silent.workedMillis > LEAST_IDLE_MILLIS) this.#end(silent);
      else return undefined;
    const taken = new Set([...this.#kept.values()].map(({ draw }) => draw));
    for (let draw = 1; draw < MOST_PARTS; draw++) if (!taken.has(draw)) return draw;
    return undefined;
  }

  /** Where the proxy's own session is now. */
  follow(job: PoolJob | undefined, pool: number | undefined): void {
    if (job === undefined || pool === undefined) return;
    if (job.farm === undefined) for (const kept of this.#kept.values()) this.#end(kept);
    if (pool === this.#pool) return;
    this.#pool = pool;
    for (const kept of this.#kept.values()) this.#begin(kept);
  }

  /** The pools are others from now on. */
  leave(): void {
    this.#pool = undefined;
    for (const kept of this.#kept.values()) this.#begin(kept);
  }

  #begin(kept: Kept): void {
    kept.refusedMillis = undefined;
    this.#halt(kept);
    if (this.#pool === undefined) return;
    kept.link = this.#dependencies.open(kept.account, this.#pool, (job) => this.#offer(kept, job));
    kept.link.client.start();
  }

  /** Its rigs have no work any more. */
  #halt(kept: Kept): void {
    kept.link?.stop();
    kept.link = undefined;
    this.#offer(kept, undefined);
  }

  #offer(kept: Kept, job: PoolJob | undefined): void {
    const { account, draw } = kept;
    const { jobs, warn, now } = this.#dependencies;
    const isFarm = job?.farm !== undefined;
    const isSame = job?.pool?.address === jobs.current?.pool?.address;
    if (job !== undefined && !isFarm)
      warn('the pool gives no farm session for an address: its rigs are refused', account);
    else if (job !== undefined && !isSame) warn('the pool names another address to one of its sessions', account);
    jobs.set(isFarm && isSame ? job : undefined, { draw, account: toHex(account) });
    if (job === undefined || isFarm) return;
    kept.refusedMillis = now();
    kept.link?.stop();
    kept.link = undefined;
  }

  /** A rig of this address, in hex, had a share. */
  worked(account: string): void {
    const kept = this.#kept.get(account);
    if (kept === undefined) return;
    this.#kept.delete(account);
    this.#kept.set(account, kept);
    kept.workedMillis = this.#dependencies.now();
  }

  /** The session of an address, in hex. */
  link(account: string): PoolLink | undefined {
    return this.#kept.get(account)?.link;
  }

  tick(): void {
    const { jobs, now: clock } = this.#dependencies;
    const now = clock();
    for (const kept of this.#kept.values()) {
      // Without a pool nobody has shares.
      if (jobs.current === undefined) kept.workedMillis = now;
      const { workedMillis, refusedMillis = now } = kept;
      if (now - workedMillis > IDLE_MILLIS || now - refusedMillis > REFUSED_MILLIS) this.#end(kept);
      kept.link?.tick();
    }
  }

  #end(kept: Kept): void {
    this.#kept.delete(toHex(kept.account));
    this.#halt(kept);
  }

  stop(): void {
    for (const kept of this.#kept.values()) this.#end(kept);
  }
}
