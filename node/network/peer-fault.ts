/** How peers are asked, what is thrown where one breaks a rule, and who is to blame for what went wrong. */
import { ProtocolError } from '../../protocol/errors.ts';
import type { Fault } from './peer-score.ts';
import type { PeerName, Protocol } from './thread/host-types.ts';

/** What asks peers, and lets them pay for what they break. */
export type PeerAsking = {
  ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array>;
  fault(peer: PeerName, fault: Fault, reason: string): void;
};

/** What a peer sent breaks a rule: the caller lowers the score of the peer and asks another. */
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

/**
 * A question without an answer. `unanswered`: it was put, and no whole answer came in time. `not_asked`: it was not put, because the peer is gone or too many questions wait for it here. `busy`: the peer says that it answers
 * others now. Only the first is the peer's fault.
 */
export type AskCode = 'unanswered' | 'not_asked' | 'busy';

export class AskError extends Error {
  override readonly name = 'AskError';
  /** Crosses between the threads. */
  readonly code: AskCode;

  constructor(code: AskCode, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** What the error costs the peer that was asked; undefined for whatever has its reason on this side. */
export function faultOf(error: unknown): Fault | undefined {
  if (error instanceof PeerFault) return error.fault;
  if (error instanceof ProtocolError) return 'malformed';
  return (error as { readonly code?: unknown }).code === 'unanswered' ? 'unanswered' : undefined;
}

/** Lets the peer pay, if there is something to pay for. */
export function blame(network: Pick<PeerAsking, 'fault'>, peer: PeerName, error: unknown): void {
  const fault = faultOf(error);
  if (fault !== undefined)
    network.fault(error instanceof PeerFault ? error.peer : peer, fault, (error as Error).message);
}
