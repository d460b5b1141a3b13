/**
 * The address of a pool or bridge (docs/miner.md, "Pool addresses"). Pure, for Node and browsers.
 *
 *   stratum+tcp://host:port     svc-mining-v1 over TCP        stratum2+tcp://   svc-mining-v2 over TCP
 *   stratum+tls://host:port     the same inside TLS           stratum2+tls://   (ssl is taken for tls)
 *   ws://host:port/path         WebSocket, wss:// inside TLS
 *
 * `?protocol=v1` or `?protocol=v2` may be added to any of them. Without either, v1 is spoken: it is the form that every server has.
 */
import { MinerError } from '../miner-error.ts';

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

const SCHEMES: Readonly<Record<string, readonly [TransportKind, 1 | 2]>> = {
  'stratum+tcp': ['tcp', 1],
  'stratum+tls': ['tls', 1],
  'stratum+ssl': ['tls', 1],
  'stratum2+tcp': ['tcp', 2],
  'stratum2+tls': ['tls', 2],
  'stratum2+ssl': ['tls', 2],
  ws: ['ws', 1],
  wss: ['wss', 1],
};

const wrong = (why: string): MinerError => new MinerError('pool_url', why);

export function parsePoolUrl(text: string): Endpoint {
  const match =
    /^(?:([a-z0-9+]+):\/\/)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?(\/[^\s?#]*)?(?:\?([^\s#]*))?$/.exec(
      text,
    );
  if (match === null || text.length > 512)
    throw wrong(`'${text.slice(0, 80)}' is not a pool address such as stratum+tcp://pool.example:28710`);
  const [, scheme = 'stratum+tcp', bracketed = '', portText, path = '/', query] = match;
  const known = SCHEMES[scheme];
  if (known === undefined)
    throw wrong(`'${scheme}' is not a known scheme; known are ${Object.keys(SCHEMES).join(', ')}`);
  const [transport, schemeVersion] = known;
  const isSocket = transport === 'ws' || transport === 'wss';
  if (!isSocket && path !== '/') throw wrong('only ws:// and wss:// addresses have a path');
  const port = portText === undefined ? DEFAULT_PORTS[transport] : Number(portText);
  if (port < 1 || port > 65_535) throw wrong(`port ${portText} is not from 1 to 65535`);
  return {
    transport,
    version: readVersion(query, scheme.startsWith('stratum2') ? 2 : undefined) ?? schemeVersion,
    host: bracketed.replace(/^\[|\]$/g, ''),
    port,
    path,
  };
}

function readVersion(query: string | undefined, fixed: 2 | undefined): 1 | 2 | undefined {
  let version: 1 | 2 | undefined;
  for (const part of (query ?? '').split('&').filter((word) => word !== '')) {
    if (part === 'protocol=v1') version = 1;
    else if (part === 'protocol=v2') version = 2;
    else throw wrong(`'${part}' is not known after the ?; known are protocol=v1 and protocol=v2`);
  }
  if (fixed !== undefined && version === 1) throw wrong('stratum2 and protocol=v1 contradict each other');
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
