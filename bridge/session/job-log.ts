/**
 * The jobs sent to one session and the nonces it has submitted (docs/protocol/stratum.md, S51, S52 and S58). The
 * identity of work is the header, and a header is a template with a body: so terms belong to the body's generation,
 * nonces are kept by (generation, template), and each header goes out under one job id. An id that is not on record
 * here was never sent.
 *
 * A job costs no memory of its own: as long as a session gets each template as it comes, under the same revision and on
 * the same body, its jobs are one run.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { MAX_GENERATION } from './extranonce.ts';
import { jobIdOf, MAX_REVISION, revisionOf, serialOf } from './job-book.ts';

type Nonces = number | Set<number>;

/** The terms of one body of a session. They never change: another share work takes another body. */
export type Terms = {
  readonly generation: number;
  readonly shareWork: bigint;
  /** It had its block: further hits on it are only shares. */
  isSpent: boolean;
  /** Nonces judged, by `seenKey`. Most headers see one share or none: a set is made for the second. */
  seen: Map<number, Nonces> | undefined;
  /** Whose body it is, if not the connection's: jobs from before a restart are on bodies of the name it had then. */
  readonly owner: Bytes | null;
  /** Of farm jobs (S71): these are the terms of all generations from this one up to those of the next terms. */
  readonly farm: FarmBodies | null;
};

/** The bodies of farm jobs. One is on record when a nonce of its generation was judged. */
export type FarmBodies = {
  readonly bodies: Map<number, Terms>;
  /** The highest generation that was submitted. */
  highest: number;
  /** How many above it the client may have given to its rigs. */
  readonly room: number;
};

/** The highest generation that work may have been done on. */
export const lastGeneration = ({
  generation,
  farm,
}: {
  readonly generation: number;
  readonly farm: Pick<FarmBodies, 'highest' | 'room'> | null;
}): number => (farm === null ? generation : Math.min(farm.highest + farm.room, MAX_GENERATION));

/** The jobs of one revision on one body, one for every template of the session's draw from the first serial to the last. */
type Run = { readonly terms: Terms; readonly revision: number; readonly from: number; to: number };

export type BodyState = {
  readonly generation: number;
  readonly isSpent: boolean;
  /** One block of memory for each key of `seenKey`: a session of many shares is copied between threads as often as its miner reconnects. */
  readonly seen: readonly (readonly [key: number, nonces: Float64Array])[];
};
export type TermsState = BodyState & {
  readonly shareWork: bigint;
  readonly owner: Bytes | null;
  readonly farm: FarmState | null;
};
/** Blocks of memory for all bodies together: a client may name as many as it sends shares. */
export type FarmState = {
  readonly highest: number;
  readonly room: number;
  /** Generations that had their block. */
  readonly spent: Float64Array;
  /** Three numbers for each nonce that was judged: its generation, `seenKey` and `nonceKey`. */
  readonly seen: Float64Array;
};

export const SEEN_NUMBERS = 3;

export type JobLogState = {
  readonly lastJobId: number;
  readonly terms: readonly TermsState[];
  readonly runs: readonly {
    readonly generation: number;
    readonly revision: number;
    readonly from: number;
    readonly to: number;
  }[];
};

/** Template and the last two bytes of the nonce, as a number. In a plain session those bytes are its prefix and never differ. */
export const seenKey = (serial: number, nonce: Bytes): number =>
  serial * 0x1_0000 + (nonce[6] as number) * 0x100 + (nonce[7] as number);
const serialOfKey = (key: number): number => Math.floor(key / 0x1_0000);

/** The other six bytes, as a number. */
export const nonceKey = (nonce: Bytes): number =>
  (nonce[0] as number) +
  (nonce[1] as number) * 0x100 +
  (nonce[2] as number) * 0x1_0000 +
  (nonce[3] as number) * 0x100_0000 +
  (nonce[4] as number) * 0x1_0000_0000 +
  (nonce[5] as number) * 0x100_0000_0000;

const sizeOf = (nonces: Nonces | undefined): number =>
  nonces === undefined ? 0 : typeof nonces === 'number' ? 1 : nonces.size;

export class JobLog {
  /** Maximum number of nonces remembered. Further ones are refused: a forgotten nonce could be counted twice. */
  limit: number;
  /**
   * Arrays without spare capacity: most sessions have one element in each, and a push would reserve room for seventeen.
   */
  #terms: readonly Terms[] = [];
  #runs: readonly Run[] = [];
  #judged = 0;
  /** Bodies of farms with shares that are being verified, and how many. */
  #open: Map<Terms, number> | null = null;
  lastJobId = -1;

  constructor(limit = Number.POSITIVE_INFINITY) {
    this.limit = limit;
  }

  static restore(state: JobLogState, limit?: number): JobLog {
    const log = new JobLog(limit);
    log.lastJobId = state.lastJobId;
    log.#terms = state.terms.map(({ farm, ...terms }) => {
      const restored = (body: BodyState, bodies: FarmBodies | null): Terms => ({
        owner: terms.owner,
        generation: body.generation,
        shareWork: terms.shareWork,
        isSpent: body.isSpent,
        seen: body.seen.length === 0 ? undefined : new Map(body.seen.map(([key, nonces]) => [key, new Set(nonces)])),
        farm: bodies,
      });
      if (farm === null) return restored(terms, null);
      const { highest, room } = farm;
      const bodies = new Map<number, Terms>();
      const bodyOf = (generation: number): Terms => {
        const known = bodies.get(generation);
        if (known !== undefined) return known;
        const body = restored({ generation, isSpent: false, seen: [] }, null);
        bodies.set(generation, body);
        return body;
      };
      for (const generation of farm.spent) bodyOf(generation).isSpent = true;
      for (let i = 0; i + 2 < farm.seen.length; i += SEEN_NUMBERS) {
        const [generation, place, key] = [farm.seen[i], farm.seen[i + 1], farm.seen[i + 2]] as [number, number, number];
        remember(bodyOf(generation), place, key);
      }
      return restored(terms, { highest, room, bodies });
    });
    log.#runs = state.runs.map(({ generation, ...run }) => ({ ...run, terms: log.termsOf(generation) as Terms }));
    log.#count();
    return log;
  }

  /** `withSeen`: the nonces too. */
  state(withSeen = true): JobLogState {
    return {
      lastJobId: this.lastJobId,
      terms: this.#terms.map(({ shareWork, owner, farm, ...terms }) => ({
        ...bodyState(terms, withSeen),
        shareWork,
        owner,
        farm: farm === null ? null : farmState(farm, withSeen),
      })),
      runs: this.#runs.map(({ terms, revision, from, to }) => ({ generation: terms.generation, revision, from, to })),
    };
  }

  get judged(): number {
    return this.#judged;
  }

  /** The newest run: another one after a job went out says that this job began it. */
  get newestRun(): object | undefined {
    return this.#runs.at(-1);
  }

  /** The terms of a body that was never used before; `room` is that of a farm, or null for plain jobs. */
  begin(generation: number, shareWork: bigint, room: number | null = null): Terms {
    const farm = room === null ? null : { bodies: new Map<number, Terms>(), highest: generation, room };
    const terms: Terms = { generation, shareWork, isSpent: false, seen: undefined, owner: null, farm };
    this.#terms = [...this.#terms, terms];
    return terms;
  }

  termsOf(generation: number): Terms | undefined {
    return this.#terms.findLast((terms) => terms.generation === generation);
  }

  /** Whether any job on this template went out. */
  hasJobOn(serial: number): boolean {
    return this.lastJobId >= 0 && serialOf(this.lastJobId) >= serial;
  }

  /** Whether any that can still be submitted to are a farm's. */
  get hasFarmJobs(): boolean {
    return this.#terms.some(({ farm }) => farm !== null);
  }

  /** Whether a plain job on this template went out that had not this share work. */
  hasPlainJobOn(serial: number, besides: bigint): boolean {
    return this.#runs.some(
      ({ terms, from, to }) =>
        from <= serial && serial <= to && terms.farm === null && terms.owner === null && terms.shareWork !== besides,
    );
  }

  /** Whether the header of this template on this body went out. */
  isSent(serial: number, terms: Terms): boolean {
    return this.hasJobOn(serial) && this.#runs.some((run) => run.terms === terms && run.to >= serial);
  }

  /**
   * Records a job on the template `serial` and returns its id; undefined when the template has no more ids, or the
   * session already had a newer template, from another thread. `before` is the serial of the template that came just
   * before it, for this session's draw: with a gap in between a new run begins.
   */
  send(serial: number, before: number | undefined, terms: Terms): number | undefined {
    if (this.isSent(serial, terms)) throw new Error('a header is sent once');
    const last = this.lastJobId < 0 ? -1 : serialOf(this.lastJobId);
    const revision = last < serial ? 0 : revisionOf(this.lastJobId) + 1;
    if (last > serial || revision > MAX_REVISION) return undefined;
    this.lastJobId = jobIdOf(serial, revision);
    const run = this.#runs.findLast((each) => each.to === before && each.revision === revision && each.terms === terms);
    if (run === undefined) this.#runs = [...this.#runs, { terms, revision, from: serial, to: serial }];
    else run.to = serial;
    return this.lastJobId;
  }

  /** The terms of a job that was sent to this session; its template must be known, and of the session's draw. */
  find(jobId: number): Terms | undefined {
    const [serial, revision] = [serialOf(jobId), revisionOf(jobId)];
    return this.#runs.findLast((run) => run.revision === revision && run.from <= serial && serial <= run.to)?.terms;
  }

  /**
   * The terms of one generation of a farm job; undefined where the job does not have it (S73). Nothing is on record before a
   * nonce of it is judged: a client may name any.
   */
  ofGeneration(job: Terms, generation: number): Terms | undefined {
    if (job.farm === null || generation < job.generation || generation >= endOfGenerations(job, this.#terms))
      return undefined;
    const { shareWork, owner } = job;
    const unused: Terms = { generation, shareWork, isSpent: false, seen: undefined, owner, farm: null };
    return job.farm.bodies.get(generation) ?? unused;
  }

  /** Whether a nonce, whose prefix was checked before, was judged on this header, or no more can be remembered. */
  known(terms: Terms, serial: number, nonce: Bytes): 'fresh' | 'again' | 'full' {
    const key = nonceKey(nonce);
    const seen = terms.seen?.get(seenKey(serial, nonce));
    if (seen === key || (typeof seen === 'object' && seen.has(key))) return 'again';
    return this.#judged >= this.limit ? 'full' : 'fresh';
  }

  /** Marks a fresh nonce as judged; `job` are the terms of its job, if that is a farm's. */
  judge(terms: Terms, serial: number, nonce: Bytes, { farm }: Terms = terms): void {
    if (farm !== null) {
      farm.bodies.set(terms.generation, terms);
      this.#open ??= new Map();
      this.#open.set(terms, (this.#open.get(terms) ?? 0) + 1);
      farm.highest = Math.max(farm.highest, terms.generation);
    }
    remember(terms, seenKey(serial, nonce), nonceKey(nonce));
    this.#judged++;
  }

  /** A nonce that was judged has its verdict. */
  settle(terms: Terms): void {
    const left = (this.#open?.get(terms) ?? 1) - 1;
    if (left > 0) this.#open?.set(terms, left);
    else this.#open?.delete(terms);
  }

  /** Takes a judgement back: the verifier was too busy, so the miner may send the nonce again. */
  unjudge(terms: Terms, serial: number, nonce: Bytes): void {
    const place = seenKey(serial, nonce);
    const seen = terms.seen?.get(place);
    const key = nonceKey(nonce);
    if (typeof seen === 'object' ? !seen.delete(key) : seen !== key) return;
    if (typeof seen === 'number') terms.seen?.delete(place);
    this.#judged--;
  }

  /** Drops what concerns only templates before `oldestSerial`; `kept` are bodies that jobs will be on. */
  forget(oldestSerial: number, kept: readonly (Terms | undefined)[]): void {
    this.#runs = this.#runs.filter((run) => run.to >= oldestSerial);
    const known = new Set<Terms | undefined>([...kept, ...this.#runs.map((run) => run.terms)]);
    this.#terms = this.#terms.filter((terms) => known.has(terms));
    for (const terms of this.#bodies()) {
      if (terms.seen === undefined) continue;
      for (const key of terms.seen.keys()) if (serialOfKey(key) < oldestSerial) terms.seen.delete(key);
      if (terms.seen.size === 0) terms.seen = undefined;
    }
    // One that had its block stays, for as long as jobs have its generation; and one that may have it in a moment.
    for (const { farm } of this.#terms)
      for (const body of farm?.bodies.values() ?? [])
        if (body.seen === undefined && !body.isSpent && this.#open?.has(body) !== true)
          farm?.bodies.delete(body.generation);
    this.#count();
  }

  *#bodies(): Generator<Terms> {
    for (const terms of this.#terms) {
      yield terms;
      if (terms.farm !== null) yield* terms.farm.bodies.values();
    }
  }

  #count(): void {
    this.#judged = 0;
    for (const { seen } of this.#bodies()) for (const nonces of seen?.values() ?? []) this.#judged += sizeOf(nonces);
  }
}

function remember(terms: Terms, place: number, key: number): void {
  terms.seen ??= new Map();
  const seen = terms.seen.get(place);
  if (seen === undefined) terms.seen.set(place, key);
  else if (typeof seen === 'number') terms.seen.set(place, new Set([seen, key]));
  else seen.add(key);
}

function farmState({ highest, room, bodies }: FarmBodies, withSeen: boolean): FarmState {
  const [spent, seen]: [number[], number[]] = [[], []];
  for (const body of bodies.values()) {
    const { generation } = body;
    if (body.isSpent) spent.push(generation);
    if (!withSeen || body.seen === undefined) continue;
    for (const [place, nonces] of body.seen)
      if (typeof nonces === 'number') seen.push(generation, place, nonces);
      else for (const key of nonces) seen.push(generation, place, key);
  }
  return { highest, room, spent: Float64Array.from(spent), seen: Float64Array.from(seen) };
}

type Named = Pick<Terms, 'generation' | 'owner'>;

/** Where the generations of a farm's terms end: the next terms of its owner begin there, perhaps with another share work. */
export function endOfGenerations(first: Named, all: readonly Named[]): number {
  let end = Number.POSITIVE_INFINITY;
  for (const other of all)
    if (other.generation > first.generation && other.generation < end && isSameOwner(other, first))
      end = other.generation;
  return end;
}

const isSameOwner = (one: Named, other: Named): boolean =>
  one.owner === other.owner || (one.owner !== null && other.owner !== null && equalBytes(one.owner, other.owner));

const bodyState = ({ generation, isSpent, seen }: Pick<Terms, keyof BodyState>, withSeen: boolean): BodyState => ({
  generation,
  isSpent,
  seen: [...((withSeen ? seen : undefined) ?? [])].map(([key, nonces]) => [
    key,
    Float64Array.from(typeof nonces === 'number' ? [nonces] : nonces),
  ]),
});
