/**
 * The rigs of a farm session (docs/protocol/stratum.md, S70 to S76): their names, and the members that their shares belong to. A
 * name without a share costs only its few bytes here: its member is made with the first one.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { namesRate, type Rig } from '../../protocol/stratum/farm.ts';
import { type Bucket, type BucketRate, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { StratumLimits } from '../options.ts';
import type { VardiffOptions } from '../session/vardiff.ts';
import type { Member } from '../threads/hub.ts';

/** Enough for any number of rigs, because share work follows the speed of all of them together (S76). */
const MOST_SUBMITS_PER_SECOND = 500;
/** Five shares a second from the whole farm. */
const LEAST_SECONDS_PER_SHARE = 0.2;
/** A farm without shares for less than this may have rigs that are still starting: its shares are not made easier. */
const SILENT_SECONDS = 10;
/** Twice what a client uses (miner/client/farm-rigs.ts): messages may come together. */
const NAMES_AT_ONCE = 2;
/** For each rig, as many generations above the highest one submitted belong to the jobs of before (S73). */
const GENERATIONS_PER_RIG = 4;

export class Farm {
  /** An index is below it. */
  readonly rigs: number;
  readonly submits: BucketRate;
  /** Generations above the highest one submitted that its rigs may be working on. */
  readonly room: number;
  readonly #namesRate: BucketRate;
  #namesLeft: Bucket | null = null;
  readonly #names = new Map<number, string>();
  /** By owner and name. A share that is still being verified when its name is forgotten makes its member again, until the next `dropGone`. */
  readonly #members = new Map<string, Member>();

  constructor(rigs: number, { submits }: Pick<StratumLimits, 'submits'>) {
    this.rigs = rigs;
    this.room = GENERATIONS_PER_RIG * rigs;
    const perSecond = Math.max(submits.perSecond, Math.min(rigs * submits.perSecond, MOST_SUBMITS_PER_SECOND));
    this.submits = { perSecond, burst: Math.ceil((submits.burst * perSecond) / submits.perSecond) };
    this.#namesRate = namesRate(rigs, NAMES_AT_ONCE);
  }

  /** Shares come more often the more rigs there are, so that each of them is seen. */
  pace(vardiff: VardiffOptions): VardiffOptions {
    const secondsPerShare = Math.max(
      vardiff.secondsPerShare / this.rigs,
      Math.min(LEAST_SECONDS_PER_SHARE, vardiff.secondsPerShare),
    );
    return { ...vardiff, secondsPerShare, silentSeconds: SILENT_SECONDS };
  }

  /** Returns false when names change more often than they may: this one stays as it was. */
  name({ index, worker }: Rig, nowMillis: number): boolean {
    const rate = this.#namesRate;
    const left = take(this.#namesLeft ?? fullBucket(rate, nowMillis), rate, nowMillis);
    if (left === undefined) return false;
    this.#namesLeft = left;
    if (worker === '') this.#names.delete(index);
    else this.#names.set(index, worker);
    return true;
  }

  nameOf(index: number): string | undefined {
    return this.#names.get(index);
  }

  get names(): Iterable<string> {
    return this.#names.values();
  }

  get named(): number {
    return this.#names.size;
  }

  get members(): Iterable<Member> {
    return this.#members.values();
  }

  /** `make` is called for the first share under this name. */
  memberOf(owner: Bytes | null, worker: string, make: () => Member): Member {
    const key = `${owner === null ? '' : String.fromCharCode(...owner)}.${worker}`;
    let member = this.#members.get(key);
    if (member === undefined) {
      member = make();
      this.#members.set(key, member);
    }
    return member;
  }

  /** Whether a share came under this name. */
  hasWorked(worker: string): boolean {
    return this.#members.has(`.${worker}`);
  }

  /** Forgets the members whose name is gone. */
  dropGone(): Member[] {
    const names = new Set(this.#names.values());
    const gone: Member[] = [];
    for (const [key, member] of this.#members)
      if (!names.has(member.worker)) {
        this.#members.delete(key);
        gone.push(member);
      }
    return gone;
  }
}
