/**
 * The network's side of a node, in its own thread: connections, hello, requests and answers, gossip, dialling and
 * scores. It knows nothing about the chain: messages are interpreted by the node's thread (NodeSide).
 */
import { randomInt } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import { TopicValidatorResult } from '@libp2p/gossipsub';
import type { Connection, IdentifyResult, PeerId, Stream } from '@libp2p/interface';
import { equalBytes, toHex } from '../../../protocol/bytes.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { canonicalIp } from '../../../runtime/clients/address-reach.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { type LoadQuic, loadQuic } from '../../quic/quic-package.ts';
import { decodeHello, encodeHello, type Hello, MAX_HELLO_BYTES, mismatch } from '../peers/hello.ts';
import { addressOf, ipOf, isQuic, isWorthTelling, placeOf } from '../peers/peer-address.ts';
import { PeerBook } from '../peers/peer-book.ts';
import {
  afterFault,
  BARRED_MILLIS,
  type Fault,
  isBeyondBearing,
  lostAt,
  NO_FAULT,
  type Score,
} from '../peers/peer-score.ts';
import { AnswerDesk } from './answer-desk.ts';
import { answerStream, ask } from './asking.ts';
import { ConnectionLimits } from './connection-limits.ts';
import { createHost, type Host, STREAMS } from './create-host.ts';
import { Dialler } from './dialler.ts';
import { FrameLimits } from './frame-limits.ts';
import { GossipDesk } from './gossip-desk.ts';
import { forgetSeen, insideOf, keyOf, limitFrames, messageId, screen } from './gossip-rpc.ts';
import {
  type HostFigures,
  type HostSettings,
  type HostSide,
  type NodeSide,
  type PeerInfo,
  type PeerName,
  PROTOCOLS,
  type Protocol,
  TOPIC_VERSIONS,
  TOPICS,
  type Topic,
  type Verdict,
} from './host-types.ts';
import { decodePeers, encodePeers, MAX_PEERS_TOLD, PEERS_ANSWER_BYTES, PEERS_PROTOCOL } from './peer-exchange.ts';
import { QuestionQueue } from './question-queue.ts';
import { quicTransport, wantedQuic } from './quic-transport.ts';
import type { Remote } from './thread-calls.ts';

const HELLO_PROTOCOL = '/svc/hello/1';
const HELLO_MILLIS = 5_000;
/** Outgoing connections; incoming ones have the other places. */
const OUTBOUND = 8;
const GOODBYE_MILLIS = 500;
const KEEP_MILLIS = 500;
const EXCHANGE_MILLIS = 10_000;
const REMEMBER_MILLIS = 60_000;
const ANOTHER_CHAIN_MILLIS = 3_600_000;
/** A connection without gossip streams for this long is replaced. */
const MUTE_MILLIS = 10_000;
const MUTE_LOOK_MILLIS = 2_000;
const MAX_LEARNT = 4;
/** Choosing and writing addresses takes some milliseconds. A node asks for them when it connects, and every ten seconds. */
const FRAMES_OF_ADDRESSES = 200;
/** Bytes of gossip, whatever is in them, that count as another frame. */
const BYTES_OF_A_FRAME = 2_048;
const MAX_SCORES = 10_000;

type Ready = PeerInfo & { readonly id: PeerId; readonly since: number; gossipAt: number };

const VERDICTS: Record<Verdict, TopicValidatorResult> = {
  accept: TopicValidatorResult.Accept,
  ignore: TopicValidatorResult.Ignore,
  reject: TopicValidatorResult.Reject,
};

export class PeerHost implements HostSide {
  readonly #node: Remote<NodeSide>;
  readonly #load: LoadQuic;
  readonly #ready = new Map<PeerName, Ready>();
  /** By address, or by name on this machine; of named and old peers by both. */
  readonly #scores = new BoundedMap<string, Score>(MAX_SCORES);
  /** Where each said hello last: faults are also found when it has left. */
  readonly #addresses = new BoundedMap<PeerName, string>(MAX_SCORES);
  readonly #timers = new Set<NodeJS.Timeout>();
  #settings!: HostSettings;
  #host!: Host;
  #limits!: ConnectionLimits;
  #book!: PeerBook;
  #dialler!: Dialler;
  readonly #questions = new QuestionQueue(
    (peer) => this.#connectionOf(peer),
    steadyMillis,
    (connection) => this.#holderOf(connection),
  );
  readonly #answers = new AnswerDesk({
    serve: (peer, protocol, question) => this.#node.serve(peer, protocol, question),
    fault: (peer, fault, reason) => this.fault(peer, fault, reason),
    steady: steadyMillis,
  });
  readonly #gossip = new GossipDesk({
    judge: (peer, topic, data) => this.#node.gossip(peer, topic, data),
    flood: (peer) => this.fault(peer, 'flood', 'too much gossip'),
    steady: steadyMillis,
  });
  readonly #frames = new FrameLimits(steadyMillis);
  readonly #gossipFrames = new FrameLimits(steadyMillis);
  #height = 0;

  constructor(node: Remote<NodeSide>, load: LoadQuic = loadQuic) {
    this.#node = node;
    this.#load = load;
  }

  async start(settings: HostSettings) {
    this.#settings = settings;
    this.#height = settings.height;
    const outbound = Math.min(OUTBOUND, Math.ceil(settings.maxPeers / 2));
    this.#limits = new ConnectionLimits(settings.maxPeers - outbound, settings.countsNear ?? false, steadyMillis);
    const quic = await wantedQuic(settings, this.#load);
    if (quic !== undefined && quic.package === undefined)
      this.#say('warn', 'peers are reached over TCP only', { reason: quic.reason });
    const transport = quic?.package && quicTransport(quic.package, STREAMS, this.#limits.count);
    const dialled = settings.bootstrap.filter((address) => transport !== undefined || !isQuic(address));
    this.#book = new PeerBook(dialled, (ip) => this.#limits.isNear(ip));
    for (const { address, lastGood } of settings.remembered) this.#book.remember(address, lastGood);
    const topics = TOPICS.map((topic) => this.#topicName(topic));
    this.#host = await createHost(settings, topics, this.#limits.gater, transport);
    this.#dialler = new Dialler(outbound, {
      host: this.#host,
      limits: this.#limits,
      book: this.#book,
      failed: (address, reason) => this.#say('debug', 'an address does not answer', { address, reason }),
    });
    await this.#offer();
    await this.#host.start();
    this.#listen();
    this.#every(MUTE_LOOK_MILLIS, () => this.#endMute());
    this.#every(KEEP_MILLIS, () => this.#dialler.keep());
    this.#every(EXCHANGE_MILLIS, () => this.#exchange());
    this.#every(REMEMBER_MILLIS, () => this.#remember());
    const own = this.#host.peerId.toString();
    return { peer: own, addresses: this.#host.getMultiaddrs().map(String) };
  }

  #topicName(topic: Topic): string {
    return `/svc/${toHex(this.#settings.chainId).slice(0, 32)}/${topic}/${TOPIC_VERSIONS[topic]}`;
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
    this.#frames.limit(connection, this.#holderOf(connection), () => this.#tooManyFrames(connection));
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

  #tooManyFrames(connection: Connection): void {
    const { remotePeer, remoteAddr } = connection;
    this.fault(remotePeer.toString(), 'frames', 'too many frames', remoteAddr.toString());
    connection.abort(new Error('too many frames'));
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
    this.#gossip.left(peer);
    this.#answers.left(peer);
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

  /** Asks a peer for addresses. A node with too few connections repeats this from time to time. */
  async #askPeers(connection: Connection): Promise<void> {
    const limits = { bytes: PEERS_ANSWER_BYTES, millis: HELLO_MILLIS };
    const answer = await ask(connection, PEERS_PROTOCOL, new Uint8Array(1), limits).catch(() => new Uint8Array(1));
    const from = ipOf(connection.remoteAddr.toString());
    for (const place of decodePeers(answer)) if (isWorthTelling(place.ip, from)) this.#book.told(addressOf(place));
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
      const { release, ruleSet } = hello;
      if (equalBytes(hello.chainId, this.#settings.chainId))
        this.#node.refused(peer, { address, direction: connection.direction, release, ruleSet }).catch(() => undefined);
      this.#dialler.leaveAlone(peer, ANOTHER_CHAIN_MILLIS);
      this.#say(connection.direction === 'outbound' ? 'warn' : 'debug', 'a peer is left alone', {
        peer,
        address,
        reason,
      });
      // The dialler reads the answer first, and so knows why.
      if (connection.direction === 'outbound') connection.abort(new Error(reason));
      else this.#later(GOODBYE_MILLIS, () => connection.abort(new Error(reason)));
      return false;
    }
    this.#addresses.set(peer, address);
    if (connection.status !== 'open') return true;
    const { direction } = connection;
    if (direction === 'outbound') this.#dialler.worked(peer, address);
    const named = this.#dialler.isNamed(peer);
    const before = this.#ready.get(peer);
    if (before !== undefined && (before.named || !named)) return true;
    // It came here before it was reached at an address that the operator named: from now on it is that peer.
    if (before !== undefined) this.#node.left(peer).catch(() => undefined);
    const now = steadyMillis();
    const info = { address, direction, named, release: hello.release, height: hello.height };
    this.#ready.set(peer, { id: connection.remotePeer, since: now, gossipAt: now, ...before, ...info });
    this.#node.joined(peer, info).catch(() => undefined);
    return true;
  }

  /**
   * The listening addresses that a peer claims, limited to its own IP: others may be anybody's. They are verified when
   * this node dials them.
   */
  #learn({ peerId, listenAddrs, connection }: IdentifyResult): void {
    const ip = canonicalIp(ipOf(connection.remoteAddr.toString()) ?? '');
    for (const address of listenAddrs.map(String).slice(0, MAX_LEARNT)) {
      const place = placeOf(address.includes('/p2p/') ? address : `${address}/p2p/${peerId}`);
      if (place !== undefined && place.ip === ip && place.peer === peerId.toString()) this.#book.told(addressOf(place));
    }
  }

  #remember(): void {
    this.#node.remember(this.#book.good(256)).catch(() => undefined);
  }

  async #tellPeers(stream: Stream, connection: Connection): Promise<void> {
    if (!this.#frames.take(`${connection.remotePeer}`, this.#holderOf(connection), FRAMES_OF_ADDRESSES))
      return this.#tooManyFrames(connection);
    const from = ipOf(connection.remoteAddr.toString());
    await answerStream(stream, { bytes: 16, millis: HELLO_MILLIS }, async () => {
      if (!this.#ready.has(connection.remotePeer.toString())) return undefined;
      return encodePeers(
        this.#book.given(MAX_PEERS_TOLD).filter((address) => isWorthTelling(ipOf(address) as string, from)),
      );
    });
  }

  // Questions and gossip.

  async #serve(protocol: Protocol, stream: Stream, connection: Connection): Promise<void> {
    const peer = connection.remotePeer.toString();
    if (!this.#ready.has(peer)) return stream.abort(new Error('it did not say hello'));
    await this.#answers.answer(peer, this.#holderOf(connection), protocol, stream);
  }

  /** The peer, or the address that it shares with others. */
  #holderOf({ remotePeer, remoteAddr }: Connection): string {
    return this.#accountOf(`${remotePeer}`, `${remoteAddr}`);
  }

  #connectionOf(peer: PeerName): Connection | undefined {
    const ready = this.#ready.get(peer);
    return ready && this.#host.getConnections(ready.id).find(({ status }) => status === 'open');
  }

  ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array> {
    return this.#questions.ask(peer, protocol, question);
  }

  async publish(topic: Topic, data: Uint8Array): Promise<void> {
    const { gossip } = this.#host.services;
    const name = this.#topicName(topic);
    const id = messageId(name, data);
    if (this.#gossip.own(keyOf(id))) forgetSeen(gossip, id);
    await gossip.publish(name, data);
  }

  #listen(): void {
    const { gossip } = this.#host.services;
    const connectionOf = (id: PeerId) => this.#host.getConnections(id)[0];
    const holderOf = (id: PeerId, connection = connectionOf(id)) =>
      connection === undefined ? `${id}` : this.#holderOf(connection);
    limitFrames(gossip, (id, bytes) => {
      const connection = connectionOf(id);
      const mayCome = this.#gossipFrames.take(`${id}`, holderOf(id, connection), 1 + bytes / BYTES_OF_A_FRAME);
      if (!mayCome && connection !== undefined) this.#tooManyFrames(connection);
      return mayCome;
    });
    screen(gossip, {
      // Those that have not said hello are asked for nothing, and what they send would keep others' from being relayed.
      mayCome: (id, data) => this.#ready.has(`${id}`) && this.#gossip.mayCome(`${id}`, data, holderOf(id)),
      heard: (id, message, data) => {
        if (this.#ready.has(id.toString())) this.#gossip.announced(id.toString(), keyOf(message), data);
      },
    });
    for (const topic of TOPICS) {
      const name = this.#topicName(topic);
      gossip.topicValidators.set(
        name,
        async (id, { data }) =>
          VERDICTS[await this.#gossip.judge(id.toString(), topic, keyOf(messageId(name, data)), data)],
      );
      gossip.subscribe(name);
    }
  }

  /** The library ends gossip with a peer at the first frame that it cannot read, and begins it only with a connection. */
  #endMute(): void {
    const { streamsInbound, streamsOutbound } = insideOf(this.#host.services.gossip);
    const now = steadyMillis();
    for (const [peer, ready] of this.#ready)
      if (streamsInbound.has(peer) && streamsOutbound.has(peer)) ready.gossipAt = now;
      else if (now - ready.gossipAt > MUTE_MILLIS)
        for (const connection of this.#host.getConnections(ready.id)) this.#refuse(connection, 'its gossip ended');
  }

  // Scores.

  /** What pays for faults, and has a part of what is shared: an address, since names cost nothing; but nobody else has the name of a peer that the operator named. */
  #accountOf(peer: PeerName, address: string): string {
    return this.#dialler.isNamed(peer) ? this.#limits.placeOf(peer, address) : this.#limits.holderOf(peer, address);
  }

  /** Nor is it new who has been here for as long as an address is barred: strangers that came to its address do not end its connection. */
  #payerOf(peer: PeerName, address: string): string {
    const { since = Number.POSITIVE_INFINITY } = this.#ready.get(peer) ?? {};
    const isOld = steadyMillis() - since >= BARRED_MILLIS;
    return isOld ? this.#limits.placeOf(peer, address) : this.#accountOf(peer, address);
  }

  /** `address`: where it was asked, or where it said hello last. */
  fault(peer: PeerName, fault: Fault, reason: string, address = this.#addressOf(peer)): void {
    // Faults of messages sent before the bar may be found later.
    const place = this.#limits.placeOf(peer, address);
    if (this.#limits.isBarred(place)) return;
    const account = this.#payerOf(peer, address);
    const score = afterFault(this.#scores.get(account) ?? NO_FAULT, fault, steadyMillis());
    this.#scores.set(account, score);
    this.#say('debug', 'a peer broke a rule', { peer, fault, reason, lost: score.lost });
    if (!isBeyondBearing(score)) return;
    this.#limits.bar(peer, address);
    this.#say('info', 'a peer is barred', { peer, address, fault, reason });
    // Its score is used up: after the bar it starts again.
    this.#scores.delete(account);
    for (const connection of this.#host.getConnections())
      if (this.#limits.placeOf(`${connection.remotePeer}`, `${connection.remoteAddr}`) === place)
        connection.abort(new Error(`barred: ${reason}`));
  }

  #addressOf(peer: PeerName): string {
    return this.#connectionOf(peer)?.remoteAddr.toString() ?? this.#addresses.get(peer) ?? '';
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
      threadMemoryBytes: getHeapStatistics().used_heap_size,
      rememberedMessages: insideOf(this.#host.services.gossip).seenCache.size,
      peers: [...this.#ready].map(([peer, { address, direction, release, height, since }]) => ({
        peer,
        address,
        direction,
        release,
        height,
        lostScore: Math.round(lostAt(this.#scores.get(this.#payerOf(peer, address)) ?? NO_FAULT, now)),
        sinceMillis: now - since,
      })),
    };
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#gossip.close();
    // One that could not start has nothing to keep.
    if (this.#host === undefined) return;
    this.#remember();
    await this.#host.stop();
  }
}
