/**
 * Nodes of one process that are peers without sockets: what the network thread of each does for it (hello, questions, gossip with its desk, scores),
 * in the thread of the node. Peers that a test speaks for join and leave as it likes.
 */

import type { OpenPeers, PeerHandlers, PeerLink } from '../../node/network/peer-network.ts';
import { AskError } from '../../node/network/peers/peer-fault.ts';
import { afterFault, type Fault, isBeyondBearing, NO_FAULT, type Score } from '../../node/network/peers/peer-score.ts';
import { GossipDesk } from '../../node/network/thread/gossip-desk.ts';
import { keyOf, messageId } from '../../node/network/thread/gossip-rpc.ts';
import {
  type HostFigures,
  type HostSettings,
  type PeerName,
  PROTOCOLS,
  type Protocol,
  TOPICS,
  type Topic,
  type Verdict,
} from '../../node/network/thread/host-types.ts';

/** A peer that a test speaks for. */
export type Spoken = {
  /** Undefined: it does not answer. */
  answer(asking: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array | undefined>;
  heard?(from: PeerName, topic: Topic, data: Uint8Array): void;
  /** A node barred it. */
  barred?(by: PeerName): void;
};

export type Blamed = { readonly by: PeerName; readonly peer: PeerName; readonly fault: Fault; readonly reason: string };

export class PeerRoom {
  readonly nodes = new Map<PeerName, MemoryPeers>();
  readonly spoken = new Map<PeerName, Spoken>();
  /** Every lost score. */
  readonly blamed: Blamed[] = [];
  /** What a node's thread threw at its network, which must be nothing. */
  readonly broken: string[] = [];
  /** Milliseconds, for the limits of gossip. */
  steady = 0;

  /** For a node of this name. */
  opens(name: PeerName): OpenPeers {
    return (settings, handlers) => {
      const made = new MemoryPeers(this, name, settings, handlers);
      this.nodes.set(name, made);
      return made;
    };
  }

  connect(a: PeerName, b: PeerName): void {
    this.node(a).join(b, 'outbound');
    this.node(b).join(a, 'inbound');
  }

  node(name: PeerName): MemoryPeers {
    return this.nodes.get(name) as MemoryPeers;
  }

  /** A peer that a test speaks for comes to a node. */
  enter(name: PeerName, peer: Spoken, at: PeerName): void {
    this.spoken.set(name, peer);
    this.node(at).join(name, 'inbound');
  }

  leave(name: PeerName): void {
    this.spoken.delete(name);
    for (const node of this.nodes.values()) node.part(name);
  }

  async answer(
    peer: PeerName,
    by: PeerName,
    protocol: Protocol,
    question: Uint8Array,
  ): Promise<Uint8Array | undefined> {
    const bytes = Uint8Array.from(question);
    return (
      (await this.nodes.get(by)?.serve(peer, protocol, bytes)) ??
      (await this.spoken.get(by)?.answer(peer, protocol, bytes))
    );
  }

  carry(from: PeerName, to: PeerName, topic: Topic, data: Uint8Array): void {
    const bytes = Uint8Array.from(data);
    setImmediate(() => {
      this.spoken.get(to)?.heard?.(from, topic, bytes);
      void this.nodes.get(to)?.hear(from, topic, bytes);
    });
  }
}

export class MemoryPeers implements PeerLink {
  readonly answeredBytes: Record<Protocol, number> = { sync: 0, relay: 0 };
  readonly #room: PeerRoom;
  readonly #name: PeerName;
  readonly #settings: () => HostSettings;
  readonly #handlers: PeerHandlers;
  readonly #peers = new Set<PeerName>();
  readonly #scores = new Map<PeerName, Score>();
  readonly #heard = new Set<string>();
  readonly #desk: GossipDesk;
  #height = 0;

  constructor(room: PeerRoom, name: PeerName, settings: () => HostSettings, handlers: PeerHandlers) {
    this.#room = room;
    this.#name = name;
    this.#settings = settings;
    this.#handlers = handlers;
    this.#desk = new GossipDesk({
      judge: (peer, topic, data) => this.#unbroken(handlers.gossip(peer, topic, data)),
      flood: (peer) => this.fault(peer, 'flood', 'too much gossip'),
      steady: () => room.steady,
    });
  }

  #unbroken<T>(doing: Promise<T>): Promise<T> {
    return doing.catch((error) => {
      this.#room.broken.push(`${this.#name}: ${(error as Error).stack}`);
      throw error;
    });
  }

  async start(): Promise<readonly string[]> {
    this.#height = this.#settings().height;
    return [`/ip4/127.0.0.1/tcp/1/p2p/${this.#name}`];
  }

  get height(): number {
    return this.#height;
  }

  has(peer: PeerName): boolean {
    return this.#peers.has(peer);
  }

  join(peer: PeerName, direction: 'inbound' | 'outbound'): void {
    this.#peers.add(peer);
    const height = this.#room.nodes.get(peer)?.height ?? 0;
    const address = `/ip4/127.0.0.1/tcp/1/p2p/${peer}`;
    this.#handlers.joined(peer, { address, direction, named: false, release: '0.1.0', height });
  }

  part(peer: PeerName): void {
    if (!this.#peers.delete(peer)) return;
    this.#desk.left(peer);
    this.#handlers.left(peer);
  }

  async ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array> {
    if (!this.#peers.has(peer)) throw new AskError('not_asked', 'the peer is gone');
    const answer = await this.#room.answer(this.#name, peer, protocol, question);
    if (answer === undefined || answer.length > PROTOCOLS[protocol].answerBytes)
      throw this.#peers.has(peer)
        ? new AskError('unanswered', 'no answer')
        : new AskError('not_asked', 'the peer is gone');
    if (answer.length === 0) throw new AskError('busy', 'the peer is busy');
    this.answeredBytes[protocol] += answer.length;
    return Uint8Array.from(answer);
  }

  serve(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#unbroken(this.#handlers.serve(peer, protocol, question)).catch(() => undefined);
  }

  publish(topic: Topic, data: Uint8Array): void {
    this.#heard.add(keyOf(messageId(topic, data)));
    this.#send(topic, data);
  }

  #send(topic: Topic, data: Uint8Array, but?: PeerName): void {
    // Those that a test speaks for first: they may come before the honest everywhere.
    const others = [...this.#peers].filter((peer) => peer !== but).sort((a) => (this.#room.spoken.has(a) ? -1 : 1));
    for (const peer of others) this.#room.carry(this.#name, peer, topic, data);
  }

  /** As the library does: the first of equal messages is judged, and goes on to others if it is accepted. */
  async hear(from: PeerName, topic: Topic, data: Uint8Array): Promise<Verdict | 'known'> {
    if (!this.#peers.has(from) || !TOPICS.includes(topic)) return 'known';
    if (!this.#desk.mayCome(from, data)) return 'known';
    const key = keyOf(messageId(topic, data));
    this.#desk.announced(from, key, data);
    if (this.#heard.has(key)) return 'known';
    this.#heard.add(key);
    const verdict = await this.#desk.judge(from, topic, key, data);
    if (verdict === 'accept') this.#send(topic, data, from);
    return verdict;
  }

  setHeight(height: number): void {
    this.#height = height;
  }

  fault(peer: PeerName, fault: Fault, reason: string): void {
    this.#room.blamed.push({ by: this.#name, peer, fault, reason });
    const score = afterFault(this.#scores.get(peer) ?? NO_FAULT, fault, this.#room.steady);
    this.#scores.set(peer, score);
    if (!isBeyondBearing(score) || !this.#peers.has(peer)) return;
    this.#scores.delete(peer);
    this.part(peer);
    this.#room.spoken.get(peer)?.barred?.(this.#name);
  }

  get figures(): HostFigures {
    return {
      receivedBytes: 0,
      sentBytes: 0,
      connections: this.#peers.size,
      barred: 0,
      threadMemoryBytes: 0,
      rememberedMessages: 0,
      peers: [],
    };
  }

  async close(): Promise<void> {
    this.#desk.close();
    this.#room.nodes.delete(this.#name);
  }
}
