/**
 * Addresses that miners used for recent logins. The rigs of a farm log in with one address: it is decoded once, and all
 * of them share its bytes.
 */
import { type Address, parseAddress } from '../../protocol/address.ts';
import type { NetworkName } from '../../protocol/network.ts';

const MAX_ADDRESSES = 4_096;

export class KnownAddresses {
  readonly #network: NetworkName;
  readonly #capacity: number;
  readonly #known = new Map<string, Address>();

  constructor(network: NetworkName, capacity = MAX_ADDRESSES) {
    this.#network = network;
    this.#capacity = capacity;
  }

  /** Throws what parseAddress throws; only addresses of the network are known. */
  readonly read = (text: string): Address => {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const address = parseAddress(text, this.#network);
    if (this.#known.size >= this.#capacity) this.#known.delete(this.#known.keys().next().value as string);
    // A copy: a substring would keep the whole line in memory.
    this.#known.set(Buffer.from(text, 'latin1').toString('latin1'), address);
    return address;
  };
}
