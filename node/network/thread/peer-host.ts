/**
 * The network's side of a node, in its own thread: connections, hello, questions and answers, gossip, whom to dial, who loses score. It knows nothing of the chain: what a message means is
 * decided by the node's thread (NodeSide).
 */
import { randomInt } from 'node:crypto';
import { TopicValidatorResult } from '@libp2p/gossipsub';
import type { Connection, IdentifyResult, PeerId, Stream } from '@libp2p/interface';
import { isPrivateIp } from '@libp2p/utils';
import { toHex } from '../../../protocol/bytes.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { steadyMillis } from '../../../runtime/clock.ts';
import { type Bucket, fullBucket, take } from '../../../runtime/token-bucket.ts';
import { decodeHello, encodeHello, type Hello, MAX_HELLO_BYTES, mismatch } from '../hello.ts';
import { ipOf, PeerBook } from '../peer-book.ts';
import { afterFault, type Fault, isBeyondBearing, lostAt, NO_FAULT, type Score } from '../peer-score.ts';
import { answerStream, ask } from './asking.ts';
import { ConnectionLimits } from './connection-limits.ts';
import { createHost, type Host } from './create-host.ts';
import { Dialler } from './dialler.ts';
import {
  type HostFigures,
  type HostSettings,
  type HostSide,
  type NodeSide,
  type PeerInfo,
  type PeerName,
  PROTOCOLS,
  type Protocol,
  TOPICS,
  type Topic,
  type Verdict,
} from './host-types.ts';
import {
  decodePeers,
  encodePeers,
  isWorthTelling,
  MAX_PEERS_TOLD,
  PEERS_ANSWER_BYTES,
  PEERS_PROTOCOL,
} from './peer-exchange.ts';
import type { Remote } from './thread-calls.ts';

const HELLO_PROTOCOL = '/svc/hello/1';
const HELLO_MILLIS = 5_000;
/** Connections that this node makes by itself; the others have the rest of the places. */
const OUTBOUND = 8;
const GOODBYE_MILLIS = 500;
const KEEP_MILLIS = 500;
const EXCHANGE_MILLIS = 10_000;
const REMEMBER_MILLIS = 60_000;
const ANOTHER_CHAIN_MILLIS = 3_600_000;
/** Questions of one peer; what comes beyond it gets no answer and costs score. */
const QUESTIONS = { perSecond: 50, burst: 400 };
/** Gossip of one peer that is looked at. */
const GOSSIP = { perSecond: 200, burst: 1_000 };
/** Answers that wait for slow readers, of all peers together. */
const MAX_ANSWER_BYTES = 64 * 1_024 * 1_024;
const MAX_VERDICTS = 512;
const MAX_LEARNT = 4;
const MAX_SCORES = 10_000;

type Ready = PeerInfo & { readonly id: PeerId; readonly since: number; questions: Bucket; gossip: Bucket };

const VERDICTS: Record<Verdict, TopicValidatorResult> = {
  accept: TopicValidatorResult.Accept,
  ignore: TopicValidatorResult.Ignore,
  reject: TopicValidatorResult.Reject,
};

export class PeerHost implements HostSide {
  readonly #node: Remote<NodeSide>;
  readonly #ready = new Map<PeerName, Ready>();
  readonly #scores = new BoundedMap<PeerName, Score>(MAX_SCORES);
  readonly #timers = new Set<NodeJS.Timeout>();
  #settings!: HostSettings;
  #host!: Host;
  #limits!: ConnectionLimits;
  #book!: PeerBook;
  #dialler!: Dialler;
  #height = 0;
  #answerBytes = 0;
  #verdicts = 0;

  constructor(node: Remote<NodeSide>) {
    this.#node = node;
  }

  async start(settings: HostSettings) {
    this.#settings = settings;
    this.#height = settings.height;
    this.#book = new PeerBook(settings.bootstrap);
    for (const { address, lastGood } of settings.remembered) this.#book.add(address, lastGood);
    const outbound = Math.min(OUTBOUND, Math.ceil(settings.maxPeers / 2));
    this.#limits = new ConnectionLimits(settings.maxPeers - outbound, settings.countsNear ?? false, steadyMillis);
    const topics = TOPICS.map((topic) => this.#topicName(topic));
    this.#host = await createHost(settings, topics, this.#limits.gater);
    this.#dialler = new Dialler(outbound, {
      host: this.#host,
      limits: this.#limits,
      book: this.#book,
      failed: (address, reason) => this.#say('debug', 'an address does not answer', { address, reason }),
    });
    await this.#offer();
    await this.#host.start();
    for (const topic of TOPICS) {
      this.#host.services.gossip.topicValidators.set(this.#topicName(topic), (peer, { data }) =>
        this.#judge(peer, topic, data),
      );
      this.#host.services.gossip.subscribe(this.#topicName(topic));
    }
    this.#every(KEEP_MILLIS, () => this.#dialler.keep());
    this.#every(EXCHANGE_MILLIS, () => this.#exchange());
    this.#every(REMEMBER_MILLIS, () => this.#remember());
    const own = this.#host.peerId.toString();
    return { peer: own, addresses: this.#host.getMultiaddrs().map(String) };
  }

  #topicName(topic: Topic): string {
    return `/svc/${toHex(this.#settings.chainId).slice(0, 32)}/${topic}/1`;
  }

  #every(millis: number, run: () => void): void {
    this.#timers.add(setInterval(run, millis));
  }

  async #offer(): Promise<void> {
    const host = this.#host;
    await host.handle(HELLO_PROTOCOL, (stream, connection) => this.#hello(stream, connection), {
      maxInboundStreams: 1,
    });
    await host.handle(PEERS_PROTOCOL, (stream, connection) => this.#tellPeers(stream, connection), {
      maxInboundStreams: 1,
    });
    for (const protocol of Object.keys(PROTOCOLS) as Protocol[])
      await host.handle(PROTOCOLS[protocol].name, (stream, connection) => this.#serve(protocol, stream, connection), {
        maxInboundStreams: PROTOCOLS[protocol].streams,
        maxOutboundStreams: PROTOCOLS[protocol].streams * 2,
      });
    host.addEventListener('peer:identify', ({ detail }) => this.#learn(detail));
    host.addEventListener('connection:open', ({ detail }) => this.#opened(detail));
    host.addEventListener('connection:close', ({ detail }) => this.#ended(detail));
  }

  #say(level: 'debug' | 'info' | 'warn', message: string, fields: Record<string, unknown>): void {
    this.#node.log(level, message, fields).catch(() => undefined);
  }

  // Connections and hello.

  #opened(connection: Connection): void {
    if (connection.direction === 'outbound') {
      this.#greet(connection).catch((error) => {
        this.#dialler.leaveAlone(connection.remotePeer.toString());
        this.#refuse(connection, (error as Error).message);
      });
      return;
    }
    this.#later(HELLO_MILLIS, () => {
      if (!this.#ready.has(connection.remotePeer.toString())) this.#refuse(connection, 'it did not say hello');
    });
  }

  #later(millis: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, millis);
    this.#timers.add(timer);
  }

  #ended(connection: Connection): void {
    const peer = connection.remotePeer.toString();
    if (this.#host.getConnections(connection.remotePeer).some(({ id }) => id !== connection.id)) return;
    this.#dialler.left(peer);
    if (!this.#ready.delete(peer)) return;
    this.#node.left(peer).catch(() => undefined);
  }

  #refuse(connection: Connection, reason: string): void {
    this.#say('debug', 'a connection is refused', { address: connection.remoteAddr.toString(), reason });
    connection.abort(new Error(reason));
  }

  #own(): Hello {
    const { chainId, ruleSet, release } = this.#settings;
    return { chainId, ruleSet, release, height: this.#height };
  }

  async #greet(connection: Connection): Promise<void> {
    const limits = { bytes: MAX_HELLO_BYTES, millis: HELLO_MILLIS };
    const hello = decodeHello(await ask(connection, HELLO_PROTOCOL, encodeHello(this.#own()), limits));
    if (this.#welcome(connection, hello)) await this.#askPeers(connection);
  }

  /** Whom the peer knows. A node with too few connections asks now and then, since peers learn too. */
  async #askPeers(connection: Connection): Promise<void> {
    const limits = { bytes: PEERS_ANSWER_BYTES, millis: HELLO_MILLIS };
    const answer = await ask(connection, PEERS_PROTOCOL, new Uint8Array(1), limits).catch(() => new Uint8Array(1));
    const from = connection.remoteAddr.toString();
    for (const address of decodePeers(answer))
      if (isWorthTelling(address, from, (ip) => isPrivateIp(ip) === true)) this.#book.add(address);
  }

  #exchange(): void {
    const connections = this.#host.getConnections().filter(({ remotePeer }) => this.#ready.has(remotePeer.toString()));
    const connection = connections[randomInt(Math.max(1, connections.length))];
    if (connection === undefined || this.#dialler.isContent()) return;
    this.#askPeers(connection).catch((error) =>
      this.fault(connection.remotePeer.toString(), 'malformed', (error as Error).message),
    );
  }

  async #hello(stream: Stream, connection: Connection): Promise<void> {
    let hello: Hello | undefined;
    await answerStream(stream, { bytes: MAX_HELLO_BYTES, millis: HELLO_MILLIS }, async (question) => {
      hello = decodeHello(question);
      return encodeHello(this.#own());
    });
    if (hello !== undefined) this.#welcome(connection, hello);
  }

  #welcome(connection: Connection, hello: Hello): boolean {
    const reason = mismatch(this.#own(), hello);
    const peer = connection.remotePeer.toString();
    const address = connection.remoteAddr.toString();
    if (reason !== undefined) {
      this.#dialler.leaveAlone(peer, ANOTHER_CHAIN_MILLIS);
      this.#say(connection.direction === 'outbound' ? 'warn' : 'debug', 'a peer is left alone', {
        peer,
        address,
        reason,
      });
      // Whoever dialled reads the answer first, and so knows why.
      if (connection.direction === 'outbound') connection.abort(new Error(reason));
      else this.#later(GOODBYE_MILLIS, () => connection.abort(new Error(reason)));
      return false;
    }
    if (this.#ready.has(peer) || connection.status !== 'open') return true;
    const now = steadyMillis();
    const info = { address, direction: connection.direction, release: hello.release, height: hello.height };
    this.#ready.set(peer, {
      ...info,
      id: connection.remotePeer,
      since: now,
      questions: fullBucket(QUESTIONS, now),
      gossip: fullBucket(GOSSIP, now),
    });
    this.#dialler.worked(peer);
    this.#node.joined(peer, info).catch(() => undefined);
    return true;
  }

  /** Where a peer listens, as far as it speaks of the address that it is at: others may be anybody's. */
  #learn({ peerId, listenAddrs, connection }: IdentifyResult): void {
    const ip = ipOf(connection.remoteAddr.toString());
    const isHere = (address: string) => ip !== undefined && ipOf(address) === ip;
    for (const address of listenAddrs.map(String).filter(isHere).slice(0, MAX_LEARNT))
      this.#book.add(address.includes('/p2p/') ? address : `${address}/p2p/${peerId}`, steadyMillis());
  }

  #remember(): void {
    this.#node.remember(this.#book.good(256)).catch(() => undefined);
  }

  async #tellPeers(stream: Stream, connection: Connection): Promise<void> {
    const from = connection.remoteAddr.toString();
    await answerStream(stream, { bytes: 16, millis: HELLO_MILLIS }, async () => {
      if (!this.#ready.has(connection.remotePeer.toString())) return undefined;
      const told = this.#book.good(MAX_PEERS_TOLD).map(({ address }) => address);
      return encodePeers(told.filter((address) => isWorthTelling(address, from, (ip) => isPrivateIp(ip) === true)));
    });
  }

  // Questions and gossip.

  async #serve(protocol: Protocol, stream: Stream, connection: Connection): Promise<void> {
    const peer = connection.remotePeer.toString();
    const { questionBytes, millis } = PROTOCOLS[protocol];
    let held = 0;
    const answer = async (question: Uint8Array) => {
      const ready = this.#ready.get(peer);
      if (ready === undefined) return undefined;
      const bucket = take(ready.questions, QUESTIONS, steadyMillis());
      if (bucket === undefined) {
        this.fault(peer, 'flood', 'too many questions');
        return undefined;
      }
      ready.questions = bucket;
      if (this.#answerBytes > MAX_ANSWER_BYTES) return undefined;
      const given = await this.#node.serve(peer, protocol, question);
      held = given?.length ?? 0;
      this.#answerBytes += held;
      return given;
    };
    try {
      await answerStream(stream, { bytes: questionBytes, millis }, answer);
    } catch (error) {
      // Peers go while they ask; a question that is too long is none.
      if (/Length/.test((error as Error).name)) this.fault(peer, 'malformed', 'a question that is too long');
    } finally {
      this.#answerBytes -= held;
    }
  }

  async ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array> {
    const ready = this.#ready.get(peer);
    const connection = ready && this.#host.getConnections(ready.id).find(({ status }) => status === 'open');
    if (connection === undefined) throw new Error('the peer is gone');
    const { name, answerBytes, millis } = PROTOCOLS[protocol];
    return await ask(connection, name, question, { bytes: answerBytes, millis });
  }

  async publish(topic: Topic, data: Uint8Array): Promise<void> {
    await this.#host.services.gossip.publish(this.#topicName(topic), data);
  }

  async #judge(id: PeerId, topic: Topic, data: Uint8Array): Promise<TopicValidatorResult> {
    const peer = id.toString();
    const ready = this.#ready.get(peer);
    if (ready === undefined || this.#verdicts >= MAX_VERDICTS) return VERDICTS.ignore;
    const bucket = take(ready.gossip, GOSSIP, steadyMillis());
    if (bucket === undefined) {
      this.fault(peer, 'flood', 'too much gossip');
      return VERDICTS.ignore;
    }
    ready.gossip = bucket;
    this.#verdicts++;
    try {
      return VERDICTS[await this.#node.gossip(peer, topic, data)];
    } finally {
      this.#verdicts--;
    }
  }

  // Scores.

  fault(peer: PeerName, fault: Fault, reason: string): void {
    // What it sent before it was barred comes to light later.
    if (this.#limits.isBarred(peer)) return;
    const score = afterFault(this.#scores.get(peer) ?? NO_FAULT, fault, steadyMillis());
    this.#scores.set(peer, score);
    this.#say('debug', 'a peer broke a rule', { peer, fault, reason, lost: score.lost });
    if (!isBeyondBearing(score)) return;
    const ready = this.#ready.get(peer);
    this.#limits.bar(peer, ready?.address ?? '');
    this.#say('info', 'a peer is barred', { peer, address: ready?.address, fault, reason });
    // Its points are spent: after the time it starts anew.
    this.#scores.delete(peer);
    if (ready !== undefined)
      for (const connection of this.#host.getConnections(ready.id)) connection.abort(new Error(`barred: ${reason}`));
  }

  setHeight(height: number): void {
    this.#height = height;
  }

  figures(): HostFigures {
    const now = steadyMillis();
    const { receivedBytes, sentBytes, barred } = this.#limits;
    return {
      receivedBytes,
      sentBytes,
      barred,
      connections: this.#host.getConnections().length,
      threadMemoryBytes: process.memoryUsage().heapUsed,
      peers: [...this.#ready].map(([peer, { address, direction, release, height, since }]) => ({
        peer,
        address,
        direction,
        release,
        height,
        lostScore: Math.round(lostAt(this.#scores.get(peer) ?? NO_FAULT, now)),
        sinceMillis: now - since,
      })),
    };
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#remember();
    await this.#host?.stop();
  }
}
