/**
 * Jobs without a record per job. A job id is `template serial << 6 | revision`: the template is shared by everyone, and a
 * session remembers only where its terms (share work, body generation) changed, which is seldom. So a job to 10,000
 * connections costs no memory, and yet every share is judged by the terms that were frozen when its job was sent.
 *
 * A job stays good until its window closes or `graceMillis` after a newer template superseded its own, whichever is
 * first: a node that is away stops nobody. For `memoryMillis` more it is known as expired, since a late share may still
 * be a block.
 */
import type { Bytes } from '../protocol/bytes.ts';

const REVISION_BITS = 6;
export const MAX_REVISION = (1 << REVISION_BITS) - 1;
export const MAX_SERIAL = 2 ** (32 - REVISION_BITS) - 1;

export const jobIdOf = (serial: number, revision: number): number => serial * (MAX_REVISION + 1) + revision;
export const serialOf = (jobId: number): number => Math.floor(jobId / (MAX_REVISION + 1));

export type JobLife = {
  readonly graceMillis: number;
  readonly memoryMillis: number;
};
export const JOB_LIFE_DEFAULTS: JobLife = { graceMillis: 30_000, memoryMillis: 120_000 };

export interface JobTemplate {
  readonly registrationWindowEnd: number;
}

type Shelved<T> = { readonly template: T; supersededAtMillis: number | undefined };

export type TemplateLookup<T> =
  | { readonly state: 'good' | 'expired'; readonly template: T }
  | { readonly state: 'unknown' };

/** The templates of a listener thread by serial, oldest first. */
export class TemplateShelf<T extends JobTemplate> {
  readonly #life: JobLife;
  readonly #shelf = new Map<number, Shelved<T>>();

  constructor(life: JobLife) {
    this.#life = life;
  }

  /** Puts the templates of one moment on the shelf (the draws of a cut) and supersedes all older ones. */
  add(templates: ReadonlyMap<number, T>, nowMillis: number): void {
    for (const [serial, shelved] of this.#shelf) {
      shelved.supersededAtMillis ??= nowMillis;
      if (nowMillis - shelved.supersededAtMillis > this.#life.graceMillis + this.#life.memoryMillis)
        this.#shelf.delete(serial);
    }
    for (const [serial, template] of templates) this.#shelf.set(serial, { template, supersededAtMillis: undefined });
  }

  /** The oldest serial still known: sessions forget what lies before it. */
  get oldest(): number {
    for (const serial of this.#shelf.keys()) return serial;
    return 0;
  }

  find(serial: number, headHeight: number, nowMillis: number): TemplateLookup<T> {
    const shelved = this.#shelf.get(serial);
    if (shelved === undefined) return { state: 'unknown' };
    const { template, supersededAtMillis } = shelved;
    const late = supersededAtMillis !== undefined && nowMillis - supersededAtMillis > this.#life.graceMillis;
    return { state: late || headHeight >= template.registrationWindowEnd ? 'expired' : 'good', template };
  }

  clear(): void {
    this.#shelf.clear();
  }
}

/** What holds for a session's jobs from `fromJobId` on. */
export type Terms = { readonly fromJobId: number; readonly generation: number; readonly shareWork: bigint };

export type JobLogState = {
  readonly terms: readonly Terms[];
  /** Nonces judged, by job. */
  readonly seen: readonly (readonly [jobId: number, nonces: readonly number[]])[];
};

/** The six bytes that are the miner's to fill, as a number: the last two are the session's prefix and never differ. */
const nonceKey = (nonce: Bytes): number =>
  (nonce[0] as number) +
  (nonce[1] as number) * 0x100 +
  (nonce[2] as number) * 0x1_0000 +
  (nonce[3] as number) * 0x100_0000 +
  (nonce[4] as number) * 0x1_0000_0000 +
  (nonce[5] as number) * 0x100_0000_0000;

/** One session's side: its terms over time and the nonces already judged, keyed by canonical bytes. */
export class JobLog {
  #terms: Terms[] = [];
  /** Most jobs see one share of a session or none: a set is made for the second. */
  #seen: Map<number, number | Set<number>> | undefined;

  static restore(state: JobLogState): JobLog {
    const log = new JobLog();
    log.#terms = [...state.terms];
    if (state.seen.length > 0) log.#seen = new Map(state.seen.map(([jobId, nonces]) => [jobId, new Set(nonces)]));
    return log;
  }

  state(): JobLogState {
    const seen = [...(this.#seen ?? [])].map(
      ([jobId, nonces]) => [jobId, typeof nonces === 'number' ? [nonces] : [...nonces]] as const,
    );
    return { terms: this.#terms, seen };
  }

  /** Says under which terms `jobId` was sent; only a change is remembered. */
  send(jobId: number, generation: number, shareWork: bigint): void {
    const last = this.#terms.at(-1);
    if (last !== undefined && last.generation === generation && last.shareWork === shareWork) return;
    this.#terms.push({ fromJobId: jobId, generation, shareWork });
  }

  termsOf(jobId: number): Terms | undefined {
    for (let i = this.#terms.length - 1; i >= 0; i--) {
      const terms = this.#terms[i] as Terms;
      if (terms.fromJobId <= jobId) return terms;
    }
    return undefined;
  }

  /** Marks a nonce, whose prefix was checked before, as judged; false when it was judged already. */
  judge(jobId: number, nonce: Bytes): boolean {
    const key = nonceKey(nonce);
    this.#seen ??= new Map();
    const seen = this.#seen.get(jobId);
    if (seen === undefined) this.#seen.set(jobId, key);
    else if (typeof seen === 'number') {
      if (seen === key) return false;
      this.#seen.set(jobId, new Set([seen, key]));
    } else if (seen.has(key)) return false;
    else seen.add(key);
    return true;
  }

  /** Takes a judgement back: the verifier was too busy, so the miner may send the nonce again. */
  unjudge(jobId: number, nonce: Bytes): void {
    const seen = this.#seen?.get(jobId);
    if (typeof seen === 'object') seen.delete(nonceKey(nonce));
    else if (seen === nonceKey(nonce)) this.#seen?.delete(jobId);
  }

  /** Drops what concerns only jobs of templates before `oldestSerial`. */
  forget(oldestSerial: number): void {
    const oldest = jobIdOf(oldestSerial, 0);
    while (this.#terms.length > 1 && (this.#terms[1] as Terms).fromJobId <= oldest) this.#terms.shift();
    if (this.#seen === undefined) return;
    for (const jobId of this.#seen.keys()) if (jobId < oldest) this.#seen.delete(jobId);
    if (this.#seen.size === 0) this.#seen = undefined;
  }
}
