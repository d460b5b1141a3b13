/** How peers are asked, and what is thrown where one breaks a rule. */
import type { Fault } from './peer-score.ts';
import type { PeerName, Protocol } from './thread/host-types.ts';

/** What asks peers, and lets them pay for what they break. */
export type PeerAsking = {
  ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array>;
  fault(peer: PeerName, fault: Fault, reason: string): void;
};

/** What a peer sent breaks a rule: whoever catches this lets the peer pay for it and asks another. */
export class PeerFault extends Error {
  override readonly name = 'PeerFault';
  readonly peer: PeerName;
  readonly fault: Fault;

  constructor(peer: PeerName, fault: Fault, reason: string) {
    super(reason);
    this.peer = peer;
    this.fault = fault;
  }
}
