/** Types passed between the node's thread and its network thread. */

import type { BucketRate } from '../../../runtime/clients/token-bucket.ts';
import type { LogFields, LogLevel } from '../../../runtime/log/log.ts';
import type { Fault } from '../peers/peer-score.ts';

/** A peer's identity in text. */
export type PeerName = string;

const ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * Protocols answered by the node's thread. `streams`: concurrent requests of one peer. `asked`: concurrent requests to
 * one peer; fewer, because it notices the end of one later than this side.
 */
export const PROTOCOLS = {
  sync: {
    name: '/svc/sync/1',
    questionBytes: 8 * 1024,
    answerBytes: ANSWER_BYTES,
    streams: 4,
    asked: 3,
    millis: 20_000,
  },
  relay: {
    name: '/svc/relay/1',
    questionBytes: 64 * 1024,
    answerBytes: ANSWER_BYTES,
    streams: 8,
    asked: 5,
    millis: 10_000,
  },
} as const;
export type Protocol = keyof typeof PROTOCOLS;

/** Requests of one peer, of all protocols; further ones get no answer and cost score. */
export const QUESTIONS: BucketRate = { perSecond: 50, burst: 400 };

/** The answer of a node that has no time for the question now. */
export const BUSY = new Uint8Array(0);

export const TOPICS = ['cuts', 'blocks', 'transactions'] as const;
export type Topic = (typeof TOPICS)[number];

/** The last part of a topic's name: of the format of its messages. */
export const TOPIC_VERSIONS: Readonly<Record<Topic, number>> = { cuts: 1, blocks: 1, transactions: 2 };

export type Verdict = 'accept' | 'ignore' | 'reject';

/** `undelivered`: the peer announced it but did not deliver. Another announcer is asked. */
export type Finding = Verdict | 'undelivered';

export type HostSettings = {
  readonly seed: Uint8Array;
  readonly chainId: Uint8Array;
  readonly ruleSet: number;
  readonly release: string;
  readonly height: number;
  /** Multiaddrs. */
  readonly listen: readonly string[];
  readonly announce: readonly string[];
  readonly bootstrap: readonly string[];
  readonly remembered: readonly { readonly address: string; readonly lastGood: number }[];
  readonly maxPeers: number;
  /** Addresses of this machine count like any other; for tests of the limits. */
  readonly countsNear?: boolean;
};

export type PeerInfo = {
  readonly address: string;
  readonly direction: 'inbound' | 'outbound';
  /** It answered at an address that the operator named. */
  readonly named: boolean;
  readonly release: string;
  readonly height: number;
};

/** A peer of this chain with other rules, disconnected after the hello. */
export type RefusedPeer = Pick<PeerInfo, 'address' | 'direction' | 'release'> & { readonly ruleSet: number };

export type PeerState = Omit<PeerInfo, 'named'> & {
  readonly peer: PeerName;
  readonly lostScore: number;
  readonly sinceMillis: number;
};

export type HostFigures = {
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly connections: number;
  readonly barred: number;
  readonly threadMemoryBytes: number;
  /** Messages of gossip that the library knows by name. */
  readonly rememberedMessages: number;
  readonly peers: readonly PeerState[];
};

/** Functions of the node's thread, called by the network thread. */
export type NodeSide = {
  joined(peer: PeerName, info: PeerInfo): void;
  left(peer: PeerName): void;
  refused(peer: PeerName, info: RefusedPeer): void;
  serve(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array | undefined>;
  gossip(peer: PeerName, topic: Topic, data: Uint8Array): Promise<Finding>;
  remember(addresses: readonly { readonly address: string; readonly lastGood: number }[]): void;
  log(level: LogLevel, message: string, fields: LogFields): void;
};

/** Functions of the network thread, called by the node's thread. */
export type HostSide = {
  /** Addresses that are listened on. */
  start(settings: HostSettings): Promise<{ readonly peer: PeerName; readonly addresses: readonly string[] }>;
  ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array>;
  publish(topic: Topic, data: Uint8Array): Promise<void>;
  setHeight(height: number): void;
  fault(peer: PeerName, fault: Fault, reason: string): void;
  figures(): HostFigures;
  close(): Promise<void>;
};
