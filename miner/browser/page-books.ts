/**
 * The watch over the pool's books in a page (docs/miner.md, "The pool's books"): the same as the command line's, kept
 * in the page's own storage. Findings are shown, with their evidence for download.
 */

import type { BooksSources } from '../../protocol/books/books-evidence.ts';
import type { EvidenceFile } from '../../protocol/evidence/evidence-file.ts';
import { monotonicMillis, wallMillis } from '../../runtime/clock/clock.ts';
import type { BooksAlarm } from '../books/books-alarms.ts';
import { BooksWatch } from '../books/books-watch.ts';
import { readDocument } from '../books/pool-reads.ts';
import type { BooksOfPools } from '../client/link-books.ts';

/** Persistent text storage of a page, with the interface of localStorage. */
export type PageStorage = Pick<Storage, 'getItem' | 'setItem'>;

export type PageBooksOptions = {
  /** Below which `api/v1` lies. */
  readonly api: string;
  readonly pool: string;
  readonly address: string;
  readonly worker: string;
  readonly storage: PageStorage | undefined;
  /** A node of the visitor's own; null without one. */
  readonly node: BooksSources['node'];
};

export type PageBooksFigures = {
  readonly compared: number;
  readonly newest: number;
  /** Parts that could not be checked or that the pool does not offer: not accusations. The newest of each. */
  readonly warnings: readonly string[];
  /** Findings since the page was opened. */
  readonly alarms: readonly {
    readonly message: string;
    readonly slice: unknown;
    readonly evidence: EvidenceFile | undefined;
  }[];
};

const CHECK_MILLIS = 60_000;
const SAVE_MILLIS = 5_000;
/** Miners get their receipts at once: their requests are spread over this time. */
const SPREAD_MILLIS = 10_000;
const MAX_SHOWN = 20;
const MAX_BYTES = 1_000_000;
const OF_NO_PART = '';

export class PageBooks implements BooksOfPools {
  readonly #options: PageBooksOptions;
  readonly #watch: BooksWatch;
  readonly #timers: ReturnType<typeof setInterval>[];
  readonly #onChange: () => void;
  #alarms: BooksAlarm[] = [];
  /** By the part of the books that they are about. */
  readonly #warnings = new Map<string, string>();

  constructor(options: PageBooksOptions, onChange: () => void) {
    this.#options = options;
    this.#onChange = onChange;
    this.#watch = new BooksWatch(
      { address: options.address, worker: options.worker, api: options.api, expectedKey: undefined },
      {
        read: (url) => readDocument(globalThis.fetch, url),
        alarm: (alarm) => this.#alarm(alarm),
        note: () => {},
        warn: (message, fields) => this.#warn(message, fields),
        nowMillis: monotonicMillis,
        wallMillis,
        node: options.node,
        random: Math.random,
        onOffer: (offer) => {
          if (offer !== null) this.#warnings.delete(OF_NO_PART);
          this.#check();
        },
        onReceipt: () => void setTimeout(() => this.#check(), Math.random() * SPREAD_MILLIS),
      },
      this.#saved(),
    );
    this.#timers = [setInterval(() => this.#check(), CHECK_MILLIS), setInterval(() => this.#save(), SAVE_MILLIS)];
  }

  get #name(): string {
    const { pool, address, worker } = this.#options;
    return `svc-books ${pool} ${address}.${worker}`;
  }

  #saved(): unknown {
    try {
      return JSON.parse(this.#options.storage?.getItem(this.#name) ?? '') as unknown;
    } catch {
      return undefined;
    }
  }

  #alarm(alarm: BooksAlarm): void {
    this.#alarms = [...this.#alarms, alarm].slice(-MAX_SHOWN);
    this.#onChange();
  }

  #warn(message: string, { part, since, why }: Readonly<Record<string, unknown>>): void {
    const about = part === undefined ? '' : ` (${part}, since ${since})`;
    this.#warnings.set(
      part === undefined ? OF_NO_PART : String(part),
      `${message}${about}${why === undefined ? '' : `: ${why}`}`,
    );
    this.#onChange();
  }

  get figures(): PageBooksFigures {
    return {
      compared: this.#watch.compared,
      newest: this.#watch.newest,
      warnings: [...this.#warnings.values()],
      alarms: this.#alarms.map(({ message, fields, evidence }) => ({ message, slice: fields.slice, evidence })),
    };
  }

  of(): BooksWatch {
    return this.#watch;
  }

  #check(): void {
    // A pool that does not answer is asked again the next time.
    this.#watch.check().catch(() => undefined);
  }

  #save(): void {
    if (!this.#watch.isChanged) return;
    try {
      const text = JSON.stringify(this.#watch.save());
      if (text.length <= MAX_BYTES) this.#options.storage?.setItem(this.#name, text);
    } catch {
      // Storage is full: the next visit starts again.
    }
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#save();
  }
}
