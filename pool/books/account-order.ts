/**
 * Accounts in ascending order of payload, which is the order of slices, of lists and of ties. An account never changes,
 * so it is cached: 49 bytes for each account that ever earned something, instead of a row read for every list.
 */
import type { Sql, Transaction } from '../database/connect.ts';

const PAYLOAD_BYTES = 49;
/** Nearly all payloads differ in their first bytes, which compare faster as a number. */
const HEAD_BYTES = 6;

export class AccountOrder {
  /** In order of arrival. */
  #ids: number[] = [];
  #payloads: Buffer = Buffer.alloc(0);
  /** Places in ascending order of payload: the rank is the index. */
  #places: Uint32Array = new Uint32Array(0);
  #rankById: Int32Array = new Int32Array(0);

  get size(): number {
    return this.#ids.length;
  }

  /** Reads the accounts that are not known yet. Ranks are valid until the next call. */
  async know(sql: Sql | Transaction, ids: readonly number[]): Promise<void> {
    const unknown = ids.filter((id) => (this.#rankById[id] ?? -1) < 0);
    if (unknown.length === 0) return;
    const rows = await sql<{ id: number; payload: Buffer }[]>`select a.id, coalesce(n.payload, a.payload) as payload
      from accounts a left join account_names n on n.account_id = a.id where a.id = any(${unknown}::int[])`;
    if (rows.length !== unknown.length)
      throw new Error(`${unknown.length - rows.length} accounts are not in the books`);
    this.#payloads = Buffer.concat([this.#payloads, ...rows.map((row) => row.payload)]);
    for (const { id } of rows) this.#ids.push(id);
    this.#sort();
  }

  #sort(): void {
    const heads = Float64Array.from(this.#ids, (_, place) =>
      this.#payloads.readUIntBE(place * PAYLOAD_BYTES, HEAD_BYTES),
    );
    this.#places = Uint32Array.from(this.#ids.keys()).sort(
      (a, b) => (heads[a] as number) - (heads[b] as number) || Buffer.compare(this.#at(a), this.#at(b)),
    );
    this.#rankById = new Int32Array(1 + this.#ids.reduce((most, id) => Math.max(most, id), 0)).fill(-1);
    this.#places.forEach((place, rank) => {
      this.#rankById[this.#ids[place] as number] = rank;
    });
  }

  #at(place: number): Buffer {
    return this.#payloads.subarray(place * PAYLOAD_BYTES, (place + 1) * PAYLOAD_BYTES);
  }

  /** In ascending order, which is that of the table. */
  ids(): number[] {
    return this.#ids.toSorted((a, b) => a - b);
  }

  rankOf(id: number): number {
    return this.#rankById[id] as number;
  }

  idAt(rank: number): number {
    return this.#ids[this.#places[rank] as number] as number;
  }

  payloadAt(rank: number): Buffer {
    return this.#at(this.#places[rank] as number);
  }
}
