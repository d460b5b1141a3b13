/**
 * The only writer of the books. Each journal entry and finalized cut becomes one fenced transaction; they are processed
 * one after another. A share is counted in the slice of its anchor, or in the open slice if that one is closed. It runs
 * only while its instance holds the term (pool/books/term.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { formatAddress } from '../../protocol/address.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import type { CutStreamItem } from '../../protocol/api/client-events.ts';
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { type Network, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { type SteadyClock, steadyMillis, type WallClock, wallMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { ClosedWork } from '../books/closed-work.ts';
import { type CreditOptions, makeCredits } from '../books/credits.ts';
import { Intake, type IntakeResult } from '../books/intake.ts';
import { conflictingRewards, expireBlocks, recordAnswer, recordRegistered, recordVerdict } from '../books/rewards.ts';
import { advanceSlices, openSlices, type SliceOptions, slicesToOpen } from '../books/slices.ts';
import { fenced } from '../books/term.ts';
import { beginTerms } from '../books/terms-in-force.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import type { PublishedTerms } from '../edits/published-terms.ts';
import { lockTerms } from '../edits/terms-rows.ts';
import type { JournalEntry } from '../journal/journal.ts';
import { anchorOfShare, SERVICES } from '../journal/journal-record.ts';
import { Adoption, type AdoptionDependencies } from './adoption.ts';
import type { Chain } from './chain.ts';
import { ChainWatch, noteCut, notePaidAnchor } from './chain-watch.ts';
import { inBatches } from './cut-batches.ts';
import type { CutRange, PaidCut } from './missed-cuts.ts';
import { type JudgeOptions, RewardJudge, type Verdict } from './reward-judge.ts';

export type AccountantOptions = SliceOptions &
  CreditOptions &
  JudgeOptions & {
    readonly network: Network;
    /** Payload of the address that the pool's blocks pay. */
    readonly poolAddress: Bytes;
    readonly term: bigint;
  };

export type AccountantDependencies = Pick<AdoptionDependencies, 'source' | 'powHash'> & {
  readonly sql: Sql;
  readonly chain: Chain;
  readonly log: Logger;
  readonly now?: SteadyClock;
  readonly wall?: WallClock;
  readonly published?: PublishedTerms;
};

const FINDER_RETRY_MILLIS = 250;

/** Cuts read ahead while the books are busy: after an outage cuts arrive faster than transactions complete. */
const MAX_BATCH_CUTS = 1_000;
/** Slices opened in one transaction after an outage of the pool. */
const MAX_BATCH_SLICES = 500;

/** Nodes of front ends may be ahead of the accountant's node by at most this many slices. */
const SLICES_AHEAD = 2;

export class Accountant {
  readonly #options: AccountantOptions;
  readonly #dependencies: AccountantDependencies;
  readonly #intake: Intake;
  #closed = new ClosedWork();
  #turn: Promise<unknown> = Promise.resolve();
  /** The newest slice known to be open; only this instance opens slices during its term, and none is opened twice. */
  #opened = -1;
  /** The newest final height that the node is known to have. */
  #head = 0;
  /** The newest slice that was refused because its anchor is too far beyond the chain. */
  #refusedSlice = -1;
  readonly #adoption: Adoption;
  readonly #judge: RewardJudge;
  readonly #watch: ChainWatch;

  constructor(options: AccountantOptions, dependencies: AccountantDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#intake = new Intake({ network: options.network.name, sliceCuts: options.sliceCuts });
    this.#adoption = new Adoption(options, dependencies);
    const { sql, chain, now = steadyMillis, wall = wallMillis } = dependencies;
    // The later of both: a limit must not refuse a true height because one of the clocks is wrong.
    const watch = new ChainWatch(options.network.name, { sql, chain, now: () => Math.max(now(), wall()) });
    this.#judge = new RewardJudge(options, { ...dependencies, intervalCuts: () => watch.intervalCuts });
    this.#watch = watch;
  }

  async #fenced<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    try {
      return await fenced(this.#dependencies.sql, this.#options.term, work);
    } catch (error) {
      // Accounts created by this transaction may have been rolled back: their cached ids are dropped.
      this.#intake.forget();
      this.#closed = new ClosedWork();
      throw error;
    }
  }

  /** Runs the callers' work one after another. */
  #next<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /**
   * Opens a new pool's first slices; this must happen before shares are taken in. Open slices stay open until the chain
   * is followed: entries that wait in the journals belong to them.
   */
  start(): Promise<number> {
    return this.#next(async () => {
      const { sql, chain } = this.#dependencies;
      await this.#watch.checkChain();
      const height = await chain.headHeight();
      await this.#watch.checkHeight(height);
      this.#head = height;
      const announced = await this.#fenced(async (transaction) => {
        await lockTerms(transaction);
        await this.#dependencies.published?.settle(transaction);
        return beginTerms(transaction, this.#options, height);
      });
      for (const { service, ppm, window, from } of announced)
        this.#dependencies.log.info('other terms of the options hold later: miners have a day of notice', {
          service: SERVICES[service],
          ...(ppm === undefined ? {} : { feePercent: ppm / 10_000 }),
          ...(window === undefined ? {} : { windowBlocks: window / 1_000 }),
          fromSlice: from,
        });
      const open = await sql.begin((transaction) => openSlices(transaction));
      if (this.#options.services.some((service) => !open.has(service))) await this.#advance(height);
      return height;
    });
  }

  async takeIn(entries: readonly JournalEntry[]): Promise<IntakeResult> {
    const result = await this.#next(async () => {
      const newest = await this.#newestSlice(entries);
      return this.#fenced((transaction) => this.#intake.take(transaction, entries, newest));
    });
    if (result.lost > 0)
      this.#dependencies.log.error('the books went on without entries that no journal holds', { entries: result.lost });
    // The stratum server refuses duplicates, so a journal was copied, or there is a bug.
    if (result.doubled > 0)
      this.#dependencies.log.error('shares came twice and count once', { shares: result.doubled });
    if (result.unread > 0)
      this.#dependencies.log.error('records of a journal cannot be read and were set aside', {
        records: result.unread,
      });
    return result;
  }

  /**
   * The newest slice that an anchor may name. Entries that name a later one wait until the node confirms how far the chain is:
   * in the open slice they would be paid for blocks that were found before them.
   */
  async #newestSlice(entries: readonly JournalEntry[]): Promise<number> {
    const { chain, log } = this.#dependencies;
    const { sliceCuts } = this.#options;
    const newest = () => sliceOfHeight(this.#head, sliceCuts) + SLICES_AHEAD;
    let anchor = 0;
    for (const { record } of entries) anchor = Math.max(anchor, anchorOfShare(record) ?? 0);
    const named = sliceOfHeight(anchor, sliceCuts);
    if (named > newest()) {
      const height = await chain.headHeight();
      await this.#watch.checkHeight(height);
      this.#head = Math.max(this.#head, height);
    }
    if (named > newest() && named > this.#refusedSlice) {
      log.error(
        'shares name an anchor far beyond the chain: the node of a front end follows another chain, or is faulty',
        {
          anchor,
          head: this.#head,
        },
      );
      this.#refusedSlice = named;
    }
    return newest();
  }

  /** A node's answer to a block, and the block's registration: for display; no money depends on it. */
  blockNews(blockId: Bytes, state: 'accepted' | 'refused' | 'registered', reason?: string): Promise<void> {
    return this.#next(() =>
      this.#fenced((transaction) =>
        state === 'registered'
          ? recordRegistered(transaction, blockId)
          : recordAnswer(transaction, blockId, state, reason),
      ),
    );
  }

  /** Follows the chain from the books' height until the signal; `onCut` after each cut that the books have. */
  async follow(signal: AbortSignal, onCut: () => void = () => undefined): Promise<void> {
    const { sql, chain } = this.#dependencies;
    const [row] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
    const after = row === undefined ? undefined : Number(row.value);
    await this.#watch.checkChain();
    await this.#watch.checkPlace();
    if (after !== undefined) await this.#next(() => this.#lookBack(after));
    const over = new AbortController();
    let isSamePlace = false;
    const cuts = chain.cuts(after, AbortSignal.any([signal, over.signal]));
    try {
      for await (const items of inBatches(cuts, MAX_BATCH_CUTS))
        for (const item of this.#worthTaking(items)) {
          if (signal.aborted) return;
          // Checked again with each connection: the node may have been replaced since the first check.
          if (!isSamePlace) await this.#watch.checkPlace();
          isSamePlace = true;
          if (item.type === 'missed') await this.#catchUp(item.data, signal);
          else await this.#wait(item.data, signal);
          if (!signal.aborted) onCut();
        }
    } finally {
      over.abort();
    }
  }

  /** A cut that pays nothing and opens no slice can be skipped. */
  #worthTaking(items: readonly CutStreamItem[]): CutStreamItem[] {
    const sliceOf = (item: CutStreamItem | undefined) =>
      item?.type === 'cut_finalized' ? sliceOfHeight(item.data.cut.height, this.#options.sliceCuts) : undefined;
    return items.filter((item, i) => {
      const isQuiet = item.type === 'cut_finalized' && item.data.rewards.length === 0;
      return !(isQuiet && sliceOf(items[i + 1]) === sliceOf(item));
    });
  }

  /** Meanwhile entries are taken in, perhaps the one with the finder. */
  async #wait(cut: PaidCut, signal: AbortSignal): Promise<void> {
    while (!(await this.#next(() => this.#take(cut))) && !signal.aborted) await sleep(FINDER_RETRY_MILLIS);
  }

  /** False while the cut must wait for a journal. */
  async #take({ cut, rewards }: PaidCut): Promise<boolean> {
    const { height } = cut;
    await this.#watch.checkHeight(height);
    this.#head = Math.max(this.#head, height);
    const blockIds = rewards.map((reward) => reward.block_id);
    const adopted = await this.#adoption.adoptable(blockIds, height - REGISTRATION_WINDOW);
    if (adopted === undefined) return false;
    await this.#advance(height);
    // Adopted blocks are checked like all others, so they are added first.
    if (adopted.length > 0)
      await this.#fenced(async (transaction) => {
        for (const record of adopted) await this.#intake.adoptBlock(transaction, record);
      });
    const verdicts = await this.#verdicts({ height, sharers: rewards.length });
    await this.#reportConflicts(rewards);
    await this.#fenced(async (transaction) => {
      for (const verdict of verdicts) await recordVerdict(transaction, verdict, height);
      if (rewards.length > 0) await notePaidAnchor(transaction, height - REGISTRATION_WINDOW);
      await this.#settle(transaction, height, cut.cut_id);
    });
    return true;
  }

  async #verdicts(cut: { height: number; sharers: number }): Promise<Verdict[]> {
    const verdicts = await this.#judge.due(cut);
    // Only a node on the chain of the books is trusted.
    if (verdicts.some(({ kind }) => kind === 'paid')) await this.#watch.checkChain();
    return verdicts;
  }

  /** The first amount of a reward counts; a different one later is logged for the operator. */
  async #reportConflicts(rewards: readonly { block_id: string; amount: string }[]): Promise<void> {
    const { sql, log } = this.#dependencies;
    for (const { block, booked, said } of await conflictingRewards(sql, rewards))
      log.error('the node names another amount for a reward that is in the books', { block, booked, said });
  }

  /** Blocks recorded as expired: a node that lied, or was on another chain, may have been replaced since. */
  async #lookBack(height: number): Promise<void> {
    const verdicts = await this.#judge.lately(height);
    if (verdicts.length === 0) return;
    await this.#fenced(async (transaction) => {
      for (const verdict of verdicts) await recordVerdict(transaction, verdict, height);
    });
  }

  async #settle(transaction: Transaction, height: number, cutId: string | undefined): Promise<void> {
    await expireBlocks(transaction, height, REGISTRATION_WINDOW);
    await makeCredits(transaction, this.#closed, this.#options, height);
    await noteCut(transaction, height, cutId);
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
   * After a gap that the stream cannot replay, every cut that paid the pool is processed as if it were new: its blocks
   * may be missing from all journals.
   */
  async #catchUp(range: CutRange, signal: AbortSignal): Promise<void> {
    const { chain, log } = this.#dependencies;
    const { network, poolAddress } = this.#options;
    log.warn('the chain went on without the pool for longer than its events reach back', { height: range.to });
    await this.#watch.checkHeight(range.to);
    try {
      for await (const cut of chain.cutsThatPaid?.(formatAddress(poolAddress, network.name), range) ?? []) {
        if (signal.aborted) return;
        await this.#wait(cut, signal);
      }
    } catch (error) {
      // A node of an older release: the books must continue anyway.
      if (!(error instanceof ApiError && error.code === 'route_unknown')) throw error;
      log.error('the node cannot name the blocks of old cuts: those that no journal names are not adopted', range);
    }
    if (!signal.aborted) await this.#next(() => this.#reconcile(range.to));
  }

  /** Each block that is still open is queried by its id. */
  async #reconcile(height: number): Promise<void> {
    const verdicts = await this.#verdicts({ height, sharers: 1 });
    await this.#advance(height);
    await this.#fenced(async (transaction) => {
      for (const verdict of verdicts) await recordVerdict(transaction, verdict, height);
      await this.#settle(transaction, height, undefined);
    });
  }
}
