/**
 * Runs the tasks of the instance that holds the term: taking entries into the books, following the chain, statistics,
 * payouts, webhooks. Losing the term, or the database, ends all of them; the next election starts again from the books.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type SteadyClock, steadyMillis, type WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { LAST_PAYOUT, payoutsPaused } from '../api/operator/payout-pause.ts';
import { dropOldShares } from '../books/partitions.ts';
import { fenced, type Term, TermLostError, tryElection } from '../books/term.ts';
import { connectDatabase, type Sql, type Transaction } from '../database/connect.ts';
import type { PublishedTerms } from '../edits/published-terms.ts';
import type { EntrySource } from '../feed/entry-source.ts';
import { LuckRound } from '../luck/luck-round.ts';
import type { Mailer, MailTally } from '../mail/mailer.ts';
import { MinerMails } from '../mail/miner-mails.ts';
import { AccountCheck } from '../payout/account-check.ts';
import { PAYOUT_DEFAULTS, PayoutLoop } from '../payout/payout-loop.ts';
import { payoutSeries } from '../payout/payout-series.ts';
import type { PayoutWallet } from '../payout/payout-wallet.ts';
import { noteFigures } from '../stats/figure-history.ts';
import { foldStats, pruneStats } from '../stats/fold.ts';
import { noteSilentWorkers } from '../stats/silence.ts';
import { noteTypicalShare } from '../stats/typical-share.ts';
import { MinerWebhooks } from '../webhooks/miner-webhooks.ts';
import { WebhookSender } from '../webhooks/webhook-sender.ts';
import type { WebhookReach } from '../webhooks/webhook-target.ts';
import { Accountant, type AccountantOptions } from './accountant.ts';
import type { AdoptionDependencies } from './adoption.ts';
import type { Chain } from './chain.ts';
import { ToldWait } from './told-wait.ts';

export type TermOptions = Omit<AccountantOptions, 'term'> & {
  readonly databaseUrl: string;
  /** Name of this instance, for the others to see. */
  readonly holder: string;
  readonly payoutMin: bigint;
  readonly payoutIntervalMillis: number;
  readonly shareDays: number;
  readonly chartDays: number;
  readonly silentMillis: number;
  /** Absent: no webhooks. */
  readonly minerWebhooks?: WebhookReach | 'off';
  /** URL of the page, for the links in mails. */
  readonly mails?: { readonly publicUrl: string; readonly poolName: string };
  readonly webhooks: { readonly urls: readonly string[]; readonly secret: string };
};

export type TermDependencies = {
  readonly sql: Sql;
  readonly source: EntrySource;
  readonly chain: Chain;
  readonly wallet: PayoutWallet;
  /** Connections of each front end, by its name; absent: not known. */
  readonly connections?: () => Promise<ReadonlyMap<string, number>>;
  readonly published?: PublishedTerms;
  readonly powHash?: AdoptionDependencies['powHash'] & {};
  /** Opens a mailer for each term; absent: no mails. */
  readonly openMailer?: () => Mailer;
  /** Mails of all terms of this process. */
  readonly mailTally?: MailTally;
  readonly log: Logger;
  readonly now: SteadyClock;
  /** For times that receivers compare with their own clock. */
  readonly wall: WallClock;
};

/** Entries per transaction: enough to make the fixed cost of a batch small, few enough that it ends soon. */
const BATCH_ENTRIES = 5_000;
const WAIT_MILLIS = 250;
const RETRY_MILLIS = 1_000;
const FOLD_MILLIS = 5_000;
const LUCK_MILLIS = 15_000;
const FIGURES_MILLIS = 30_000;
const FOLLOW_PAYOUTS_MILLIS = 2_000;

export class TermRunner {
  readonly #options: TermOptions;
  readonly #dependencies: TermDependencies;
  readonly #stop = new AbortController();
  #noElection: string | undefined;
  #held: { number: bigint; accountant: Accountant } | undefined;
  readonly #loop: Promise<void>;

  constructor(options: TermOptions, dependencies: TermDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#loop = this.#elect();
  }

  /** The accountant, while this instance holds the term. */
  get accountant(): Accountant | undefined {
    return this.#held?.accountant;
  }

  get term(): bigint | undefined {
    return this.#held?.number;
  }

  async #elect(): Promise<void> {
    const { log } = this.#dependencies;
    while (!this.#stop.signal.aborted) {
      // A separate connection: it holds the lock, and nothing else may ever wait on it.
      const connection = connectDatabase(this.#options.databaseUrl, { max: 1, name: 'svc-pool-election' });
      try {
        const term = await tryElection(connection, this.#options.holder);
        this.#noElection = undefined;
        if (term !== undefined) {
          log.info('this instance keeps the books', { term: term.number });
          await this.#hold(term);
          log.info('this instance no longer keeps the books', { term: term.number });
        }
      } catch (error) {
        // Once for each reason: a database that a newer release has migrated stays as it is until this instance is upgraded.
        const reason = (error as Error).message;
        if (reason !== this.#noElection) log.warn('no election', { reason });
        this.#noElection = reason;
      } finally {
        await connection.end({ timeout: 1 }).catch(() => undefined);
      }
      await this.#pause(RETRY_MILLIS, this.#stop.signal);
    }
  }

  async #hold(term: Term): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#stop.signal]);
    const accountant = new Accountant({ ...this.#options, term: term.number }, this.#dependencies);
    void term.lost.then(() => over.abort());
    const run = (what: string, work: (works: () => void) => Promise<void>) =>
      this.#keep(what, work, signal, () => over.abort());
    const webhooks =
      this.#options.webhooks.urls.length === 0
        ? undefined
        : new WebhookSender(this.#options.webhooks, {
            ...this.#dependencies,
            log: this.#dependencies.log.child('webhooks'),
          });
    const { minerWebhooks: reach = 'off' } = this.#options;
    const ofMiners =
      reach === 'off'
        ? undefined
        : new MinerWebhooks({ reach }, { ...this.#dependencies, log: this.#dependencies.log.child('webhooks') });
    const mails = this.#openMails();
    try {
      let head = 0;
      await run('opening the books', async (works) => {
        head = await accountant.start();
        await this.#dependencies.source.begin();
        works();
      });
      if (!signal.aborted) {
        this.#held = { number: term.number, accountant };
        // A reward must not be read before the journal with its finder: waiting entries are taken in first.
        const caughtUp = Promise.withResolvers<void>();
        signal.addEventListener('abort', () => caughtUp.resolve());
        let isFed = false;
        void caughtUp.promise.then(() => {
          isFed = true;
        });
        const isCaughtUp = async () => isFed && (await this.#chainHeight()) >= head;
        await Promise.all([
          run('taking shares in', (works) => this.#takeIn(accountant, signal, works, () => caughtUp.resolve())),
          run('following the chain', (works) => caughtUp.promise.then(() => accountant.follow(signal, works))),
          run('statistics', (works) => this.#keepStats(term.number, signal, works)),
          run('luck', (works) => this.#keepLuck(term.number, signal, works)),
          run('figures', (works) => this.#keepFigures(term.number, signal, works)),
          run('payouts', (works) => this.#pay(term.number, signal, works, isCaughtUp)),
        ]);
      }
    } finally {
      this.#held = undefined;
      over.abort();
      await Promise.all([webhooks?.close(), ofMiners?.close(), mails?.close()]);
      await term.release().catch(() => undefined);
    }
  }

  #openMails(): MinerMails | undefined {
    const { openMailer, mailTally: tally, ...rest } = this.#dependencies;
    const { mails } = this.#options;
    if (openMailer === undefined || mails === undefined) return undefined;
    const counted = tally === undefined ? {} : { tally };
    return new MinerMails(mails, { ...rest, ...counted, mailer: openMailer(), log: rest.log.child('mail') });
  }

  /** Runs until it ends; a failure is tried again, a lost term ends everything. */
  async #keep(
    what: string,
    work: (works: () => void) => Promise<void>,
    signal: AbortSignal,
    end: () => void,
  ): Promise<void> {
    const { log } = this.#dependencies;
    const wait = new ToldWait(what, { log, now: steadyMillis });
    while (!signal.aborted) {
      try {
        return await work(() => wait.works());
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof TermLostError) {
          log.warn('the term is lost', { what, reason: error.message });
          return end();
        }
        wait.failed(error);
        await this.#pause(RETRY_MILLIS, signal);
      }
    }
  }

  async #takeIn(accountant: Accountant, signal: AbortSignal, works: () => void, onCaughtUp: () => void): Promise<void> {
    const { source } = this.#dependencies;
    await source.begin();
    for (let isBehind = true; !signal.aborted; ) {
      const taken = await source.take(BATCH_ENTRIES, WAIT_MILLIS);
      if (taken.entries.length > 0) {
        await accountant.takeIn(taken.entries);
        await taken.committed();
        works();
      }
      if (!isBehind || !(await source.isCaughtUp())) continue;
      isBehind = false;
      works();
      onCaughtUp();
    }
  }

  async #keepStats(term: bigint, signal: AbortSignal, works: () => void): Promise<void> {
    const { sql, now } = this.#dependencies;
    const { chartDays, shareDays, silentMillis } = this.#options;
    const run = <T>(work: (transaction: Transaction) => Promise<T>) => fenced(sql, term, work);
    for (let round = 0; !signal.aborted; round++) {
      while ((await run((transaction) => foldStats(transaction, now()))) > 0 && !signal.aborted);
      if (round % 12 === 0)
        await run(async (transaction) => {
          await noteTypicalShare(transaction);
          await noteSilentWorkers(transaction, silentMillis);
        });
      if (round % 720 === 0) {
        await run((transaction) => pruneStats(transaction, { chartDays }, now()));
        await dropOldShares(sql, now() - shareDays * 86_400_000);
      }
      works();
      await this.#pause(FOLD_MILLIS, signal);
    }
  }

  async #keepLuck(term: bigint, signal: AbortSignal, works: () => void): Promise<void> {
    const { sql, chain } = this.#dependencies;
    const luck = new LuckRound(this.#options, { sql, chain, run: (work) => fenced(sql, term, work) });
    while (!signal.aborted) {
      await luck.round();
      works();
      await this.#pause(LUCK_MILLIS, signal);
    }
  }

  async #keepFigures(term: bigint, signal: AbortSignal, works: () => void): Promise<void> {
    const { sql, chain, wallet, now, connections: ask } = this.#dependencies;
    while (!signal.aborted) {
      const head = await chain.headHeight().catch(() => undefined);
      const status = await wallet.status().catch(() => undefined);
      const spendable = status?.kind === 'ok' ? status.value.spendable : undefined;
      const connections = (await ask?.()) ?? new Map();
      await fenced(sql, term, (transaction) => noteFigures(transaction, { head, spendable, connections }, now()));
      works();
      await this.#pause(FIGURES_MILLIS, signal);
    }
  }

  async #chainHeight(): Promise<number> {
    const [row] = await this.#dependencies.sql<{ value: string }[]>`select value from settings
      where name = 'chain_height'`;
    return Number(row?.value ?? 0);
  }

  /**
   * Created again with every term and after every failure: so the books are compared with the wallet before anything is
   * paid.
   */
  async #pay(term: bigint, signal: AbortSignal, works: () => void, isCaughtUp: () => Promise<boolean>): Promise<void> {
    const { sql, wallet, log, now } = this.#dependencies;
    const { payoutMin: minimum, payoutIntervalMillis } = this.#options;
    const series = payoutSeries(this.#options.poolAddress);
    const check = new AccountCheck({ network: this.#options.network.name }, { sql, log: log.child('payout') });
    const loop = new PayoutLoop(
      { term, series, minimum, ...PAYOUT_DEFAULTS },
      {
        sql,
        wallet,
        log: log.child('payout'),
        now,
        newId: randomUUID,
        isCaughtUp,
        failures: (accounts) => check.failures(accounts),
      },
    );
    while (!signal.aborted) {
      const [row] = await sql<{ value: string }[]>`select value from settings where name = ${LAST_PAYOUT}`;
      const age = now() - Number(row?.value ?? 0);
      // A clock that jumped back must not stop payouts for as long as it jumped.
      const isDue = age >= payoutIntervalMillis || age < 0;
      const mode = (await payoutsPaused(sql)) ? 'follow' : isDue ? 'pay' : 'send';
      const { isComplete } = await loop.round(mode);
      // While more accounts are due, the next round follows at once; the interval begins when all are paid.
      if (isComplete)
        await sql`insert into settings values (${LAST_PAYOUT}, ${String(now())})
          on conflict (name) do update set value = excluded.value`;
      works();
      await this.#pause(Math.min(FOLLOW_PAYOUTS_MILLIS, payoutIntervalMillis), signal);
    }
  }

  async #pause(millis: number, signal: AbortSignal): Promise<void> {
    await sleep(millis, undefined, { signal }).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }
}
