/**
 * The share work to ask the pool for: such that the whole farm sends about as many shares a second as its operator wants.
 * The rate is that of the rigs' shares here, over the last minutes. A pool that chooses well is left alone; a wish costs a login, so
 * it is made rarely. Pure; the time is passed in.
 */

/**
 * The most that can be asked for. One rig may have all the rate of a farm, and it sends 80 shares a second at most (miner/work/pace.ts): where
 * its share work is too easy, some of its hashes are not counted, and it seems slower than it is. With a wish for nearly 80 a second the next
 * work would be easier still, and so on, until next to nothing is credited.
 */
export const MOST_SHARES_PER_SECOND = 20;
/** Newer work counts more: after this long what was counts about a third. */
const WINDOW_SECONDS = 300;
/** Shares of rigs before the rate is believed. */
const LEAST_SHARES = 20;
/** Since the last login: a pool that follows the rate itself needs some time. */
const LEAST_MILLIS = 60_000;
/** How far the work may be from what is wanted. */
const FACTOR = 2;

/** Of the shares that a pool takes in a second: chance brings more at times, and what cannot be sent is lost. */
const USED = 1 / 2;

export class UpstreamWork {
  /** The most that the pool takes in a second. */
  most = Number.POSITIVE_INFINITY;
  readonly #perSecond: number;
  #work = 0;
  #seconds = 0;
  #shares = 0;
  #atMillis: number;
  #asked: number | undefined;
  #askedMillis: number;

  constructor(sharesPerSecond: number, nowMillis: number) {
    this.#perSecond = sharesPerSecond;
    this.#atMillis = nowMillis;
    this.#askedMillis = nowMillis;
  }

  add(work: bigint, nowMillis: number): void {
    // Before its first share a farm had no rigs, and no rate.
    if (this.#shares === 0) [this.#atMillis, this.#seconds] = [nowMillis, 0];
    this.#advance(nowMillis);
    this.#work += Number(work);
    this.#shares++;
  }

  #advance(nowMillis: number): void {
    const seconds = Math.max(0, nowMillis - this.#atMillis) / 1_000;
    const kept = Math.exp(-seconds / WINDOW_SECONDS);
    this.#work *= kept;
    this.#seconds = this.#seconds * kept + WINDOW_SECONDS * (1 - kept);
    this.#atMillis = nowMillis;
  }

  /** Hashes per second of the whole farm; 0 when nothing is known. */
  rate(nowMillis: number): number {
    this.#advance(nowMillis);
    return this.#seconds < 1 ? 0 : this.#work / this.#seconds;
  }

  #wanted(nowMillis: number): number | undefined {
    if (this.#shares < LEAST_SHARES) return undefined;
    const perSecond = Math.min(this.#perSecond, Math.max(1, this.most) * USED);
    return Math.max(1, Math.round(this.rate(nowMillis) / perSecond));
  }

  /** The password of a login (S25): the wish, or none while the pool's own choice will do. */
  password(current: bigint | undefined, nowMillis: number): string {
    if (this.#asked !== undefined || (current !== undefined && this.isDue(current, nowMillis)))
      this.#asked = this.#wanted(nowMillis);
    this.#askedMillis = nowMillis;
    return this.#asked === undefined ? '' : `d=${this.#asked}`;
  }

  /** Whether the work is so wrong that a login is worth it; `current` is that of the pool's newest job. */
  isDue(current: bigint, nowMillis: number): boolean {
    const wanted = this.#wanted(nowMillis);
    if (wanted === undefined || nowMillis - this.#askedMillis < LEAST_MILLIS) return false;
    // A pool may answer a wish with less: what was asked for counts, or it would be asked for ever.
    const before = this.#asked ?? Number(current);
    return wanted > before * FACTOR || wanted * FACTOR < before;
  }
}
