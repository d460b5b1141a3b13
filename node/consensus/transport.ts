/**
 * What the driver needs of a network: neighbours that come and go, and messages that arrive or are lost. Nothing here is trusted, kept in order or delivered for
 * sure: signatures and anti-entropy (rules 13 to 17) make up for all of it.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Peer } from './effects.ts';

export type TransportEvents = {
  joined(peer: Peer): void;
  left(peer: Peer): void;
  message(peer: Peer, bytes: Bytes): void;
};

/** Its connections, and the key that it proved on them. */
export type Companion = { readonly peers: readonly Peer[]; readonly key: Bytes | undefined };

/** What a neighbour proved: its key, and that this process of it is at the other end. */
export type Proven = { readonly key: Bytes; readonly process: Bytes };

export interface Transport {
  /** The name of this process (rule 22). */
  readonly process: Bytes;
  start(events: TransportEvents): void;
  peers(): readonly Peer[];
  /** Those of them that the operator named or that proved to be members; strangers are not asked for anything while there are such. */
  known(): readonly Peer[];
  /** Where a neighbour is, as limits count it: its address, or the network of one customer. */
  placeOf(peer: Peer): string;
  /** Members among those, each once by the key that it proved, and undefined for each neighbour that the operator named, that is connected and proved nothing. However often somebody connects, it counts once. */
  company(): readonly Companion[];
  /** Undefined where it proved nothing. */
  proven(peer: Peer): Proven | undefined;
  /** Never waits. A message for a neighbour that is gone or does not read is lost. */
  send(peer: Peer, bytes: Bytes): void;
  /** The neighbour broke a rule. */
  drop(peer: Peer, reason: string): void;
  close(): Promise<void>;
}
