/**
 * A copy of all announced terms in the data directory of every instance that announces them, written before it does. If
 * the database was replaced by an older copy of itself, they are put back before anything is announced, changed or opened
 * under what it says.
 */
import { crc32 } from 'node:zlib';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Transaction } from '../database/connect.ts';
import { noteEarlier } from '../payout/earlier-minimums.ts';
import { minimumAt, readMinimums } from './minimum-schedule.ts';
import { lockTerms, putBackTerms, readTerms, type Terms } from './terms-rows.ts';

export const PUBLISHED_TERMS_FILE = 'published-terms';

const checkOf = (text: string): string => crc32(text).toString(16).padStart(8, '0');

/** Undefined for a text that the pool did not write, or that was damaged. */
function parsed(text: string): Terms | undefined {
  const [check, body = ''] = text.split('\n');
  return check === checkOf(body) ? (JSON.parse(body) as Terms) : undefined;
}

export class PublishedTerms {
  readonly #path: string;
  readonly #log: Logger;
  readonly #now: () => number;
  /** What is on the disk. */
  #known: Terms | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(path: string, { log, now }: { readonly log: Logger; readonly now: () => number }) {
    this.#path = path;
    this.#log = log;
    this.#now = now;
    try {
      this.#known = parsed(readSmallFile(path));
      if (this.#known === undefined) log.warn('the copy of the published terms is damaged and made again', { path });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  /**
   * To be called before the terms of a transaction are announced, used or changed: the database then has the newest
   * that this instance knows, and the disk has what the database has.
   */
  async settle(transaction: Transaction): Promise<void> {
    // Before the terms are read: one that is noted meanwhile is not missing in them.
    const known = this.#known;
    const terms = await readTerms(transaction);
    // A new database does not say yet which chain it is for.
    if (terms.chain === null && known !== undefined && known.chain !== null) return;
    if (known?.chain === terms.chain && known.edition > terms.edition) await this.#putBack(transaction, terms, known);
    else await this.#keep(terms);
  }

  #keep(terms: Terms): Promise<void> {
    const keep = this.#turn.then(async () => {
      if (this.#known?.chain === terms.chain && this.#known.edition >= terms.edition) return;
      const body = JSON.stringify(terms);
      await writeDurably(this.#path, `${checkOf(body)}\n${body}\n`);
      this.#known = terms;
    });
    this.#turn = keep.catch(() => undefined);
    return keep;
  }

  async #putBack(transaction: Transaction, lost: Terms, known: Terms): Promise<void> {
    await lockTerms(transaction);
    const minimum = async () => minimumAt(await readMinimums(transaction), this.#now());
    const before = await minimum();
    const rows = await putBackTerms(transaction, lost, known);
    // Who is above a lower minimum again: the pool has time to pay them.
    if (before !== undefined && before > ((await minimum()) ?? before))
      await noteEarlier(transaction, null, { atoms: before, untilMillis: this.#now() });
    const details = { rows, edition: known.edition, was: lost.edition };
    await transaction`insert into operator_log (actor, action, details)
      values ('pool', 'terms_put_back', ${transaction.json(details)})`;
    this.#log.warn('the database was replaced by an older copy: published terms were put back', details);
  }
}
