/** Books rules 20a, 29 and 30: files of evidence about two lists of one slice, and about credits that were not paid, with what `svc-pool verify-evidence` makes of each; what is owed by which threshold, and what is unread. */

import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { poolListId } from '../../protocol/books/pool-proof.ts';
import {
  LIST_EVIDENCE_FORMAT,
  type ListEvidence,
  listHead,
  type ShownList,
} from '../../protocol/evidence/list-evidence.ts';
import { UNPAID_EVIDENCE_FORMAT, type UnpaidEvidence } from '../../protocol/evidence/unpaid-evidence.ts';
import { addressOf, Books, honestDecisions } from './honest-books.ts';

const SLICE = 18;
const books = new Books(honestDecisions(20));

function shown(document: PoolProof): ShownList {
  const head = listHead(document);
  const list_id = poolListId(head);
  return { list_id, credit_root: head.credit_root, head: { ...head, list_id } };
}

function listEvidence() {
  const first = books.proof(SLICE, 1);
  const [before, now] = [shown(first), shown({ ...first, credit_root: 'ab'.repeat(48) })];
  const file = (lists: Pick<ListEvidence, 'before' | 'now'>): ListEvidence => ({
    format: LIST_EVIDENCE_FORMAT,
    service: 'pplns',
    slice: SLICE,
    ...lists,
  });
  const rootOf = ({ credit_root }: ShownList): ShownList => ({ list_id: null, credit_root, head: null });
  return [
    { says: 'two lists, each with its head', evidence: file({ before, now }), verdict: 'two_lists', exit: 4 },
    {
      says: 'of the later one only the root that the page of slices shows',
      evidence: file({ before, now: rootOf(now) }),
      verdict: 'two_lists',
      exit: 4,
    },
    { says: 'one list twice', evidence: file({ before, now: before }), verdict: 'same_list', exit: 1 },
    {
      says: 'one list, and the root of the same',
      evidence: file({ before, now: rootOf(before) }),
      verdict: 'same_list',
      exit: 1,
    },
    {
      says: 'a head that does not give its name',
      evidence: file({ before, now: { ...now, list_id: 'cd'.repeat(48) } }),
      verdict: 'other_list',
      exit: 1,
    },
    {
      says: 'a head of another slice',
      evidence: { ...file({ before, now }), slice: SLICE + 1 },
      verdict: 'other_list',
      exit: 1,
    },
    {
      says: 'a head without a name',
      evidence: file({ before, now: { ...now, list_id: null } }),
      verdict: 'malformed',
      exit: 1,
    },
  ];
}

function unpaidEvidence() {
  const credit = { service: 'pplns' as const, slice: SLICE, amount: '1200' };
  const good: UnpaidEvidence = {
    format: UNPAID_EVIDENCE_FORMAT,
    address: addressOf(1),
    threshold: '1000',
    owed: '1500',
    at_millis: 1_800_000_000_000,
    for_hours: 26,
    credits: [credit, { ...credit, service: 'solo', amount: '300' }],
  };
  const bad = (says: string, change: object) => ({ says, evidence: { ...good, ...change }, readable: false });
  return [
    { says: 'credits of two lists', evidence: good, readable: true },
    { says: 'no list: nothing to look up', evidence: { ...good, credits: [] }, readable: true },
    bad('an amount that is no text of digits', { owed: 1500 }),
    bad('a threshold below zero', { threshold: '-1' }),
    bad('one list twice', { credits: [credit, { ...credit, amount: '1' }] }),
    bad('a service that there is not', { credits: [{ ...credit, service: 'pps' }] }),
    bad('a slice that is no number', { credits: [{ ...credit, slice: '18' }] }),
    bad('no credits', { credits: null }),
  ];
}

const AT = 1_800_000_000_000;
const HOUR = 3_600_000;

/** Rule 29: credits older than the bound, payments since, and the highest threshold of that time. */
function owed() {
  const facts = {
    credited: '1500',
    paid: '300',
    minimum: '1000',
    earlier: [],
    is_paused: false,
    at_millis: AT,
    bound_millis: 26 * HOUR,
  };
  const before = (amount: string, hours: number) => ({ earlier: [{ amount, until_millis: AT - hours * HOUR }] });
  const of = (says: string, threshold: string, verdict: string, change: object = {}) => ({
    says,
    facts: { ...facts, ...change },
    threshold,
    verdict,
  });
  return [
    of('more than the threshold, for longer than the bound', '1000', 'unpaid'),
    of('all of it paid', '1000', 'paid', { paid: '1500' }),
    of('exactly the threshold', '1200', 'unpaid', { minimum: '1200' }),
    of('one atom less than the threshold', '1201', 'below', { minimum: '1201' }),
    of('the account lowered its threshold an hour ago', '2000', 'below', before('2000', 1)),
    of('the account lowered it longer ago than the bound', '1000', 'unpaid', before('2000', 26)),
    of('an earlier one that was lower counts nothing', '1000', 'unpaid', before('500', 1)),
    of('payouts are paused', '1000', 'paused', { is_paused: true }),
    of('the ledger shows payments that the pool does not list: an omission, and no accusation', '1000', 'unlisted', {
      unlisted: '201',
    }),
    of('with what the ledger shows besides, exactly the threshold is left', '1000', 'unpaid', { unlisted: '200' }),
  ];
}

/** Rule 30: an answer by its status and its `retry-after`, and how long to wait before the next question. */
const readings = () => [
  { says: 'too many requests', status: 429, retry_after: '7', unread: true, wait_millis: 7_000 },
  { says: 'busy', status: 503, retry_after: '300', unread: true, wait_millis: 300_000 },
  { says: 'too many requests, without a time', status: 429, retry_after: null, unread: true, wait_millis: 1_000 },
  { says: 'a time that is no number', status: 429, retry_after: 'soon', unread: true, wait_millis: 1_000 },
  { says: 'not there', status: 404, retry_after: null, unread: true, wait_millis: null },
  { says: 'a failure', status: 500, retry_after: '7', unread: true, wait_millis: null },
  { says: 'a proxy without its pool', status: 502, retry_after: null, unread: true, wait_millis: null },
];

export const evidenceVectors = () => ({
  lists: listEvidence(),
  unpaid: unpaidEvidence(),
  owed: owed(),
  readings: readings(),
});
