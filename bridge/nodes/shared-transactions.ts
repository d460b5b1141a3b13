/**
 * The transactions of all templates that are kept, each stored once, however many templates carry it. A transaction is
 * identified by the hash of its whole wire form, which its template's root was computed from. Templates of one cut and
 * of the next few carry nearly the same transactions: without this, four draws of a full mempool every half second
 * would be eight megabytes a second.
 */
import type { Bytes } from '../../protocol/bytes.ts';

export type SharedTransaction = { readonly name: string; readonly wire: Bytes; carriers: number };

/** Buffer's own method, called on any bytes: 48 bytes as a text of 48 characters of one byte each. */
const { latin1Slice } = Buffer.prototype as unknown as {
  latin1Slice(this: Bytes, from: number, to: number): string;
};

export class SharedTransactions {
  readonly #known = new Map<string, SharedTransaction>();
  #bytes = 0;

  /** Bytes of transactions that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#known.size;
  }

  /**
   * A template's transactions; `leaves` are their hashes. New transactions are copied, so that the body they came in is
   * not retained.
   */
  take(leaves: readonly Bytes[], wires: readonly Bytes[]): readonly SharedTransaction[] {
    return leaves.map((leaf, i) => {
      const name = latin1Slice.call(leaf, 0, leaf.length);
      let shared = this.#known.get(name);
      if (shared === undefined) {
        shared = { name, wire: ownBytes(wires[i] as Bytes), carriers: 0 };
        this.#known.set(name, shared);
        this.#bytes += shared.wire.length;
      }
      shared.carriers++;
      return shared;
    });
  }

  /** Called when a template is dropped. A list that is still in use, for a block being submitted, stays valid. */
  give(transactions: readonly SharedTransaction[]): void {
    for (const shared of transactions) {
      shared.carriers--;
      if (shared.carriers > 0) continue;
      this.#known.delete(shared.name);
      this.#bytes -= shared.wire.length;
    }
  }
}

const ownBytes = (wire: Bytes): Bytes => (wire.buffer.byteLength === wire.length ? wire : new Uint8Array(wire));
