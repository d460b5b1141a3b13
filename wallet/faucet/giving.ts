/**
 * Who gets coins of a faucet today, pure: one payment a day to an address, few to a network, and a bound for all. The day is UTC's. What was given stands in the wallet's own
 * table of requests: the id of each payment says day, network and address, so a faucet that starts again knows it all, and one address is never paid twice a day.
 */

export type FaucetLimits = {
  /** Payments a day to one network of clients, and to all together. */
  readonly perNetwork: number;
  readonly perDay: number;
};

export type FaucetRefusal = 'address_paid' | 'network_limit' | 'day_limit';

const DAY_MILLIS = 86_400_000;

export const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10);
export const millisToNextDay = (millis: number): number => DAY_MILLIS - (millis % DAY_MILLIS);

export const requestPrefix = (day: string): string => `faucet ${day} `;
export const requestOf = (day: string, address: string, network: string): string =>
  `${requestPrefix(day)}${address} ${network}`;

/** Payments of one day. */
export class Giving {
  readonly #limits: FaucetLimits;
  readonly #networks = new Map<string, number>();
  /** Networks by address. */
  readonly #paid = new Map<string, string>();
  /** Addresses of which it is not known whether the wallet paid, and those of them that may ask again. */
  readonly #unclear = new Set<string>();
  readonly #mayAsk = new Set<string>();

  constructor(limits: FaucetLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#paid.size;
  }

  refusal(address: string, network: string): FaucetRefusal | undefined {
    if (this.#paid.has(address)) return this.#mayAsk.has(address) ? undefined : 'address_paid';
    if (this.#paid.size >= this.#limits.perDay) return 'day_limit';
    return (this.#networks.get(network) ?? 0) >= this.#limits.perNetwork ? 'network_limit' : undefined;
  }

  /** Before it is paid, so that what is asked meanwhile sees it. Returns the network that it counts for: of one that is unclear the one before, so that its request is the same. */
  take(address: string, network: string): string {
    const before = this.#paid.get(address);
    this.#mayAsk.delete(address);
    if (before !== undefined) return before;
    this.#paid.set(address, network);
    this.#networks.set(network, (this.#networks.get(network) ?? 0) + 1);
    return network;
  }

  /** A payment of the wallet's record. */
  recall(requestId: string): void {
    const [, , address, network] = requestId.split(' ');
    if (address !== undefined && network !== undefined) this.take(address, network);
  }

  /** The wallet gave no answer, and may have paid it. */
  leaveUnclear(address: string): void {
    this.#unclear.add(address);
    this.#mayAsk.add(address);
  }

  /** Nothing was signed for it this time. */
  giveBack(address: string): void {
    if (this.#unclear.has(address)) return void this.#mayAsk.add(address);
    const network = this.#paid.get(address);
    if (network === undefined) return;
    this.#paid.delete(address);
    this.#networks.set(network, (this.#networks.get(network) ?? 1) - 1);
  }
}
