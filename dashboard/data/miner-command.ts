/** The line that mines at this pool. */
import type { ConnectDocument } from '../../pool/api/documents.ts';

type Service = ConnectDocument['services'][number];

export const poolHost = (): string => location.hostname || 'POOL';

/** A page that came over TLS is behind a proxy, which accepts WebSockets on the page's own address. */
export function webSocketOf(service: Service): string | undefined {
  if (location.protocol === 'https:') {
    const { pathname } = new URL(service.websocket_path, document.baseURI);
    return `wss://${location.host}${pathname}`;
  }
  return service.websocket_port === null ? undefined : `ws://${poolHost()}:${service.websocket_port}`;
}

export const tcpOf = ({ tls }: Service, port: number, protocol: 'stratum' | 'stratum2' = 'stratum'): string =>
  `${protocol}+${tls ? 'tls' : 'tcp'}://${poolHost()}:${port}`;

const ADDRESS = /^[a-z0-9]{1,128}$/;

/** Until an address is typed, its place is named. The line goes into a shell, and what is typed may be of a link that somebody sent. */
export const userOf = (typed: string): string => `${ADDRESS.test(typed.trim()) ? typed.trim() : 'ADDRESS'}.rig1`;

export const commandTo = (url: string, address: string): string => `svc-miner -o ${url} -u ${userOf(address)}`;

/** For a miner that has no wish: TCP where the pool has it. Undefined where it listens for its own page alone. */
export function minerCommand(service: Service | undefined, address: string): string | undefined {
  if (service === undefined) return undefined;
  const url = service.port === null ? webSocketOf(service) : tcpOf(service, service.port);
  return url === undefined ? undefined : commandTo(url, address);
}
