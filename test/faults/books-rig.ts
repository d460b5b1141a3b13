/**
 * A pool without its miners, for faults of what it depends on: the pool's own journal, sink, feed and TermRunner over a real
 * PostgreSQL and, with several instances, a real Redis. The chain is played. Shares, ownerships and blocks are made up, and an oracle
 * notes each as it is answered: at the end the books must hold exactly these.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { ConnectionCounter, connectionNumberMemory, extranonceOf } from '../../bridge/session/extranonce.ts';
import type { Chain } from '../../pool/accountant/chain.ts';
import { TermRunner } from '../../pool/accountant/term-runner.ts';
import { audit } from '../../pool/audit/audit.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { migrate } from '../../pool/database/migrate.ts';
import type { PublishedTerms } from '../../pool/edits/published-terms.ts';
import { LocalFeed } from '../../pool/feed/local-feed.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { positionsOf, reignOf, sliceEndsOf } from '../../pool/feed/positions.ts';
import { StreamSender } from '../../pool/feed/stream-sender.ts';
import { StreamSource } from '../../pool/feed/stream-source.ts';
import { endsAfterNotes, TermsNotes } from '../../pool/feed/terms-notes.ts';
import { Journal } from '../../pool/journal/journal.ts';
import { SERVICES, type Service } from '../../pool/journal/journal-record.ts';
import { PoolSink } from '../../pool/journal/share-sink.ts';
import { connectRedis, redisKeys, redisReady } from '../../pool/shared/redis.ts';
import type { CutStreamItem } from '../../protocol/api/client-events.ts';
import { HEADER_DIGEST_BYTES } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { absentWallet } from '../pool/absent-wallet.ts';
import { MonthChain } from '../pool/month-chain.ts';
import { testSealed } from '../pool/sealed.ts';
import { quietLog } from '../quiet-log.ts';

const TARGET = targetOfWork(1_000_000n);
const POOL_ADDRESS = Uint8Array.of(0, ...pattern('faults/pool', 48));
const SLICE_CUTS = 24;
const CUT_MILLIS = 20;
const ACCOUNTS = 5;
/** Between two looks at which slices closed. */
const MARK_MILLIS = 100;
const REWARD = 1_000_003n;

export const accountOf = (i: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.of(0, ...pattern(`faults/account/${i}`, 48));

/** What was answered, and what the chain paid for. */
export class Oracle {
  /** Every share is worth its own number. */
  readonly answered = new Set<bigint>();
  /** Written perhaps: the instance ended before the answer. */
  readonly unsure = new Set<bigint>();
  readonly blocks = new Map<string, { service: Service; account: number; worker: string; reward: bigint }>();
  #next = 1n;

  share(): bigint {
    return this.#next++;
  }
}

export class PlayedChain implements Chain {
  readonly #chain = new MonthChain(POOL_ADDRESS, TARGET);
  readonly #timer: NodeJS.Timeout;
  #found = 0;

  constructor() {
    this.#timer = setInterval(() => this.goOn(1), CUT_MILLIS);
  }

  get height(): number {
    return this.#chain.head;
  }

  goOn(cuts: number): void {
    this.#chain.goOn(this.#chain.head + cuts, TARGET);
  }

  /** A block found now; the chain pays for it a hundred cuts from here. */
  found(extranonce: Bytes, finder: { service: Service; account: number; worker: string }) {
    const blockId = pattern(`faults/block/${this.#found++}/${toHex(extranonce)}`, 48);
    const anchor = this.height;
    const reward = { amount: REWARD + BigInt(this.#found), height: anchor + REGISTRATION_WINDOW };
    this.#chain.add({
      id: toHex(blockId),
      finder: { ...finder, account: String(finder.account) },
      anchor,
      target: TARGET,
      extranonce,
      reward,
    });
    return { blockId, anchorHeight: anchor, target: TARGET, reward: reward.amount };
  }

  async *cuts(after: number | undefined, signal: AbortSignal): AsyncGenerator<CutStreamItem> {
    let last = after ?? -1;
    while (!signal.aborted) {
      const { to, paying } = await this.#chain.cuts(last);
      const rewards = new Map(paying);
      for (let height = last + 1; height <= to && !signal.aborted; height++)
        yield { type: 'cut_finalized', data: { cut: { height }, rewards: rewards.get(height) ?? [] } } as never;
      last = to;
    }
  }

  targetAt(height: number): Promise<bigint> {
    return this.#chain.targetAt(height);
  }

  headHeight(): Promise<number> {
    return this.#chain.headHeight();
  }

  block(id: string): ReturnType<Chain['block']> {
    return this.#chain.block(id);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

export type RigOptions = {
  readonly directory: string;
  readonly databaseUrl: string;
  readonly redisUrl?: string;
  readonly log?: Logger;
  /** That this boot was started with. */
  readonly feePpm?: bigint;
  readonly published?: PublishedTerms;
};

/** One boot of a pool instance, under load until it ends. */
export class RigInstance {
  readonly outbox: Outbox;
  /** Reads which slices the books have closed. */
  readonly look: () => Promise<void>;
  readonly #journal: Journal;
  readonly #sink: PoolSink;
  readonly #runner: TermRunner;
  readonly #owners: ConnectionCounter;
  readonly #oracle: Oracle;
  readonly #chain: PlayedChain;
  readonly #closing: (() => Promise<void> | void)[];
  #isLoaded = true;
  readonly #load: Promise<void>;

  private constructor(
    parts: Pick<RigInstance, 'outbox' | 'look'> & { journal: Journal; runner: TermRunner; bootId: Uint8Array },
    dependencies: { oracle: Oracle; chain: PlayedChain; closing: (() => Promise<void> | void)[] },
  ) {
    this.#journal = parts.journal;
    this.outbox = parts.outbox;
    this.look = parts.look;
    this.#runner = parts.runner;
    this.#oracle = dependencies.oracle;
    this.#chain = dependencies.chain;
    this.#closing = dependencies.closing;
    this.#owners = new ConnectionCounter(Uint8Array.from(parts.bootId), 0, connectionNumberMemory());
    this.#sink = new PoolSink({ journal: parts.journal, outbox: parts.outbox, log: quietLog, now: Date.now });
    this.#load = this.#mine();
  }

  static async start(options: RigOptions, oracle: Oracle, chain: PlayedChain): Promise<RigInstance> {
    const { directory, databaseUrl, redisUrl, log = quietLog, feePpm = 10_000n, published } = options;
    const closing: (() => Promise<void> | void)[] = [];
    const sql = connectDatabase(databaseUrl, { max: 6 });
    for (let attempt = 0; ; attempt++)
      try {
        await migrate(sql, log);
        break;
      } catch (error) {
        if (attempt === 1_000) throw error;
        await sleep(100);
      }
    closing.push(() => sql.end({ timeout: 1 }));
    const bootId = randomBytes(8);
    const journal = await Journal.open({ directory, bootId, segmentBytes: 20_000 });
    const outbox = await Outbox.open({ directory, bootId: journal.bootId, memoryEntries: 50 }, { log });
    const positions = positionsOf(sql);
    const reign = reignOf(sql);
    const ends = endsAfterNotes(sliceEndsOf(sql), new TermsNotes({ sql, journal, outbox }));
    const look = () => outbox.marks.look(ends);
    const lookOften = () => void look().catch(() => undefined);
    await look().catch(() => undefined);
    const looking = setInterval(lookOften, MARK_MILLIS);
    closing.push(() => clearInterval(looking));
    const openStream = async (url: string) => {
      const keys = redisKeys('faults');
      const [sending, reading] = ['feed', 'accountant'].map((name) => connectRedis(url, name, log)) as [
        ReturnType<typeof connectRedis>,
        ReturnType<typeof connectRedis>,
      ];
      await redisReady(sending, 120_000);
      const times = { positionMillis: 200, batchEntries: 50 };
      const sender = new StreamSender(
        { keys, ...times },
        { redis: sending, outbox, positions, reign, ...testSealed(), log },
      );
      closing.push(async () => {
        await sender.close();
        sending.disconnect();
      });
      return new StreamSource(
        { keys, consumer: journal.bootId, messageEntries: 50, reportMillis: 2_500 },
        { redis: reading, positions, reign, ...testSealed(), log, now: Date.now },
      );
    };
    const source = redisUrl === undefined ? new LocalFeed(outbox, { positions }) : await openStream(redisUrl);
    closing.push(() => source.close());
    const runner = new TermRunner(
      {
        network: NETWORKS.development,
        poolAddress: POOL_ADDRESS,
        sliceCuts: SLICE_CUTS,
        windowThousandths: 1_000n,
        services: [0, 1],
        feePpm: new Map(SERVICES.map((_, service) => [service, feePpm])),
        databaseUrl,
        holder: journal.bootId,
        payoutMin: 10n ** 15n,
        payoutIntervalMillis: 60_000,
        shareDays: 7,
        chartDays: 90,
        silentMillis: 86_400_000,
        webhooks: { urls: [], secret: '' },
      },
      {
        sql,
        source,
        chain,
        wallet: absentWallet('nothing is paid here'),
        log,
        now: Date.now,
        wall: Date.now,
        ...(published === undefined ? {} : { published }),
      },
    );
    return new RigInstance({ journal, outbox, runner, bootId, look }, { oracle, chain, closing });
  }

  /** Connections come and go; each has shares, the first of which puts its ownership on record, and now and then a block. */
  async #mine(): Promise<void> {
    for (let connection = 0; this.#isLoaded; connection++) {
      const account = connection % ACCOUNTS;
      const service = SERVICES[connection % 2] as Service;
      const worker = `w${connection % 7}`;
      const owner = this.#owners.next();
      const who = { service, account: accountOf(account), worker };
      await this.#sink.own([{ owner, ...who }]);
      const extranonce = extranonceOf('', owner, 0);
      for (let i = 0; i < 10 && (i === 0 || this.#isLoaded); i++) {
        const works = Array.from({ length: 1 + (i % 4) }, () => this.#oracle.share());
        const shares = works.map((work) => this.#share(who, extranonce, work));
        for (const work of works) this.#oracle.unsure.add(work);
        await this.#sink.shares(shares);
        for (const work of works) this.#oracle.answered.add(work);
        await sleep(10);
      }
      // Few: each is several transactions of the books, and all of them come again after every fall.
      if (connection % 7 === 0) await this.#find(who, account, extranonce, connection);
    }
  }

  #share(who: { service: Service; account: Bytes; worker: string }, extranonce: Bytes, work: bigint) {
    const at = { hashWork: 1, cutHeight: this.#chain.height, atMillis: Date.now() };
    const nonce = pattern(`faults/nonce/${work}`, 8);
    return {
      ...who,
      work,
      extranonce,
      nonce,
      headerDigest: pattern(`faults/header/${work}`, HEADER_DIGEST_BYTES),
      ...at,
    };
  }

  async #find(
    who: { service: Service; account: Bytes; worker: string },
    account: number,
    extranonce: Bytes,
    connection: number,
  ): Promise<void> {
    const { service, worker } = who;
    const found = this.#chain.found(extranonce, { service, account, worker });
    this.#oracle.blocks.set(toHex(found.blockId), { service, account, worker, reward: found.reward });
    // Of some the journal does not know: their finder is known by the ownership of the extranonce alone.
    if (connection % 3 === 0) return;
    const share = this.#share(who, extranonce, 1n);
    const carried = { fees: 0n, mass: 0 };
    await this.#sink.block({ ...share, ...found, payout: POOL_ADDRESS, header: new Uint8Array(312), carried });
  }

  async stopLoad(): Promise<void> {
    this.#isLoaded = false;
    await this.#load;
  }

  /** Ends it. What is in its journal stays there. */
  async stop(): Promise<void> {
    await this.stopLoad();
    await this.#runner.close();
    for (const close of this.#closing.reverse()) await close();
    await this.#journal.close();
  }
}

type Count = { readonly n?: number | null };
const number = async (rows: PromiseLike<readonly Count[]>): Promise<number> => Number((await rows)[0]?.n ?? 0);

/** What the pool has published of closed slices: each hash names all that is in the slice, and all slices before it. */
export async function publishedSlices(sql: Sql, instances: readonly RigInstance[]): Promise<Map<string, string>> {
  const rows = await sql<{ slice: string; chain: string }[]>`select service || '/' || number as slice,
    encode(chain, 'hex') as chain from slices where closed_height is not null`;
  for (const instance of instances) await instance.look();
  return new Map(rows.map(({ slice, chain }) => [slice, chain]));
}

/** Waits until everything that was answered is in the books and every block is credited, for as long as something moves. */
export async function booksSettled(sql: Sql, oracle: Oracle, stallMillis: number): Promise<void> {
  let [seen, since] = ['', Date.now()];
  for (; ; await sleep(200)) {
    const [row] = await sql<{ shares: number; credited: number }[]>`select (select count(*)::int from shares) as shares,
      (select count(*)::int from blocks where credit_list is not null) as credited`.catch(() => []);
    const { shares = 0, credited = 0 } = row ?? {};
    const missing = { shares: Math.max(0, oracle.answered.size - shares), blocks: oracle.blocks.size - credited };
    if (missing.shares === 0 && missing.blocks === 0) return;
    if (JSON.stringify(missing) !== seen) [seen, since] = [JSON.stringify(missing), Date.now()];
    if (Date.now() - since > stallMillis) throw new Error(`the books stand, and lack ${seen}`);
  }
}

/**
 * The books after any number of rollbacks are the books without them: every share that was answered is in them exactly once with its
 * account, worker and work, every block once, paid and credited once, to its finder; everything else follows from these by the rules of
 * the books, and the audit recomputes it. Slices that were published are the same again, with all that is in them.
 */
export async function expectBooks(sql: Sql, oracle: Oracle, published: ReadonlyMap<string, string>): Promise<void> {
  const shares = await sql<{ work: string; address: string; slice: number }[]>`select s.work::text as work, s.slice
    from shares s`;
  const works = shares.map((row) => BigInt(row.work));
  const counted = new Set(works);
  expect(works.length).toBe(counted.size);
  expect([...oracle.answered].filter((work) => !counted.has(work))).toEqual([]);
  expect([...counted].filter((work) => !oracle.unsure.has(work))).toEqual([]);
  const total = String(works.reduce((sum, work) => sum + work, 0n));
  expect(String((await sql`select sum(work)::text as n from workers`)[0]?.n)).toBe(total);
  expect(await number(sql`select sum(accepted)::int as n from workers`)).toBe(works.length);
  const inSlices = await sql`select ((select coalesce(sum(total), 0) from slices where closed_height is not null)
    + (select coalesce(sum(work), 0) from open_work) + (select coalesce(sum(work), 0) from later_work))::text as n`;
  expect(String(inSlices[0]?.n)).toBe(total);
  const now = await publishedSlices(sql, []);
  expect([...published].filter(([slice, chain]) => now.get(slice) !== chain)).toEqual([]);
  const blocks = await sql<
    { id: string; service: number; payload: Buffer; worker: string; state: string; reward: bigint; credited: boolean }[]
  >`select encode(b.block_id, 'hex') as id, b.service, a.payload, w.name as worker, b.state, b.reward,
      b.credit_list is not null as credited
    from blocks b join accounts a on a.id = b.account_id join workers w on w.id = b.worker_id`;
  const found = new Map(
    blocks.map(({ id, service, payload, ...block }) => [
      id,
      { ...block, service: SERVICES[service], account: payload.toString('hex') },
    ]),
  );
  const expected = [...oracle.blocks].map(([id, { service, account, worker, reward }]) => [
    id,
    { service, account: toHex(accountOf(account)), worker, reward, state: 'paid', credited: true },
  ]);
  expect(found).toEqual(new Map(expected as never));
  expect((await audit(sql, { network: 'development' })).findings).toEqual([]);
  const sheet = await balanceSheet(sql);
  expect(sheet.gap).toBe(0n);
  const rewards = [...oracle.blocks.values()].reduce((sum, block) => sum + block.reward, 0n);
  expect(sheet.balances + sheet.poolFees).toBe(rewards);
}
