/**
 * The sessions at the pool of addresses that rigs named themselves (--keep-addresses): one for each, at the pool where that of
 * the proxy's own address is, since all rigs are told one pool. One begins with a login, and ends when no rig of it had a share for a while.
 */
import { RIGS_OF_ADDRESS } from '../bridge/farms/farm-places.ts';
import { MOST_PARTS } from '../bridge/nodes/origin-job.ts';
import type { PoolJob, Share } from '../miner/client/session-events.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { MAX_RIGS } from '../protocol/stratum/farm.ts';
import type { PoolJobs } from './pool-jobs.ts';
import type { PoolLink } from './pool-link.ts';

export type KeptAddressesDependencies = {
  /** The address of the proxy. */
  readonly own: { readonly address: string; readonly account: Bytes };
  readonly jobs: Pick<PoolJobs, 'current' | 'set'>;
  readonly open: (account: Bytes, pool: number, onJob: (job: PoolJob | undefined) => void) => PoolLink;
  readonly now: () => number;
  readonly warn: (message: string, account: Bytes) => void;
};

/** Rigs of one session: a pool admits a number of them for all sessions of a machine, that of the proxy's own address among them. */
export const KEPT_RIGS = Math.floor((RIGS_OF_ADDRESS - MAX_RIGS) / (MOST_PARTS - 1));
/** A rig that works has a share within this time. */
const IDLE_MILLIS = 600_000;
/** One may still be resumed (S55) before that. */
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
  readonly #own: string;
  /** The one without a share for longest is the first. */
  readonly #kept = new Map<string, Kept>();
  #pool: number | undefined;

  constructor(dependencies: KeptAddressesDependencies) {
    this.#dependencies = dependencies;
    this.#own = toHex(dependencies.own.account);
  }

  get links(): readonly { readonly account: Bytes; readonly link: PoolLink | undefined }[] {
    return [...this.#kept.values()];
  }

  /** A rig of this address logs in. Why it may not work here. */
  refusal(account: Bytes): string | undefined {
    const key = toHex(account);
    const { own, jobs, now } = this.#dependencies;
    if (key === this.#own) return undefined;
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
    kept.link?.stop();
    kept.link = undefined;
    kept.refusedMillis = undefined;
    this.#set(kept, undefined);
    if (this.#pool === undefined) return;
    kept.link = this.#dependencies.open(kept.account, this.#pool, (job) => this.#set(kept, job));
    kept.link.client.start();
  }

  #set(kept: Kept, job: PoolJob | undefined): void {
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

  worked(account: Bytes, work: bigint): void {
    const key = toHex(account);
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    kept.workedMillis = this.#dependencies.now();
    kept.link?.work.add(work, kept.workedMillis);
  }

  /** Whether it is of such a session; it goes there. */
  submit(share: Share, account: string | undefined): boolean {
    if (account === undefined || account === this.#own) return false;
    const link = this.#kept.get(account)?.link;
    link?.submit(share);
    return link !== undefined;
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
    kept.link?.stop();
    kept.link = undefined;
    this.#kept.delete(toHex(kept.account));
    this.#set(kept, undefined);
  }

  stop(): void {
    for (const kept of this.#kept.values()) this.#end(kept);
  }
}
