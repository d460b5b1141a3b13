/**
 * The address of a pool or bridge (docs/miner.md, "Pool addresses"). Pure, for Node and browsers.
 *
 *   stratum+tcp://host:port     svc-mining-v1 over TCP        stratum2+tcp://   svc-mining-v2 over TCP
 *   stratum+tls://host:port     the same inside TLS           stratum2+tls://   (ssl is taken for tls)
 *   ws://host:port/path         WebSocket, wss:// inside TLS
 *
 * `?protocol=v1` or `?protocol=v2` may be added to any of them. Without either, a miner speaks v1, which every server has, and a proxy v2.
 */
import type { Reconnect } from '../../protocol/stratum/messages.ts';
import { MinerError, type Refusal, refusal } from '../miner-error.ts';

export type TransportKind = 'tcp' | 'tls' | 'ws' | 'wss';

export type Endpoint = {
  readonly transport: TransportKind;
  readonly version: 1 | 2;
  readonly host: string;
  readonly port: number;
  /** Path of a WebSocket; '/' for the others. */
  readonly path: string;
};

export const DEFAULT_PORTS: Readonly<Record<TransportKind, number>> = { tcp: 28710, tls: 28710, ws: 28711, wss: 443 };

const SCHEMES: Readonly<Record<string, TransportKind>> = {
  'stratum+tcp': 'tcp',
  'stratum+tls': 'tls',
  'stratum+ssl': 'tls',
  'stratum2+tcp': 'tcp',
  'stratum2+tls': 'tls',
  'stratum2+ssl': 'tls',
  ws: 'ws',
  wss: 'wss',
};

const wrong = (why: string): MinerError => new MinerError('pool_url', why);

/** `unsaid` is the version where the address names none. */
export function parsePoolUrl(text: string, unsaid: 1 | 2 = 1): Endpoint {
  const match =
    /^(?:([a-z0-9+]+):\/\/)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?(\/[^\s?#]*)?(?:\?([^\s#]*))?$/.exec(
      text,
    );
  if (match === null || text.length > 512)
    throw wrong(`'${text.slice(0, 80)}' is not a pool address such as stratum+tcp://pool.example:28710`);
  const [, scheme = 'stratum+tcp', bracketed = '', portText, path = '/', query] = match;
  const transport = SCHEMES[scheme];
  if (transport === undefined)
    throw wrong(`'${scheme}' is not a known scheme; known are ${Object.keys(SCHEMES).join(', ')}`);
  const isSocket = transport === 'ws' || transport === 'wss';
  if (!isSocket && path !== '/') throw wrong('only ws:// and wss:// addresses have a path');
  const port = portText === undefined ? DEFAULT_PORTS[transport] : Number(portText);
  if (port < 1 || port > 65_535) throw wrong(`port ${portText} is not from 1 to 65535`);
  return {
    transport,
    version: readVersion(query, scheme.startsWith('stratum2') ? 2 : undefined) ?? unsaid,
    host: bracketed.replace(/^\[|\]$/g, ''),
    port,
    path,
  };
}

function readVersion(query: string | undefined, fixed: 2 | undefined): 1 | 2 | undefined {
  let version: 1 | 2 | undefined = fixed;
  for (const part of (query ?? '').split('&').filter((word) => word !== '')) {
    if (part === 'protocol=v1') version = 1;
    else if (part === 'protocol=v2') version = 2;
    else throw wrong(`'${part}' is not known after the ?; known are protocol=v1 and protocol=v2`);
  }
  if (fixed === 2 && version === 1) throw wrong('stratum2 and protocol=v1 contradict each other');
  return version;
}

const bracket = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** One spelling per endpoint, as shown to the user. */
export function showEndpoint({ transport, version, host, port, path }: Endpoint): string {
  if (transport === 'ws' || transport === 'wss')
    return `${transport}://${bracket(host)}:${port}${path}${version === 2 ? '?protocol=v2' : ''}`;
  return `stratum${version === 2 ? '2' : ''}+${transport}://${bracket(host)}:${port}`;
}

export const isEncrypted = ({ transport }: Endpoint): boolean => transport === 'tls' || transport === 'wss';

/** The URL a WebSocket is opened with. */
export const webSocketUrl = ({ transport, host, port, path }: Endpoint): string =>
  `${transport === 'wss' ? 'wss' : 'ws'}://${bracket(host)}:${port}${path}`;

/**
 * Where a mining.reconnect leads (docs/protocol/stratum.md). An attacker who can write into a plain connection could send
 * a miner away with it, so another host is followed only when the connection is encrypted.
 */
export function followReconnect(from: Endpoint, wish: Reconnect): Endpoint | Refusal {
  const host = wish.host === '' ? from.host : wish.host;
  if (host !== from.host && !isEncrypted(from))
    return refusal(
      'reconnect_refused',
      `the server wants to send this miner to ${host}, but the connection is not encrypted`,
    );
  return { ...from, host, port: wish.port === 0 ? from.port : wish.port };
}
