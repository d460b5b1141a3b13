/**
 * The network of separate validators until the overlay is there (docs/decisions/0005-validators-over-plain-tcp.md): a listener, and connections to the neighbours that the operator named. Strangers may
 * connect: everything that counts is signed, and what one connection or address can cost is bounded.
 */
import { randomBytes } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Bytes } from '../../protocol/bytes.ts';
import { clientKey, isLoopback } from '../../runtime/client-address.ts';
import { type ListenAddress, showListenAddress } from '../../runtime/command-line/command-line.ts';
import type { Logger } from '../../runtime/log.ts';
import { listenError } from '../../runtime/runtime-error.ts';
import type { Peer } from './effects.ts';
import { INSTANCE_BYTES } from './tcp-frames.ts';
import { LINK_LIMITS, type LinkLimits, TcpLink } from './tcp-link.ts';
import type { Transport, TransportEvents } from './transport.ts';

const MAX_INBOUND = 64;
/** From one address that is not this machine. */
const MAX_INBOUND_PER_ADDRESS = 8;
/** How long an address that broke a rule is not let in; a neighbour that the operator named is dialled again as late. */
const BARRED_MILLIS = 10_000;
const MAX_BARRED = 4_096;
const CONNECT_MILLIS = 5_000;
const FIRST_RETRY_MILLIS = 250;
const LAST_RETRY_MILLIS = 5_000;

export type TcpSettings = {
  readonly chainId: Bytes;
  readonly binds: readonly ListenAddress[];
  readonly neighbours: readonly ListenAddress[];
  readonly limits?: LinkLimits;
};

export type TcpDependencies = { readonly log: Logger; steady(): number };

type Link = { readonly link: TcpLink; readonly address: string; readonly isInbound: boolean; isReady: boolean };

export class TcpTransport implements Transport {
  readonly #settings: TcpSettings;
  readonly #with: TcpDependencies;
  readonly #own: { readonly chainId: Bytes; readonly instance: Bytes };
  readonly #links = new Map<Peer, Link>();
  readonly #barred = new Map<string, number>();
  readonly #retries = new Set<NodeJS.Timeout>();
  readonly #dialling = new Set<Socket>();
  readonly #servers: Server[] = [];
  #events: TransportEvents | undefined;
  #count = 0;
  #closed = false;

  constructor(settings: TcpSettings, dependencies: TcpDependencies) {
    this.#settings = settings;
    this.#with = dependencies;
    this.#own = { chainId: settings.chainId, instance: randomBytes(INSTANCE_BYTES) };
  }

  /** Opens the listeners; gives back where they are. Before `start` nobody is let in. */
  async listen(): Promise<ListenAddress[]> {
    const addresses: ListenAddress[] = [];
    for (const bind of this.#settings.binds) addresses.push(await this.#listen(bind));
    return addresses;
  }

  async #listen(bind: ListenAddress): Promise<ListenAddress> {
    const server = createServer((socket) => this.#accept(socket));
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error) => reject(listenError('the validator overlay', bind, error));
      server.once('error', failed);
      server.listen({ host: bind.host, port: bind.port }, () => {
        server.off('error', failed);
        resolve();
      });
    });
    server.on('error', (error) => this.#with.log.error('the overlay listener failed', { error }));
    const address = server.address();
    return typeof address === 'object' && address !== null ? { host: address.address, port: address.port } : bind;
  }

  start(events: TransportEvents): void {
    this.#events = events;
    for (const neighbour of this.#settings.neighbours) this.#dial(neighbour, FIRST_RETRY_MILLIS);
  }

  peers(): readonly Peer[] {
    return [...this.#links].filter(([, { isReady }]) => isReady).map(([peer]) => peer);
  }

  send(peer: Peer, bytes: Bytes): void {
    this.#links.get(peer)?.link.send(bytes);
  }

  drop(peer: Peer, reason: string): void {
    const found = this.#links.get(peer);
    if (found === undefined) return;
    if (!isLoopback(found.address)) this.#bar(clientKey(found.address));
    found.link.end(reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const retry of this.#retries) clearTimeout(retry);
    for (const socket of this.#dialling) socket.destroy();
    for (const { link } of [...this.#links.values()]) link.end();
    for (const server of this.#servers)
      if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  #bar(key: string): void {
    const now = this.#with.steady();
    for (const [other, until] of this.#barred)
      if (until <= now || this.#barred.size >= MAX_BARRED) this.#barred.delete(other);
    this.#barred.set(key, now + BARRED_MILLIS);
  }

  #accept(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const key = clientKey(address);
    const inbound = [...this.#links.values()].filter(({ isInbound }) => isInbound);
    const isCrowded =
      inbound.length >= MAX_INBOUND ||
      (!isLoopback(address) &&
        inbound.filter((link) => clientKey(link.address) === key).length >= MAX_INBOUND_PER_ADDRESS);
    if (this.#closed || this.#events === undefined || isCrowded || (this.#barred.get(key) ?? 0) > this.#with.steady()) {
      socket.on('error', () => undefined);
      socket.destroy();
      return;
    }
    this.#link(socket, address, true, () => undefined);
  }

  #link(
    socket: Socket,
    address: string,
    isInbound: boolean,
    ended: (wasReady: boolean, reason?: string) => void,
  ): void {
    const peer = `${address}#${++this.#count}`;
    const { log, steady } = this.#with;
    // A link may end while it is being made.
    let known: Link | undefined;
    const link = new TcpLink(
      socket,
      this.#own,
      {
        ready: () => {
          if (known === undefined) return;
          known.isReady = true;
          log.debug('a neighbour joined', { peer });
          this.#events?.joined(peer);
        },
        message: (bytes) => this.#events?.message(peer, bytes),
        ended: (reason) => {
          const wasReady = known?.isReady ?? false;
          this.#links.delete(peer);
          if (reason !== undefined) log.info('a neighbour was dropped', { peer, reason });
          if (wasReady) this.#events?.left(peer);
          ended(wasReady, reason);
        },
      },
      steady,
      this.#settings.limits ?? LINK_LIMITS,
    );
    known = { link, address, isInbound, isReady: false };
    this.#links.set(peer, known);
  }

  /** A neighbour that the operator named is tried for ever, more and more seldom. */
  #dial(neighbour: ListenAddress, retryMillis: number): void {
    if (this.#closed) return;
    const again = (millis: number) => {
      if (this.#closed) return;
      const retry = setTimeout(() => {
        this.#retries.delete(retry);
        this.#dial(neighbour, Math.min(LAST_RETRY_MILLIS, 2 * millis));
      }, millis);
      this.#retries.add(retry);
    };
    const socket = connect({ host: neighbour.host, port: neighbour.port, timeout: CONNECT_MILLIS });
    this.#dialling.add(socket);
    const failed = () => {
      if (!this.#dialling.delete(socket)) return;
      socket.destroy();
      again(retryMillis);
    };
    socket.once('timeout', failed);
    socket.on('error', failed);
    socket.once('connect', () => {
      if (!this.#dialling.delete(socket)) return;
      socket.setTimeout(0);
      this.#link(socket, socket.remoteAddress ?? neighbour.host, false, (wasReady, reason) => {
        if (reason !== undefined && !wasReady)
          this.#with.log.warn('a neighbour cannot be used', { neighbour: showListenAddress(neighbour), reason });
        again(reason === undefined && wasReady ? FIRST_RETRY_MILLIS : Math.max(retryMillis, BARRED_MILLIS / 4));
      });
    });
  }
}
