/**
 * Records which slice records this front end has signed, on its own disk beside the journals: a database replaced by an
 * older copy can close a slice differently, and two signed records of one slice convict the pool (books rule 20). A
 * signed slice is signed again only with the same record. Front ends tell each other in the database, and again
 * whenever it may have been replaced.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { booksText, type SignedBooks } from '../../protocol/books/receipt.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES, type Service } from '../journal/journal-record.ts';

const FILE = 'signed-slices';
/** Slices that are remembered: several times as many as receipts are ever made for. */
const KEPT_SLICES = 1_024;

const nameOf = (books: SignedBooks): string => createHash('sha256').update(booksText(books)).digest('hex').slice(0, 32);

const partsOf = (key: string): { service: number; slice: number } => {
  const [service, slice] = key.split(' ');
  return { service: SERVICES.indexOf(service as Service), slice: Number(slice) };
};

export class SignedSlices {
  readonly #path: string;
  /** By `service slice`. */
  readonly #known: Map<string, string>;

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
    const known = new Map<string, string>();
    for (const line of found.text.split('\n').slice(0, -1)) {
      const match = /^((?:pplns|solo) \d{1,10}) ([0-9a-f]{32})$/.exec(line);
      if (match === null)
        throw new Error(`${path} is damaged: it is not known which slices were signed, so no receipts are made`);
      known.set(match[1] as string, match[2] as string);
    }
    return new SignedSlices(path, known);
  }

  /** Tells the other front ends what this one has signed, and forgets what nobody signs any more. */
  async tell(sql: Sql): Promise<void> {
    const rows = [...this.#known].map(([key, name]) => ({ ...partsOf(key), name }));
    const column = <T>(of: (row: (typeof rows)[number]) => T): T[] => rows.map(of);
    await sql`insert into signed_slices select * from unnest(${column(({ service }) => service)}::int[],
      ${column(({ slice }) => slice)}::int[], ${column(({ name }) => name)}::text[]) order by 1, 2 on conflict do nothing`;
    await sql`delete from signed_slices where slice <= (select max(slice) from signed_slices) - ${KEPT_SLICES}::int`;
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
    if (this.#known.has(key)) return true;
    const next = new Map([...this.#known].filter(([each]) => partsOf(each).slice > slice - KEPT_SLICES));
    next.set(key, nameOf(books));
    await writeDurably(this.#path, [...next].map(([each, name]) => `${each} ${name}\n`).join(''), PRIVATE_MODE);
    this.#known.clear();
    for (const [each, name] of next) this.#known.set(each, name);
    return true;
  }
}
