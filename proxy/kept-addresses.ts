/**
 * The sessions at the pool of addresses that rigs named themselves (--keep-addresses): one for each, at the pool where that of
 * the proxy's own address is, since all rigs are told one pool. One begins with a login, and ends when no rig of it was heard of for a while.
 */
import { MOST_PARTS } from '../bridge/nodes/origin-job.ts';
import type { PoolJob, Share } from '../miner/client/session-events.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
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

/** A rig that works has a share within this time. */
const IDLE_MILLIS = 600_000;
/** One may still be resumed (S55) before that. */
const LEAST_IDLE_MILLIS = 150_000;

type Kept = { readonly account: Bytes; readonly draw: number; link: PoolLink | undefined; seenMillis: number };

export class KeptAddresses {
  readonly #dependencies: KeptAddressesDependencies;
  readonly #own: string;
  /** The one that was silent for longest is the first. */
  readonly #kept = new Map<string, Kept>();
  #pool: number | undefined;

  constructor(dependencies: KeptAddressesDependencies) {
    this.#dependencies = dependencies;
    this.#own = toHex(dependencies.own.account);
  }

  get links(): readonly { readonly account: Bytes; readonly link: PoolLink | undefined }[] {
    return [...this.#kept.values()];
  }

  /** A rig of this address logs in or has a share. Why it may not work here. */
  refusal(account: Bytes): string | undefined {
    const key = toHex(account);
    const { own, jobs, now } = this.#dependencies;
    if (key === this.#own) return undefined;
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
    kept.link?.stop();
    kept.link = undefined;
    this.#set(kept, undefined);
    if (this.#pool === undefined) return;
    kept.link = this.#dependencies.open(kept.account, this.#pool, (job) => this.#set(kept, job));
    kept.link.client.start();
  }

  #set({ account, draw }: Kept, job: PoolJob | undefined): void {
    const { jobs, warn } = this.#dependencies;
    const isFarm = job?.farm !== undefined;
    const isSame = job?.pool?.address === jobs.current?.pool?.address;
    if (job !== undefined && !isFarm) warn('the pool gives no farm session for an address: its rigs wait', account);
    else if (job !== undefined && !isSame) warn('the pool names another address to one of its sessions', account);
    jobs.set(isFarm && isSame ? job : undefined, { draw, account: toHex(account) });
  }

  worked(account: Bytes, work: bigint): void {
    this.refusal(account);
    this.#kept.get(toHex(account))?.link?.work.add(work, this.#dependencies.now());
  }

  /** Whether it is of such a session; it goes there. */
  submit(share: Share, account: string | undefined): boolean {
    if (account === undefined || account === this.#own) return false;
    const link = this.#kept.get(account)?.link;
    link?.submit(share);
    return link !== undefined;
  }

  tick(): void {
    const before = this.#dependencies.now() - IDLE_MILLIS;
    for (const kept of this.#kept.values()) {
      if (kept.seenMillis < before) this.#end(kept);
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
