/** A peer that a test speaks for: a real libp2p host that says a proper hello and answers questions as the test says; without that it has nothing. */
import { randomBytes } from 'node:crypto';
import type { Connection } from '@libp2p/interface';
import { multiaddr } from '@multiformats/multiaddr';
import { encodeHello, MAX_HELLO_BYTES } from '../../node/network/peers/hello.ts';
import {
  decodeRelayQuestion,
  encodeWaiting,
  encodeWires,
  type RelayQuestion,
} from '../../node/network/relay/relay-messages.ts';
import { encodeChunk, encodeOffers, NO_CHUNK } from '../../node/network/snapshots/snapshot-messages.ts';
import {
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeCutsAnswer,
  encodeHeadersAnswer,
  type SyncQuestion,
} from '../../node/network/sync/sync-messages.ts';
import { answerStream, ask } from '../../node/network/thread/asking.ts';
import { createHost, type Host, STREAMS } from '../../node/network/thread/create-host.ts';
import { insideOf } from '../../node/network/thread/gossip-rpc.ts';
import { type HostSettings, PROTOCOLS, TOPIC_VERSIONS, type Topic } from '../../node/network/thread/host-types.ts';
import { quicTransport, wantedQuic } from '../../node/network/thread/quic-transport.ts';
import { toHex } from '../../protocol/bytes.ts';
import { RULE_SET } from '../../protocol/transactions/transaction.ts';

export const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis));

export type RawAnswers = {
  readonly height?: () => number;
  readonly release?: string;
  /** Undefined: as one that has nothing. */
  readonly sync?: (question: SyncQuestion) => Promise<Uint8Array | undefined>;
  readonly relay?: (question: RelayQuestion) => Promise<Uint8Array | undefined>;
};

const LONG = { bytes: 65_536, millis: 60_000 };

const hasNothing = (question: RelayQuestion): Uint8Array => {
  if (question.type === 'waiting') return encodeWaiting({ transactions: [], blocks: [] });
  if (question.type === 'block') return encodeBlocksAnswer([undefined]);
  return encodeWires((question.type === 'carried' ? question.indexes : question.ids).map(() => undefined));
};

const lacksCuts = (question: SyncQuestion, height: number): Uint8Array => {
  if (question.type === 'cuts') return encodeCutsAnswer({ head: height, bodiesFrom: 0 }, [], []);
  if (question.type === 'headers') return encodeHeadersAnswer({ headers: [], certificate: undefined });
  if (question.type === 'snapshots') return encodeOffers([]);
  if (question.type === 'part' || question.type === 'blockPart') return encodeChunk(NO_CHUNK);
  return encodeBlocksAnswer(question.ids.map(() => undefined));
};

export const hostSettings = (chainId: Uint8Array, more: Partial<HostSettings> = {}): HostSettings => ({
  seed: randomBytes(32),
  chainId,
  ruleSet: RULE_SET,
  release: '0.1.0',
  height: 0,
  listen: [],
  announce: [],
  bootstrap: [],
  remembered: [],
  maxPeers: 50,
  ...more,
});

export class RawPeer {
  readonly host: Host;
  readonly asked: string[] = [];
  readonly #chainId: Uint8Array;
  readonly #answers: RawAnswers;

  private constructor(host: Host, chainId: Uint8Array, answers: RawAnswers) {
    this.host = host;
    this.#chainId = chainId;
    this.#answers = answers;
  }

  static async open(chainId: Uint8Array, answers: RawAnswers = {}, settings: Partial<HostSettings> = {}) {
    const topics = (['cuts', 'blocks', 'transactions'] as const).map((topic) => topicName(chainId, topic));
    const gater = { denyDialMultiaddr: () => false };
    const own = hostSettings(chainId, settings);
    const quic = (await wantedQuic(own))?.package;
    const uncounted = { received: () => undefined, sent: () => undefined };
    const host = await createHost(own, topics, gater, quic && quicTransport(quic, STREAMS, uncounted));
    const peer = new RawPeer(host, chainId, answers);
    await peer.#offer();
    await host.start();
    for (const topic of topics) host.services.gossip.subscribe(topic);
    return peer;
  }

  async #offer(): Promise<void> {
    const { sync, relay, height = () => 0 } = this.#answers;
    await this.host.handle(
      PROTOCOLS.sync.name,
      (stream) =>
        answerStream(stream, LONG, async (bytes) => {
          const question = decodeSyncQuestion(bytes);
          this.asked.push(`sync ${question.type}`);
          return (await sync?.(question)) ?? lacksCuts(question, height());
        }).catch(() => undefined),
      { maxInboundStreams: 64 },
    );
    await this.host.handle(
      PROTOCOLS.relay.name,
      (stream) =>
        answerStream(stream, LONG, async (bytes) => {
          const question = decodeRelayQuestion(bytes);
          this.asked.push(`relay ${question.type}`);
          return (await relay?.(question)) ?? hasNothing(question);
        }).catch(() => undefined),
      { maxInboundStreams: PROTOCOLS.relay.streams },
    );
  }

  get name(): string {
    return this.host.peerId.toString();
  }

  /** Connects and says hello. */
  async join(address: string): Promise<Connection> {
    const connection = await this.host.dial(multiaddr(address), { signal: AbortSignal.timeout(60_000) });
    const { height = () => 0, release = '0.1.0' } = this.#answers;
    const hello = encodeHello({ chainId: this.#chainId, ruleSet: RULE_SET, release, height: height() });
    await ask(connection, '/svc/hello/1', hello, { bytes: MAX_HELLO_BYTES, millis: 60_000 });
    return connection;
  }

  /** Whether somebody would get what it publishes: knowing of a subscriber is not enough, a stream to it must be open too. */
  isHeard(topic: Topic): boolean {
    const { gossip } = this.host.services;
    const { streamsOutbound } = insideOf(gossip);
    return gossip.getSubscribers(topicName(this.#chainId, topic)).some((peer) => streamsOutbound.has(peer.toString()));
  }

  async publish(topic: Topic, data: Uint8Array): Promise<void> {
    await this.host.services.gossip.publish(topicName(this.#chainId, topic), data);
  }

  async close(): Promise<void> {
    await this.host.stop();
  }
}

export const topicName = (chainId: Uint8Array, topic: Topic): string =>
  `/svc/${toHex(chainId).slice(0, 32)}/${topic}/${TOPIC_VERSIONS[topic]}`;
