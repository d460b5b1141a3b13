/**
 * Addresses of peers: those that the operator named, those where this node reached a peer itself, and those that peers
 * sent. An address that a peer sent never replaces one that was reached, and one host or network has few places,
 * whatever peer sent it. Decides which address to dial next, how long to wait after a failure, and which addresses to
 * keep.
 */
import { randomInt } from 'node:crypto';
import { clientKey } from '../../../runtime/clients/client-address.ts';
import { subnetOf } from './inbound-limits.ts';
import { addressOf, ipOf, placeOf } from './peer-address.ts';

/** Where this node reached a peer, and addresses from others. */
const MAX_GOOD = 500;
const MAX_TOLD = 500;
/** Limits per host and per network among the announced addresses. */
const TOLD_PER_HOST = 2;
const TOLD_PER_SUBNET = 8;
/** Per network, in answers to peers. */
const GIVEN_PER_SUBNET = 2;
const RETRY = { firstMillis: 1_000, bootstrapMillis: 30_000, otherMillis: 30 * 60_000 };
/** An address that failed this often is dropped, unless the operator named it. */
const FORGOTTEN_AFTER = { good: 12, told: 3 };
/** Peers of one network that this node connects to. */
const DIALLED_PER_SUBNET = 2;

export type KnownAddress = {
  readonly address: string;
  readonly isBootstrap: boolean;
  readonly failures: number;
  readonly notBefore: number;
  /**
   * When this node last had a valid hello from a peer there; 0 for never. By the wall clock, to sort the entries of a
   * file.
   */
  readonly lastGood: number;
  /** The key for shared limits; empty for a name. */
  readonly host: string;
  readonly subnet: string;
};

export class PeerBook {
  readonly #bootstrap = new Map<string, KnownAddress>();
  readonly #good = new Map<string, KnownAddress>();
  readonly #told = new Map<string, KnownAddress>();
  readonly #isNear: (ip: string) => boolean;

  /** `isNear`: addresses of this machine, which are not counted. */
  constructor(bootstrap: readonly string[], isNear: (ip: string) => boolean) {
    this.#isNear = isNear;
    for (const address of bootstrap) this.#bootstrap.set(address, fresh(address, true));
  }

  #tableOf(address: string): Map<string, KnownAddress> | undefined {
    return [this.#bootstrap, this.#good, this.#told].find((table) => table.has(address));
  }

  #put({ ...known }: KnownAddress): void {
    if (known.isBootstrap) this.#bootstrap.set(known.address, known);
    else if (known.lastGood > 0) {
      this.#told.delete(known.address);
      this.#good.set(known.address, known);
      if (this.#good.size > MAX_GOOD) this.#good.delete(oldestOf(this.#good));
    } else this.#told.set(known.address, known);
  }

  /** From an earlier run, with the time when this node reached it. */
  remember(address: string, lastGood: number): void {
    const place = placeOf(address);
    if (place !== undefined && lastGood > 0) this.#put({ ...fresh(addressOf(place), false), lastGood });
  }

  /** Adds an address announced by a peer. */
  told(address: string): void {
    const place = placeOf(address);
    if (place === undefined) return;
    const name = addressOf(place);
    if (this.#tableOf(name) !== undefined || !this.#hasRoom(place.ip)) return;
    // A random one is evicted, so that no peer can displace the addresses of others by sending more.
    if (this.#told.size >= MAX_TOLD) this.#told.delete(anyOf(this.#told));
    this.#put(fresh(name, false));
  }

  #hasRoom(ip: string): boolean {
    if (this.#isNear(ip)) return true;
    const [host, subnet] = [clientKey(ip), subnetOf(ip)];
    const sameSubnet = [...this.#told.values()].filter((other) => other.subnet === subnet);
    return (
      sameSubnet.length < TOLD_PER_SUBNET && sameSubnet.filter((other) => other.host === host).length < TOLD_PER_HOST
    );
  }

  isNamed(address: string): boolean {
    return this.#bootstrap.has(address);
  }

  /** Whether an address of the operator's has this identity, wherever a connection comes from. */
  names(peer: string): boolean {
    return [...this.#bootstrap.keys()].some((address) => address.endsWith(`/p2p/${peer}`));
  }

  /**
   * Addresses to dial now: the operator's first, then those reached before, latest first, then those that peers sent.
   * `connected` are IP addresses that this node dialled. The operator's are not counted by network.
   */
  next(
    nowMillis: number,
    isTaken: (address: string) => boolean,
    connected: readonly string[],
    isNamedOnly = false,
  ): string | undefined {
    const subnets = connected.filter((ip) => !this.#isNear(ip)).map(subnetOf);
    const isDue = ({ address, notBefore }: KnownAddress) => notBefore <= nowMillis && !isTaken(address);
    const may = (known: KnownAddress) => {
      const { host, subnet } = known;
      if (!isDue(known)) return false;
      const isCounted = host !== '' && !this.#isNear(host);
      return !isCounted || subnets.filter((other) => other === subnet).length < DIALLED_PER_SUBNET;
    };
    const named = [...this.#bootstrap.values()].find(isDue);
    if (named !== undefined || isNamedOnly) return named?.address;
    const best = (table: Map<string, KnownAddress>) =>
      [...table.values()].filter(may).sort((a, b) => a.failures - b.failures || b.lastGood - a.lastGood)[0]?.address;
    return best(this.#good) ?? best(this.#told);
  }

  /** This node reached a peer there: `address` is what was dialled, `found` the same with the identity of who answered. */
  worked(address: string, found: string, wallMillis: number): void {
    const known = this.#tableOf(address)?.get(address);
    if (known !== undefined) this.#put({ ...known, failures: 0, notBefore: 0, lastGood: wallMillis });
    // A name also resolves to an address that can be announced to others.
    if (known?.isBootstrap === true) this.remember(found, wallMillis);
  }

  failed(address: string, nowMillis: number, leastMillis = 0): void {
    const table = this.#tableOf(address);
    const known = table?.get(address);
    if (table === undefined || known === undefined) return;
    const failures = known.failures + 1;
    if (!known.isBootstrap && failures >= (known.lastGood > 0 ? FORGOTTEN_AFTER.good : FORGOTTEN_AFTER.told)) {
      table.delete(address);
      return;
    }
    const most = known.isBootstrap ? RETRY.bootstrapMillis : RETRY.otherMillis;
    const pause = Math.max(leastMillis, Math.min(most, RETRY.firstMillis * 2 ** (failures - 1)));
    table.set(address, { ...known, failures, notBefore: nowMillis + pause });
  }

  /** Addresses where this node reached peers, for the file. */
  good(limit: number): { readonly address: string; readonly lastGood: number }[] {
    return [...this.#good.values()]
      .sort((a, b) => b.lastGood - a.lastGood)
      .slice(0, limit)
      .map(({ address, lastGood }) => ({ address, lastGood }));
  }

  /** The same for a peer that asks: few of one network. */
  given(limit: number): string[] {
    const counts = new Map<string, number>();
    const given = this.good(MAX_GOOD).filter(({ address }) => {
      const { host, subnet } = this.#good.get(address) as KnownAddress;
      const count = counts.get(subnet) ?? 0;
      counts.set(subnet, count + 1);
      return this.#isNear(host) || count < GIVEN_PER_SUBNET;
    });
    return given.slice(0, limit).map(({ address }) => address);
  }
}

const oldestOf = (table: ReadonlyMap<string, KnownAddress>): string =>
  [...table.values()].reduce((a, b) => (b.lastGood < a.lastGood ? b : a)).address;

const anyOf = (table: ReadonlyMap<string, KnownAddress>): string => [...table.keys()][randomInt(table.size)] as string;

function fresh(address: string, isBootstrap: boolean): KnownAddress {
  const ip = ipOf(address);
  const shared = ip === undefined ? { host: '', subnet: '' } : { host: clientKey(ip), subnet: subnetOf(ip) };
  return { address, isBootstrap, failures: 0, notBefore: 0, lastGood: 0, ...shared };
}
