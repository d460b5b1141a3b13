/** The interface for requests to peers, the errors for broken rules, and the attribution of faults. */
import { ProtocolError } from '../../../protocol/errors.ts';
import type { PeerName, Protocol } from '../thread/host-types.ts';
import type { Fault } from './peer-score.ts';

/** Sends requests to peers, and lowers their scores for faults. */
export type PeerAsking = {
  ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array>;
  fault(peer: PeerName, fault: Fault, reason: string): void;
};

/** A peer broke a rule: the caller lowers its score and asks another. */
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

/** A peer that has more sent less than was asked for, which may have honest reasons: others are asked before it. */
export class StingyAnswer extends Error {
  override readonly name = 'StingyAnswer';
  readonly peer: PeerName;

  constructor(peer: PeerName, reason: string) {
    super(reason);
    this.peer = peer;
  }
}

/**
 * A request without an answer. `unanswered`: it was sent, and nothing of an answer arrived in time, or what is none. `not_asked`: it was
 * not sent, because the peer has disconnected or too many requests wait for it, or this node gave up its answer. `busy`: the peer is serving others now, perhaps
 * too slowly, or gave the answer up for them.
 * Only the first is the peer's fault.
 */
export type AskCode = 'unanswered' | 'not_asked' | 'busy';

export class AskError extends Error {
  override readonly name = 'AskError';
  /** All that comes from the network's thread besides the text: the class does not. */
  readonly code: AskCode;

  constructor(code: AskCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown }).code;

/** Whether the peer has no time now, which says nothing of what it has. */
export const isBusy = (error: unknown): boolean => codeOf(error) === 'busy';

/** The fault of the asked peer; undefined if the cause is on this side. */
export function faultOf(error: unknown): Fault | undefined {
  if (error instanceof PeerFault) return error.fault;
  if (error instanceof ProtocolError) return 'malformed';
  return codeOf(error) === 'unanswered' ? 'unanswered' : undefined;
}

/** Lowers the peer's score, if it is at fault. */
export function blame(network: Pick<PeerAsking, 'fault'>, peer: PeerName, error: unknown): void {
  const fault = faultOf(error);
  if (fault !== undefined)
    network.fault(error instanceof PeerFault ? error.peer : peer, fault, (error as Error).message);
}
