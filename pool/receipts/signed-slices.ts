/**
 * Records which slice records this front end has signed, on its own disk beside the journals: a database replaced by an
 * older copy can close a slice differently, and two signed records of one slice convict the pool (books rule 20). A
 * signed slice is signed again only with the same record. Front ends tell each other in the database, and again
 * whenever it may have been replaced. What others told is on this disk too: they may be gone together with the database.
 * With each record are the sheets that were signed of it, of all front ends (earlier-sheets.ts says what for).
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { booksText, type SignedBooks } from '../../protocol/books/receipt.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES, type Service } from '../journal/journal-record.ts';
import type { SignedSheet } from './earlier-sheets.ts';

const FILE = 'signed-slices';
/** Slices that are remembered: several times as many as receipts are ever made for. */
const KEPT_SLICES = 1_024;
/** Slices before the newest that are looked at again: their records are told late. */
const LATE_SLICES = 64;

const SHEET = /^([0-9a-f]{16}):(\d{1,15}):(\d{1,15}):([0-9a-f]{32})$/;
const LINE = /^((?:pplns|solo) \d{1,10}) ([0-9a-f]{32})((?: [0-9a-f]{16}:\d{1,15}:\d{1,15}:[0-9a-f]{32})*)$/;
const NAME_DIGITS = 32;

const checkOf = (lines: string): string => crc32(lines).toString(16).padStart(8, '0');

/** Undefined if the lines are not those that were written: a flipped digit would let another record of a slice be signed. */
function linesIn(text: string): readonly string[] | undefined {
  const [check = '', ...rest] = text.split('\n');
  // A file of before has no checksum.
  const isUnchecked = LINE.test(check);
  const lines = isUnchecked ? text : rest.join('\n');
  if (!isUnchecked && check !== checkOf(lines)) return undefined;
  const found = lines.split('\n').slice(0, -1);
  return found.every((line) => LINE.test(line)) ? found : undefined;
}

const nameOf = (books: SignedBooks): string =>
  createHash('sha256').update(booksText(books)).digest('hex').slice(0, NAME_DIGITS);

/** The name of the record, and the sheets as text. */
type Signed = { readonly name: string; readonly sheets: readonly string[] };

const keyOf = ({ service, slice }: { service: Service; slice: number }): string => `${service} ${slice}`;

const partsOf = (key: string): { service: Service; slice: number } => {
  const [service, slice] = key.split(' ');
  return { service: service as Service, slice: Number(slice) };
};

const textOf = ({ boot, first, last, passedOver }: SignedSheet): string => `${boot}:${first}:${last}:${passedOver}`;

function sheetOf(key: string, text: string): SignedSheet {
  const [, boot = '', first, last, passedOver = ''] = SHEET.exec(text) ?? [];
  return { ...partsOf(key), boot, first: Number(first), last: Number(last), passedOver };
}

export class SignedSlices {
  readonly #path: string;
  /** By `service slice`. */
  readonly #known: Map<string, Signed>;
  /** The newest slice that others have told of. */
  #learned = -1;

  private constructor(path: string, known: Map<string, Signed>) {
    this.#path = path;
    this.#known = known;
  }

  /** Throws if the file cannot be read: then the signed records are not known. */
  static open(directory: string): SignedSlices {
    const path = join(directory, FILE);
    const found = readPrivateFile(path);
    if (found.kind === 'missing') return new SignedSlices(path, new Map());
    if (found.kind !== 'text') throw new Error(found.reason);
    const lines = linesIn(found.text);
    if (lines === undefined)
      throw new Error(`${path} is damaged: it is not known which slices were signed, so no receipts are made`);
    const known = lines.map((line): [string, Signed] => {
      const [, key = '', name = '', sheets = ''] = LINE.exec(line) ?? [];
      return [key, { name, sheets: sheets.split(' ').slice(1) }];
    });
    return new SignedSlices(path, new Map(known));
  }

  /** Tells the other front ends what this one has signed, or knows of others, and forgets what nobody signs any more. */
  async tell(sql: Sql): Promise<void> {
    this.#learned = -1;
    const slices = [...this.#known].map(([key, { name }]) => ({ ...partsOf(key), text: name }));
    const sheets = [...this.#known].flatMap(([key, each]) => each.sheets.map((text) => ({ ...partsOf(key), text })));
    for (const [table, rows] of [
      ['signed_slices', slices],
      ['signed_sheets', sheets],
    ] as const) {
      await sql`insert into ${sql(table)} select * from unnest(${rows.map(({ service }) => SERVICES.indexOf(service))}::int[],
        ${rows.map(({ slice }) => slice)}::int[], ${rows.map(({ text }) => text)}::text[]) order by 1, 2 on conflict do nothing`;
      await sql`delete from ${sql(table)} where slice <= (select max(number) from slices) - ${KEPT_SLICES}::int`;
    }
  }

  /** Keeps what the other front ends have told. To be called often: who signed it may be gone at any time. */
  async learn(sql: Sql): Promise<void> {
    const rows = await sql<{ service: number; slice: number; name: string; sheets: string[] }[]>`
      select service, slice, name, array(select sheet from signed_sheets t
        where t.service = s.service and t.slice = s.slice order by sheet) as sheets
      from signed_slices s where slice > ${this.#learned - LATE_SLICES}::int
        and slice <= (select max(number) from slices) order by slice`;
    // A row that was changed by hand must not make the file one that cannot be read.
    const told = rows
      .map(({ service, slice, name, sheets }): [string, Signed] => [
        `${SERVICES[service]} ${slice}`,
        { name, sheets: sheets.filter((text) => SHEET.test(text)) },
      ])
      .filter(([key, { name }]) => LINE.test(`${key} ${name}`));
    const fresh = told.filter(([key, { sheets }]) => {
      const known = this.#known.get(key);
      return known === undefined || sheets.some((text) => !known.sheets.includes(text));
    });
    if (fresh.length > 0) await this.#add(fresh);
    this.#learned = Math.max(this.#learned, ...rows.map(({ slice }) => slice));
  }

  /** The oldest by the time when they came are dropped: a chain that begins anew has lower numbers. */
  async #add(fresh: readonly (readonly [key: string, signed: Signed])[]): Promise<void> {
    const all = new Map(this.#known);
    for (const [key, { name, sheets }] of fresh) {
      const known = all.get(key);
      all.set(key, { name: known?.name ?? name, sheets: [...new Set([...(known?.sheets ?? []), ...sheets])] });
    }
    const next = [...all].slice(-KEPT_SLICES * SERVICES.length);
    const lines = next.map(([key, { name, sheets }]) => `${[key, name, ...sheets].join(' ')}\n`).join('');
    await writeDurably(this.#path, `${checkOf(lines)}\n${lines}`, PRIVATE_MODE);
    this.#known.clear();
    for (const [key, signed] of next) this.#known.set(key, signed);
  }

  /** All sheets that were signed of slices, here or elsewhere. */
  async sheetsOf(sql: Sql, slices: readonly number[]): Promise<SignedSheet[]> {
    const rows = await sql<{ service: number; slice: number; sheet: string }[]>`select service, slice, sheet
      from signed_sheets where slice = any(${slices as number[]}::int[])`;
    const wanted = new Set(slices);
    const found = new Map<string, SignedSheet>();
    const add = (key: string, text: string) => {
      if (SHEET.test(text)) found.set(`${key} ${text}`, sheetOf(key, text));
    };
    for (const { service, slice, sheet } of rows) add(`${SERVICES[service]} ${slice}`, sheet);
    for (const [key, { sheets }] of this.#known)
      if (wanted.has(partsOf(key).slice)) for (const text of sheets) add(key, text);
    return [...found.values()];
  }

  /** False when another record of the slice was signed, here or elsewhere. */
  async allows(sql: Sql, service: Service, slice: number, books: SignedBooks): Promise<boolean> {
    const [told] = await sql<{ name: string }[]>`select name from signed_slices
      where service = ${SERVICES.indexOf(service)} and slice = ${slice}`;
    const name = nameOf(books);
    return [this.#known.get(keyOf({ service, slice }))?.name, told?.name].every(
      (one) => one === undefined || one === name,
    );
  }

  /** To be called before the signature is made. False when another record was signed meanwhile. */
  async keep(sql: Sql, sheet: SignedSheet, books: SignedBooks): Promise<boolean> {
    const { service, slice } = sheet;
    const [number, text] = [SERVICES.indexOf(service), textOf(sheet)];
    await sql`insert into signed_slices values (${number}, ${slice}, ${nameOf(books)}) on conflict do nothing`;
    await sql`insert into signed_sheets values (${number}, ${slice}, ${text}) on conflict do nothing`;
    if (!(await this.allows(sql, service, slice, books))) return false;
    const key = keyOf(sheet);
    if (!this.#known.get(key)?.sheets.includes(text)) await this.#add([[key, { name: nameOf(books), sheets: [text] }]]);
    return true;
  }
}

export const isSameSheet = (one: SignedSheet, other: SignedSheet): boolean =>
  keyOf(one) === keyOf(other) && textOf(one) === textOf(other);
