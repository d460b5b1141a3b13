/**
 * Checks the identity of the other end of a connection (consensus rule 22), within limits. Checks are counted by the
 * claimed key: a connection that falsely claims a member's key uses up only that key's checks, and is barred. They run
 * off the main thread.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { type Bucket, fullBucket, take } from '../../../runtime/clients/token-bucket.ts';
import { nameOf } from '../../ledger/registration.ts';
import { importPublicKey, verifyMessageAside } from '../../ml-dsa.ts';
import { CHECKS, PROOFS } from './overlay-limits.ts';
import type { Claim } from './tcp-link.ts';

/** `unknown`: the key is not a member's, or too many were checked. */
export type Verdict = 'true' | 'false' | 'unknown';

export type IdentityDependencies = {
  steady(): number;
  /** Keys of the current committee. */
  readonly members?: (() => readonly { readonly publicKey: Bytes }[]) | undefined;
};

export class OverlayIdentities {
  readonly #with: IdentityDependencies;
  /** By the key of a member. */
  readonly #checks = new Map<string, Bucket>();
  #proofs: Bucket;

  constructor(dependencies: IdentityDependencies) {
    this.#with = dependencies;
    this.#proofs = fullBucket(PROOFS, dependencies.steady());
  }

  isMember(key: Bytes): boolean {
    return this.#with.members?.().some(({ publicKey }) => equalBytes(publicKey, key)) === true;
  }

  async verify(claim: Claim | undefined): Promise<Verdict> {
    if (claim === undefined || !this.isMember(claim.identity.publicKey)) return 'unknown';
    const { identity, message } = claim;
    if (!this.#mayCheck(nameOf(identity.publicKey))) return 'unknown';
    try {
      const isTrue = await verifyMessageAside(importPublicKey(identity.publicKey), message, identity.signature);
      return isTrue ? 'true' : 'false';
    } catch {
      // It was not checked: a member's key and any signature can be.
      return 'unknown';
    }
  }

  /** Whether this node signs for a peer whose key is not a member's. */
  mayProve(): boolean {
    const bucket = take(this.#proofs, PROOFS, this.#with.steady());
    if (bucket !== undefined) this.#proofs = bucket;
    return bucket !== undefined;
  }

  #mayCheck(member: string): boolean {
    const now = this.#with.steady();
    const bucket = take(this.#checks.get(member) ?? fullBucket(CHECKS, now), CHECKS, now);
    if (bucket === undefined) return false;
    this.#checks.set(member, bucket);
    this.#forget();
    return true;
  }

  /** Drops the counts of former members. */
  #forget(): void {
    const members = this.#with.members?.() ?? [];
    if (this.#checks.size <= 2 * members.length) return;
    const names = new Set(members.map(({ publicKey }) => nameOf(publicKey)));
    for (const name of this.#checks.keys()) if (!names.has(name)) this.#checks.delete(name);
  }
}
