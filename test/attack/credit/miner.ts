/**
 * A miner that may do anything the wire allows, and whose every hash is counted. What it knows it keeps: every job that any of
 * its connections was ever sent, and every nonce whose hash is small enough for the easiest target it has seen. It then claims
 * each nonce under every id that might do: its own, others', older ones, ones that nobody was sent; first where it pays best
 * or in any order; on every connection that is left, on either wire and either instance, and again after a resume with
 * another share work or a restart of the server.
 */
import { jobIdOf, MAX_REVISION, serialOf } from '../../../bridge/session/job-book.ts';
import { type Bytes, equalBytes, toHex } from '../../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../../protocol/ledger/header.ts';
import { meetsTarget, targetOfWork, targetToBytes, workOfTarget } from '../../../protocol/ledger/target.ts';
import { type FarmJob, jobOfFarm } from '../../../protocol/stratum/farm.ts';
import type { Job } from '../../../protocol/stratum/messages.ts';
import { composeNonce } from '../../../protocol/stratum/nonce.ts';
import { addressOf, V1Client, V2Client } from '../../bridge/stratum-client.ts';
import { randomOf } from '../../random.ts';
import { MIN_WORK, quickHash, type World } from './world.ts';

const EASIEST = targetToBytes(targetOfWork(MIN_WORK));
const PASSWORDS = ['', 'd=8', 'd=16', 'd=64', 'd=256', 'd=100000', 'min=32', 'x'];
const HASHES_A_STEP = 400;
const RIGS = 4;
/** Each time under several ids and on all connections of its session. */
const MAX_CLAIMS = 4;

const isSameHeader = (one: Bytes, other: Bytes): boolean =>
  equalBytes(one.subarray(0, NONCE_OFFSET), other.subarray(0, NONCE_OFFSET));

type Hit = { readonly nonce: Bytes; readonly hash: Bytes; claims: number };
/** A header the miner was given, with all jobs that it came by. */
type Work = {
  readonly header: Bytes;
  /** Names the session. */
  readonly prefix: Bytes;
  readonly jobs: (Job | FarmJob)[];
  readonly hits: Hit[];
  tried: bigint;
  /** Of a header that it made itself, from a farm job. */
  readonly generation: number | null;
  readonly noncePrefix: Bytes;
};
type Line = {
  readonly client: V1Client | V2Client;
  isOpen: boolean;
  seen: number;
  seenFarm: number;
  readonly prefix: () => Bytes;
};

export type Outcome = { readonly hashes: number; readonly variance: number; readonly submits: number };

export class CountedMiner {
  readonly #world: World;
  readonly #account: number;
  readonly #random: (limit: number) => number;
  readonly #works = new Map<string, Work>();
  readonly #lines: Line[] = [];
  readonly #sessions = new Set<string>();
  readonly #isGreedy: boolean;
  /** Gathers targets before it claims anything: as many jobs on one template as it can get. */
  readonly #isCollector: boolean;
  /** Every connection of v2 is a farm's; where it is not set, some are. */
  readonly #isFarm: boolean;
  /** All farm jobs of a template and session: they have the same headers, whatever their targets. */
  readonly #farms = new Map<string, FarmJob[]>();
  #hashes = 0;
  #variance = 0;
  #submits = 0;

  constructor(world: World, account: number, seed: number, traits: { collects?: boolean; farms?: boolean } = {}) {
    this.#world = world;
    this.#account = account;
    this.#random = randomOf(seed);
    this.#isGreedy = this.#random(3) > 0;
    this.#isCollector = traits.collects ?? this.#random(3) === 0;
    this.#isFarm = traits.farms ?? this.#random(3) === 0;
  }

  async play(hashes: number): Promise<Outcome> {
    await this.#connect(null);
    while (this.#hashes < hashes) {
      await this.#step();
      await new Promise((resolve) => setTimeout(resolve, this.#random(8)));
    }
    for (const work of this.#works.values()) this.#claim(work);
    return { hashes: this.#hashes, variance: this.#variance, submits: this.#submits };
  }

  close(): void {
    for (const { client } of this.#lines) client.close();
  }

  async #step(): Promise<void> {
    this.#learn();
    if (this.#isCollector && this.#random(3) === 0) await this.#collect();
    const draw = this.#random(100);
    if (draw < 60) {
      const work = this.#anyWork();
      this.#search(work);
      if (this.#random(5) > 0) this.#claim(work);
    } else if (draw < 75) this.#claim(this.#anyWork());
    else if (draw < 87) await this.#connect([...this.#sessions][this.#random(this.#sessions.size)] ?? null);
    else if (draw < 91) await this.#connect(null);
    else if (draw < 95) this.#drop();
    else await new Promise((resolve) => setTimeout(resolve, this.#random(200)));
    if (!this.#lines.some(({ isOpen }) => isOpen)) await this.#connect([...this.#sessions].at(-1) ?? null);
  }

  /** The same session with one wish after the other, and then all its hashes on the header that came with most targets. */
  async #collect(): Promise<void> {
    const [session, instance] = [[...this.#sessions].at(-1) ?? null, this.#random(2)];
    for (const password of ['d=8', 'd=16', 'd=32', 'd=64']) await this.#connect(session, instance, password);
    const newest = [...this.#works.values()].slice(-8);
    const work = newest.reduce((best, each) => (each.jobs.length > best.jobs.length ? each : best), newest[0] as Work);
    for (let i = 0; i < 3; i++) this.#search(work);
    this.#claim(work);
  }

  /** On either wire, transport and instance; with a session of its own or a new one; with any wish. */
  async #connect(
    session: string | null,
    instance = this.#random(2),
    password = PASSWORDS[this.#random(PASSWORDS.length)] as string,
  ): Promise<void> {
    const transport = this.#random(3) === 0 ? 'ws' : 'tcp';
    const username = `${addressOf(this.#account)}.w`;
    try {
      const port = this.#world.port(instance, transport);
      const client = await (!this.#isFarm && this.#random(2) === 0 ? V1Client : V2Client).open(port, transport);
      const line: Line = { client, isOpen: true, seen: 0, seenFarm: 0, prefix: () => client.prefix };
      void client.closed.then(() => {
        line.isOpen = false;
      });
      await Promise.race([client.login(username, password, session), client.closed]);
      if (client instanceof V2Client && (this.#isFarm || this.#random(4) === 0))
        await Promise.race([client.farm(RIGS), client.closed]);
      this.#lines.push(line);
      this.#sessions.add(client.session);
    } catch {
      // The server was just being restarted.
    }
    this.#learn();
  }

  #drop(): void {
    const open = this.#lines.filter(({ isOpen }) => isOpen);
    open[this.#random(open.length)]?.client.close();
  }

  /** Every job that came since. */
  #learn(): void {
    for (const line of this.#lines) {
      const jobs = line.client.jobs;
      for (const job of jobs.slice(line.seen)) {
        const key = toHex(job.header.subarray(0, NONCE_OFFSET));
        const prefix = line.prefix();
        const work = this.#works.get(key) ?? {
          header: job.header,
          prefix,
          noncePrefix: prefix,
          generation: null,
          jobs: [],
          hits: [],
          tried: 0n,
        };
        work.jobs.push(job);
        this.#works.set(key, work);
      }
      line.seen = jobs.length;
      this.#learnFarm(line);
    }
  }

  #learnFarm(line: Line): void {
    if (!(line.client instanceof V2Client)) return;
    const { farmJobs } = line.client;
    for (const job of farmJobs.slice(line.seenFarm)) {
      const key = `${toHex(job.header)} ${toHex(job.extranonceHead)}`;
      const jobs = this.#farms.get(key) ?? [];
      jobs.push(job);
      this.#farms.set(key, jobs);
      // Its own generations, and those of jobs before it.
      const any = jobs[this.#random(jobs.length)] as FarmJob;
      for (const { firstGeneration } of [job, any])
        this.#makeHeader(job, Math.max(0, firstGeneration - 1 + this.#random(20)), jobs, line.prefix());
    }
    line.seenFarm = farmJobs.length;
  }

  /** The list of jobs is the same for all headers of a template and session: later jobs come to it. */
  #makeHeader(job: FarmJob, generation: number, jobs: FarmJob[], prefix: Bytes): void {
    const { header } = jobOfFarm(job, generation);
    const key = `farm ${toHex(header.subarray(0, NONCE_OFFSET))}`;
    // With the session's own prefix a nonce can be claimed as that of a plain job too.
    const noncePrefix = this.#random(2) === 0 ? prefix : Uint8Array.of(this.#random(256), this.#random(256));
    if (!this.#works.has(key))
      this.#works.set(key, { header, prefix, jobs, hits: [], tried: 0n, generation, noncePrefix });
  }

  /** Mostly what is new and whose session it can speak for: shares on dead jobs earn nothing. */
  #anyWork(): Work | undefined {
    const all = [...this.#works.values()];
    if (this.#random(10) === 0) return all[this.#random(all.length)];
    const open = new Set(this.#lines.filter(({ isOpen }) => isOpen).map(({ prefix }) => toHex(prefix())));
    const live = all.slice(-40).filter(({ prefix }) => open.has(toHex(prefix)));
    return live.at(-1 - this.#random(Math.min(live.length, 6)));
  }

  #search(work: Work | undefined): void {
    if (work === undefined) return;
    const header = Uint8Array.from(work.header);
    const share = work.jobs.reduce((most, job) => (job.shareTarget < most ? job.shareTarget : most), 1n << 256n);
    for (let i = 0; i < HASHES_A_STEP; i++) {
      const nonce = composeNonce(work.tried++, work.noncePrefix);
      header.set(nonce, NONCE_OFFSET);
      const hash = quickHash(header);
      if ((hash[0] as number) <= (EASIEST[0] as number) && meetsTarget(hash, EASIEST))
        work.hits.push({ nonce, hash, claims: 0 });
    }
    this.#hashes += HASHES_A_STEP;
    // A hash earns its share's work with a chance of one in as many: the variance of one is about that work.
    this.#variance += HASHES_A_STEP * Number(workOfTarget(share));
  }

  /** Some of the nonces of a header, each under every id that might do. */
  #claim(work: Work | undefined): void {
    if (work === undefined) return;
    this.#learn();
    const lines = this.#lines.filter(({ isOpen, prefix }) => isOpen && equalBytes(prefix(), work.prefix));
    const others = [...this.#works.values()];
    const unhashed = this.#unhashed(work, others);
    for (const hit of work.hits) {
      if (hit.claims >= MAX_CLAIMS || this.#random(6) === 0) continue;
      if (lines.length > 0) hit.claims++;
      const ids = this.#idsFor(work, hit, others);
      for (const { client } of lines)
        for (const jobId of ids) {
          if (this.#wouldBeLucky(work, unhashed, jobId, hit.nonce)) continue;
          this.#submits++;
          const { generation } = work;
          if (generation !== null && client instanceof V2Client && this.#random(4) > 0)
            client.farmSubmit({ jobId, generation, rig: this.#random(RIGS), nonce: hit.nonce });
          else if (client instanceof V2Client) client.submit(jobId, hit.nonce);
          else client.send({ method: 'mining.submit', params: { jobId, nonce: hit.nonce } });
        }
    }
  }

  /** The session's other headers: no hash of this work is one of theirs. */
  #unhashed(work: Work, others: readonly Work[]): Work[] {
    return others.filter(
      ({ generation, prefix, header }) =>
        generation === null && equalBytes(prefix, work.prefix) && !isSameHeader(header, work.header),
    );
  }

  /**
   * Under another header a nonce is a guess, which the server hashes: as good as a hash, but one that nobody counted. Guesses
   * that would be right are left out, so that all credit is for hashes that were.
   */
  #wouldBeLucky(work: Work, unhashed: readonly Work[], jobId: number, nonce: Bytes): boolean {
    if (work.generation !== null && this.#wouldBeLuckyRig(work, work.generation, jobId, nonce)) return true;
    for (const other of unhashed) {
      const job = other.jobs.find((each) => each.jobId === jobId);
      if (job === undefined) continue;
      const header = Uint8Array.from(other.header);
      header.set(nonce, NONCE_OFFSET);
      if (meetsTarget(quickHash(header), targetToBytes(job.shareTarget))) return true;
    }
    return false;
  }

  /** The same for a farm: the header is that of the job, whatever the miner hashed. */
  #wouldBeLuckyRig(work: Work, generation: number, jobId: number, nonce: Bytes): boolean {
    for (const jobs of this.#farms.values())
      for (const job of jobs) {
        if (job.jobId !== jobId) continue;
        const { header } = jobOfFarm(job, generation);
        if (isSameHeader(header, work.header)) continue;
        header.set(nonce, NONCE_OFFSET);
        if (meetsTarget(quickHash(header), targetToBytes(job.shareTarget))) return true;
      }
    return false;
  }

  #idsFor(work: Work, { hash }: Hit, others: readonly Work[]): number[] {
    const own = work.jobs
      .filter(({ shareTarget }) => meetsTarget(hash, targetToBytes(shareTarget)))
      .sort((a, b) => (a.shareTarget < b.shareTarget ? -1 : 1));
    if (!this.#isGreedy && this.#random(2) === 0) own.reverse();
    const ids = own.map(({ jobId }) => jobId);
    const anyJob = others[this.#random(others.length)]?.jobs[0];
    const serial = serialOf((work.jobs[0] as Job | FarmJob).jobId);
    // Ids of the same template that were perhaps never sent, and one of anything else.
    for (let i = 0; i < 3; i++) ids.push(jobIdOf(serial, this.#random(this.#random(2) === 0 ? 4 : MAX_REVISION + 1)));
    if (anyJob !== undefined && this.#random(4) === 0) ids.push(anyJob.jobId);
    if (this.#random(8) === 0) ids.push(jobIdOf(Math.max(0, serial - 3 + this.#random(8)), this.#random(3)));
    return ids;
  }
}
