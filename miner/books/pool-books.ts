/**
 * The watch of svc-miner and svc-proxy over the books of all their pools: one BooksWatch for each pool, address and worker, saved in a file,
 * run every minute and soon after receipts arrive. It never delays mining: failures are retried.
 */
import { createApiClient } from '../../protocol/api/client.ts';
import type { Fetch } from '../../protocol/api/client-calls.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { MonotonicClock, WallClock } from '../../runtime/clock/clock.ts';
import { verifyMessage } from '../../runtime/native/ml-dsa.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import type { BooksOfPools } from '../client/link-books.ts';
import type { NoteLevel } from '../client/pool-client.ts';
import type { MinerValues } from '../options.ts';
import type { BooksAlarm } from './books-alarms.ts';
import { EvidenceFiles, readBooks, writeBooks } from './books-file.ts';
import { BooksWatch } from './books-watch.ts';
import { readDocument } from './pool-reads.ts';

export type PoolBooksOptions = {
  readonly dataDir: string;
  readonly network: NetworkName;
  /** As the user named them. */
  readonly pools: readonly string[];
  readonly address: string;
  readonly worker: string;
  /** Whose work is watched: that of the worker, or of all that the address has at the pool (svc-proxy). */
  readonly watches?: 'worker' | 'address';
  readonly api: string | undefined;
  readonly poolKey: string | undefined;
  readonly payoutThreshold: bigint | undefined;
  /** The miner's own node, from which the ledger is read. */
  readonly nodeApi: string | undefined;
};

export type PoolBooksDependencies = {
  readonly note: (level: NoteLevel, message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly now: MonotonicClock;
  /** The time of day. */
  readonly wall: WallClock;
  readonly random: () => number;
  readonly fetch: Fetch;
};

/** As its options name them; undefined where the books are not to be watched. */
export function openBooks(
  values: Pick<MinerValues, 'pool' | 'user' | 'poolApi' | 'poolKey' | 'nodeApi' | 'payoutThreshold' | 'checkBooks'>,
  dataDir: string,
  dependencies: PoolBooksDependencies,
  watches: PoolBooksOptions['watches'] = 'worker',
): PoolBooks | undefined {
  const { user, poolApi: api, poolKey, nodeApi, payoutThreshold } = values;
  if (!values.checkBooks || user === undefined) return undefined;
  const { network } = user.address;
  const pools = values.pool.map(({ text }) => text);
  const { text: address, worker } = user;
  return new PoolBooks(
    { dataDir, network, pools, address, worker, watches, api, poolKey, nodeApi, payoutThreshold },
    dependencies,
  );
}

export type BooksFigures = {
  readonly compared: number;
  readonly newest: number;
  readonly alarms: number;
  /** Evidence that could not be written yet. */
  readonly unwritten: number;
  readonly proven: number;
  readonly unchecked: number;
};

const CHECK_MILLIS = 60_000;
const SAVE_MILLIS = 2_000;
/** Ten thousand miners get their receipts at once: their requests are spread over this time. */
const SPREAD_MILLIS = 10_000;
/** Characters from the end of an address in file names. */
const ADDRESS_END = 12;
/** Saved watches of pools that are not in use any more. */
const MAX_KEPT = 32;

export class PoolBooks implements BooksOfPools {
  readonly #options: PoolBooksOptions;
  readonly #dependencies: PoolBooksDependencies;
  readonly #watches: readonly BooksWatch[];
  #timers: NodeJS.Timeout[] = [];
  #soon: NodeJS.Timeout | undefined;
  #saving: Promise<void> = Promise.resolve();
  readonly #evidence: EvidenceFiles;
  /** Why the books could not be read, told once for each cause. */
  readonly #told = new Map<BooksWatch, string>();

  constructor(options: PoolBooksOptions, dependencies: PoolBooksDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#evidence = new EvidenceFiles(options.dataDir, ({ pool, name }, file) => {
      const fields = { pool, alarm: name.kind, ...(file === undefined ? {} : { evidence: file }) };
      dependencies.note('error', 'evidence that could not be written before is on disk now', fields);
    });
    const saved = readBooks(options.dataDir, options.network);
    this.#watches = options.pools.map((pool, i) => this.#open(pool, saved[this.#nameOf(i)]));
  }

  #nameOf(pool: number): string {
    return `${this.#options.pools[pool]} ${this.#options.address}.${this.#options.worker}`;
  }

  #open(pool: string, saved: unknown): BooksWatch {
    const { address, api, poolKey, payoutThreshold: threshold, nodeApi } = this.#options;
    const worker = this.#options.watches === 'address' ? undefined : this.#options.worker;
    const { fetch } = this.#dependencies;
    const node =
      nodeApi === undefined ? null : createApiClient({ baseUrl: nodeApi }, { ...apiClientDependencies(), fetch });
    return new BooksWatch(
      { address, worker, api, expectedKey: poolKey, threshold },
      {
        read: (url) => readDocument(fetch, url),
        alarm: (alarm) => void this.#alarm(pool, alarm),
        note: (message, fields) => this.#dependencies.note('info', message, { pool, ...fields }),
        warn: (message, fields) => this.#dependencies.note('warn', message, { pool, ...fields }),
        nowMillis: this.#dependencies.now,
        wallMillis: this.#dependencies.wall,
        node,
        random: this.#dependencies.random,
        verify: (signature, message, key) => verifyMessage(key, message, signature),
        // Done at once: accepted work counts only after the first answer.
        onOffer: (offer) => offer !== null && this.check(),
        onReceipt: () => {
          this.#soon ??= setTimeout(() => this.check(), this.#dependencies.random() * SPREAD_MILLIS);
        },
      },
      saved,
    );
  }

  async #alarm(pool: string, { key, kind, message, fields, evidence }: BooksAlarm): Promise<void> {
    const slice = `${fields.service ?? ''}-${fields.slice ?? ''}`;
    // Miners of several addresses may share the directory: the evidence of one must not take the place of another's.
    const about = `${pool.replace(/^.*:[/][/]/, '')}-${this.#options.address.slice(-ADDRESS_END)}`;
    const name = { kind, slice, pool: about };
    const written = evidence === undefined ? {} : await this.#evidence.write({ alarm: key, name, evidence, pool });
    this.#changed();
    this.#dependencies.note('error', message, { pool, alarm: kind, ...fields, ...written });
  }

  start(): void {
    this.#timers = [setInterval(() => this.check(), CHECK_MILLIS), setInterval(() => this.#save(), SAVE_MILLIS)];
  }

  /** A figure over all pools. */
  get figures(): BooksFigures {
    const sum = (of: (watch: BooksWatch) => number): number => this.#watches.reduce((all, each) => all + of(each), 0);
    return {
      compared: sum((watch) => watch.compared),
      newest: Math.max(-1, ...this.#watches.map((watch) => watch.newest)),
      alarms: sum((watch) => watch.alarms),
      unwritten: this.#evidence.waiting,
      proven: sum((watch) => watch.lists.proven),
      unchecked: sum((watch) => watch.lists.unchecked),
    };
  }

  of(pool: number): BooksWatch | undefined {
    return this.#watches[pool];
  }

  check(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    this.#retry();
    for (const watch of this.#watches)
      watch.check().then(
        () => this.#told.delete(watch),
        ({ message: reason }: Error) => {
          const level = this.#told.get(watch) === reason ? 'debug' : 'warn';
          this.#told.set(watch, reason);
          this.#dependencies.note(level, 'the books could not be read', { api: watch.api, reason });
        },
      );
  }

  /** Alarms whose evidence was written go on record. */
  #changed(): void {
    for (const watch of this.#watches) watch.isChanged = true;
  }

  #retry(): void {
    if (this.#evidence.waiting === 0) return;
    void this.#evidence.retry().then(() => {
      this.#changed();
      const { waiting } = this.#evidence;
      if (waiting > 0)
        this.#dependencies.note('error', 'evidence against a pool cannot be written: free the disk', {
          files: waiting,
        });
    });
  }

  #save(): void {
    if (!this.#watches.some((watch) => watch.isChanged)) return;
    const { dataDir, network, pools } = this.#options;
    const savedOf = (watch: BooksWatch, i: number) =>
      [this.#nameOf(i), watch.save(this.#evidence.alarmsOf(pools[i] as string))] as const;
    const write = (): Promise<void> => {
      // Read anew: another miner with the same data directory may have saved its own since.
      const own = this.#watches.map(savedOf);
      const others = Object.entries(readBooks(dataDir, network)).slice(-MAX_KEPT);
      return writeBooks(dataDir, network, Object.fromEntries([...others, ...own]));
    };
    // An alarm is raised once: it is recorded only when its evidence is on disk.
    this.#saving = Promise.all([this.#saving, this.#evidence.settled])
      .then(write)
      .catch((error) => this.#dependencies.note('warn', 'what the pool said of its books cannot be saved', { error }));
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#soon);
    this.#retry();
    this.#save();
    await this.#saving;
  }
}
