/**
 * The sockets of a listener thread: accepts, detects TLS, v1 and v2 by the first bytes (S2), reads PROXY headers from
 * the operator's proxies (S5), keeps the connection limits, and hands bytes to conversations. The desk does the rest.
 */
import type { IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { type Bytes, concat, equalBytes } from '../../protocol/bytes.ts';
import { sniff, V2_MAGIC } from '../../protocol/stratum/frame.ts';
import { clientKey, proxiedAddress, TrustedProxies } from '../../runtime/clients/client-address.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { type Bucket, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { type PaidPool, type StratumService, tcpPortsOf } from '../service.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { ReceiptDelivery } from '../shares/receipts.ts';
import type {
  BoundAddress,
  CertificatePem,
  ConnectionList,
  ConnectionSearch,
  ListenerControl,
  ListenerFigures,
  Publication,
} from '../threads/hub.ts';
import { ARRIVAL, type Arrival } from './arrival.ts';
import type { Peer } from './conversation.ts';
import { type Desk, TICK_MILLIS } from './desk.ts';
import { HandleStream } from './handle-stream.ts';
import { StreamPeer } from './peers.ts';
import { readProxyHeader } from './proxy-header.ts';
import { BACKLOG, listenTcp } from './tcp-server.ts';
import { StratumSockets } from './web-sockets.ts';

export type ListenerOptions = {
  readonly services: readonly StratumService[];
  readonly wsOrigins: readonly string[];
  readonly proxies: readonly string[];
  /** Several threads listen on the same ports. */
  readonly sharePorts: boolean;
  readonly certificate: CertificatePem | null;
  /** Implementation of TCP streams (tcp-server.ts). */
  readonly streams: 'handles' | 'sockets';
};

type Transport = 'tcp' | 'tls' | 'ws';
type Stream = Socket | HandleStream;
type ArrivedStream = Stream & { [ARRIVAL]?: Arrival | undefined };

/** Maximum number of bytes buffered before a connection's protocol is known. */
const MAX_FIRST_BYTES = 2_048;
/** Connections of proxies beyond all places, until they say who their clients are: whose place one gets follows from that. */
const UNNAMED = 256;
/** One that has not said by then what it speaks gives its place to another, where all are taken. */
const SILENT_MILLIS = 5_000;

export class Listener implements ListenerControl {
  readonly #options: ListenerOptions;
  readonly #desk: Desk;
  readonly #warmUp: () => Promise<void>;
  readonly #log: Pick<Logger, 'error'>;
  readonly #proxies: TrustedProxies;
  readonly #servers: Server[] = [];
  readonly #sockets: StratumSockets;
  /** Sockets whose protocol is not known yet. */
  readonly #arrivals = new Set<ArrivedStream>();
  readonly #transports = { tcp: 0, tls: 0, ws: 0 };
  /** Called when the last TCP connection has closed. */
  #onEmpty = (): void => {};
  #tls: TlsServer | null = null;
  #logins: Bucket;
  #isBareTold = false;
  #refused = 0;
  #timer: NodeJS.Timeout | null = null;
  #accepting = true;

  /** `warmUp` completes before the first port is opened. */
  constructor(options: ListenerOptions, desk: Desk, warmUp = async (): Promise<void> => {}) {
    this.#options = options;
    this.#desk = desk;
    this.#warmUp = warmUp;
    this.#log = { error: (message, fields = {}) => desk.log('error', message, fields) };
    this.#proxies = new TrustedProxies(options.proxies, {
      option: '--proxy-protocol',
      warn: (message, fields) => desk.log('warn', message, fields),
    });
    this.#logins = fullBucket(desk.limits.logins, desk.now());
    this.#sockets = new StratumSockets({
      desk,
      log: this.#log,
      origins: options.wsOrigins,
      proxies: this.#proxies,
      places: {
        take: (remote) => this.#takePlace(remote, this.#proxies.has(remote)),
        add: (key) => this.#desk.counts.add(key, 1),
        giveBack: (key) => this.#desk.counts.add(key, -1),
      },
      admit: (address, isCounted) => this.#admit(clientKey(address), isCounted),
      count: (amount) => this.#count('ws', amount),
    });
    if (options.certificate !== null) this.setCertificate(options.certificate);
  }

  async listen(): Promise<readonly BoundAddress[]> {
    await this.#warmUp();
    this.#timer = setInterval(() => this.#tick(), TICK_MILLIS);
    const bound: BoundAddress[] = [];
    for (const service of this.#options.services) {
      for (const { listen, kind, service: served } of tcpPortsOf(service)) {
        const { onData, onClose } = this;
        const { server, bound: address } = await listenTcp(listen, this.#options, {
          accept: (stream) => this.onAccept.call(stream, served),
          refused: () => this.#refused++,
          onData,
          onClose,
        });
        this.#servers.push(server);
        bound.push({ service: service.name, kind, ...address });
      }
      if (service.listenWs !== undefined) {
        const options = { what: 'miners', reusePort: this.#options.sharePorts, backlog: BACKLOG };
        const address = await this.#sockets.listen(service, service.listenWs, options);
        bound.push({ service: service.name, kind: 'ws', ...address });
      }
    }
    return bound;
  }

  /** A WebSocket that another web server accepted (the pool's), which knows the client's address. */
  handleUpgrade(service: StratumService, request: IncomingMessage, socket: Duplex, head: Bytes, client?: string): void {
    this.#timer ??= setInterval(() => this.#tick(), TICK_MILLIS);
    if (!this.#accepting) socket.destroy();
    else this.#sockets.upgrade(service, request, socket, head, client);
  }

  // --- TCP ------------------------------------------------------------------------------------------------------------

  #accept(stream: ArrivedStream, service: StratumService): void {
    const address = stream.remoteAddress;
    const now = this.#desk.now();
    // The peer may have disconnected before it was accepted.
    if (address === undefined) return void stream.destroy();
    const proxied = this.#proxies.has(address);
    const key = this.#takePlace(address, proxied);
    if (key === undefined) return void this.#refuse(stream);
    stream[ARRIVAL] = {
      service,
      address,
      key,
      sinceMillis: now,
      proxied,
      secure: false,
      held: null,
      conversation: null,
    };
    this.#count('tcp', 1);
    this.#arrivals.add(stream);
    if (stream instanceof HandleStream) {
      stream.start();
      return;
    }
    const { onData, onError, onClose } = this;
    stream.on('data', onData).on('error', onError).on('close', onClose);
  }

  /**
   * Counts a connection before anything is read from it; undefined when a limit is reached. A proxy has many clients,
   * so its address has no limit of its own.
   */
  #takePlace(address: string, isProxy: boolean): string | undefined {
    const key = clientKey(address);
    if (!this.#accepting || (!isProxy && this.#hasTooMany(key)) || !this.#admitRate(this.#desk.now())) return undefined;
    const hasRoom = isProxy && this.#desk.counts.all < this.#desk.limits.connections + UNNAMED;
    if (!hasRoom && !this.#hasRoom(key)) return undefined;
    this.#desk.counts.add(key, 1);
    return key;
  }

  #admitRate(now: number): boolean {
    const { logins } = this.#desk.limits;
    const bucket = take(this.#logins, logins, now);
    if (bucket !== undefined) this.#logins = bucket;
    return bucket !== undefined;
  }

  /**
   * Whether the client of this key may have one more connection; `isCounted`: the total already includes it, under the
   * proxy's address.
   */
  #admit(key: string, isCounted: boolean): boolean {
    return !this.#hasTooMany(key) && this.#hasRoom(key, isCounted ? 1 : 0);
  }

  #hasTooMany(key: string): boolean {
    return this.#desk.counts.of(key) >= this.#desk.limits.connectionsPerAddress;
  }

  /** Where all places are taken, a connection that nobody works on is ended for it. `counted`: how often the total has it already. */
  #hasRoom(key: string, counted = 0): boolean {
    if (this.#desk.counts.all - counted < this.#desk.limits.connections) return true;
    const [oldest] = this.#arrivals;
    const { sinceMillis = 0 } = oldest?.[ARRIVAL] ?? {};
    if (oldest === undefined || this.#desk.now() - sinceMillis < SILENT_MILLIS)
      return this.#sockets.makeRoom(SILENT_MILLIS) || this.#desk.makeRoom(key);
    this.#arrivals.delete(oldest);
    this.#refuse(oldest);
    return true;
  }

  #count(transport: Transport, amount: 1 | -1): void {
    this.#transports[transport] += amount;
    if (this.#transports.tcp + this.#transports.tls === 0) this.#onEmpty();
  }

  // One function each for all streams: closures per connection would take a tenth of a connection's memory budget.
  readonly onAccept = this.#listener(function (this: ArrivedStream, listener, service: StratumService) {
    listener.#accept(this, service);
  });

  readonly onData = this.#listener(function (this: ArrivedStream, listener, chunk: Bytes) {
    const arrival = this[ARRIVAL];
    if (arrival === undefined) return;
    if (arrival.conversation !== null) {
      if (!arrival.conversation.isEnding) arrival.conversation.receive(chunk);
    } else listener.#arrive(this, arrival, chunk);
  });

  readonly onError = this.#listener(function (this: ArrivedStream) {
    this.destroy();
  });

  readonly onClose = this.#listener(function (this: ArrivedStream, listener) {
    const arrival = this[ARRIVAL];
    if (arrival === undefined) return;
    this[ARRIVAL] = undefined;
    listener.#arrivals.delete(this);
    listener.#desk.counts.add(arrival.key, -1);
    listener.#count(arrival.secure ? 'tls' : 'tcp', -1);
    if (arrival.conversation !== null) listener.#desk.gone(arrival.conversation, 'closed by the miner');
  });

  /** Wraps a stream handler with its listener; an error it throws ends only that stream. */
  #listener<A extends unknown[]>(
    run: (this: ArrivedStream, listener: Listener, ...args: A) => void,
  ): (this: ArrivedStream, ...args: A) => void {
    const listener = this;
    return function (this: ArrivedStream, ...args: A) {
      try {
        run.call(this, listener, ...args);
      } catch (error) {
        this.destroy();
        clientFaults.report('stratum', error, listener.#log);
      }
    };
  }

  /** Reads the first bytes: a PROXY header where one is required, then those that identify the protocol. */
  #arrive(stream: ArrivedStream, arrival: Arrival, chunk: Bytes): void {
    let bytes = arrival.held === null ? chunk : concat(arrival.held, chunk);
    arrival.held = null;
    if (arrival.proxied) {
      const header = readProxyHeader(bytes);
      if (header.kind === 'more') return void this.#hold(stream, arrival, bytes);
      if (header.kind === 'invalid') return void this.#refuseBare(stream, arrival.address);
      arrival.proxied = false;
      if (!this.#moveTo(arrival, proxiedAddress(header.address ?? arrival.address))) return void this.#refuse(stream);
      bytes = bytes.subarray(header.length);
      if (bytes.length === 0) return;
    }
    const form = sniff(bytes);
    if (form === 'more') return void this.#hold(stream, arrival, bytes);
    if (form === 'tls' && !arrival.secure && this.#tls !== null) {
      this.#secure(stream, bytes);
      return;
    }
    if (form !== 'v1' && form !== 'v2') return void this.#refuse(stream);
    this.#arrivals.delete(stream);
    arrival.conversation = this.#desk.open(arrival.service, form, this.#peerOf(stream), arrival.address);
    const rest = form === 'v2' ? bytes.subarray(V2_MAGIC.length) : bytes;
    if (rest.length > 0 && !arrival.conversation.isEnding) arrival.conversation.receive(rest);
  }

  #peerOf(stream: Stream): Peer {
    return stream instanceof HandleStream ? stream : new StreamPeer(stream);
  }

  #hold(stream: ArrivedStream, arrival: Arrival, bytes: Bytes): void {
    if (bytes.length > MAX_FIRST_BYTES) return void this.#refuse(stream);
    arrival.held = bytes.slice();
  }

  /** Told once: a balancer that does not send the header would otherwise look to miners like a pool that is away. */
  #refuseBare(stream: ArrivedStream, address: string): void {
    if (!this.#isBareTold)
      this.#desk.log(
        'warn',
        'a connection without a PROXY header is refused: it comes from an address of --proxy-protocol',
        { address },
      );
    this.#isBareTold = true;
    this.#refuse(stream);
  }

  #refuse(stream: ArrivedStream): void {
    this.#refused++;
    stream.destroy();
  }

  /** The address the proxy names is the one that counts. */
  #moveTo(arrival: Arrival, address: string): boolean {
    const key = clientKey(address);
    if (!this.#admit(key, true)) return false;
    this.#desk.counts.add(arrival.key, -1);
    this.#desk.counts.add(key, 1);
    arrival.address = address;
    arrival.key = key;
    return true;
  }

  setPool(pool: PaidPool): void {
    const isOther = this.#options.services.some((service) => !isPaid(service.pool, pool));
    for (const service of this.#options.services) service.pool = pool;
    if (isOther) this.#desk.dismiss('the pool has another address');
  }

  // --- TLS ------------------------------------------------------------------------------------------------------------

  setCertificate({ cert, key }: CertificatePem): void {
    if (this.#tls !== null) {
      this.#tls.setSecureContext({ cert, key });
      return;
    }
    this.#tls = createTlsServer({ cert, key, handshakeTimeout: this.#desk.limits.loginMillis });
    this.#tls.on('secureConnection', (socket) => this.#secured(socket));
    this.#tls.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /** Passes the connection, with the bytes already read, to the TLS server, which returns it as a new socket. */
  #secure(stream: ArrivedStream, bytes: Bytes): void {
    if (stream instanceof HandleStream) {
      const socket: Socket & ArrivedStream = stream.toSocket(bytes);
      socket[ARRIVAL] = stream[ARRIVAL];
      socket.on('error', this.onError).on('close', this.onClose);
      this.#arrivals.delete(stream);
      this.#arrivals.add(socket);
      this.#tls?.emit('connection', socket);
      return;
    }
    stream.off('data', this.onData);
    stream.pause();
    stream.unshift(bytes);
    this.#tls?.emit('connection', stream);
  }

  #secured(secure: TLSSocket): void {
    // There is no public name for the socket underneath; its arrival was set before it was wrapped.
    const under = (secure as unknown as { _parent?: Socket & ArrivedStream })._parent;
    const arrival = under?.[ARRIVAL];
    if (under === undefined || arrival === undefined) return void secure.destroy();
    under[ARRIVAL] = undefined;
    this.#arrivals.delete(under);
    const socket: Socket & ArrivedStream = secure;
    arrival.secure = true;
    this.#count('tcp', -1);
    this.#count('tls', 1);
    socket[ARRIVAL] = arrival;
    this.#arrivals.add(socket);
    const { onData, onError, onClose } = this;
    socket.on('data', onData).on('error', onError).on('close', onClose);
  }

  // --- control ----------------------------------------------------------------------------------------------------------

  #tick(): void {
    this.#desk.tick();
    // Sockets are in order of arrival, so the search ends at the first that is new enough.
    const before = this.#desk.now() - this.#desk.limits.loginMillis;
    for (const socket of this.#arrivals) {
      if ((socket[ARRIVAL]?.sinceMillis ?? 0) > before) break;
      this.#refuse(socket);
      this.#arrivals.delete(socket);
    }
  }

  publish(publication: Publication): void {
    this.#desk.publish(publication);
  }

  async setReady(ready: boolean): Promise<void> {
    this.#desk.ready = ready;
  }

  ban(key: string, untilMillis: number): void {
    this.#desk.ban(key, untilMillis);
  }

  takeSession(id: string): Promise<SessionRecord | null> {
    return this.#desk.takeSession(id);
  }

  receipts(delivery: ReceiptDelivery): void {
    this.#desk.receipts(delivery);
  }

  async figures(): Promise<ListenerFigures> {
    const refusedConnections = this.#refused + this.#sockets.refused;
    return { ...this.#desk.figures(), byTransport: { ...this.#transports }, refusedConnections };
  }

  async connections(search: ConnectionSearch): Promise<ConnectionList> {
    return this.#desk.connections(search);
  }

  async drain(): Promise<void> {
    this.#accepting = false;
    for (const server of this.#servers) server.close();
    void this.#sockets.close();
    for (const socket of this.#arrivals) socket.destroy();
    await this.#desk.drain();
  }

  async close(): Promise<void> {
    this.#accepting = false;
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const socket of this.#arrivals) socket.destroy();
    this.#desk.close();
    const closed = this.#servers.map((server) => new Promise<void>((resolve) => void server.close(() => resolve())));
    // A server tracks only sockets, not the streams on handles.
    const isEmpty = this.#transports.tcp + this.#transports.tls === 0;
    const { promise: emptied, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    if (isEmpty) resolve();
    await Promise.all([...closed, emptied, this.#sockets.close()]);
  }
}

const isPaid = (one: PaidPool | null, other: PaidPool): boolean => one !== null && equalBytes(one.payout, other.payout);
