/**
 * Addresses as users write them: one reader for every option and every entry of a config file. An IPv4 address, an IPv6
 * address with and without brackets, or a name; with a port, or without where the option has a port of its own. An IPv6
 * address with a port needs its brackets.
 */
import { isIP, isIPv6 } from 'node:net';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export type HostAndPort = {
  readonly host: string;
  /** Undefined: the text names none. */
  readonly port: number | undefined;
};

/** Labels of letters, digits, hyphens and underscores; the last one is no number, so a mistyped IPv4 address is no name. */
const NAME = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*(?!\d+\.?$)[a-z0-9_](?:[a-z0-9_-]{0,62})\.?$/i;
const MAX_PORT = 65_535;

export const isHostName = (text: string): boolean => isIP(text) === 0 && NAME.test(text);

/** Undefined when the text is neither of the forms. */
export function readHostAndPort(word: string): HostAndPort | undefined {
  if (isIPv6(word)) return { host: word, port: undefined };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(word) ?? [];
  const host = bracketed ?? plain;
  const port = digits === undefined ? undefined : Number(digits);
  if (host === undefined || (port !== undefined && port > MAX_PORT)) return undefined;
  if (bracketed === undefined ? isIP(host) === 0 && !isHostName(host) : !isIPv6(bracketed)) return undefined;
  return { host, port };
}

/** A port alone listens on this machine only; port 0 lets the system choose. An address alone has the option's port, where it has one. */
export function readListenAddress(word: string, standardPort?: number): ListenAddress {
  const found =
    /^\d{1,5}$/.test(word) && Number(word) <= MAX_PORT
      ? { host: '127.0.0.1', port: Number(word) }
      : readHostAndPort(word);
  const port = found?.port ?? standardPort;
  if (found === undefined || port === undefined) {
    const shape = standardPort === undefined ? 'HOST:PORT' : 'HOST or HOST:PORT';
    throw new Error(`must be ${shape}, such as 127.0.0.1:28710, 0.0.0.0:28710 or [::1]:28710, not '${word}'`);
  }
  return { host: found.host, port };
}

export const showListenAddress = ({ host, port }: ListenAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

export const EVERY_INTERFACE = '::';

/** For `server.listen`: without a host it is every interface of both families, and IPv4 alone on a machine without IPv6, where `::` would fail. */
export const listenHost = (host: string): { readonly host?: string } => (host === EVERY_INTERFACE ? {} : { host });

/**
 * What peers and validators listen on: a name may be bound to one family of addresses (`dns4`, `dns6`), and a multiaddr
 * names TCP or QUIC.
 */
export type NetworkAddress = HostAndPort & { readonly family?: 4 | 6; readonly way?: 'tcp' | 'quic' };

export type BindAddress = NetworkAddress & ListenAddress;

/** An IP, IP:PORT, a name with or without a port, or a multiaddr of TCP or QUIC. */
export function readNetworkAddress(word: string): NetworkAddress {
  const [, kind = '', host = '', way] = /^\/(ip4|ip6|dns|dns4|dns6)\/([^/]+)\/(.+)$/.exec(word) ?? [];
  if (way === undefined) {
    const found = /^\d+$/.test(word) ? undefined : readHostAndPort(word);
    if (found !== undefined) return found;
    throw new Error(`must be HOST, HOST:PORT or a multiaddr such as /ip4/10.0.0.1/tcp/28704, not '${word}'`);
  }
  const [, tcp, udp] = /^(?:tcp\/(\d{1,5})|udp\/(\d{1,5})\/quic-v1)$/.exec(way) ?? [];
  const port = Number(tcp ?? udp);
  const isHost = kind.startsWith('dns') ? isHostName(host) : isIP(host) === Number(kind.at(-1));
  if (!(port <= MAX_PORT) || !isHost)
    throw new Error(
      `must be an address and a port such as /ip4/10.0.0.1/tcp/28704 or /ip4/10.0.0.1/udp/28704/quic-v1, not '${word}'`,
    );
  const named = { host, port, way: tcp === undefined ? 'quic' : 'tcp' } as const;
  return kind === 'dns4' || kind === 'dns6' ? { ...named, family: kind === 'dns4' ? 4 : 6 } : named;
}
