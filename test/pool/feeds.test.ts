/** Feeds of blocks and payments: one entry for each, in both formats, with text that no name can break. */
import { expect, test } from 'vitest';
import type { BlocksDocument, PaymentsDocument } from '../../pool/api/documents.ts';
import { atomFeed, blockEntries, jsonFeed, paymentEntries } from '../../pool/api/public/feeds.ts';

const payment = (state: string, address = 'svc1a') =>
  ({
    payout_id: 'p',
    state,
    address,
    amount: '150000000',
    transaction_id: 'ef',
    created_millis: 1_000,
    final_height: null,
  }) as PaymentsDocument['payments'][number];
const payments = (...states: string[]): PaymentsDocument => ({
  api_version: 1,
  payments: states.map((s) => payment(s)),
});
const block = {
  block_id: 'ab',
  service: 'pplns',
  anchor_height: 5,
  slice: 1,
  found_millis: 2_000,
  finder: 'svc1a',
  worker: '</content><script>&\u0000',
  state: 'paid',
  reason: null,
  effort: 0.5,
  reward: '100',
  credited: true,
} as BlocksDocument['blocks'][number];
const blocks: BlocksDocument = { api_version: 1, blocks: [block] };

test('a payment is news when it is sent, and the same entry when it is final', () => {
  expect(paymentEntries(payments('reserved', 'submitting', 'void'))).toEqual([]);
  const [sent] = paymentEntries(payments('submitted'));
  const [final] = paymentEntries(payments('finalized'));
  expect(sent?.id).toBe(final?.id);
  expect([sent?.title, final?.title]).toEqual([
    'Payment of 1.50000000 coins: sent',
    'Payment of 1.50000000 coins: final',
  ]);
});

test('Atom: every entry has id, title, time and text; names are text; links only where the pool has a URL', () => {
  const feed = { id: 'urn:x', title: 'a & b', entries: blockEntries(blocks), home: 'https://pool.example' };
  const text = atomFeed(feed, 9_000);
  expect(text).toMatch(/^<\?xml version="1\.0" encoding="utf-8"\?>\n<feed xmlns="http:\/\/www\.w3\.org\/2005\/Atom">/);
  expect(text).toContain('<id>urn:svc-pool:block:ab</id><title>Block found, pplns: paid</title>');
  expect(text).toContain('<updated>1970-01-01T00:00:02.000Z</updated>');
  expect(text).toContain('<link href="https://pool.example/#/blocks/ab"/>');
  expect(text).toContain('<title>a &#38; b</title>');
  expect(text).not.toContain('<script');
  expect(text).not.toContain('\u0000');
  // Every tag that is opened is closed, in order.
  const open: string[] = [];
  for (const [, end, name, own] of text.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g))
    if (end === '/') expect(open.pop()).toBe(name);
    else if (own === '') open.push(name as string);
  expect(open).toEqual([]);
  expect(atomFeed({ ...feed, entries: [], home: undefined }, 9_000)).toContain('<updated>1970-01-01T00:00:09.000Z');
  expect(atomFeed({ ...feed, home: undefined }, 9_000)).not.toContain('<link');
});

test('JSON Feed: the same entries', () => {
  const feed = jsonFeed({ id: 'urn:x', title: 'pool', entries: blockEntries(blocks), home: 'https://pool.example' });
  expect(feed).toMatchObject({
    version: 'https://jsonfeed.org/version/1.1',
    title: 'pool',
    home_page_url: 'https://pool.example/',
    items: [{ id: 'urn:svc-pool:block:ab', url: 'https://pool.example/#/blocks/ab' }],
  });
  expect(feed.items[0]?.content_text).toContain(block.worker);
});
