/**
 * The one writer of the books. Journal entries and finalized cuts come in, each becomes one fenced transaction, and
 * they are taken one after another: a share belongs to the slice that is open at its turn. It runs only while its
 * instance holds the term (pool/books/term.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BOOT_ID_BYTES, readExtranonce } from '../bridge/extranonce.ts';
import { formatAddress } from '../protocol/address.ts';
import type { CutStreamItem } from '../protocol/api/client-events.ts';
import { type Bytes, fromHex, toHex } from '../protocol/bytes.ts';
import { type Network, REGISTRATION_WINDOW } from '../protocol/network.ts';
import { sliceOfHeight } from '../protocol/pplns.ts';
import { targetFromBytes } from '../protocol/target.ts';
import type { Logger } from '../runtime/log.ts';
import { ClosedWork } from './books/closed-work.ts';
import { type CreditList, type CreditOptions, makeCredits } from './books/credits.ts';
import { Intake, type IntakeResult, UNKNOWN_FINDER } from './books/intake.ts';
import { expireBlocks, type PaidReward, recordAnswer, recordPaid, recordRegistered } from './books/rewards.ts';
import { advanceSlices, openSlices, type SliceOptions, slicesToOpen } from './books/slices.ts';
import { fenced } from './books/term.ts';
import type { Chain } from './chain.ts';
import { inBatches } from './cut-batches.ts';
import type { Sql, Transaction } from './database/connect.ts';
import type { EntrySource } from './feed/entry-source.ts';
import type { JournalEntry } from './journal.ts';
import { type BlockRecord, SERVICES } from './journal-record.ts';

export type AccountantOptions = SliceOptions &
  CreditOptions & {
    readonly network: Network;
    /** Payload of the address that the pool's blocks pay. */
    readonly poolAddress: Bytes;
    readonly term: bigint;
  };

export type AccountantEvents = {
  onCredits?(list: CreditList): void;
  onPaid?(reward: PaidReward): void;
  onExpired?(blockIds: readonly string[]): void;
};

export type AccountantDependencies = AccountantEvents & {
  readonly sql: Sql;
  readonly chain: Chain;
  readonly log: Logger;
  /** The journals, which may name the finder of a block that the chain has paid already. */
  readonly source?: Pick<EntrySource, 'mayTell'>;
};

/** How long rewards wait for the journal that may name their finder. A machine that is lost must not stop the others' credits. */
const FINDER_MILLIS = 600_000;
const FINDER_RETRY_MILLIS = 250;

/** Cuts read ahead while the books are busy: after an outage they come faster than transactions end. */
const MAX_BATCH_CUTS = 1_000;
/** Slices opened in one transaction after the pool was away. */
const MAX_BATCH_SLICES = 500;

type ChainReward = { block_id: string; transaction_id: string; output_index: number; amount: string };

const rewardOf = (reward: ChainReward, height: number): PaidReward => ({
  blockId: fromHex(reward.block_id),
  transactionId: fromHex(reward.transaction_id),
  outputIndex: reward.output_index,
  amount: BigInt(reward.amount),
  height,
});

export class Accountant {
  readonly #options: AccountantOptions;
  readonly #dependencies: AccountantDependencies;
  readonly #intake: Intake;
  #closed = new ClosedWork();
  #turn: Promise<unknown> = Promise.resolve();
  /** The newest slice that was seen open; nobody else opens one while the term lasts, and none is ever opened again. */
  #opened = -1;
  /** Boots whose journals rewards have waited for, and since when. */
  readonly #awaited = new Map<string, number>();

  constructor(options: AccountantOptions, dependencies: AccountantDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#intake = new Intake({ network: options.network.name, sliceCuts: options.sliceCuts });
  }

  async #fenced<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    try {
      return await fenced(this.#dependencies.sql, this.#options.term, work);
    } catch (error) {
      // Accounts that this transaction made are perhaps not there, and their ids are nobody's.
      this.#intake.forget();
      this.#closed = new ClosedWork();
      throw error;
    }
  }

  /** One after another, whatever order the callers come in. */
  #next<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /**
   * Opens a new pool's first slices, which must have happened before shares are taken in. Slices that are open stay so until
   * the chain is followed: what waits in the journals belongs to them.
   */
  start(): Promise<number> {
    return this.#next(async () => {
      const { sql, chain } = this.#dependencies;
      const height = await chain.headHeight();
      const open = await sql.begin((transaction) => openSlices(transaction));
      if (this.#options.services.some((service) => !open.has(service))) await this.#advance(height);
      return height;
    });
  }

  async takeIn(entries: readonly JournalEntry[]): Promise<IntakeResult> {
    const result = await this.#next(() => this.#fenced((transaction) => this.#intake.take(transaction, entries)));
    if (result.lost > 0)
      this.#dependencies.log.error('the books went on without entries that no journal holds', { entries: result.lost });
    // The stratum server lets none through: a journal was copied, or something is broken.
    if (result.doubled > 0)
      this.#dependencies.log.error('shares came twice and count once', { shares: result.doubled });
    return result;
  }

  /** What a node answered to a block, and its registration: shown to people, no money depends on it. */
  blockNews(blockId: Bytes, state: 'accepted' | 'refused' | 'registered', reason?: string): Promise<void> {
    return this.#next(() =>
      this.#fenced((transaction) =>
        state === 'registered'
          ? recordRegistered(transaction, blockId)
          : recordAnswer(transaction, blockId, state, reason),
      ),
    );
  }

  /** Follows the chain from where the books stand until the signal. */
  async follow(signal: AbortSignal): Promise<void> {
    const { sql, chain } = this.#dependencies;
    const [row] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
    const after = row === undefined ? undefined : Number(row.value);
    const over = new AbortController();
    const cuts = chain.cuts(after, AbortSignal.any([signal, over.signal]));
    try {
      for await (const items of inBatches(cuts, MAX_BATCH_CUTS))
        for (const item of this.#worthTaking(items)) {
          if (signal.aborted) return;
          // Meanwhile entries are taken in: among them, perhaps, the one that names the finder.
          while (!(await this.#next(() => this.#take(item))) && !signal.aborted) await sleep(FINDER_RETRY_MILLIS);
        }
    } finally {
      over.abort();
    }
  }

  /** A cut that pays nothing and opens no slice says nothing that the next one does not say too. */
  #worthTaking(items: readonly CutStreamItem[]): CutStreamItem[] {
    const sliceOf = (item: CutStreamItem | undefined) =>
      item?.type === 'cut_finalized' ? sliceOfHeight(item.data.cut.height, this.#options.sliceCuts) : undefined;
    return items.filter((item, i) => {
      const isQuiet = item.type === 'cut_finalized' && item.data.rewards.length === 0;
      return !(isQuiet && sliceOf(items[i + 1]) === sliceOf(item));
    });
  }

  /** False while the cut must wait for a journal. */
  async #take(item: CutStreamItem): Promise<boolean> {
    if (item.type === 'missed') {
      await this.#reconcile(item.data.to);
      return true;
    }
    const { height } = item.data.cut;
    const adopted = await this.#adoptable(item.data.rewards);
    if (adopted === undefined) return false;
    await this.#advance(height);
    const unseen = await this.#settledUnseen(height);
    const { paid, expired, lists } = await this.#fenced(async (transaction) => {
      for (const record of adopted) await this.#intake.adoptBlock(transaction, record);
      const paid: PaidReward[] = [];
      for (const reward of [...unseen, ...item.data.rewards.map((reward) => rewardOf(reward, height))])
        if (await recordPaid(transaction, reward)) paid.push(reward);
      return { paid, ...(await this.#settle(transaction, height)) };
    });
    for (const reward of paid) this.#dependencies.onPaid?.(reward);
    this.#tell(expired, lists);
    return true;
  }

  async #settle(transaction: Transaction, height: number) {
    const expired = await expireBlocks(transaction, height, REGISTRATION_WINDOW);
    const lists = await makeCredits(transaction, this.#closed, this.#options, height);
    await transaction`insert into settings values ('chain_height', ${String(height)})
      on conflict (name) do update set value = excluded.value`;
    return { expired, lists };
  }

  #tell(expired: readonly Buffer[], lists: readonly CreditList[]): void {
    if (expired.length > 0) this.#dependencies.onExpired?.(expired.map((id) => id.toString('hex')));
    for (const list of lists) this.#dependencies.onCredits?.(list);
  }

  /** Opens the slices up to a finalized height. Each needs the target of its first cut, which the chain keeps. */
  async #advance(height: number): Promise<void> {
    const { sql, chain } = this.#dependencies;
    if (sliceOfHeight(height, this.#options.sliceCuts) <= this.#opened) return;
    for (;;) {
      const open = await sql.begin((transaction) => openSlices(transaction));
      const due = slicesToOpen(open, this.#options, height);
      const numbers = due.slice(0, MAX_BATCH_SLICES);
      const last = numbers.at(-1);
      if (last === undefined) break;
      const targets = new Map<number, bigint>();
      for (const slice of numbers) targets.set(slice, await chain.targetAt(slice * this.#options.sliceCuts));
      const moment = {
        height: last === due.at(-1) ? height : last * this.#options.sliceCuts,
        targetOf: (slice: number) => targets.get(slice) as bigint,
      };
      await this.#fenced((transaction) => advanceSlices(transaction, this.#options, moment));
    }
    this.#opened = sliceOfHeight(height, this.#options.sliceCuts);
  }

  /**
   * Rewards of blocks that no journal named and that pay the pool: a crash came between the node's `accepted` and the
   * journal. The extranonce names the connection, whose account was on record before its first job. Undefined while a
   * journal that the books have not read to its end may name one of them.
   */
  async #adoptable(rewards: readonly ChainReward[]): Promise<BlockRecord[] | undefined> {
    if (rewards.length === 0) return [];
    const { sql, chain } = this.#dependencies;
    const ids = rewards.map((reward) => `\\x${reward.block_id}`);
    const rows = await sql<{ block_id: Buffer }[]>`select block_id from blocks
      where block_id = any(${ids}::text[]::bytea[])`;
    const known = new Set(rows.map((row) => row.block_id.toString('hex')));
    const found: BlockRecord[] = [];
    for (const reward of rewards) {
      if (known.has(reward.block_id)) continue;
      const document = await chain.block(reward.block_id);
      if (document === undefined || document.payout !== this.#poolAddressText) continue;
      const record = await this.#finderOf(document);
      if (record === undefined) return undefined;
      found.push(record);
    }
    return found;
  }

  /** Whether the journal of a boot is worth waiting for: it may have more to tell, and has not been waited for too long. */
  async #isAwaited(bootId: string, block: string): Promise<boolean> {
    const { source, log } = this.#dependencies;
    if (source === undefined || !(await source.mayTell(bootId))) return false;
    const since = this.#awaited.get(bootId) ?? performance.now();
    if (!this.#awaited.has(bootId)) {
      log.warn('a reward waits for the journal that names its finder', { block, bootId });
      this.#awaited.set(bootId, since);
    }
    return performance.now() - since < FINDER_MILLIS;
  }

  get #poolAddressText(): string {
    return formatAddress(this.#options.poolAddress, this.#options.network.name);
  }

  async #finderOf(document: NonNullable<Awaited<ReturnType<Chain['block']>>>): Promise<BlockRecord | undefined> {
    const { sql, log } = this.#dependencies;
    const extranonce = fromHex(document.extranonce);
    const owner = readExtranonce(extranonce)?.owner ?? new Uint8Array(0);
    const [row] = await sql<{ service: number; payload: Buffer; name: string }[]>`select o.service, a.payload, w.name
      from ownerships o join accounts a on a.id = o.account_id join workers w on w.id = o.worker_id
      where o.owner = ${Buffer.from(owner)}`;
    const base = {
      kind: 'block' as const,
      blockId: fromHex(document.block_id),
      anchorHeight: document.anchor_height,
      target: targetFromBytes(fromHex(document.target)),
      extranonce,
      atMillis: document.timestamp_millis,
    };
    if (row !== undefined) {
      log.info('adopted a block that no journal named', { block: document.block_id, worker: row.name });
      const service = SERVICES[row.service] as BlockRecord['service'];
      return { ...base, service, account: new Uint8Array(row.payload), worker: row.name };
    }
    if (await this.#isAwaited(toHex(owner.subarray(0, BOOT_ID_BYTES)), document.block_id)) return undefined;
    // Nobody of ours: its reward is the pool's all the same, and PPLNS divides it without asking who found it.
    log.error('a block pays the pool and its finder is not on record', {
      block: document.block_id,
      owner: toHex(owner),
    });
    return { ...base, service: 'pplns', account: this.#options.poolAddress, worker: UNKNOWN_FINDER };
  }

  /** After a gap that the stream could not replay, each open block is asked for by name. */
  async #reconcile(height: number): Promise<void> {
    const { log } = this.#dependencies;
    log.warn('the chain went on without the pool for longer than its events reach back', { height });
    const paid = await this.#settledUnseen(height + 1);
    await this.#advance(height);
    const { expired, lists } = await this.#fenced(async (transaction) => {
      for (const reward of paid) await recordPaid(transaction, reward);
      return this.#settle(transaction, height);
    });
    this.#tell(expired, lists);
  }

  /**
   * Rewards of open blocks whose cut is below a height: it was read before their journal came, or could not be read at all.
   * Each is asked for by name, so that no block that the chain paid is taken for expired.
   */
  async #settledUnseen(height: number): Promise<PaidReward[]> {
    const { sql, chain } = this.#dependencies;
    const open = await sql<{ block_id: Buffer }[]>`select block_id from blocks
      where state in ('found', 'accepted', 'registered', 'refused') and anchor_height + ${REGISTRATION_WINDOW} < ${height}`;
    const paid: PaidReward[] = [];
    for (const { block_id } of open) {
      const block = block_id.toString('hex');
      const reward = (await chain.block(block))?.reward;
      if (reward?.state !== 'paid' || reward.outpoint === null || reward.amount === null) continue;
      paid.push(rewardOf({ block_id: block, ...reward.outpoint, amount: reward.amount }, reward.paid_height ?? height));
    }
    return paid;
  }
}
