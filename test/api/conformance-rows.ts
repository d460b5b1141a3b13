/** How a row of the specification's tables is checked against a real node (conformance.test.ts). */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { developmentKey } from '../../node/development.ts';
import { ROUTES, type RouteName, type RouteSpec, SOCKETS } from '../../protocol/api/routes.ts';
import { check } from '../../protocol/api/schema.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ApiBed, treasury } from './api-bed.ts';

type Check = () => Promise<void> | void;
/**
 * How a row is shown: `asked` of the node here; `named` by a test of another file, found by its title, whose own run decides; `unchecked`: the file that shows it is named, and
 * nothing here looks into it.
 */
export type Row = {
  readonly table: string;
  readonly row: string;
  readonly note?: string;
} & ({ readonly how: 'asked' | 'named'; readonly check: Check } | { readonly how: 'unchecked' });

/** The node that all rows are checked against, with one transaction and one block that was paid. */
export const subject = {
  bed: undefined as unknown as ApiBed,
  transaction: '',
  block: '',
  async open(): Promise<void> {
    this.bed = await ApiBed.open();
    this.transaction = await this.bed.pay(0, 'alice', 5_000n);
    this.block = toHex(await this.bed.bed.mine(developmentKey('miner').address));
    await this.bed.bed.seal(100);
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
export const unchecked = (table: string, row: string, file: string): Row => ({
  table,
  row,
  note: file,
  how: 'unchecked',
});
export const pages = (row: string, name: RouteName, standard: number, maximum: number): Row => ({
  table: 'Endpoints: page sizes',
  row,
  how: 'asked',
  check: async () => {
    const limit = ROUTES[name].query.properties?.limit;
    expect([limit?.default, limit?.maximum]).toEqual([standard, maximum]);
    const path = ROUTES[name].path.replace('{address}', treasury()).replace('{height}', '1');
    expect((await subject.bed.get(`${path}?limit=${maximum}`)).status).toBe(200);
    expect((await subject.bed.get(`${path}?limit=${maximum + 1}`)).status).toBe(400);
    expect((await subject.bed.get(`${path}?limit=0`)).status).toBe(400);
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
/** Words of a title that a test of the file must have. */
export const titled = (table: string, row: string, file: string, title: string): Row => ({
  table,
  row,
  how: 'named',
  note: `${file}: ${title}`,
  check: () => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const titles = [...text.matchAll(/\btest(?:\.each(?:<[^\n]*?>)?\([\s\S]*?\))?\(\s*(['"`])(.*?)\1/g)].map(
      (match) => match[2] ?? '',
    );
    expect(
      titles.filter((one) => one.includes(title)),
      title,
    ).not.toEqual([]);
  },
});
/** A row that a test of another file is called after: `title: row`, or one of several rows there. */
export const named = (table: string, title: string, row: string, where: string): Row => ({
  table,
  row: title === table ? row : `${title}: ${row}`,
  how: 'named',
  note: where,
  check: () => {
    const text = readFileSync(new URL(`../../${where}`, import.meta.url), 'utf8');
    const titles = text.matchAll(/^test\(\s*(['"])(.*?)\1,/gm);
    const called = [...titles].map(([, , name = '']) => name).filter((name) => name.startsWith(`${title}: `));
    expect(called.filter((name) => name.includes(row))).not.toEqual([]);
  },
});
export const columns = (row: string): Row =>
  titled('Limits: sockets, node and public', row, 'test/api/live.test.ts', 'limits of the %s column');
