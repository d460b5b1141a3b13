/**
 * How the pool is, for everybody, from what this process knows by itself: it answers while the database, Redis or the
 * node is away, which is when people look. Pure, but for the routes that gather the facts.
 */
import { filled, type Language } from '../../../protocol/languages.ts';
import { markupText } from '../../../runtime/door/markup.ts';
import type { InstanceFigures } from '../../shared/shared-state.ts';
import type { PoolDocument, StatusDocument } from '../documents.ts';
import type { ChainView } from './pool-view.ts';
import { STATUS_WORDS, type StatusWords } from './status-words.ts';

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

const seconds = (millis: number): number => Math.max(0, Math.round(millis / 1_000));

function nodePart({ chain, nowMillis }: StatusFacts, words: StatusWords): Part {
  if (chain === undefined) return { name: 'node', state: 'away', note: words.node_silent };
  const age = nowMillis - chain.atMillis;
  if (age > LATE_MILLIS)
    return { name: 'node', state: 'away', note: filled(words.node_late, { seconds: seconds(age) }) };
  const { height } = chain;
  return chain.synced
    ? { name: 'node', state: 'working', note: filled(words.at_cut, { height }) }
    : { name: 'node', state: 'limited', note: filled(words.not_synced, { height }) };
}

function databasePart({ databaseMillis, nowMillis }: StatusFacts, words: StatusWords): Part {
  if (databaseMillis === undefined) return { name: 'database', state: 'away', note: words.database_silent };
  const age = nowMillis - databaseMillis;
  return age > LATE_MILLIS
    ? { name: 'database', state: 'away', note: filled(words.database_late, { seconds: seconds(age) }) }
    : { name: 'database', state: 'working', note: '' };
}

function booksPart({ booksHeight, chain, instances }: StatusFacts, database: Part, words: StatusWords): Part {
  if (database.state === 'away') return { name: 'books', state: 'away', note: words.credits_wait };
  if (!instances.some(({ accountant }) => accountant))
    return { name: 'books', state: 'limited', note: words.no_accountant };
  const behind = booksHeight === undefined || chain === undefined ? 0 : Math.max(0, chain.height - booksHeight);
  const note = behind === 0 ? words.level : filled(behind === 1 ? words.one_behind : words.behind, { count: behind });
  return { name: 'books', state: behind > LATE_CUTS ? 'limited' : 'working', note };
}

function payoutsPart({ payouts }: StatusFacts, books: Part, words: StatusWords): Part {
  if (payouts?.paused === true) return { name: 'payouts', state: 'limited', note: payouts.pause_note ?? words.paused };
  return books.state === 'away'
    ? { name: 'payouts', state: 'away', note: words.payouts_wait }
    : { name: 'payouts', state: 'working', note: '' };
}

const WORST: readonly PartState[] = ['away', 'limited', 'working'];
const worst = (states: readonly PartState[]): PartState => WORST.find((one) => states.includes(one)) ?? 'away';

/** The notes are in the language. */
export function statusOf(facts: StatusFacts, language: Language = 'en'): StatusDocument {
  const words = STATUS_WORDS[language];
  const { instances, nowMillis } = facts;
  // Names of machines are the operator's: everybody else gets numbers.
  const frontEnds = instances.map((one, index) => ({
    name: filled(words.front_end, { number: index + 1 }),
    state: (nowMillis - one.atMillis > LATE_MILLIS ? 'away' : one.ready ? 'working' : 'limited') as PartState,
    connections: Object.values(one.connections).reduce((sum, count) => sum + count, 0),
  }));
  const serving = frontEnds.filter(({ state }) => state === 'working').length;
  const mining: Part = {
    name: 'mining',
    state: serving === 0 ? 'away' : serving < frontEnds.length ? 'limited' : 'working',
    note: filled(words.serving, { serving, all: frontEnds.length }),
  };
  const database = databasePart(facts, words);
  const books = booksPart(facts, database, words);
  const parts = [mining, nodePart(facts, words), database, books, payoutsPart(facts, books, words)];
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

/** A page without scripts, which needs nothing but this process; its sheet is a file of the dashboard. */
export function statusPage(document: StatusDocument, title: string, language: Language = 'en'): string {
  const { state, parts, front_ends, now_millis } = document;
  const words = STATUS_WORDS[language];
  const row = (name: string, state: PartState, note: string) =>
    `<tr><th scope="row">${markupText(name)}</th><td class="${state}">${words[state]}</td><td>${markupText(note)}</td></tr>`;
  const column = (name: string) => `<th scope="col">${name}</th>`;
  const rows = [
    ...parts.map((part) => row(words[part.name], part.state, part.note)),
    ...front_ends.map((one) =>
      row(
        one.name,
        one.state,
        filled(one.connections === 1 ? words.connection : words.connections, { count: one.connections }),
      ),
    ),
  ];
  const heading = `${markupText(title)}: ${words[state]}`;
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><link rel="icon" href="./icon.svg"><link rel="stylesheet" href="./status.css"><title>${heading}</title></head><body><main><h1>${heading}</h1><table><caption>${new Date(now_millis).toISOString().slice(0, 19).replace('T', ' ')} UTC</caption><thead><tr>${column(words.part)}${column(words.state)}${column(words.note)}</tr></thead><tbody>${rows.join('')}</tbody></table><p><a href="./">${words.pool_page}</a></p></main></body></html>`;
}
