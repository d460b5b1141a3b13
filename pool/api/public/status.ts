/**
 * How the pool is, for everybody, from what this process knows by itself: it answers while the database, Redis or the
 * node is away, which is when people look. Pure, but for the routes that gather the facts.
 */
import { markupText } from '../../../runtime/door/markup.ts';
import type { InstanceFigures } from '../../shared/shared-state.ts';
import type { PoolDocument, StatusDocument } from '../documents.ts';
import type { ChainView } from './pool-view.ts';

type Part = StatusDocument['parts'][number];
type PartState = Part['state'];

export type StatusFacts = {
  readonly nowMillis: number;
  /** This instance first; the others as last heard. */
  readonly instances: readonly InstanceFigures[];
  readonly chain: ChainView | undefined;
  /** When the database last answered. */
  readonly databaseMillis: number | undefined;
  /** The newest cut in the books, as the database last said. */
  readonly booksHeight: number | undefined;
  /** As last read. */
  readonly payouts: PoolDocument['payouts'] | undefined;
};

/** Three of the looks that come every few seconds: one that is late is no outage. */
export const LATE_MILLIS = 20_000;
/** About five minutes: credits are hours behind their blocks anyway. */
export const LATE_CUTS = 120;

const ago = (millis: number): string => `${Math.max(0, Math.round(millis / 1_000))} s ago`;

function nodePart({ chain, nowMillis }: StatusFacts): Part {
  if (chain === undefined) return { name: 'node', state: 'away', note: 'the node has not answered yet' };
  const age = nowMillis - chain.atMillis;
  if (age > LATE_MILLIS) return { name: 'node', state: 'away', note: `the node last answered ${ago(age)}` };
  return chain.synced
    ? { name: 'node', state: 'working', note: `at cut ${chain.height}` }
    : { name: 'node', state: 'limited', note: `at cut ${chain.height}, not synced with the network` };
}

function databasePart({ databaseMillis, nowMillis }: StatusFacts): Part {
  if (databaseMillis === undefined)
    return { name: 'database', state: 'away', note: 'the database has not answered yet' };
  const age = nowMillis - databaseMillis;
  return age > LATE_MILLIS
    ? { name: 'database', state: 'away', note: `last answered ${ago(age)}; shares are kept on disk and are not lost` }
    : { name: 'database', state: 'working', note: '' };
}

function booksPart({ booksHeight, chain, instances }: StatusFacts, database: Part): Part {
  if (database.state === 'away') return { name: 'books', state: 'away', note: 'credits wait for the database' };
  if (!instances.some(({ accountant }) => accountant))
    return { name: 'books', state: 'limited', note: 'no instance keeps the books at the moment' };
  const behind = booksHeight === undefined || chain === undefined ? 0 : Math.max(0, chain.height - booksHeight);
  return { name: 'books', state: behind > LATE_CUTS ? 'limited' : 'working', note: `${behind} cuts behind the node` };
}

function payoutsPart({ payouts }: StatusFacts, books: Part): Part {
  if (payouts?.paused === true)
    return { name: 'payouts', state: 'limited', note: payouts.pause_note ?? 'paused by the operator' };
  return books.state === 'away'
    ? { name: 'payouts', state: 'away', note: 'what is owed is paid when the database is back' }
    : { name: 'payouts', state: 'working', note: '' };
}

const WORST: readonly PartState[] = ['away', 'limited', 'working'];
const worst = (states: readonly PartState[]): PartState => WORST.find((one) => states.includes(one)) ?? 'away';

export function statusOf(facts: StatusFacts): StatusDocument {
  const { instances, nowMillis } = facts;
  // Names of machines are the operator's: everybody else gets numbers.
  const frontEnds = instances.map((one, index) => ({
    name: `front end ${index + 1}`,
    state: (nowMillis - one.atMillis > LATE_MILLIS ? 'away' : one.ready ? 'working' : 'limited') as PartState,
    connections: Object.values(one.connections).reduce((sum, count) => sum + count, 0),
  }));
  const serving = frontEnds.filter(({ state }) => state === 'working').length;
  const mining: Part = {
    name: 'mining',
    state: serving === 0 ? 'away' : serving < frontEnds.length ? 'limited' : 'working',
    note: `${serving} of ${frontEnds.length} front ends serve miners`,
  };
  const database = databasePart(facts);
  const books = booksPart(facts, database);
  const parts = [mining, nodePart(facts), database, books, payoutsPart(facts, books)];
  // Mining goes on without the database: as long as it does, the pool is limited, not away.
  const all = worst(parts.map(({ state }) => state));
  return {
    api_version: 1,
    state: all === 'away' && mining.state !== 'away' ? 'limited' : all,
    parts,
    front_ends: frontEnds,
    now_millis: nowMillis,
  };
}

const WORDS: Readonly<Record<PartState, string>> = { working: 'working', limited: 'limited', away: 'not working' };

/** A page without scripts, which needs nothing but this process. */
export function statusPage({ state, parts, front_ends, now_millis }: StatusDocument, title: string): string {
  const row = (name: string, word: string, note: string) =>
    `<tr><th scope="row">${markupText(name)}</th><td>${word}</td><td>${markupText(note)}</td></tr>`;
  const rows = [
    ...parts.map((part) => row(part.name, WORDS[part.state], part.note)),
    ...front_ends.map((one) => row(one.name, WORDS[one.state], `${one.connections} connections`)),
  ];
  const heading = `${markupText(title)}: ${WORDS[state]}`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><meta http-equiv="refresh" content="30"><title>${heading}</title></head><body><main><h1>${heading}</h1><table><caption>${new Date(now_millis).toISOString()}</caption><thead><tr><th scope="col">Part</th><th scope="col">State</th><th scope="col">Note</th></tr></thead><tbody>${rows.join('')}</tbody></table><p><a href="./">The pool’s page</a></p></main></body></html>`;
}
