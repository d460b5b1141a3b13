/**
 * What the node, the bridge and the pool verify with: one hash per header, off the event loop, in batches.
 *
 * A verifier belongs to the thread that created it. Other threads (the stratum listeners) get a handle of their own:
 * `verifier.share()` makes a ticket, which goes to the thread by postMessage with `ticket.transfer`, and
 * `attachVerifier(ticket)` there makes a Verifier that talks to the same workers directly, past the main event loop.
 *
 * A refusal is a KernelError: kernel_busy when the handle's queue is full (nothing was computed, nobody is to blame),
 * kernel_epoch_not_ready when the epoch was not prepared, kernel_epoch_not_allowed when it must not be,
 * kernel_worker_failed when two workers died over the same header, kernel_closed after close().
 */
import { AttachedVerifier } from './verifier-attached.ts';
import { OwnVerifier } from './verifier-own.ts';
import type { Verifier, VerifierDependencies, VerifierOptions, VerifierTicket } from './verifier-types.ts';

export type {
  Verifier,
  VerifierDependencies,
  VerifierMode,
  VerifierOptions,
  VerifierTicket,
} from './verifier-types.ts';

export const createVerifier = (options: VerifierOptions, dependencies: VerifierDependencies = {}): Verifier =>
  new OwnVerifier(options, dependencies);

export const attachVerifier = (ticket: VerifierTicket): Verifier => new AttachedVerifier(ticket);
