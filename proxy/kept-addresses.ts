/**
 * The sessions at the pool of addresses that rigs named themselves (--keep-addresses): one for each, at the pool where that of
 * the proxy's own address is, since all rigs are told one pool. One begins with a login, and ends when no rig of it was heard of for a while.
 */
import { RIGS_OF_ADDRESS } from '../bridge/farms/farm-places.ts';
import { MOST_PARTS } from '../bridge/nodes/origin-job.ts';
import type { PoolJob } from '../miner/client/session-events.ts';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
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

/** Rigs of each: a pool bounds those of all sessions of one machine together, and the proxy's own may have the most. */
export const KEPT_RIGS = Math.floor((RIGS_OF_ADDRESS - MAX_RIGS) / (MOST_PARTS - 1));
/** Without a login or a share of any rig for this long, a session ends. */
const IDLE_MILLIS = 600_000;
/** A silent one makes room for another no earlier: until then its shares may still be answered after a resume (S55). */
const LEAST_IDLE_MILLIS = 150_000;

type Kept = { readonly account: Bytes; readonly draw: number; link: PoolLink | undefined; seenMillis: number };

export class KeptAddresses {
  readonly #dependencies: KeptAddressesDependencies;
  /** The one that was silent for longest is the first. */
  readonly #kept = new Map<string, Kept>();
  #pool: number | undefined;

  constructor(dependencies: KeptAddressesDependencies) {
    this.#dependencies = dependencies;
  }

  get links(): readonly { readonly account: Bytes; readonly link: PoolLink | undefined }[] {
    return [...this.#kept.values()];
  }

  /** A rig of this address logs in or has a share: the address has a session from now on, or this is why not. */
  admit(account: Bytes): string | undefined {
    const key = toHex(account);
    const { own, jobs, now } = this.#dependencies;
    if (equalBytes(account, own.account)) return undefined;
    if (jobs.current !== undefined && jobs.current.farm === undefined)
      return `the pool has no farms, so everyone here works for ${own.address}`;
    const known = this.#kept.get(key);
    if (known !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      known.seenMillis = now();
      return undefined;
    }
    const draw = this.#takeDraw();
    if (draw === undefined) return `there is work for ${MOST_PARTS} addresses here, and no more`;
    const kept: Kept = { account, draw, link: undefined, seenMillis: now() };
    this.#kept.set(key, kept);
    this.#begin(kept);
    return undefined;
  }

  #takeDraw(): number | undefined {
    const [silent] = this.#kept.values();
    if (this.#kept.size >= MOST_PARTS - 1 && silent !== undefined)
      if (this.#dependencies.now() - silent.seenMillis > LEAST_IDLE_MILLIS) this.#end(silent);
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

  #offer({ account, draw }: Kept, job: PoolJob | undefined): void {
    const { jobs, warn } = this.#dependencies;
    const isFarm = job?.farm !== undefined;
    const isSame = job?.pool?.address === jobs.current?.pool?.address;
    if (job !== undefined && !isFarm) warn('the pool gives no farm session for an address: its rigs wait', account);
    else if (job !== undefined && !isSame) warn('the pool names another address to one of its sessions', account);
    jobs.set(isFarm && isSame ? job : undefined, { draw, account: toHex(account) });
  }

  /** The session of an address, in hex. */
  link(account: string): PoolLink | undefined {
    return this.#kept.get(account)?.link;
  }

  tick(): void {
    const before = this.#dependencies.now() - IDLE_MILLIS;
    for (const kept of this.#kept.values()) {
      if (kept.seenMillis < before) this.#end(kept);
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
