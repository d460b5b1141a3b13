/**
 * The rigs of a farm session (docs/protocol/stratum.md, S70 to S76): their names, and the members that their shares belong to. A
 * name alone costs nothing but its few bytes here: a member is made for its first share.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { namesRate, type Rig } from '../../protocol/stratum/farm.ts';
import { type Bucket, type BucketRate, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { StratumLimits } from '../options.ts';
import type { VardiffOptions } from '../session/vardiff.ts';
import type { Member } from '../threads/hub.ts';

/** However many rigs a farm has, it needs not more: its share work follows the speed of all of them together. */
const MOST_SUBMITS_PER_SECOND = 500;
const LEAST_SECONDS_PER_SHARE = 0.2;
/** Rigs that are still starting are no reason to make shares easier. */
const SILENT_SECONDS = 10;
/** Twice what a client uses (miner/client/farm-rigs.ts): messages may come together. */
const NAMES_AT_ONCE = 2;

/** Generations that a farm may have given to its rigs above the highest one it has submitted, for each rig (S73). */
const GENERATIONS_PER_RIG = 4;

export class Farm {
  /** An index is below it. */
  readonly rigs: number;
  readonly submits: BucketRate;
  readonly room: number;
  readonly #changeRate: BucketRate;
  #changes: Bucket | null = null;
  readonly #names = new Map<number, string>();
  /** By the owner and the name. A share that comes from verification after its name is gone makes one again, for a minute. */
  readonly #members = new Map<string, Member>();

  constructor(rigs: number, { submits }: Pick<StratumLimits, 'submits'>) {
    this.rigs = rigs;
    this.room = GENERATIONS_PER_RIG * rigs;
    const perSecond = Math.max(submits.perSecond, Math.min(rigs * submits.perSecond, MOST_SUBMITS_PER_SECOND));
    this.submits = { perSecond, burst: Math.ceil((submits.burst * perSecond) / submits.perSecond) };
    this.#changeRate = namesRate(rigs, NAMES_AT_ONCE);
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
    const rate = this.#changeRate;
    const changes = take(this.#changes ?? fullBucket(rate, nowMillis), rate, nowMillis);
    if (changes === undefined) return false;
    this.#changes = changes;
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
