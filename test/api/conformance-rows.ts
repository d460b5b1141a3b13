/** How a row of the specification's tables is checked against a real node (conformance.test.ts). */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { ROUTES, type RouteName, type RouteSpec, SOCKETS } from '../../protocol/api/routes.ts';
import { check } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ApiBed, addressOf, treasury } from './api-bed.ts';

type Check = () => Promise<void> | void;
/**
 * How a row is shown: `asked` of the node here, or `named` by one test of another file, whose title `is` the wanted one. That
 * test's own run decides: `npm test` ends with a failure where it did not run or did not pass (scripts/ready/named-tests.mjs).
 */
export type Row = {
  readonly table: string;
  readonly row: string;
} & (
  | { readonly how: 'asked'; readonly check: Check; readonly note?: string }
  | { readonly how: 'named'; readonly file: string; readonly is: (title: string) => boolean }
);

/** Titles as the file has them, with the places of `test.each`. */
export function titlesIn(file: string): string[] {
  const place = new URL(`../../${file}`, import.meta.url);
  const own = readFileSync(place, 'utf8');
  // Some files put tests of several together, which share what they start.
  const parts = [...own.matchAll(/^await import\('(\.\/[^']*)'\)/gm)].map(([, path = '']) => new URL(path, place));
  const text = [own, ...parts.map((part) => readFileSync(part, 'utf8'))].join('\n');
  const titles = text.matchAll(/\btest(?:\.each(?:<[^\n]*?>)?\([\s\S]*?\))?\(\s*(['"`])(.*?)\1/g);
  return [...titles].map(([, , title = '']) => title);
}

/** More than one page of everything has by default. */
const CROWD = { outputs: 1_100, payments: 55 } as const;

/** More than one transaction spends. */
export const RICH_OUTPUTS = 9;

/** The node that all rows are checked against, with one transaction and one block that was paid, and a cut with many of both. */
export const subject = {
  bed: undefined as unknown as ApiBed,
  transaction: '',
  block: '',
  crowdedCut: 0,
  async open(): Promise<void> {
    const output = { address: developmentKey('crowd').address, amount: 1_000n };
    const rich = { address: developmentKey('rich').address, amount: 100_000_000n };
    const fund = [...Array(CROWD.outputs).fill(output), ...Array(RICH_OUTPUTS).fill(rich)];
    this.bed = await ApiBed.open({ bed: { genesis: { fund } } });
    this.transaction = await this.bed.pay(0, 'alice', 5_000n);
    const miner = developmentKey('miner').address;
    this.block = toHex(await this.bed.bed.mine(miner));
    await this.bed.bed.seal(100);
    for (let i = 0; i < CROWD.payments; i++) await this.bed.pay(8 + i, 'alice', 1_000n);
    for (let i = 0; i < CROWD.payments; i++) await this.bed.bed.mine(miner);
    await this.bed.bed.seal();
    this.crowdedCut = this.head;
    // One cut does not register all of the blocks.
    await this.bed.bed.seal(4);
  },
  get head(): number {
    return this.bed.bed.node.chain.head().height;
  },
};

const INPUT: Partial<Record<string, () => unknown>> = {
  address: treasury,
  height: () => 1,
  id: () => subject.transaction,
  addresses: () => [treasury()],
  transaction_ids: () => [subject.transaction],
  outpoints: () => [{ transaction_id: subject.transaction, output_index: 0 }],
  after_height: () => 0,
  amount: () => '100000000',
  api_version: () => 1,
};

/** Calls the route as the table writes it and checks the answer against its schema. */
export async function answers(name: RouteName, extra: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const route: RouteSpec = ROUTES[name];
  const value = (field: string): unknown => extra[field] ?? INPUT[field]?.();
  const path = route.path.replace(/\{(\w+)\}/g, (_, field: string) => String(value(field)));
  const query = (route.query.required ?? []).map((field) => `${field}=${value(field)}`).join('&');
  const body = Object.fromEntries((route.body?.required ?? []).map((field) => [field, value(field)]));
  const target = query === '' ? path : `${path}?${query}`;
  const answer = route.method === 'GET' ? await subject.bed.get(target) : await subject.bed.post(target, body);
  const document = await answer.json();
  expect(answer.status, JSON.stringify(document)).toBe(200);
  expect(check(route.answer, document)).toBeUndefined();
  expect(document.api_version).toBe(1);
  return document;
}
export const route = (row: string, ...names: RouteName[]): Row => ({
  table: 'Endpoints: public HTTP API',
  row,
  how: 'asked',
  check: async () => {
    for (const name of names) {
      const [method] = row.replaceAll('`', '').split(' ');
      expect(ROUTES[name].method).toBe(method);
      expect(row).toContain(`\`${ROUTES[name].path}\``);
      await answers(name);
    }
  },
});
/** Where there is more than a page. */
const crowded = (name: RouteName): string =>
  ROUTES[name].path
    .replace('{address}', name === 'addressUtxos' ? addressOf('crowd') : treasury())
    .replace('{height}', name === 'cutChanges' ? '0' : String(subject.crowdedCut));

/** Without a limit a page has `standard` entries, with the highest one no more than that, and a higher one is refused. */
export const pages = (row: string, name: RouteName, standard: number, maximum: number): Row => ({
  table: 'Endpoints: page sizes',
  row,
  how: 'asked',
  check: async () => {
    const page = async (query: string) => {
      const answer = await subject.bed.get(`${crowded(name)}${query}`);
      const entries = Object.values((await answer.json()) as object).find(Array.isArray) as unknown[] | undefined;
      return [answer.status, entries?.length];
    };
    expect(await page('')).toEqual([200, standard]);
    expect(await page(`?limit=${standard + 1}`)).toEqual([200, standard + 1]);
    const [status, entries = 0] = await page(`?limit=${maximum}`);
    expect(status).toBe(200);
    expect(entries).toBeGreaterThan(standard);
    expect(entries).toBeLessThanOrEqual(maximum);
    expect((await page(`?limit=${maximum + 1}`))[0]).toBe(400);
    expect((await page('?limit=0'))[0]).toBe(400);
  },
});
export const batch = (row: string, names: RouteName[], field: string, maximum: number): Row => ({
  table: 'Limits',
  row,
  how: 'asked',
  check: async () => {
    for (const name of names) {
      const entries = INPUT[field]?.() as unknown[] | undefined;
      const entry = entries?.[0];
      const body = (count: number) => ({
        ...(name === 'addressChanges' ? { after_height: 0 } : {}),
        [field]: Array(count).fill(entry),
      });
      expect((await subject.bed.post(ROUTES[name].path, body(maximum))).status, name).toBe(200);
      expect((await subject.bed.post(ROUTES[name].path, body(maximum + 1))).status, name).toBe(400);
    }
  },
});
export const socket = (row: string, name: keyof typeof SOCKETS): Row => ({
  table: 'Endpoints: WebSockets',
  row,
  how: 'asked',
  check: async () => {
    const { path, subprotocol } = SOCKETS[name];
    expect(row).toContain(`\`${path}\``);
    expect(row).toContain(`\`${subprotocol}\``);
    const opened = subject.bed.socket(path.replace('{id}', subject.transaction), subprotocol);
    await opened.opened();
    expect(opened.ws.protocol).toBe(subprotocol);
    opened.ws.close();
  },
});
export const tested = (table: string, row: string, where: string, checkRow: Check): Row => ({
  table,
  row,
  how: 'asked',
  check: checkRow,
  note: where,
});
/** Words of a title that one test of the file has. */
export const titled = (table: string, row: string, file: string, words: string): Row => ({
  table,
  row,
  how: 'named',
  file,
  is: (title) => title.includes(words),
});
/** A row that a test of another file is called after: `group: row`, or one of several rows there. */
export const named = (table: string, group: string, row: string, file: string): Row => ({
  table,
  row: group === table ? row : `${group}: ${row}`,
  how: 'named',
  file,
  is: (title) => {
    const [own, ...rows] = title.split(/: |, /);
    return own === group && row.split(', ').every((each) => rows.includes(each));
  },
});
export const columns = (row: string): Row =>
  titled('Limits: sockets, node and public', row, 'test/api/live.test.ts', 'limits of the %s column');
