/**
 * The cut that is being made final, for everybody who reads meanwhile: its blocks are known although they have left the
 * pool, and a payment that it registers is not unknown.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { CutRef } from '../full-node.ts';
import type { AppliedCut } from '../ledger/apply-cut.ts';
import { nameOf } from '../ledger/registration.ts';

export class CutInProgress {
  #registering: ReadonlySet<string> = new Set();
  #certified: CutRef | undefined;
  #sealing: Promise<unknown> | undefined;

  /** Resolves or fails with the cut; undefined if there is none. */
  get sealing(): Promise<unknown> | undefined {
    return this.#sealing;
  }

  begin(sealing: Promise<unknown>): void {
    this.#sealing = sealing;
  }

  executed({ effects }: AppliedCut): void {
    this.#registering = new Set(effects.registered.map(({ id }) => nameOf(id)));
  }

  certified({ effects: { header, cutId } }: AppliedCut): void {
    this.#certified = { height: header.height, cutId, header };
  }

  end(): void {
    this.#registering = new Set();
    this.#certified = undefined;
    this.#sealing = undefined;
  }

  isRegistering(block: Bytes): boolean {
    return this.#registering.has(nameOf(block));
  }

  /** Where the block is about to be final: in a cut that has its certificate. */
  cutOf(block: Bytes): CutRef | undefined {
    return this.isRegistering(block) ? this.#certified : undefined;
  }
}
