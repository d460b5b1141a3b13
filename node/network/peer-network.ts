/**
 * The network thread, seen from the node's thread. If the network thread dies it is restarted; until then there are no
 * peers.
 */
import { Worker } from 'node:worker_threads';
import type { LogFields, Logger, LogLevel } from '../../runtime/log/log.ts';
import { isQuic } from './peers/peer-address.ts';
import type { PeerAsking } from './peers/peer-fault.ts';
import type { Fault } from './peers/peer-score.ts';
import type {
  HostFigures,
  HostSettings,
  HostSide,
  NodeSide,
  PeerInfo,
  PeerName,
  Protocol,
  Topic,
} from './thread/host-types.ts';
import { ThreadCalls } from './thread/thread-calls.ts';

const RESTART_MILLIS = 2_000;
const FIGURES_MILLIS = 1_000;
const CLOSE_MILLIS = 3_000;
const QUIC_END_MILLIS = 5_000;

export type PeerHandlers = Pick<NodeSide, 'joined' | 'left' | 'refused' | 'serve' | 'gossip' | 'remember'>;

/** What a node has of its peers: its network thread, or in tests peers of the same process. */
export type PeerLink = Pick<
  PeerNetwork,
  'start' | 'ask' | 'publish' | 'setHeight' | 'fault' | 'figures' | 'answeredBytes' | 'close'
>;
export type OpenPeers = (settings: () => HostSettings, handlers: PeerHandlers, log: Logger) => PeerLink;

export const threadOfPeers: OpenPeers = (settings, handlers, log) => new PeerNetwork(settings, handlers, log);

const startThread = (): Worker => new Worker(new URL('./thread/worker.ts', import.meta.url));

const NO_FIGURES: HostFigures = {
  receivedBytes: 0,
  sentBytes: 0,
  connections: 0,
  barred: 0,
  threadMemoryBytes: 0,
  rememberedMessages: 0,
  peers: [],
};

export class PeerNetwork implements PeerAsking {
  readonly #settings: () => HostSettings;
  readonly #handlers: PeerHandlers;
  readonly #log: Logger;
  readonly #startThread: () => Worker;
  readonly #peers = new Map<PeerName, PeerInfo>();
  #worker: Worker | undefined;
  #calls: ThreadCalls<HostSide> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #restart: NodeJS.Timeout | undefined;
  #figures = NO_FIGURES;
  /** Totals of earlier threads: counters never decrease. */
  #before = { receivedBytes: 0, sentBytes: 0 };
  /** Of whole answers, by what was asked. */
  readonly answeredBytes: Record<Protocol, number> = { sync: 0, relay: 0 };
  #closed = false;

  constructor(settings: () => HostSettings, handlers: PeerHandlers, log: Logger, start = startThread) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#log = log;
    this.#startThread = start;
  }

  /** Addresses that are listened on; rejects where one cannot be. */
  async start(): Promise<readonly string[]> {
    const worker = this.#startThread();
    this.#worker = worker;
    const offered: NodeSide = {
      ...this.#handlers,
      joined: (peer, info) => {
        this.#peers.set(peer, info);
        this.#log.debug('a peer joined', { peer, ...info });
        this.#handlers.joined(peer, info);
      },
      left: (peer) => this.#left(peer),
      log: (level: LogLevel, message: string, fields: LogFields) => this.#log[level](message, fields),
    };
    const calls = new ThreadCalls<HostSide>(worker, offered);
    this.#calls = calls;
    worker.on('error', (error) => this.#died(worker, calls, error));
    // Also one that ends without an error.
    worker.on('exit', (code) => this.#died(worker, calls, new Error(`it ended with code ${code}`)));
    const { peer, addresses } = await calls.remote.start(this.#settings());
    this.#log.info('peer-to-peer network', { peer, addresses });
    this.#timer = setInterval(() => void this.#measure(calls), FIGURES_MILLIS);
    this.#timer.unref();
    return addresses;
  }

  #left(peer: PeerName): void {
    if (this.#peers.delete(peer)) this.#handlers.left(peer);
  }

  #died(worker: Worker, calls: ThreadCalls<HostSide>, error: Error): void {
    calls.end(error);
    if (this.#closed || worker !== this.#worker) return;
    this.#log.error('the thread of the network ended: it is started again', { error });
    clearInterval(this.#timer);
    for (const peer of [...this.#peers.keys()]) this.#left(peer);
    const { receivedBytes, sentBytes } = this.#figures;
    this.#before = {
      receivedBytes: this.#before.receivedBytes + receivedBytes,
      sentBytes: this.#before.sentBytes + sentBytes,
    };
    this.#figures = NO_FIGURES;
    this.#worker = undefined;
    this.#startAgain();
  }

  /** Retried without limit: without it the node has no peers. */
  #startAgain(): void {
    if (this.#closed) return;
    this.#restart = setTimeout(() => {
      this.start().catch((error) => {
        this.#log.error('the network cannot be started again', { error });
        const worker = this.#worker;
        // Where the thread itself ended, the next start is planned already.
        if (worker === undefined) return;
        this.#worker = undefined;
        void this.#endThread(worker, this.#calls);
        this.#startAgain();
      });
    }, RESTART_MILLIS);
  }

  async #measure(calls: ThreadCalls<HostSide>): Promise<void> {
    const figures = await calls.remote.figures().catch(() => undefined);
    if (figures !== undefined) this.#figures = figures;
  }

  /** At most a second old. */
  get figures(): HostFigures {
    const { receivedBytes, sentBytes } = this.#before;
    return {
      ...this.#figures,
      receivedBytes: this.#figures.receivedBytes + receivedBytes,
      sentBytes: this.#figures.sentBytes + sentBytes,
    };
  }

  get peers(): ReadonlyMap<PeerName, PeerInfo> {
    return this.#peers;
  }

  async ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array> {
    if (this.#calls === undefined || !this.#peers.has(peer)) throw new Error('the peer is gone');
    const answer = await this.#calls.remote.ask(peer, protocol, question);
    this.answeredBytes[protocol] += answer.length;
    return answer;
  }

  publish(topic: Topic, data: Uint8Array): void {
    this.#calls?.remote.publish(topic, data).catch((error) => this.#log.debug('not published', { topic, error }));
  }

  setHeight(height: number): void {
    this.#calls?.remote.setHeight(height).catch(() => undefined);
  }

  fault(peer: PeerName, fault: Fault, reason: string): void {
    this.#calls?.remote.fault(peer, fault, reason).catch(() => undefined);
  }

  /** The native part of QUIC does not bear the end of its thread while it is at work: such a thread ends by itself. */
  async #endThread(worker: Worker, calls: ThreadCalls<HostSide> | undefined): Promise<void> {
    const isOver = new Promise<boolean>((resolve) => worker.once('exit', () => resolve(true)));
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MILLIS).unref());
    await Promise.race([calls?.remote.close().catch(() => undefined), timeout]);
    calls?.end(new Error('the network is closed'));
    const { listen, bootstrap } = this.#settings();
    if (![...listen, ...bootstrap].some(isQuic)) {
      await worker.terminate();
      return;
    }
    const isLate = new Promise<boolean>((resolve) => setTimeout(resolve, QUIC_END_MILLIS, false).unref());
    if (await Promise.race([isOver, isLate])) return;
    this.#log.warn('the thread of the network does not end');
    worker.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#restart);
    if (this.#worker === undefined) this.#calls?.end(new Error('the network is closed'));
    else await this.#endThread(this.#worker, this.#calls);
  }
}
