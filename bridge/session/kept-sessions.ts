/**
 * What the log of the process before says (session-log.ts): its sessions, for connections that resume them, and its
 * templates, so that jobs of before the restart stay good for their grace (S50 and S55).
 *
 * A share counts once (S52): entries are deleted oldest first, and a job is known only while the entry of its template
 * is there, so every share that was answered on it is known too. Of those that were on their way to the sink when the
 * process ended, the sink says which it has (decision 14): the others were not answered, and are judged when they come again.
 */

import { HEADER_DIGEST_BYTES } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { type JobLife, jobIdOf } from './job-book.ts';
import { type BodyState, endOfGenerations, type FarmState, type JobLogState, nonceKey, seenKey } from './job-log.ts';
import { unpackRecord } from './packed-record.ts';
import {
  digestOf,
  entriesOf,
  type KeptPublication,
  type NotedBlock,
  type RunEntry,
  type SessionEntry,
  type ShareEntry,
  type SharesEntry,
} from './session-entries.ts';
import type { SessionJobs, SessionRecord } from './session-record.ts';

const NO_NUMBERS = new Float64Array(0);

export type KeptOptions = {
  /** The process that reads: what it gets back it may continue. */
  readonly bootId: Bytes;
  readonly resumeMillis: number;
  /** At most as many are read, the newest. */
  readonly maxSessions: number;
};

export type KeptSession = {
  /** With the present process in `bootId`, and the names of before in its terms. */
  readonly record: SessionRecord;
  /** The process that served it. */
  readonly servedBy: Bytes;
  /** It waits where other instances find it too: if it is gone from there, one of them has it. */
  readonly isShared: boolean;
};

/** The jobs and shares of one connection. */
type Done = {
  runs: RunEntry[];
  /** Nonces by generation and `seenKey`: a number for each share, because there may be millions. */
  readonly shares: Map<number, Map<number, number[]>>;
  readonly spent: Set<number>;
};

export class KeptSessions {
  readonly #options: KeptOptions;
  readonly #sessions = new Map<string, SessionEntry>();
  readonly #done = new Map<string, Done>();
  /** Shares that may have been on their way to the sink. */
  #open: Omit<SharesEntry, 'kind' | 'oldestOpen'>[] = [];
  /** Blocks that no node has answered. */
  readonly #blocks = new Map<string, NotedBlock>();
  #publications: KeptPublication[] = [];
  #newestSerial = 0;
  /** When the process before noted something for the last time. */
  #lastMillis = 0;
  #awayMillis = 0;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  /** Files in the order in which they were written. */
  read(file: Bytes): void {
    // Shares may be missing from here on: jobs of before are dead.
    const damaged = (): void => this.forgetJobs();
    for (const entry of entriesOf(file, damaged))
      if (entry.kind === 'templates') this.#onTemplates(entry);
      else if (entry.kind === 'session') this.#onSession(entry);
      else if (entry.kind === 'run') this.#doneOf(entry.owner).runs.push(entry);
      else if (entry.kind === 'spent') this.#doneOf(entry.owner).spent.add(entry.generation);
      else if (entry.kind === 'shares') this.#onShares(entry);
      else if (entry.kind === 'refused') this.#onRefused(entry.batch);
      else if (entry.kind === 'settled') this.settle(entry.shares);
      else if (entry.kind === 'block') this.#blocks.set(toHex(blockId(entry.header)), entry);
      else this.#blocks.delete(toHex(entry.blockId));
  }

  #onShares({ bootId, batch, oldestOpen, shares }: SharesEntry): void {
    for (const each of this.#open) if (each.batch < oldestOpen) for (const share of each.shares) this.#onShare(share);
    this.#open = [...this.#open.filter((each) => each.batch >= oldestOpen), { bootId, batch, shares }];
  }

  #onRefused(refused: number): void {
    // It is not among those that the sink has, whatever comes later.
    this.#open = this.#open.map((each) =>
      each.batch === refused ? { ...each, batch: Number.POSITIVE_INFINITY } : each,
    );
  }

  /** The shares that were on their way, of which only the sink knows whether it has them. */
  get open(): { readonly shares: readonly ShareEntry[]; readonly boots: readonly Bytes[] } {
    const boots = new Map(this.#open.map(({ bootId }) => [toHex(bootId), bootId]));
    return { shares: this.#open.flatMap(({ shares }) => shares), boots: [...boots.values()] };
  }

  /** Of those that were on their way the sink has these. */
  settle(stored: readonly ShareEntry[]): void {
    this.#open = [];
    for (const share of stored) this.#onShare(share);
  }

  /** Blocks that may not have reached a node. */
  get blocks(): readonly NotedBlock[] {
    return [...this.#blocks.values()];
  }

  #onShare({ owner, generation, serial, identity }: ShareEntry): void {
    const nonce = identity.subarray(HEADER_DIGEST_BYTES);
    const [place, key] = [seenKey(serial, nonce), nonceKey(nonce)];
    const { shares } = this.#doneOf(owner);
    const seen = shares.get(generation) ?? new Map<number, number[]>();
    const nonces = seen.get(place);
    if (nonces === undefined) shares.set(generation, seen.set(place, [key]));
    else nonces.push(key);
  }

  #onTemplates(publication: KeptPublication): void {
    if (publication.clean) this.#publications = [];
    this.#publications.push(publication);
    this.#lastMillis = Math.max(this.#lastMillis, publication.atMillis);
    for (const { serial } of publication.templates) this.#newestSerial = Math.max(this.#newestSerial, serial);
  }

  #onSession(entry: SessionEntry): void {
    this.#lastMillis = Math.max(this.#lastMillis, entry.atMillis);
    this.#sessions.delete(entry.digest);
    this.#sessions.set(entry.digest, entry);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > this.#options.maxSessions && oldest !== undefined) this.#sessions.delete(oldest);
    // They are in the record.
    this.#doneOf(entry.owner).runs = [];
  }

  #doneOf(owner: Bytes): Done {
    // Not in hex: there may be millions of shares, and hex would take nearly half of the time.
    const key = String.fromCharCode(...owner);
    let done = this.#done.get(key);
    if (done === undefined) {
      done = { runs: [], shares: new Map(), spent: new Set() };
      this.#done.set(key, done);
    }
    return done;
  }

  get size(): number {
    return this.#sessions.size;
  }

  get newestSerial(): number {
    return this.#newestSerial;
  }

  /** From now on there are jobs again: for how long there were none, which does not count for anybody. */
  back(nowMillis: number): number {
    this.#awayMillis = Math.max(0, nowMillis - this.#lastMillis);
    return this.#awayMillis;
  }

  /** Those whose jobs it still knew, oldest first. */
  publications({ graceMillis, memoryMillis }: JobLife): readonly KeptPublication[] {
    return this.#publications.filter((_, i) => {
      const next = this.#publications[i + 1];
      return next === undefined || this.#lastMillis - next.atMillis <= graceMillis + memoryMillis;
    });
  }

  /** Jobs of before are dead; sessions can still be resumed. */
  forgetJobs(): void {
    this.#publications = [];
  }

  clear(): void {
    this.#sessions.clear();
    this.#done.clear();
    this.#publications = [];
  }

  /** The session, once, while it can be resumed. */
  take(id: string, nowMillis: number): KeptSession | null {
    const digest = digestOf(id);
    const entry = this.#sessions.get(digest);
    if (entry === undefined) return null;
    this.#sessions.delete(digest);
    const record = unpackRecord(entry.packed);
    // A connection that lasted ended with its process.
    const endedMillis = entry.place === 'connected' ? this.#lastMillis : entry.atMillis;
    const untilMillis = endedMillis + this.#awayMillis + this.#options.resumeMillis;
    if (nowMillis > Math.max(untilMillis, record.bannedUntilMillis)) return null;
    const jobs = record.jobs === null || this.#publications.length === 0 ? null : this.#jobsOf(record, record.jobs);
    return {
      record: { ...record, id, bootId: this.#options.bootId, jobs },
      servedBy: record.bootId,
      isShared: entry.place === 'shared',
    };
  }

  #jobsOf({ owner }: SessionRecord, jobs: SessionJobs): SessionJobs {
    const terms = jobs.log.terms.map((each) => ({ ...each, owner: each.owner ?? owner }));
    const runs = [...jobs.log.runs];
    let { lastJobId } = jobs.log;
    let { current } = jobs;
    for (const { generation, shareWork, revision, serial, room } of this.#doneOf(owner).runs) {
      const farm = room === null ? null : { highest: generation, room, spent: NO_NUMBERS, seen: NO_NUMBERS };
      if (!terms.some((each) => each.generation === generation))
        terms.push({ generation, shareWork, isSpent: false, seen: [], owner, farm });
      runs.push({ generation, revision, from: serial, to: serial });
      lastJobId = Math.max(lastJobId, jobIdOf(serial, revision));
      current = Math.max(current, generation);
    }
    const log: JobLogState = {
      lastJobId,
      terms: terms.map((each) => ({
        ...each,
        ...(each.farm === null
          ? this.#bodyOf(each.owner, each)
          : { farm: this.#farmOf(each.owner, each.farm, [each.generation, endOfGenerations(each, terms)]) }),
      })),
      runs: runs.map((run) => ({ ...run, to: this.#lastOf(run.to) })),
    };
    return { ...jobs, log, current, spare: null };
  }

  /**
   * The last template that a run went on to. Only its first job was noted: the session had the others as they came, unless a
   * later run says otherwise, which counts then. A template that equals an earlier one always begins another run.
   */
  #lastOf(to: number): number {
    let last = to;
    for (const { templates } of this.#publications) {
      if (templates.every(({ serial }) => serial <= to)) continue;
      if (templates.some(({ isFresh }) => isFresh)) break;
      last = Math.max(last, ...templates.map(({ serial }) => serial));
    }
    return last;
  }

  #bodyOf(owner: Bytes, { generation, isSpent }: Pick<BodyState, 'generation' | 'isSpent'>): BodyState {
    const { spent, shares } = this.#doneOf(owner);
    const seen = [...(shares.get(generation) ?? [])].map(([key, nonces]): [number, Float64Array] => [
      key,
      Float64Array.from(nonces),
    ]);
    return { generation, isSpent: isSpent || spent.has(generation), seen };
  }

  /** The bodies of a farm: all of its generations that something was found on. */
  #farmOf(owner: Bytes, farm: FarmState, [first, end]: readonly [number, number]): FarmState {
    const isOwn = (generation: number): boolean => generation >= first && generation < end;
    const done = this.#doneOf(owner);
    const spent = new Set([...farm.spent, ...done.spent].filter(isOwn));
    const seen: number[] = [];
    let { highest } = farm;
    for (const generation of spent) highest = Math.max(highest, generation);
    for (const [generation, places] of done.shares) {
      if (!isOwn(generation)) continue;
      highest = Math.max(highest, generation);
      for (const [place, nonces] of places) for (const nonce of nonces) seen.push(generation, place, nonce);
    }
    return { ...farm, highest, spent: Float64Array.from(spent), seen: Float64Array.from(seen) };
  }
}
