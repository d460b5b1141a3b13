/**
 * QUIC of the overlay: a registered route stands for TCP and QUIC. Its key is made at each start and says nothing: who
 * is at the other end is proven as over TCP.
 */
import { lookup as systemLookup } from 'node:dns';
import { isIP, isIPv6, type LookupFunction } from 'node:net';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import {
  type BindAddress,
  EVERY_INTERFACE,
  type ListenAddress,
  showListenAddress,
} from '../../../runtime/listen-address.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { acceptConnections } from '../../quic/quic-accept.ts';
import {
  type LoadQuic,
  type NativeClient,
  type NativeQuic,
  type NativeServer,
  type QuicBounds,
  quicHere,
  quicMissing,
} from '../../quic/quic-package.ts';
import { ValidatorError } from '../../validator/validator-key.ts';
import { type OverlaySocket, QuicSocket } from '../link/quic-socket.ts';

const MEBIBYTE = 1_024 * 1_024;
const BOUNDS: QuicBounds = {
  handshakeTimeout: 5_000,
  maxIdleTimeout: 10_000,
  keepAliveInterval: 4_000,
  maxConcurrentStreamLimit: 1,
  maxStreamData: MEBIBYTE,
  maxConnectionData: MEBIBYTE,
  receiveBufferSize: MEBIBYTE,
  sendBufferSize: MEBIBYTE,
};
/** Nobody answers at a port without QUIC. */
const CONNECT_MILLIS = 2_000;
/** Half-open handshakes would hold up the end for seconds. */
const CLOSE_MILLIS = 500;
const ANY_IPV4 = '0.0.0.0';
const SYSTEM_CODES: Readonly<Record<string, string>> = { 13: 'EACCES', 98: 'EADDRINUSE', 99: 'EADDRNOTAVAIL' };

const withCode = (error: Error): Error =>
  Object.assign(error, { code: SYSTEM_CODES[/os error (\d+)/.exec(error.message)?.[1] ?? ''] });

const ipOf = (host: string, lookup: LookupFunction): Promise<string> =>
  isIP(host) !== 0
    ? Promise.resolve(host)
    : new Promise((resolve, reject) =>
        lookup(host, {}, (error, found) => (error === null ? resolve(String(found)) : reject(error))),
      );

export class OverlayQuic {
  readonly #native: NativeQuic;
  readonly #config: object;
  readonly #clients: Partial<Record<0 | 1, NativeClient>> = {};
  readonly #servers: NativeServer[] = [];
  #isClosed = false;

  private constructor(native: NativeQuic, config: object) {
    this.#native = native;
    this.#config = config;
  }

  static async open(native: NativeQuic): Promise<OverlayQuic> {
    // Loaded only here: a node without QUIC starts without it.
    const { generateKeyPair, privateKeyToProtobuf } = await import('@libp2p/crypto/keys');
    const privateKeyProto = privateKeyToProtobuf(await generateKeyPair('Ed25519'));
    return new OverlayQuic(native, new native.QuinnConfig({ ...BOUNDS, privateKeyProto }));
  }

  /** At an IP address. Throws where it cannot be listened on. */
  listen({ host, port }: ListenAddress, accept: (socket: OverlaySocket) => void): ListenAddress {
    const server = this.#serverAt(host, port);
    this.#servers.push(server);
    void acceptConnections(server, {
      steady: steadyMillis,
      isClosed: () => this.#isClosed,
      accepted: (connection) => accept(new QuicSocket(connection)),
    });
    return { host, port: server.port() };
  }

  #serverAt(host: string, port: number): NativeServer {
    const { Server } = this.#native;
    try {
      return new Server(this.#config, host, port);
    } catch (error) {
      // As over TCP: without IPv6 every interface is one of IPv4.
      if (host === EVERY_INTERFACE && /os error 97/.test((error as Error).message))
        return new Server(this.#config, ANY_IPV4, port);
      throw withCode(error as Error);
    }
  }

  /** Emits `connect`, `timeout` or `error`. */
  connect({ host, port }: ListenAddress, lookup: LookupFunction = systemLookup as LookupFunction): OverlaySocket {
    const socket = new QuicSocket(async () => {
      const ip = await ipOf(host, lookup);
      return await this.#client(isIPv6(ip) ? 1 : 0).outboundConnection(ip, port);
    });
    return socket.setTimeout(CONNECT_MILLIS);
  }

  #client(family: 0 | 1): NativeClient {
    const client = this.#clients[family] ?? new this.#native.Client(this.#config, family);
    this.#clients[family] = client;
    return client;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const client of Object.values(this.#clients)) client.abort();
    const ended = Promise.all(this.#servers.map((server) => server.abort()));
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CLOSE_MILLIS).unref())]);
  }
}

/** A registered route stands for TCP and QUIC; where this machine has no QUIC that is said once, and TCP goes on. */
export async function overlayQuic(
  binds: readonly BindAddress[],
  log: Logger,
  load: LoadQuic | undefined,
): Promise<OverlayQuic | undefined> {
  const here = await quicHere(load);
  if (here.package !== undefined) return await OverlayQuic.open(here.package.native);
  const wanted = binds.find(({ way }) => way === 'quic');
  if (wanted !== undefined)
    throw new ValidatorError('validator_config', quicMissing(showListenAddress(wanted), here.reason));
  log.info('the validator overlay is TCP only', { reason: here.reason });
  return undefined;
}
