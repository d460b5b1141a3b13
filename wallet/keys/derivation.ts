/**
 * Key derivation (keys rules 3 to 6): a chain of hardened HMAC-SHA512 steps over network, account, branch and index ends
 * in the 32-byte seed of an ML-DSA-65 key. Every step is hardened: a leaked key reveals nothing about others.
 */
import { createHmac } from 'node:crypto';
import { type Bytes, concat, utf8 } from '../../protocol/bytes.ts';
import { NETWORKS, type NetworkName } from '../../protocol/network.ts';
import { seedOfPhrase } from './phrase.ts';

export const ROOT_LABEL = 'SVC_WALLET_ROOT_V1';
export const BRANCHES = { receive: 0, change: 1 } as const;
export type Branch = keyof typeof BRANCHES;
export const MAX_INDEX = 0x7fffffff;
/** Consensus keys of validators have the last receive indexes, which no address reaches (keys rule 5). */
export const CONSENSUS_KEY_INDEXES = { first: MAX_INDEX - 0xffff, last: MAX_INDEX } as const;
const HARDENED = 0x80000000;

/** The path of a key: everything needed to derive it again. */
export type KeyPath = { readonly account: number; readonly branch: Branch; readonly index: number };

type Chain = { readonly secret: Uint8Array; readonly code: Uint8Array };

const hmac = (key: Bytes, data: Bytes): Uint8Array => new Uint8Array(createHmac('sha512', key).update(data).digest());
const split = (bytes: Uint8Array): Chain => ({ secret: bytes.subarray(0, 32), code: bytes.subarray(32) });

function step(parent: Chain, index: number): Chain {
  if (!Number.isInteger(index) || index < 0 || index > MAX_INDEX) throw new RangeError(`no key has the index ${index}`);
  const data = new Uint8Array(37);
  data.set(parent.secret, 1);
  new DataView(data.buffer).setUint32(33, index + HARDENED, false);
  return split(hmac(parent.code, data));
}

/** Holds the secrets of one wallet on one network. `wipe` overwrites them; using it afterwards is a bug. */
export class WalletRoot {
  readonly network: NetworkName;
  readonly #root: Chain;
  readonly #branches = new Map<string, Chain>();
  #wiped = false;

  constructor(phrase: string, passphrase: string, network: NetworkName) {
    this.network = network;
    const seed = seedOfPhrase(phrase, passphrase);
    const master = split(hmac(utf8(ROOT_LABEL), seed));
    seed.fill(0);
    this.#root = step(master, NETWORKS[network].id);
    master.secret.fill(0);
  }

  /** The 32-byte seed from which FIPS 204 makes the key pair of this path. */
  seed(path: KeyPath): Uint8Array<ArrayBuffer> {
    if (this.#wiped) throw new Error('the wallet root was wiped');
    const name = `${path.account}/${path.branch}`;
    let branch = this.#branches.get(name);
    if (branch === undefined) {
      branch = step(step(this.#root, path.account), BRANCHES[path.branch]);
      this.#branches.set(name, branch);
    }
    return concat(step(branch, path.index).secret);
  }

  /** 64 secret bytes outside all paths (messenger rules 2 and 5): the label separates them from every key. */
  labelled(label: string, data: Bytes): Uint8Array {
    if (this.#wiped) throw new Error('the wallet root was wiped');
    const { secret, code } = this.#root;
    const bytes = concat(utf8(label), new Uint8Array(1), secret, data);
    const derived = hmac(code, bytes);
    bytes.fill(0);
    return derived;
  }

  wipe(): void {
    for (const chain of [this.#root, ...this.#branches.values()]) {
      chain.secret.fill(0);
      chain.code.fill(0);
    }
    this.#branches.clear();
    this.#wiped = true;
  }
}
