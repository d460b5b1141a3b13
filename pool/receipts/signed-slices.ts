/**
 * Records which slice records this front end has signed, on its own disk beside the journals: a database replaced by an
 * older copy can close a slice differently, and two signed records of one slice convict the pool (books rule 20). A
 * signed slice is signed again only with the same record. Front ends tell each other in the database, and again
 * whenever it may have been replaced. What others told is on this disk too: they may be gone together with the database.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { booksText, type SignedBooks } from '../../protocol/books/receipt.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES, type Service } from '../journal/journal-record.ts';

const FILE = 'signed-slices';
/** Slices that are remembered: several times as many as receipts are ever made for. */
const KEPT_SLICES = 1_024;
/** Slices before the newest that are looked at again: their records are told late. */
const LATE_SLICES = 64;

const LINE = /^(?:pplns|solo) \d{1,10} [0-9a-f]{32}$/;
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

const partsOf = (key: string): { service: number; slice: number } => {
  const [service, slice] = key.split(' ');
  return { service: SERVICES.indexOf(service as Service), slice: Number(slice) };
};

export class SignedSlices {
  readonly #path: string;
  /** By `service slice`. */
  readonly #known: Map<string, string>;
  /** The newest slice that others have told of. */
  #learned = -1;

  private constructor(path: string, known: Map<string, string>) {
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
    const known = lines.map((line): [string, string] => [line.slice(0, -NAME_DIGITS - 1), line.slice(-NAME_DIGITS)]);
    return new SignedSlices(path, new Map(known));
  }

  /** Tells the other front ends what this one has signed, or knows of others, and forgets what nobody signs any more. */
  async tell(sql: Sql): Promise<void> {
    this.#learned = -1;
    const rows = [...this.#known].map(([key, name]) => ({ ...partsOf(key), name }));
    const column = <T>(of: (row: (typeof rows)[number]) => T): T[] => rows.map(of);
    await sql`insert into signed_slices select * from unnest(${column(({ service }) => service)}::int[],
      ${column(({ slice }) => slice)}::int[], ${column(({ name }) => name)}::text[]) order by 1, 2 on conflict do nothing`;
    await sql`delete from signed_slices where slice <= (select max(number) from slices) - ${KEPT_SLICES}::int`;
  }

  /** Keeps what the other front ends have told. To be called often: who signed it may be gone at any time. */
  async learn(sql: Sql): Promise<void> {
    const rows = await sql<{ service: number; slice: number; name: string }[]>`select service, slice, name
      from signed_slices where slice > ${this.#learned - LATE_SLICES}::int
        and slice <= (select max(number) from slices) order by slice`;
    const told = rows.map(({ service, slice, name }) => [`${SERVICES[service]} ${slice}`, name] as const);
    // A row that was changed by hand must not make the file one that cannot be read.
    const fresh = told.filter(([key, name]) => !this.#known.has(key) && LINE.test(`${key} ${name}`));
    if (fresh.length > 0) await this.#add(fresh);
    this.#learned = Math.max(this.#learned, ...rows.map(({ slice }) => slice));
  }

  /** The oldest by the time when they came are dropped: a chain that begins anew has lower numbers. */
  async #add(fresh: readonly (readonly [key: string, name: string])[]): Promise<void> {
    const next = [...this.#known, ...fresh].slice(-KEPT_SLICES * SERVICES.length);
    const lines = next.map(([key, name]) => `${key} ${name}\n`).join('');
    await writeDurably(this.#path, `${checkOf(lines)}\n${lines}`, PRIVATE_MODE);
    this.#known.clear();
    for (const [key, name] of next) this.#known.set(key, name);
  }

  /** False when another record of the slice was signed, here or elsewhere. */
  async allows(sql: Sql, service: Service, slice: number, books: SignedBooks): Promise<boolean> {
    const [told] = await sql<{ name: string }[]>`select name from signed_slices
      where service = ${SERVICES.indexOf(service)} and slice = ${slice}`;
    const name = nameOf(books);
    return [this.#known.get(`${service} ${slice}`), told?.name].every((one) => one === undefined || one === name);
  }

  /** To be called before the signature is made. False when another record was signed meanwhile. */
  async keep(sql: Sql, service: Service, slice: number, books: SignedBooks): Promise<boolean> {
    await sql`insert into signed_slices values (${SERVICES.indexOf(service)}, ${slice}, ${nameOf(books)})
      on conflict do nothing`;
    if (!(await this.allows(sql, service, slice, books))) return false;
    const key = `${service} ${slice}`;
    if (!this.#known.has(key)) await this.#add([[key, nameOf(books)]]);
    return true;
  }
}
