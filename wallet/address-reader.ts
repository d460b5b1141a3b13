/**
 * Reads addresses of the wallet's network and remembers the last ones: their checksum is the largest part of reading a
 * call, and a pool pays the same addresses all day.
 */
import { type Address, parseAddress } from '../protocol/address.ts';
import type { NetworkName } from '../protocol/network.ts';

const KEPT = 4_096;

export class AddressReader {
  readonly #network: NetworkName;
  readonly #kept = new Map<string, Address>();

  constructor(network: NetworkName) {
    this.#network = network;
  }

  /** Throws a ProtocolError for what is no address of this network. */
  read(text: string): Address {
    const known = this.#kept.get(text);
    if (known !== undefined) return known;
    const address = parseAddress(text, this.#network);
    const oldest = this.#kept.keys().next().value;
    if (this.#kept.size >= KEPT && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(text, address);
    return address;
  }
}
