/**
 * The plain bridge's sink: counters per worker, bounded, for its statistics. Every miner is paid by the chain itself to
 * its own address, so nothing here needs to survive a restart.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { CODE, type StratumCode, stratumError } from '../../protocol/stratum/errors.ts';
import { hexSlice } from '../../runtime/native/native-hex.ts';
import type { AcceptedShare, BlockFate, FoundBlock, RefusedShare, ShareSink, WorkerEvent } from './sink.ts';

export type WorkerCounters = {
  readonly account: Bytes;
  readonly worker: string;
  connections: number;
  agent: string;
  accepted: number;
  stale: number;
  rejected: Record<string, number>;
  work: bigint;
  blocks: number;
  lastShareMillis: number;
  /** Work per minute of the last minutes, newest last: what the hash rate is estimated from. */
  readonly minutes: { minute: number; work: bigint }[];
};

const MINUTES = 10;
/** Workers remembered; the least recently seen without a connection are forgotten first, and then the oldest. */
export const MAX_WORKERS = 100_000;
type Kept = WorkerCounters & { readonly key: string; isForgotten: boolean };

export class Counters implements ShareSink {
  readonly accepting = true;
  readonly #workers = new Map<string, Kept>();
  /** Those without a connection. */
  readonly #idle = new Set<Kept>();
  /** The same, keyed by the account's array itself: members keep theirs, so most shares need no text key. */
  readonly #byAccount = new WeakMap<Bytes, Kept>();
  readonly totals = { accepted: 0, stale: 0, work: 0n, rejected: {} as Record<string, number> };

  async shares(shares: readonly AcceptedShare[]): Promise<void> {
    for (const { account, worker, work, atMillis } of shares) {
      const counters = this.#of(account, worker);
      counters.accepted++;
      counters.work += work;
      counters.lastShareMillis = atMillis;
      const minute = Math.floor(atMillis / 60_000);
      const last = counters.minutes.at(-1);
      if (last !== undefined && last.minute >= minute) last.work += work;
      else if (counters.minutes.push({ minute, work }) > MINUTES) counters.minutes.shift();
      this.totals.accepted++;
      this.totals.work += work;
    }
  }

  refused(shares: readonly RefusedShare[]): void {
    for (const { account, worker, code } of shares) {
      const counters = this.#of(account, worker);
      if (code === CODE.unknown_job) {
        counters.stale++;
        this.totals.stale++;
        continue;
      }
      const { name } = stratumError(code as StratumCode);
      counters.rejected[name] = (counters.rejected[name] ?? 0) + 1;
      this.totals.rejected[name] = (this.totals.rejected[name] ?? 0) + 1;
    }
  }

  async block(block: FoundBlock): Promise<void> {
    this.foundBlock(block);
  }

  foundBlock({ account, worker }: Pick<FoundBlock, 'account' | 'worker'>): void {
    this.#of(account, worker).blocks++;
  }

  async blockFate(_blockId: Bytes, _fate: BlockFate): Promise<void> {}

  worker({ kind, account, worker, agent }: WorkerEvent): void {
    const counters = this.#of(account, worker);
    counters.connections = Math.max(0, counters.connections + (kind === 'joined' ? 1 : -1));
    counters.agent = agent;
    this.#idle.delete(counters);
    if (counters.connections === 0) this.#idle.add(counters);
  }

  /** Most work first. */
  list(limit: number): readonly WorkerCounters[] {
    return [...this.#workers.values()].sort((a, b) => (a.work < b.work ? 1 : a.work > b.work ? -1 : 0)).slice(0, limit);
  }

  get workerCount(): number {
    return this.#workers.size;
  }

  #of(account: Bytes, worker: string): Kept {
    const near = this.#byAccount.get(account);
    if (near?.worker === worker && !near.isForgotten) return near;
    const found = this.#find(account, worker);
    this.#byAccount.set(account, found);
    return found;
  }

  #find(account: Bytes, worker: string): Kept {
    const key = `${hexSlice.call(account, 0, account.length)}.${worker}`;
    const known = this.#workers.get(key);
    if (known !== undefined) return known;
    const counters: Kept = {
      key,
      isForgotten: false,
      account,
      worker,
      connections: 0,
      agent: '',
      accepted: 0,
      stale: 0,
      rejected: {},
      work: 0n,
      blocks: 0,
      lastShareMillis: 0,
      minutes: [],
    };
    if (this.#workers.size >= MAX_WORKERS) this.#forget();
    this.#workers.set(key, counters);
    this.#idle.add(counters);
    return counters;
  }

  #forget(): void {
    const [idle] = this.#idle;
    const [oldest] = this.#workers.values();
    const least = idle ?? oldest;
    if (least === undefined) return;
    least.isForgotten = true;
    this.#workers.delete(least.key);
    this.#idle.delete(least);
  }
}

/** Hashes per second over the last whole minutes; 0 when nothing is known yet. */
export function hashRateOf({ minutes }: Pick<WorkerCounters, 'minutes'>, nowMillis: number): bigint {
  const now = Math.floor(nowMillis / 60_000);
  const recent = minutes.filter(({ minute }) => minute > now - MINUTES && minute <= now);
  const first = recent[0];
  if (first === undefined) return 0n;
  const seconds = Math.max(60, Math.round(nowMillis / 1000 - first.minute * 60));
  return recent.reduce((sum, { work }) => sum + work, 0n) / BigInt(seconds);
}
