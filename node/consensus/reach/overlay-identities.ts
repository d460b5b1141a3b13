/**
 * Checks the identity of the other end of a connection (consensus rule 22), within limits. Checks are counted by the
 * claimed key: a connection that falsely claims a member's key uses up only that key's checks, and is barred. Those from
 * an address at which a member proved its key before are counted by that address: nobody elsewhere can use them up. They
 * run off the main thread.
 */
import { type Bytes, equalBytes, toHex } from '../../../protocol/bytes.ts';
import { validatorId } from '../../../protocol/staking/names.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import { type Bucket, fullBucket, take } from '../../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { nameOf } from '../../ledger/registration.ts';
import { importPublicKey, verifyMessageAside } from '../../ml-dsa.ts';
import type { RememberedMembers } from '../../validator/remembered-members.ts';
import { MAX_KNOWN } from '../link/allowance.ts';
import type { Claim } from '../link/overlay-link.ts';
import { RELAYED } from './inbound-places.ts';
import { CHECKS, FAMILIAR_ADDRESSES, PROOFS } from './overlay-limits.ts';

/** `unknown`: the key is no member's and will not be soon, or too many were checked. */
export type Verdict = 'true' | 'false' | 'unknown';

export type IdentityDependencies = {
  readonly steady: SteadyClock;
  /** Keys of the current committee. */
  readonly members?: (() => readonly { readonly publicKey: Bytes }[]) | undefined;
  /** Where members proved their keys in earlier runs, and what is done with it when it has changed. */
  readonly remembered?: RememberedMembers | undefined;
  readonly remember?: ((members: RememberedMembers) => void) | undefined;
};

export class OverlayIdentities {
  readonly #with: IdentityDependencies;
  /** Keys of those that the chain lists: the next members among them. */
  #listed: ReadonlySet<string> = new Set();
  /** By the key of a member. */
  readonly #checks = new Buckets(CHECKS, MAX_KNOWN);
  /** By address. */
  readonly #checksOfFamiliar = new Buckets(CHECKS, MAX_KNOWN);
  /** By the identifier of a member's key: where it proved it, the last address first. */
  readonly #familiar = new BoundedMap<string, readonly string[]>(MAX_KNOWN);
  #hasChanged = false;
  #proofs: Bucket;

  constructor(dependencies: IdentityDependencies) {
    this.#with = dependencies;
    this.#proofs = fullBucket(PROOFS, dependencies.steady());
    for (const { validator, addresses } of dependencies.remembered ?? [])
      this.#familiar.set(validator, addresses.slice(0, FAMILIAR_ADDRESSES));
  }

  isMember(key: Bytes): boolean {
    return this.#with.members?.().some(({ publicKey }) => equalBytes(publicKey, key)) === true;
  }

  know(listed: readonly { readonly publicKey: Bytes }[]): void {
    this.#listed = new Set(listed.map(({ publicKey }) => nameOf(publicKey)));
  }

  /** A member proved its key at this address. */
  proved(publicKey: Bytes, address: string): void {
    const name = toHex(validatorId(publicKey));
    const before = this.#familiar.use(name) ?? [];
    const addresses = [address, ...before.filter((other) => other !== address)].slice(0, FAMILIAR_ADDRESSES);
    this.#familiar.set(name, addresses);
    this.#hasChanged ||= addresses.some((each, i) => each !== before[i]);
  }

  /** Now and then: a file is written, and whoever comes from ever new addresses must not have it written each time. */
  keep(): void {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    const all = [...this.#familiar].map(([validator, addresses]) => ({
      validator,
      // Circuits have no address.
      addresses: addresses.filter((address) => !address.startsWith(RELAYED)),
    }));
    this.#with.remember?.(all.filter(({ addresses }) => addresses.length > 0));
  }

  isFamiliar(address: string): boolean {
    return [...this.#familiar.values()].some((addresses) => addresses.includes(address));
  }

  /** `address`: where it comes from, as limits know it. */
  async verify(claim: Claim | undefined, address: string): Promise<Verdict> {
    if (claim === undefined) return 'unknown';
    const { identity, message } = claim;
    const name = nameOf(identity.publicKey);
    // The next members too: signatures for others are few, and strangers use them up.
    if (!this.isMember(identity.publicKey) && !this.#listed.has(name)) return 'unknown';
    if (!this.#mayCheck(name, address)) return 'unknown';
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
    const [checks, name] = this.isFamiliar(address) ? [this.#checksOfFamiliar, address] : [this.#checks, member];
    return checks.take(name, this.#with.steady());
  }
}
