/** The audit that an operator starts in a running pool: one at a time in each instance, and what is known of the last one. */
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { AuditReport } from '../../audit/audit.ts';
import type { AuditDocument } from './operator-documents.ts';
import type { RunAudit } from './run-audit.ts';

/** The whole report is that of the command; the page shows the first of each kind. */
const MOST_SHOWN = 20;
const MOST_LETTERS = 400;

export type BookAuditDependencies = {
  readonly run: RunAudit;
  readonly now: SteadyClock;
  readonly warn: (message: string, fields: { readonly reason: string }) => void;
};

/** Writes what an operator began, and how it ended, into the books. */
export type AuditNote = (action: 'audit' | 'audit_end', details: Record<string, unknown>) => Promise<unknown>;

type AuditState = Omit<AuditDocument, 'api_version'>;

const NOTHING = { started_millis: null, ended_millis: null, progress: null, reason: null, result: null };

const short = (text: string): string => (text.length <= MOST_LETTERS ? text : `${text.slice(0, MOST_LETTERS)}…`);

const firstOf = (texts: readonly string[]) => ({ count: texts.length, first: texts.slice(0, MOST_SHOWN).map(short) });

const resultOf = (report: AuditReport): NonNullable<AuditState['result']> => ({
  slices: report.slices,
  lists: report.lists,
  accounts: report.accounts,
  ledger: report.ledger,
  wallet: report.wallet,
  differences: report.differences,
  unread: report.unread,
  findings: report.findings.slice(0, MOST_SHOWN).map(({ what, books, computed, remedy }) => ({
    what: short(what),
    books: short(books),
    computed: short(computed),
    remedy,
  })),
  not_checked: firstOf(report.not_checked),
  owed: firstOf(report.owed),
});

export class BookAudit {
  readonly #dependencies: BookAuditDependencies;
  readonly #end = new AbortController();
  #state: AuditState = { state: 'idle', ...NOTHING };
  #running: Promise<void> | undefined;

  constructor(dependencies: BookAuditDependencies) {
    this.#dependencies = dependencies;
  }

  get state(): AuditState {
    return this.#state;
  }

  /** Starts one if none runs. */
  start(note: AuditNote): AuditState {
    if (this.#running === undefined && !this.#end.signal.aborted)
      this.#running = this.#work(note).finally(() => {
        this.#running = undefined;
      });
    return this.#state;
  }

  async #work(note: AuditNote): Promise<void> {
    const { run, now, warn } = this.#dependencies;
    const { signal } = this.#end;
    const begun = { ...NOTHING, started_millis: now() };
    this.#state = { ...begun, state: 'running' };
    let told: Record<string, unknown>;
    try {
      await note('audit', {});
      signal.throwIfAborted();
      const report = await run((part, done, of) => {
        if (!signal.aborted) this.#state = { ...begun, state: 'running', progress: { part, done, of: of ?? null } };
      }, signal);
      const result = resultOf(report);
      this.#state = { ...begun, state: 'done', ended_millis: now(), result };
      told = { differences: result.differences, not_checked: result.not_checked.count, owed: result.owed.count };
    } catch (error) {
      const reason = short(signal.aborted ? 'the pool stopped' : (error as Error).message);
      this.#state = { ...begun, state: 'failed', ended_millis: now(), reason };
      told = { failed: reason };
    }
    await note('audit_end', told).catch((error: Error) =>
      warn('the end of an audit could not be noted', { reason: error.message }),
    );
  }

  /** Ends one that runs, and its connections to the database. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }
}
