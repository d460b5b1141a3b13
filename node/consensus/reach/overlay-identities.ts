/**
 * Checks the identity of the other end of a connection (consensus rule 22), within limits. Checks are counted by the
 * claimed key: a connection that falsely claims a member's key uses up only that key's checks, and is barred. Those from
 * an address at which the member proved its key before are counted apart: nobody else can use them up. They run off the
 * main thread.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { type Bucket, fullBucket, take } from '../../../runtime/clients/token-bucket.ts';
import { nameOf } from '../../ledger/registration.ts';
import { importPublicKey, verifyMessageAside } from '../../ml-dsa.ts';
import { CHECKS, FAMILIAR_ADDRESSES, MAX_KNOWN, PROOFS } from './overlay-limits.ts';
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
  readonly #checks = new BoundedMap<string, Bucket>(MAX_KNOWN);
  readonly #checksOfFamiliar = new BoundedMap<string, Bucket>(MAX_KNOWN);
  /** By the key of a member: where it proved it, the last address first. */
  readonly #familiar = new BoundedMap<string, readonly string[]>(MAX_KNOWN);
  #proofs: Bucket;

  constructor(dependencies: IdentityDependencies) {
    this.#with = dependencies;
    this.#proofs = fullBucket(PROOFS, dependencies.steady());
  }

  isMember(key: Bytes): boolean {
    return this.#with.members?.().some(({ publicKey }) => equalBytes(publicKey, key)) === true;
  }

  /** A member proved its key at this address. */
  proved(member: string, address: string): void {
    const before = this.#familiar.use(member) ?? [];
    const addresses = [address, ...before.filter((other) => other !== address)].slice(0, FAMILIAR_ADDRESSES);
    this.#familiar.set(member, addresses);
  }

  isFamiliar(address: string): boolean {
    return [...this.#familiar.values()].some((addresses) => addresses.includes(address));
  }

  /** `address`: where it comes from, as limits know it. */
  async verify(claim: Claim | undefined, address: string): Promise<Verdict> {
    if (claim === undefined || !this.isMember(claim.identity.publicKey)) return 'unknown';
    const { identity, message } = claim;
    if (!this.#mayCheck(nameOf(identity.publicKey), address)) return 'unknown';
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

  #mayCheck(member: string, address: string): boolean {
    const now = this.#with.steady();
    const checks = this.#familiar.get(member)?.includes(address) ? this.#checksOfFamiliar : this.#checks;
    const bucket = take(checks.use(member) ?? fullBucket(CHECKS, now), CHECKS, now);
    if (bucket !== undefined) checks.set(member, bucket);
    return bucket !== undefined;
  }
}
