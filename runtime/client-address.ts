/**
 * Who a client is, for limits: an IPv4 address, or the /64 of an IPv6 address, since one customer has a whole /64
 * (specification: Errors, 429). A proxy's word about the client is taken only from proxies the operator listed.
 */
import { BlockList, isIP, isIPv6 } from 'node:net';

/** The eight groups of an IPv6 address in text; undefined for anything else. */
function groupsOf(text: string): number[] | undefined {
  if (!isIPv6(text)) return undefined;
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

/** The name limits are kept under. Text that is no address shares one name: it can only come from a broken proxy. */
export function clientKey(address: string): string {
  if (isIP(address) === 4) return address;
  const groups = groupsOf(address);
  if (groups === undefined) return 'unknown';
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    const [high = 0, low = 0] = groups.slice(6);
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #any: boolean;

  /** Addresses, or networks such as 10.0.0.0/8. */
  constructor(entries: readonly string[]) {
    this.#any = entries.length > 0;
    for (const entry of entries) {
      const [address = '', bits] = entry.split('/');
      const family = isIP(address);
      if (family === 0) throw new RangeError(`'${entry}' is not an address or a network`);
      const type = family === 4 ? 'ipv4' : 'ipv6';
      const length = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits);
      if (!Number.isInteger(length) || length < 0 || length > (family === 4 ? 32 : 128))
        throw new RangeError(`'${entry}' is not an address or a network`);
      this.#list.addSubnet(address, length, type);
    }
  }

  has(address: string): boolean {
    const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
    const family = isIP(plain);
    return family !== 0 && this.#list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
  }

  /** The client behind a peer: the last address of X-Forwarded-For that no listed proxy stands for. */
  clientOf(peer: string, forwarded: string | undefined): string {
    if (!this.#any || forwarded === undefined || !this.has(peer)) return peer;
    const hops = forwarded.split(',').map((hop) => hop.trim());
    for (let i = hops.length - 1; i >= 0; i--) {
      const hop = hops[i] as string;
      if (isIP(hop) === 0) return peer;
      if (!this.has(hop)) return hop;
    }
    return peer;
  }
}
