/**
 * Shares in flight when a pool is killed (docs/protocol/stratum.md, S52 and S55; decision 14). Property: after the restart a
 * share that is sent again is a duplicate if and only if the journal has it; otherwise it is accepted. In the end every
 * share that was found is in the journals exactly once, and every block has been sent to a node.
 *
 * Kills come while shares are anywhere on their way: noted and not in the journal, half written, in the journal and not
 * answered, refused because the disk failed, answered; and blocks before they were sent. What a killed process leaves is
 * a copy of its files, which are at rest when it is made.
 */
import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { JobLog } from '../../bridge/session/job-log.ts';
import { KeptSessions } from '../../bridge/session/kept-sessions.ts';
import type { AcceptedShare, FoundBlock } from '../../bridge/shares/sink.ts';
import { Journal, journalBoots, readJournal } from '../../pool/journal/journal.ts';
import { decodeRecord } from '../../pool/journal/journal-record.ts';
import { PoolSink } from '../../pool/journal/share-sink.ts';
import { headerDigest, shareIdentity } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { BRIDGE, EASY, RecordingSink, startBed } from '../bridge/bed.ts';
import { accountOf, addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { count, seed } from '../level.ts';
import { powHash } from '../pow-hash.ts';
import { quietLog } from '../quiet-log.ts';
import { type Random, randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';

const BLOCK_WORK = 48n;
const MINERS = 3;
const SERVICE = {
  ...BRIDGE,
  name: 'pplns',
  pool: { payout: accountOf(99), address: addressOf(99), name: 'test' },
};
const NEVER = new Promise<never>(() => undefined);
const answeredBeside = (file: string): string => join(dirname(file), 'answered');
/** How far a batch of shares comes before the kill. */
const FATES = ['answered', 'noted', 'journaled', 'refused'] as const;

/** The pool's sink; what it is handed can stop on its way. */
class StoppingSink extends RecordingSink {
  readonly #pool: PoolSink;
  fate: () => (typeof FATES)[number] = () => 'answered';
  isSending = () => true;
  /** Shares that have come as far as they will. */
  done = 0;
  /** Size of the journal's file, and its count, when the last answered share was written: what is behind may be torn. */
  synced = { bytes: 0, answered: '' };
  readonly #file: () => string | undefined;

  constructor(pool: PoolSink, file: () => string | undefined) {
    super();
    this.#pool = pool;
    this.#file = file;
  }

  override async shares(shares: readonly AcceptedShare[]): Promise<void> {
    const fate = this.fate();
    if (fate === 'answered' || fate === 'journaled') await this.#pool.shares(shares);
    if (fate === 'answered') this.#onSynced();
    this.done += shares.length;
    if (fate === 'refused') throw new Error('the disk failed');
    if (fate !== 'answered') await NEVER;
  }

  #onSynced(): void {
    const file = this.#file();
    if (file !== undefined) this.synced = { bytes: this.size, answered: readFileSync(answeredBeside(file), 'latin1') };
  }

  get size(): number {
    const file = this.#file();
    return file === undefined ? 0 : statSync(file).size;
  }

  override async block(block: FoundBlock): Promise<void> {
    if (!this.isSending()) await NEVER;
    await this.#pool.block(block);
    this.#onSynced();
  }

  stored = (identities: readonly Bytes[], boots: readonly Bytes[]) => this.#pool.stored(identities, boots);
}

/** A node that a process which was killed does not reach. */
class LifeSource extends TemplateSource {
  isReached = true;

  override async submit(header: Bytes, body: Bytes): ReturnType<TemplateSource['submit']> {
    if (!this.isReached) throw new Error('away');
    return super.submit(header, body);
  }
}

type Client = V1Client | V2Client;
type Found = {
  readonly miner: number;
  readonly job: Job;
  readonly nonce: Bytes;
  readonly name: string;
  readonly block: string | null;
};

const newestFile = (directory: string): string | undefined => {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith('.journal'))
    .sort();
  const newest = names.at(-1);
  return newest === undefined ? undefined : join(directory, newest);
};

/** Identities of the shares in all journals, as often as they are there. */
async function journaled(directory: string): Promise<string[]> {
  const names: string[] = [];
  for (const boot of await journalBoots(directory))
    for await (const batch of readJournal(directory, boot, -1))
      for (const { record } of batch) {
        const decoded = decodeRecord(record);
        if (decoded.kind === 'share') names.push(toHex(decoded.identity?.bytes as Bytes));
      }
  return names;
}

const blockTarget = targetToBytes(targetOfWork(BLOCK_WORK));

/** A pool's server with its miners, and what they have found in all of its lives. */
class Pool {
  #source = new LifeSource();
  readonly sent = new Set<string>();
  readonly #random: Random;
  readonly found: Found[] = [];
  readonly #sessions: (string | null)[] = Array.from({ length: MINERS }, () => null);
  readonly #from: bigint[] = Array.from({ length: MINERS }, () => 0n);
  directory = temporaryDirectory();
  #life = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  get journal(): string {
    return join(this.directory, 'journal');
  }

  get #sessionFiles(): string {
    return join(this.directory, 'sessions');
  }

  /** One life: miners come back, send everything again, and more; then it is killed. */
  async live(): Promise<void> {
    const before = new Set(await journaled(this.journal));
    const bootId = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, ++this.#life);
    const journal = await Journal.open({ directory: this.journal, bootId });
    const own = join(this.journal, journal.bootId);
    const dependencies = { journal, outbox: { push: () => undefined }, log: quietLog, now: Date.now };
    const sink = new StoppingSink(new PoolSink(dependencies), () => newestFile(own));
    const source = new LifeSource();
    source.takeUp(this.#source.height, this.#source.cutId);
    this.#source = source;
    const bed = await startBed({
      bootId,
      sources: [source],
      blockWork: BLOCK_WORK,
      services: [SERVICE],
      sessionsDirectory: this.#sessionFiles,
      sink,
    });
    const clients: Client[] = [];
    for (let miner = 0; miner < MINERS; miner++) {
      const client = await (miner % 2 === 0 ? V1Client : V2Client).open(bed.port);
      await client.login(`${addressOf(miner + 1)}.w`, 'd=4', this.#sessions[miner]);
      if (this.#life > 1) expect(client.session).toBe(this.#sessions[miner]);
      this.#sessions[miner] = client.session;
      clients.push(client);
    }
    await this.#judgedAgain(clients, before);
    for (const [miner, client] of clients.entries())
      expect(await client.submitCode(...this.#submit(this.#find(miner, client)))).toBe(0);
    await until(() => clients.every((client) => this.#isKept(client)));
    // In flight.
    const isSending = this.#random(2) === 0;
    sink.isSending = () => isSending;
    source.isReached = isSending || this.#random(2) === 0;
    sink.fate = () => FATES[this.#random(FATES.length)] as (typeof FATES)[number];
    const wanted = sink.done + 3 * MINERS;
    for (let turn = 0; turn < 3; turn++)
      for (const [miner, client] of clients.entries()) {
        const found = this.#find(miner, client);
        void client.submitCode(...this.#submit(found)).catch(() => undefined);
        if (this.#random(2) === 0) await until(() => sink.done === wanted - (3 - turn) * MINERS + miner + 1);
      }
    await until(() => sink.done === wanted);
    await until(() => clients.every((client) => this.#isKept(client)));
    source.isReached = false;
    for (const { header } of source.submitted) this.sent.add(toHex(blockId(header)));
    this.#kill(newestFile(own), sink);
    for (const client of clients) client.close();
  }

  /** What was found before, in any order. */
  async #judgedAgain(clients: readonly Client[], before: ReadonlySet<string>): Promise<void> {
    const order = this.found.map((found) => ({ found, key: this.#random(1_000) })).sort((a, b) => a.key - b.key);
    for (const { found } of order) {
      const client = clients[found.miner] as Client;
      const code = await client.submitCode(...this.#submit(found));
      expect(code, `${found.name} in life ${this.#life}`).toBe(before.has(found.name) ? CODE.duplicate : 0);
      expect(await client.submitCode(...this.#submit(found))).toBe(CODE.duplicate);
    }
  }

  #submit({ job, nonce }: Found): [number, Bytes] {
    return [job.jobId, nonce];
  }

  #find(miner: number, client: Client): Found {
    const job = client.jobs.at(-1) as Job;
    const target = this.#random(8) === 0 ? blockTarget : undefined;
    const { nonce, next } = mine(job, client.prefix, this.#from[miner], target);
    this.#from[miner] = next;
    const header = Uint8Array.from(job.header);
    header.set(nonce, header.length - nonce.length);
    // A share may be a block by chance.
    const block = meetsTarget(powHash(job.epoch, header), blockTarget) ? toHex(blockId(header)) : null;
    const found = { miner, job, nonce, name: toHex(shareIdentity(headerDigest(header), nonce)), block };
    this.found.push(found);
    return found;
  }

  /** Whether the log has all jobs that the client was sent. */
  #isKept({ session, jobs }: Client): boolean {
    const kept = new KeptSessions({ bootId: new Uint8Array(8), resumeMillis: EASY.resumeMillis, maxSessions: 9 });
    for (const name of readdirSync(this.#sessionFiles).sort())
      if (name.endsWith('.sessions')) kept.read(readFileSync(join(this.#sessionFiles, name)));
    const log = kept.take(session, Date.now())?.record.jobs?.log;
    return log !== undefined && jobs.every(({ jobId }) => JobLog.restore(log).find(jobId) !== undefined);
  }

  #kill(file: string | undefined, { synced, size }: StoppingSink): void {
    const left = temporaryDirectory();
    cpSync(this.directory, left, { recursive: true });
    if (file !== undefined && size > synced.bytes) {
      // Killed in the middle of a write, or right behind it; entries are counted after that.
      const copy = join(left, file.slice(this.directory.length));
      truncateSync(copy, synced.bytes + this.#random(size - synced.bytes + 1));
      writeFileSync(answeredBeside(copy), synced.answered);
    }
    this.directory = left;
  }
}

const TRIALS = count({ full: 4, deep: 200 });

test(
  `a share in flight at a kill is a duplicate only if the journal has it, and is booked once (${TRIALS} random lives of five kills)`,
  lasts(120, 'servers are started again and again'),
  async () => {
    for (let trial = 0; trial < TRIALS; trial++) {
      const pool = new Pool(randomOf(seed + trial));
      for (let life = 0; life < 5; life++) await pool.live();
      // The last life only judges what the one before left.
      await pool.live();
      const names = await journaled(pool.journal);
      expect(new Set(names).size).toBe(names.length);
      const told = pool.found.slice(0, -4 * MINERS);
      expect(told.filter(({ name }) => !names.includes(name))).toEqual([]);
      // A body is good for one block: a further hit on the same is only a share.
      const bodies = Map.groupBy(
        told.filter(({ block }) => block !== null),
        ({ job }) => toHex(job.extranonce),
      );
      for (const hits of bodies.values()) expect(hits.some(({ block }) => pool.sent.has(block as string))).toBe(true);
    }
  },
);
