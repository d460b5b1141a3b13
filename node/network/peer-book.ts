/**
 * Addresses of peers: those that the operator named, those of earlier runs, and what peers tell. Pure but for what calls it: whom to dial next, how long to leave an address alone after it
 * failed, and which addresses are worth keeping.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { subnetOf } from './inbound-limits.ts';

const MAX_ADDRESSES = 1_000;
const RETRY = { firstMillis: 1_000, bootstrapMillis: 30_000, otherMillis: 30 * 60_000 };
/** An address that failed so often is forgotten, unless the operator named it. */
const FORGOTTEN_AFTER = 12;
/** Peers of one network that this node connects to. */
const DIALLED_PER_SUBNET = 2;

export type KnownAddress = {
  readonly address: string;
  readonly isBootstrap: boolean;
  readonly failures: number;
  readonly notBefore: number;
  /** By the wall clock, to sort what a file keeps; 0 for one that never answered. */
  readonly lastGood: number;
};

/** The IP address in a multiaddr, if it names one. */
export const ipOf = (address: string): string | undefined => /^\/ip[46]\/([^/]+)\//.exec(address)?.[1];

/** TCP by IP or by name, with or without the peer's identity. */
export const isDialable = (address: string): boolean =>
  address.length <= 200 &&
  /^\/(?:ip4|ip6|dns|dns4|dns6)\/[0-9A-Za-z.:-]+\/tcp\/[1-9]\d{0,4}(?:\/p2p\/[1-9A-HJ-NP-Za-km-z]{40,64})?$/.test(
    address,
  );

export class PeerBook {
  readonly #bootstrap = new Map<string, KnownAddress>();
  readonly #others = new BoundedMap<string, KnownAddress>(MAX_ADDRESSES);

  constructor(bootstrap: readonly string[]) {
    for (const address of bootstrap) this.#bootstrap.set(address, fresh(address, true));
  }

  #get(address: string): KnownAddress | undefined {
    return this.#bootstrap.get(address) ?? this.#others.get(address);
  }

  #set(known: KnownAddress): void {
    if (known.isBootstrap) this.#bootstrap.set(known.address, known);
    else this.#others.set(known.address, known);
  }

  add(address: string, lastGood = 0): void {
    if (isDialable(address) && this.#get(address) === undefined) this.#set({ ...fresh(address, false), lastGood });
  }

  /** Whom to dial now, the operator's first, then those that answered last. `connected` are IP addresses in use. */
  next(
    nowMillis: number,
    isTaken: (address: string) => boolean,
    connected: readonly string[],
    isNear: (ip: string) => boolean,
  ): string | undefined {
    const subnets = connected.filter((ip) => !isNear(ip)).map(subnetOf);
    const may = ({ address, notBefore }: KnownAddress) => {
      const ip = ipOf(address);
      const isCrowded =
        ip !== undefined &&
        !isNear(ip) &&
        subnets.filter((subnet) => subnet === subnetOf(ip)).length >= DIALLED_PER_SUBNET;
      return notBefore <= nowMillis && !isTaken(address) && !isCrowded;
    };
    const first = [...this.#bootstrap.values()].find(may);
    if (first !== undefined) return first.address;
    return [...this.#others.values()].filter(may).sort((a, b) => a.failures - b.failures || b.lastGood - a.lastGood)[0]
      ?.address;
  }

  worked(address: string, wallMillis: number): void {
    const known = this.#get(address);
    if (known !== undefined) this.#set({ ...known, failures: 0, notBefore: 0, lastGood: wallMillis });
  }

  failed(address: string, nowMillis: number, leastMillis = 0): void {
    const known = this.#get(address);
    if (known === undefined) return;
    const failures = known.failures + 1;
    if (!known.isBootstrap && failures >= FORGOTTEN_AFTER) {
      this.#others.delete(address);
      return;
    }
    const most = known.isBootstrap ? RETRY.bootstrapMillis : RETRY.otherMillis;
    const pause = Math.max(leastMillis, Math.min(most, RETRY.firstMillis * 2 ** (failures - 1)));
    this.#set({ ...known, failures, notBefore: nowMillis + pause });
  }

  /** Addresses that answered, for a file or for a peer that asks. */
  good(limit: number): { readonly address: string; readonly lastGood: number }[] {
    return [...this.#bootstrap.values(), ...this.#others.values()]
      .filter(({ lastGood }) => lastGood > 0)
      .sort((a, b) => b.lastGood - a.lastGood)
      .slice(0, limit)
      .map(({ address, lastGood }) => ({ address, lastGood }));
  }
}

const fresh = (address: string, isBootstrap: boolean): KnownAddress => ({
  address,
  isBootstrap,
  failures: 0,
  notBefore: 0,
  lastGood: 0,
});
