/**
 * The keys of an open wallet: derives them on demand and caches the most recently used ones, because a pool pays from
 * the same few addresses all day. Also makes the address records that the wallet watches.
 */

import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { AddressRecord } from '../state/records.ts';
import type { Branch, KeyPath, WalletRoot } from './derivation.ts';
import { type SigningKey, signingKey } from './signing.ts';

const KEPT_KEYS = 512;
export const ACCOUNT = 0;

export class Keyring {
  readonly #root: WalletRoot;
  readonly #kept = new BoundedMap<string, SigningKey>(KEPT_KEYS);

  constructor(root: WalletRoot) {
    this.#root = root;
  }

  key(path: Omit<KeyPath, 'account'>): SigningKey {
    const name = `${path.branch}/${path.index}`;
    const known = this.#kept.use(name);
    if (known !== undefined) return known;
    const seed = this.#root.seed({ account: ACCOUNT, ...path });
    const key = signingKey(seed);
    seed.fill(0);
    this.#kept.set(name, key);
    return key;
  }

  addressRecord(branch: Branch, index: number, createdMillis: number): AddressRecord {
    const seed = this.#root.seed({ account: ACCOUNT, branch, index });
    const payload = keyAddressPayload(signingKey(seed).publicKey);
    seed.fill(0);
    return {
      address: formatAddress(payload, this.#root.network),
      payload: toHex(payload),
      branch,
      index,
      given: false,
      label: '',
      createdMillis,
      used: false,
      registered: false,
    };
  }

  close(): void {
    this.#kept.clear();
    this.#root.wipe();
  }
}
