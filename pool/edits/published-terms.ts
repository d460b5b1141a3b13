/**
 * A copy of all announced terms in the data directory of every instance that announces them, written before it does. If
 * the database was replaced by an older copy of itself, they are put back before anything is announced, changed or opened
 * under what it says. Where others went on with that copy, nobody's terms become worse (fallen-terms.ts).
 */
import { existsSync, renameSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { noteResumed, payoutsResumed } from '../api/operator/payout-pause.ts';
import type { Transaction } from '../database/connect.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { endMillis, type LedgerDate, noteEarlier } from '../payout/earlier-minimums.ts';
import { joinedTerms, relationOf } from './fallen-terms.ts';
import { minimumAt, readMinimums } from './minimum-schedule.ts';
import { lockTerms, putBackTerms, readTerms, type Terms } from './terms-rows.ts';

export const PUBLISHED_TERMS_FILE = 'published-terms';

const checkOf = (text: string): string => crc32(text).toString(16).padStart(8, '0');

/** Undefined for a text that the pool did not write, or that was damaged. */
function parsed(text: string): Terms | undefined {
  const [check, body = ''] = text.split('\n');
  const terms = check === checkOf(body) ? (JSON.parse(body) as Terms) : undefined;
  return Array.isArray(terms?.editions) ? terms : undefined;
}

/** What it says may be all that is left of announced terms: a person can still read it. */
function moveAside(path: string): string {
  let aside = `${path}.damaged`;
  for (let n = 2; existsSync(aside); n++) aside = `${path}.damaged.${n}`;
  renameSync(path, aside);
  return aside;
}

export class PublishedTerms {
  readonly #path: string;
  readonly #log: Logger;
  readonly #now: SteadyClock;
  readonly #chain: () => LedgerDate | undefined;
  /** What is on the disk. */
  #known: Terms | undefined;
  /** Noted for a fall of the database, perhaps by a transaction that came to nothing. */
  #fellMillis: number | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(
    path: string,
    {
      log,
      now,
      chain = () => undefined,
    }: { readonly log: Logger; readonly now: SteadyClock; readonly chain?: () => LedgerDate | undefined },
  ) {
    this.#path = path;
    this.#log = log;
    this.#now = now;
    this.#chain = chain;
    try {
      this.#known = parsed(readSmallFile(path));
      if (this.#known === undefined)
        log.warn('the copy of the published terms is damaged: it was moved aside, and is made again', {
          path,
          aside: moveAside(path),
        });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  /**
   * To be called before the terms of a transaction are announced, used or changed. `noted`: what the transaction reads is
   * on the disk. `put back`: the database now has what this instance announced, and the next transaction reads it.
   */
  async settle(transaction: Transaction): Promise<'noted' | 'put back'> {
    // Before the terms are read: one that is noted meanwhile is not missing in them.
    const known = this.#known;
    const terms = await readTerms(transaction);
    if (this.#lost(known, terms) === undefined) {
      const isFall = known?.chain === terms.chain && terms.slice < known.slice;
      await this.#keep(isFall && !(await this.#isFallNoted(transaction)) ? { ...terms, slice: known.slice } : terms);
      return 'noted';
    }
    await lockTerms(transaction);
    // Another instance may have put them back meanwhile.
    const found = await readTerms(transaction);
    const lost = this.#lost(this.#known, found);
    if (lost !== undefined) await this.#putBack(transaction, found, lost);
    return 'put back';
  }

  /**
   * Thresholds of miners and pauses of since an older copy are gone, and with them why accounts were not paid. True only
   * when an earlier transaction has noted it: this one may come to nothing.
   */
  async #isFallNoted(transaction: Transaction): Promise<boolean> {
    const isNoted = this.#fellMillis !== undefined && this.#fellMillis <= ((await payoutsResumed(transaction)) ?? 0);
    this.#fellMillis = isNoted ? undefined : await noteResumed(transaction, this.#chain());
    return isNoted;
  }

  /** What this instance announced, if the database does not have it. */
  #lost(known: Terms | undefined, found: Terms): Terms | undefined {
    if (known === undefined || known.chain !== found.chain) return undefined;
    return relationOf(known, found) === 'kept' ? undefined : known;
  }

  #keep(terms: Terms): Promise<void> {
    const keep = this.#turn.then(async () => {
      const known = this.#known;
      // A new database does not say yet which chain it is for.
      if (terms.chain === null && known !== undefined && known.chain !== null) return;
      if (known !== undefined && known.chain === terms.chain) {
        const isSame = known.editions.at(-1) === terms.editions.at(-1) && known.slice === terms.slice;
        if (relationOf(known, terms) !== 'kept' || isSame) return;
      }
      const body = JSON.stringify(terms);
      await writeDurably(this.#path, `${checkOf(body)}\n${body}\n`);
      this.#known = terms;
    });
    this.#turn = keep.catch(() => undefined);
    return keep;
  }

  async #putBack(transaction: Transaction, found: Terms, known: Terms): Promise<void> {
    const nowMillis = this.#now();
    const minimum = async () => minimumAt(await readMinimums(transaction), nowMillis);
    const before = await minimum();
    const isApart = relationOf(known, found) === 'apart';
    const opened = await openedSlices(transaction);
    const rows = await putBackTerms(
      transaction,
      found,
      isApart ? joinedTerms(found, known, { opened, nowMillis }) : known,
    );
    // Who is above a lower minimum again: the pool has time to pay them.
    if (before !== undefined && before > ((await minimum()) ?? before))
      await noteEarlier(transaction, null, { atoms: before, untilMillis: endMillis(nowMillis, this.#chain()) });
    const details = { rows, slice: found.slice, noted: known.slice, changed_since: isApart };
    await transaction`insert into operator_log (actor, action, details)
      values ('pool', 'terms_put_back', ${transaction.json(details)})`;
    this.#log.warn(
      isApart
        ? 'the database was replaced by an older copy, and the pool went on with it: the lower fees and the lower smallest payout of both count; look at the terms'
        : 'the database was replaced by an older copy: published terms were put back',
      details,
    );
  }
}

/** The newest one by service, -1 before the first. */
async function openedSlices(transaction: Transaction): Promise<number[]> {
  const rows = await transaction<{ service: number; number: number }[]>`select service, max(number)::int as number
    from slices group by service`;
  return SERVICES.map((_, service) => rows.find((row) => row.service === service)?.number ?? -1);
}
