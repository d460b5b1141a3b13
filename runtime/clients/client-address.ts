/**
 * Identifies a client for limits, counts and bans: the same rule in all programs (docs/security.md). An IPv4 address,
 * also where it is written as IPv6 (::ffff:a.b.c.d), or the /64 of an IPv6 address, since one customer has a whole /64.
 * The client that a proxy names is accepted only from proxies that the operator listed, and such a client never counts
 * as local.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Prefix of a loopback address that a proxy named: that client is on the proxy's machine, which need not be this one. */
const PROXIED = 'proxied-';

/** The eight groups of an IPv6 address in text. */
function groupsOf(text: string): number[] {
  const plain = text.split('%')[0] as string;
  // An IPv4 tail is two groups.
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  const address =
    tail === null
      ? plain
      : `${tail[1]}${(Number(tail[2]) * 256 + Number(tail[3])).toString(16)}:${(Number(tail[4]) * 256 + Number(tail[5])).toString(16)}`;
  const [left = '', right] = address.split('::');
  const head = left === '' ? [] : left.split(':');
  const rest = right === undefined || right === '' ? [] : right.split(':');
  const middle = right === undefined ? [] : new Array<string>(8 - head.length - rest.length).fill('0');
  return [...head, ...middle, ...rest].map((group) => Number.parseInt(group, 16));
}

/** The 4 or 16 bytes of an address. */
export const addressBytes = (address: string): Uint8Array =>
  isIPv4(address)
    ? Uint8Array.from(address.split('.'), Number)
    : Uint8Array.from(groupsOf(address).flatMap((group) => [group >> 8, group & 255]));

/** An address as it is compared: dotted IPv4, or the groups of an IPv6 address that is not a mapped IPv4 address. */
type Parsed = { readonly ipv4: string } | { readonly groups: readonly number[] };

function parse(text: string): Parsed | undefined {
  if (isIPv4(text)) return { ipv4: text };
  if (!isIPv6(text)) return undefined;
  const groups = groupsOf(text);
  if (groups.slice(0, 5).some((group) => group !== 0) || groups[5] !== 0xffff) return { groups };
  const [high = 0, low = 0] = groups.slice(6);
  return { ipv4: `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}` };
}

const isOne = (groups: readonly number[]): boolean => groups.every((group, i) => group === (i === 7 ? 1 : 0));
const hex = (groups: readonly number[]): string => groups.map((group) => group.toString(16)).join(':');

/** True for this machine's own addresses of IPv4 and IPv6; never for what a proxy named. */
export function isLoopback(address: string): boolean {
  const parsed = parse(address);
  if (parsed === undefined) return false;
  return 'ipv4' in parsed ? parsed.ipv4.startsWith('127.') : isOne(parsed.groups);
}

/**
 * The key for limits, counts and bans; the key of a key is itself. Text that is not an address shares one key: it can
 * only come from a broken proxy.
 */
export function clientKey(address: string): string {
  if (address.startsWith(PROXIED)) return `${PROXIED}${clientKey(address.slice(PROXIED.length))}`;
  const parsed = parse(address.endsWith('/64') ? address.slice(0, -3) : address);
  if (parsed === undefined) return 'unknown';
  if ('ipv4' in parsed) return parsed.ipv4;
  return isOne(parsed.groups) ? '::1' : `${hex(parsed.groups.slice(0, 4))}::/64`;
}

/** The network of a client, for limits that somebody with a few addresses must not get around: /24 of IPv4, /48 of IPv6. */
export function clientNetwork(address: string): string {
  const key = clientKey(address);
  const ipv4 = /^(.*?\d+\.\d+\.\d+)\.\d+$/.exec(key)?.[1];
  if (ipv4 !== undefined) return `${ipv4}.0/24`;
  const ipv6 = /^(.*?[0-9a-f]+:[0-9a-f]+:[0-9a-f]+):[0-9a-f]+::\/64$/.exec(key)?.[1];
  return ipv6 === undefined ? key : `${ipv6}::/48`;
}

/** A client by the address that a proxy named, or by the proxy's own where it named none. */
export const proxiedAddress = (address: string): string => (isLoopback(address) ? `${PROXIED}${address}` : address);

/** A list of addresses and networks such as `10.0.0.0/8` or `::1`; throws a RangeError that names a wrong entry. */
export function addressList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const [network = '', bits] = entry.split('/');
    const parsed = parse(network);
    const width = isIPv4(network) ? 32 : 128;
    const length = bits === undefined ? width : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (parsed === undefined || !(length <= width))
      throw new RangeError(`'${entry}' is no address or network; write 10.0.0.0/8 or ::1`);
    // Part of the IPv4 addresses, written as IPv6.
    if ('ipv4' in parsed && width === 32) list.addSubnet(parsed.ipv4, length, 'ipv4');
    else if ('ipv4' in parsed && length >= 96) list.addSubnet(parsed.ipv4, length - 96, 'ipv4');
    else list.addSubnet(network, length, 'ipv6');
  }
  // Most lists are empty, and this is checked for each connection.
  if (entries.length === 0) return () => false;
  return (address) => {
    const parsed = parse(address);
    if (parsed === undefined) return false;
    return 'ipv4' in parsed ? list.check(parsed.ipv4, 'ipv4') : list.check(hex(parsed.groups), 'ipv6');
  };
}

/** For option tables: returns the word unchanged, if valid. */
export function readAddressRange(word: string): string {
  addressList([word]);
  return word;
}

export type ProxyWarnings = {
  /** The option that lists proxies, for the message. */
  readonly option: string;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
};

/** Limit of proxies that are warned about; more are possible only if a whole network is listed. */
const MAX_WARNINGS = 100;

/** The operator's proxies, and the client behind each of their requests (X-Forwarded-For). */
export class TrustedProxies {
  readonly #has: (address: string) => boolean;
  readonly #warnings: ProxyWarnings | undefined;
  readonly #warned = new Set<string>();

  constructor(entries: readonly string[], warnings?: ProxyWarnings) {
    this.#has = addressList(entries);
    this.#warnings = warnings;
  }

  has(address: string): boolean {
    return this.#has(address);
  }

  /** The client that a listed proxy names; undefined if the peer is not a listed proxy, or names none. */
  namedBy(peer: string, forwarded: string | readonly string[] | undefined): string | undefined {
    if (!this.#has(peer)) {
      // Other clients may send any header; a local request with such a header comes from a proxy that is not listed.
      if (forwarded !== undefined && isLoopback(peer)) this.#warn(peer, 'the proxy is not listed');
      return undefined;
    }
    const hops = (typeof forwarded === 'string' ? forwarded : (forwarded ?? []).join(','))
      .split(',')
      .map((hop) => hop.trim());
    for (let i = hops.length - 1; i >= 0; i--) {
      const hop = hops[i] as string;
      if (parse(hop) === undefined) break;
      if (i === 0 || !this.#has(hop)) return proxiedAddress(hop);
    }
    this.#warn(peer, 'the proxy does not name its clients');
    return undefined;
  }

  /** Who sends a request: the client that a listed proxy names, or the peer itself. */
  clientOf(peer: string, forwarded: string | readonly string[] | undefined): string {
    return this.namedBy(peer, forwarded) ?? (this.#has(peer) ? proxiedAddress(peer) : peer);
  }

  /** Whether the peer is a proxy that does not name its clients: all of them would count as one client. */
  hidesClients(peer: string, forwarded: string | readonly string[] | undefined): boolean {
    if (this.namedBy(peer, forwarded) !== undefined) return false;
    return this.#has(peer) || (forwarded !== undefined && isLoopback(peer));
  }

  /** Once for each peer: only listed proxies and this machine come here, so the set stays small. */
  #warn(peer: string, reason: string): void {
    const proxy = clientKey(peer);
    const known = `${proxy} ${reason}`;
    if (this.#warnings === undefined || this.#warned.has(known) || this.#warned.size >= MAX_WARNINGS) return;
    this.#warned.add(known);
    this.#warnings.warn('all clients of a proxy count as one', {
      proxy,
      reason,
      remedy: `set X-Forwarded-For in the proxy, and list the proxy with ${this.#warnings.option}`,
    });
  }
}
