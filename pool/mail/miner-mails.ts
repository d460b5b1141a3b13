/**
 * Sends miners their news by mail (docs/notices.md, e-mail to miners). News wait in a short queue per miner; all news
 * since the last mail go into one mail. Mails are sent one at a time, in a separate loop: a slow or unavailable server
 * delays only mails.
 */
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { editedPoolName } from '../edits/edits.ts';
import { Delivery, retryMillis } from '../webhooks/delivery.ts';
import { feedNews, MOST_WAITING, NEWS_KEPT_MILLIS } from '../webhooks/news-queue.ts';
import { confirmationVerdict, type Sent } from './confirmation-limits.ts';
import { confirmationMail, type MailNews, newsMail } from './mail-text.ts';
import { mailboxKey } from './mailbox.ts';
import { emptyTally, type Mailer, type MailFailure, type MailTally } from './mailer.ts';

export type MinerMailsOptions = {
  /** URL of the pool's page. */
  readonly publicUrl: string;
  /** Name of the pool, unless it was edited. */
  readonly poolName: string;
  readonly pollMillis?: number;
  /** Minimum time between two news mails to one miner. */
  readonly restMillis?: number;
  /** How long the first news wait for others. */
  readonly gatherMillis?: number;
};

export type MinerMailsDependencies = {
  readonly sql: Sql;
  readonly mailer: Mailer;
  readonly log: Logger;
  readonly now: SteadyClock;
  /** Counted up here, for the metrics. */
  readonly tally?: MailTally;
};

export const MINER_MAIL_DEFAULTS = { pollMillis: 5_000, restMillis: 15 * 60_000, gatherMillis: 60_000 } as const;

const MOST_A_ROUND = 32;
/** A mailbox is removed after this many failures, counted only if the server accepted mails for others in between. */
export const MAILBOX_TRIES = 3;
const WAIT_SECONDS = 300;
/** How long the stop link of a confirmation works when the miner has named another mailbox since. */
const CODE_DAYS = 30;
const TIDY_ROUNDS = 100;

type Due = { account_id: number; address: string; mailbox: string; code: string; attempts: number; dropped: number };
type PendingMail = Due & { is_earner: boolean };
type Outcome = {
  readonly failure: MailFailure | undefined;
  /** The failure is due to this mailbox, and not to a server that refuses all mails. */
  readonly isOwn: boolean;
};
type NewsRow = { id: bigint; kind: string; millis: string; data: MailNews['data'] };

/** The miner can set the address again. */
export async function removeMailbox(transaction: Transaction, account: number): Promise<void> {
  await transaction`update miner_mails set mailbox = null, confirmed = false, dropped = 0, attempts = 0
    where account_id = ${account}`;
  await transaction`delete from miner_news where account_id = ${account} and channel = 'mail'`;
}

export class MinerMails {
  readonly #options: Required<MinerMailsOptions>;
  readonly #sql: Sql;
  readonly #mailer: Mailer;
  readonly #log: Logger;
  readonly #now: SteadyClock;
  readonly #tally: MailTally;
  #away = { attempts: 0, until: 0 };
  /** The server took a mail since the last failure. */
  #takes = false;
  #rounds = 0;
  readonly #delivery: Delivery;

  constructor(options: MinerMailsOptions, dependencies: MinerMailsDependencies) {
    this.#options = { ...MINER_MAIL_DEFAULTS, ...options };
    this.#sql = dependencies.sql;
    this.#mailer = dependencies.mailer;
    this.#log = dependencies.log;
    this.#now = dependencies.now;
    this.#tally = dependencies.tally ?? emptyTally();
    const how = {
      pollMillis: this.#options.pollMillis,
      log: this.#log,
      waits: 'mails to miners wait for the database',
    };
    this.#delivery = new Delivery(how, () => this.#round(this.#rounds++));
  }

  async #round(round: number): Promise<boolean> {
    while ((await feedNews(this.#sql, this.#now())) && !this.#delivery.signal.aborted);
    if (round % TIDY_ROUNDS === 0) await this.#tidy();
    // Confirmed mailboxes first: unconfirmed ones may be slow at the server, and must not delay them.
    await this.#sendDue();
    await this.#confirmDue();
    return false;
  }

  /** Deletes unconfirmed mailboxes, and news that could not be sent. */
  async #tidy(): Promise<void> {
    const oldest = new Date(this.#now() - NEWS_KEPT_MILLIS);
    await this.#sql`update miner_mails set mailbox = null
      where mailbox is not null and not confirmed and since < now() - interval '3 days'`;
    await this.#sql`delete from mail_confirmations where at < now() - make_interval(days => ${CODE_DAYS})`;
    // The miner's row first, as everybody else who changes its news.
    await this.#sql`with late as (select account_id from miner_mails m where exists (select from miner_news n
          where n.account_id = m.account_id and n.channel = 'mail' and n.at <= ${oldest}) for no key update),
        gone as (delete from miner_news n using late
          where n.account_id = late.account_id and n.channel = 'mail' and n.at <= ${oldest}
          returning n.account_id)
      update miner_mails m set dropped = m.dropped + g.n
      from (select account_id, count(*)::int as n from gone group by account_id) g where g.account_id = m.account_id`;
  }

  get #isEnd(): boolean {
    return this.#delivery.signal.aborted || this.#now() < this.#away.until;
  }

  async #send(due: Due, kind: 'confirmation' | readonly MailNews[]): Promise<Outcome> {
    const { publicUrl, poolName } = this.#options;
    const { address, code } = due;
    const pool = (await editedPoolName(this.#sql).catch(() => undefined)) ?? poolName;
    const place = { publicUrl, address, code, pool };
    const mail = kind === 'confirmation' ? confirmationMail(place) : newsMail(place, kind, due.dropped);
    const failure = await this.#mailer.send(due.mailbox, mail);
    this.#tally[failure?.kind ?? 'sent']++;
    if (failure === undefined) {
      this.#away = { attempts: 0, until: 0 };
      this.#takes = true;
      return { failure, isOwn: false };
    }
    const isOwn = this.#takes && failure.kind !== 'away' && failure.kind !== 'later';
    if (failure.kind !== 'later') this.#takes = false;
    this.#noteFailure(failure, { isOwn, isKnown: kind !== 'confirmation', address });
    return { failure, isOwn };
  }

  /** `isKnown`: the mailbox was confirmed, so it has taken mails. */
  #noteFailure(failure: MailFailure, of: { isOwn: boolean; isKnown: boolean; address: string }): void {
    const { kind, reason } = failure;
    if (this.#delivery.signal.aborted) return;
    if (of.isOwn || kind === 'later') {
      this.#log.debug('a mail to a miner was not accepted', { address: of.address, ...failure });
      return;
    }
    // An unconfirmed mailbox may not exist: if it is refused, the others need not wait.
    if (kind === 'mailbox' && !of.isKnown) {
      this.#log.warn('the mail server refuses the mailbox of a miner', { reason });
      return;
    }
    const waitMillis = retryMillis(this.#away.attempts + 2);
    this.#away = { attempts: this.#away.attempts + 1, until: this.#now() + waitMillis };
    this.#log.warn('mails to miners wait for the mail server', { reason });
  }

  async #confirmDue(): Promise<void> {
    if (this.#isEnd) return;
    const due = await this.#sql<PendingMail[]>`select m.account_id, a.address, m.mailbox, m.code, m.attempts, m.dropped,
        a.balance + a.in_flight + a.paid > 0 as is_earner
      from miner_mails m join accounts a on a.id = m.account_id
      where m.mailbox is not null and not m.confirmed and m.asked_at is null and m.next_at <= now()
      order by a.balance + a.in_flight + a.paid desc, m.next_at limit ${MOST_A_ROUND}`;
    for (const one of due) if (this.#isEnd || (await this.#confirm(one)) === 'full') return;
  }

  async #confirm(due: PendingMail): Promise<'full' | undefined> {
    const { account_id: account, code } = due;
    const key = mailboxKey(due.mailbox);
    const [sent] = await this.#sql<[Omit<Sent, 'isEarner'>]>`select count(*) filter (where is_new)::int as "allOfHour",
        count(*) filter (where is_new and account_id = ${account})::int as "minersOfHour",
        count(*) filter (where is_new and mailbox_key = ${key})::int as "mailboxesOfHour",
        count(*) filter (where mailbox_key = ${key})::int as "mailboxesOfWeek",
        exists (select 1 from mail_refusals where mailbox_key = ${key}) as "isRefused"
      from (select *, at > now() - interval '1 hour' as is_new from mail_confirmations
        where at > now() - interval '7 days') c`;
    const verdict = confirmationVerdict({ ...sent, isEarner: due.is_earner });
    // Each keeps its place: the next one of the hour is for the miner that earned most.
    if (verdict === 'full') return 'full';
    if (verdict === 'wait') {
      // Moved to the end of the queue, so that the others are tried too.
      await this.#sql`update miner_mails set next_at = now() + make_interval(secs => ${WAIT_SECONDS})
        where account_id = ${account} and code = ${code}`;
      return undefined;
    }
    // Recorded before it is sent, so that neither a crash nor another instance sends it twice.
    const isMine = await this.#sql.begin(async (transaction) => {
      const taken = await transaction`update miner_mails set asked_at = now()
        where account_id = ${account} and code = ${code} and mailbox is not null and asked_at is null returning 1`;
      if (taken.length > 0 && verdict === 'send')
        await transaction`insert into mail_confirmations (mailbox_key, account_id, code)
          values (${key}, ${account}, ${code})`;
      return taken.length > 0;
    });
    if (!isMine || verdict !== 'send') return undefined;
    const { failure } = await this.#send(due, 'confirmation');
    if (failure?.kind !== 'away' && failure?.kind !== 'later') return undefined;
    const waitSeconds = failure.kind === 'away' ? 0 : WAIT_SECONDS;
    await this.#sql.begin(async (transaction) => {
      await transaction`update miner_mails set asked_at = null, next_at = now() + make_interval(secs => ${waitSeconds})
        where account_id = ${account} and code = ${code} and not confirmed`;
      await transaction`delete from mail_confirmations where ctid = (select ctid from mail_confirmations
        where mailbox_key = ${key} and account_id = ${account} order by at desc limit 1)`;
    });
    return undefined;
  }

  async #sendDue(): Promise<void> {
    if (this.#isEnd) return;
    const due = await this.#sql<Due[]>`select m.account_id, a.address, m.mailbox, m.code, m.attempts, m.dropped
      from miner_mails m join accounts a on a.id = m.account_id
      where m.mailbox is not null and m.confirmed and m.next_at <= now()
        and exists (select 1 from miner_news n where n.account_id = m.account_id and n.channel = 'mail'
          and n.at <= now() - make_interval(secs => ${this.#options.gatherMillis / 1000}))
      order by m.next_at limit ${MOST_A_ROUND}`;
    for (const one of due) {
      if (this.#isEnd) return;
      await this.#sendNews(one);
    }
  }

  async #sendNews(due: Due): Promise<void> {
    const { account_id: account, code, attempts } = due;
    const { restMillis } = this.#options;
    // The minimum time starts before the mail is sent, so that it holds even after a crash in between.
    const taken = await this.#sql`update miner_mails set next_at = now() + make_interval(secs => ${restMillis / 1000})
      where account_id = ${account} and code = ${code} and mailbox is not null and next_at <= now() returning 1`;
    if (taken.length === 0) return;
    const rows = await this.#sql<
      NewsRow[]
    >`select id, kind, data, (extract(epoch from at) * 1000)::bigint::text as millis
      from miner_news where account_id = ${account} and channel = 'mail' order by id limit ${MOST_WAITING}`;
    const last = rows.at(-1);
    if (last === undefined) return;
    const news = rows.map(({ kind, data, millis }) => ({ kind, data, atMillis: Number(millis) }));
    const { failure, isOwn } = await this.#send(due, news);
    const failures = failure === undefined ? 0 : attempts + (isOwn ? 1 : 0);
    await this.#sql.begin(async (transaction) => {
      const own =
        await transaction`select 1 from miner_mails where account_id = ${account} and code = ${code} for update`;
      if (own.length === 0) return;
      if (failure?.kind === 'away') {
        // Nothing was sent: it is due as soon as the server is back.
        await transaction`update miner_mails set next_at = now() where account_id = ${account}`;
        return;
      }
      if (failures >= MAILBOX_TRIES) return removeMailbox(transaction, account);
      await transaction`update miner_mails set attempts = ${failures},
        dropped = dropped - ${failure === undefined ? due.dropped : 0} where account_id = ${account}`;
      if (failure === undefined)
        await transaction`delete from miner_news
          where account_id = ${account} and channel = 'mail' and id <= ${last.id}`;
    });
  }

  async close(): Promise<void> {
    const ended = this.#delivery.close();
    this.#mailer.close();
    await ended;
  }
}
