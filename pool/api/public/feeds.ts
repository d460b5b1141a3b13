/** Blocks and payments for feed readers: Atom (RFC 4287) and JSON Feed 1.1, from the same entries. */
import { formatCoins } from '../../../protocol/amount.ts';
import { object, text } from '../../../protocol/api/schema.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import { markupText } from '../../../runtime/door/markup.ts';
import type { LedgerView } from '../books/ledger-view.ts';
import type { BlocksDocument, PaymentsDocument } from '../documents.ts';
import * as d from '../documents.ts';
import { COSTS, FIELDS, type Route, route } from '../route.ts';

export type FeedEntry = {
  /** Stays the same while the entry changes: readers replace it. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly atMillis: number;
  /** Of the page about it, after the pool's own URL. */
  readonly page: string;
};

export type Feed = {
  readonly id: string;
  readonly title: string;
  readonly entries: readonly FeedEntry[];
  /** Of the pool's page; without it entries have no links. */
  readonly home: string | undefined;
};

/** Newest entries of a feed. */
const ENTRIES = 50;
const KEEP_MILLIS = 30_000;
export const ATOM = 'application/atom+xml; charset=utf-8';

/** Not sent yet, or taken back: no news for the receiver. */
const UNSENT: readonly string[] = ['reserved', 'submitting', 'void'];
const PAYMENT_STATES: Readonly<Record<string, string>> = { submitted: 'sent', finalized: 'final' };

export const blockEntries = ({ blocks }: BlocksDocument): FeedEntry[] =>
  blocks.map((block) => ({
    id: `urn:svc-pool:block:${block.block_id}`,
    title: `Block found, ${block.service}: ${block.state}`,
    text: `Block ${block.block_id} by ${block.finder}${block.worker === '' ? '' : `, worker ${block.worker}`}. Effort ${Math.round(100 * block.effort)} %.${block.reward === null ? '' : ` Reward ${formatCoins(BigInt(block.reward))} coins.`}`,
    atMillis: block.found_millis,
    page: `#/blocks/${block.block_id}`,
  }));

export const paymentEntries = ({ payments }: PaymentsDocument): FeedEntry[] =>
  payments
    .filter(({ state }) => !UNSENT.includes(state))
    .map((payment) => ({
      id: `urn:svc-pool:payment:${payment.payout_id}:${payment.address}`,
      title: `Payment of ${formatCoins(BigInt(payment.amount))} coins: ${PAYMENT_STATES[payment.state] ?? payment.state}`,
      text: `To ${payment.address}.${payment.transaction_id === null ? '' : ` Transaction ${payment.transaction_id}.`}`,
      atMillis: payment.created_millis,
      page: `#/miner/${payment.address}/payments`,
    }));

/** XML has no way to write most control characters: they are left out. */
const xml = (text: string): string => markupText(text.replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, ' '));
const iso = (millis: number): string => new Date(millis).toISOString();
const urlOf = (home: string, page: string): string => `${home}/${page}`;

export function atomFeed({ id, title, entries, home }: Feed, nowMillis: number): string {
  const link = (page: string) => (home === undefined ? '' : `<link href="${xml(urlOf(home, page))}"/>`);
  const updated = entries.reduce((newest, { atMillis }) => Math.max(newest, atMillis), 0) || nowMillis;
  const rows = entries.map(
    (entry) =>
      `<entry><id>${xml(entry.id)}</id><title>${xml(entry.title)}</title><updated>${iso(entry.atMillis)}</updated>${link(entry.page)}<content type="text">${xml(entry.text)}</content></entry>\n`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><id>${xml(id)}</id><title>${xml(title)}</title><updated>${iso(updated)}</updated><author><name>${xml(title)}</name></author>${link('')}\n${rows.join('')}</feed>\n`;
}

export const jsonFeed = ({ title, entries, home }: Feed): d.FeedDocument => ({
  version: 'https://jsonfeed.org/version/1.1',
  title,
  ...(home === undefined ? {} : { home_page_url: urlOf(home, '') }),
  items: entries.map((entry) => ({
    id: entry.id,
    title: entry.title,
    content_text: entry.text,
    date_published: iso(entry.atMillis),
    ...(home === undefined ? {} : { url: urlOf(home, entry.page) }),
  })),
});

export type FeedDependencies = {
  readonly ledger: LedgerView;
  readonly poolName: () => string;
  readonly home: string | undefined;
  readonly now: WallClock;
};

export function feedRoutes({ ledger, poolName, home, now }: FeedDependencies): Route[] {
  const page = { cursor: undefined, limit: ENTRIES };
  const blocks = async (finder: string | undefined): Promise<Feed> => ({
    id: `urn:svc-pool:blocks${finder === undefined ? '' : `:${finder}`}`,
    title: `${poolName()}: blocks`,
    entries: blockEntries(await ledger.blocks(page, { service: undefined, state: undefined, finder })),
    home,
  });
  const payments = async (address: string | undefined): Promise<Feed> => ({
    id: `urn:svc-pool:payments${address === undefined ? '' : `:${address}`}`,
    title: `${poolName()}: payments`,
    entries: paymentEntries(await ledger.payments(page, address)),
    home,
  });
  return (
    [
      { name: 'blocks', what: 'Blocks', group: 'Blocks', read: blocks },
      { name: 'payments', what: 'Payments', group: 'Payments', read: payments },
    ] as const
  ).flatMap(({ name, what, group, read }): Route[] => [
    route({
      method: 'GET',
      path: `/feeds/${name}.json`,
      group,
      summary: `${what} for feed readers (JSON Feed), newest first; all, or those of one address`,
      query: object({ address: FIELDS.addressQuery }),
      answer: d.feed,
      cost: COSTS.search,
      keep: KEEP_MILLIS,
      handle: async ({ query }) => jsonFeed(await read(query.address)),
    }),
    route({
      method: 'GET',
      path: `/feeds/${name}.atom`,
      group,
      summary: `${what} for feed readers (Atom), newest first; all, or those of one address`,
      query: object({ address: FIELDS.addressQuery }),
      answer: text({ description: 'an Atom document' }),
      media: ATOM,
      cost: COSTS.search,
      keep: KEEP_MILLIS,
      handle: async ({ query }) => atomFeed(await read(query.address), now()),
    }),
  ]);
}
