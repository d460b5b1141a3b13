/**
 * The network interface of the driver: neighbours that come and go, and messages that arrive or are lost. Messages are
 * neither trusted, ordered nor reliable: signatures and anti-entropy (rules 15 to 17) compensate for that.
 */
import type { Bytes } from '../../../protocol/bytes.ts';
import type { Peer } from '../engine/effects.ts';

export type TransportEvents = {
  joined(peer: Peer): void;
  left(peer: Peer): void;
  message(peer: Peer, bytes: Bytes): void;
};

/** Its connections, and the key that it proved on them. */
export type Companion = {
  readonly peers: readonly Peer[];
  readonly key: Bytes | undefined;
  /** All of them are through relays, which may hold back what they carry. */
  readonly isRelayed?: boolean;
};

/** The proven identity of a neighbour: its key, and its process. */
export type Proven = { readonly key: Bytes; readonly process: Bytes };

export interface Transport {
  /** The name of this process (rule 22). */
  readonly process: Bytes;
  start(events: TransportEvents): void;
  peers(): readonly Peer[];
  /**
   * Neighbours named by the operator or proven to be members; while there are any, strangers are not asked for
   * anything.
   */
  known(): readonly Peer[];
  /** Asked at each message: listing all would take longer than the message. */
  isKnown(peer: Peer): boolean;
  /** A neighbour's key for limits: its address, or the network of one customer. */
  limitKey(peer: Peer): string;
  /** A known neighbour's key for limits, the same on all its connections: the key that it proved, or its address. */
  accountOf(peer: Peer): string;
  /** The same, and for all its circuits another one: a relay may bring at once what it held back. */
  accountByWay(peer: Peer): string;
  /** Where to send what is sent to one connection: in place of one through a relay, a direct one of the same member. */
  nearest(peer: Peer): Peer;
  /**
   * Connected members, each once by its proven key, and undefined for each neighbour named by the operator that is
   * connected but proved nothing. Several connections of one node count once.
   */
  company(): readonly Companion[];
  /** Undefined if it proved nothing. */
  proven(peer: Peer): Proven | undefined;
  /** Never waits. A message for a neighbour that has disconnected or does not read is lost. */
  send(peer: Peer, bytes: Bytes): void;
  /** The neighbour broke a rule. */
  drop(peer: Peer, reason: string): void;
  close(): Promise<void>;
}
