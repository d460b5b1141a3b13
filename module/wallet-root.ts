/**
 * The root of a wallet: a handle into the memory of the WebAssembly half, where its entropy and all keys stay. It must be freed after use; `free()` overwrites
 * them. The phrase and the passphrase are JavaScript strings before they get here, and nobody can overwrite those.
 */
import { formatAddress, keyAddressPayload, parseAddress } from '../protocol/address.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../protocol/crypto/identifier.ts';
import { ENTROPY_BYTES, phraseOfEntropy, readPhrase } from '../protocol/crypto/phrase.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import { possessionMessage } from '../protocol/staking/names.ts';
import { inField } from '../protocol/stratum/fields.ts';
import {
  type AddressProofRequest,
  addressProofMessage,
  PROOF_VERSION,
  readProofRequest,
} from '../protocol/transactions/address-proof.ts';
import { givenFlag, givenHex, givenInteger, givenNetwork, givenParsed, givenText, written } from './given.ts';
import { readManifest } from './manifest.ts';
import * as messenger from './messenger.ts';
import { ModuleError } from './module-error.ts';
import { readRequest } from './ownership.ts';
import { derivePublicKey, freeRoot, type KeyPlace, openRoot, sign, started } from './wasm.ts';

const MAX_INDEX = 0x7fffffff;
/** Receive indexes from here on are consensus keys and no addresses (keys rule 5). */
const FIRST_CONSENSUS_INDEX = MAX_INDEX - 0xffff;
const BRANCHES = { receive: 0, change: 1 } as const;
/** 24 words of 8 letters, typed with generous spaces. */
const MAX_PHRASE = 1024;
const FINGERPRINT_BYTES = 8;

function entropyOf(phrase: unknown): Uint8Array {
  const read = readPhrase(givenText(phrase, 'mnemonic', MAX_PHRASE));
  if (!read.ok) throw new ModuleError(read.problem, read.message);
  return read.entropy;
}

export function mnemonicFromEntropy(entropy: string): string {
  return phraseOfEntropy(givenHex(entropy, 'entropy', ENTROPY_BYTES));
}

export function mnemonicEntropy(mnemonic: string): string {
  return toHex(entropyOf(mnemonic));
}

function placeOf(account: unknown, branch: unknown, index: unknown): KeyPlace {
  const name = givenText(branch, 'branch');
  if (!Object.hasOwn(BRANCHES, name))
    throw new ModuleError('key_index', 'a branch is receive or change', { field: 'branch' });
  return {
    account: givenInteger(account, 'account', MAX_INDEX),
    branch: BRANCHES[name as keyof typeof BRANCHES],
    index: givenInteger(index, 'index', MAX_INDEX),
  };
}

const isConsensusKey = ({ branch, index }: KeyPlace): boolean =>
  branch === BRANCHES.receive && index >= FIRST_CONSENSUS_INDEX;

/** Handles are given by this file alone: nobody can make a root out of a number. */
const KEY_TO_THE_CONSTRUCTOR = Symbol('made by fromMnemonic, fromEntropy or openWalletFile');

export class WalletRoot {
  readonly network: NetworkName;
  #handle: number;

  constructor(key: symbol, handle: number, network: NetworkName) {
    if (key !== KEY_TO_THE_CONSTRUCTOR)
      throw new ModuleError('root_freed', 'a root is made by fromMnemonic, fromEntropy or openWalletFile');
    this.#handle = handle;
    this.network = network;
  }

  static fromMnemonic(mnemonic: string, passphrase: string, network: string): WalletRoot {
    const entropy = entropyOf(mnemonic);
    try {
      return rootOf(entropy, passphrase, givenNetwork(network));
    } finally {
      entropy.fill(0);
    }
  }

  static fromEntropy(entropy: string, passphrase: string, network: string): WalletRoot {
    const bytes = givenHex(entropy, 'entropy', ENTROPY_BYTES);
    try {
      return rootOf(bytes, passphrase, givenNetwork(network));
    } finally {
      bytes.fill(0);
    }
  }

  /** Also of what only looks like a root: a method may be called on anything. */
  static #rootIn(value: unknown): WalletRoot {
    if (typeof value === 'object' && value !== null && #handle in value) return value;
    throw new ModuleError('root_freed', 'this is no wallet root');
  }

  /** For the methods, and for the functions of this package that take a root. */
  static handleOf(value: unknown): number {
    const root = WalletRoot.#rootIn(value);
    if (root.#handle < 0) throw new ModuleError('root_freed', 'the wallet root was freed');
    return root.#handle;
  }

  /** 16 hex characters by which a person tells one wallet from another (module rule 1). It follows from a public key. */
  fingerprint(): string {
    const key = derivePublicKey(WalletRoot.handleOf(this), { account: 0, branch: BRANCHES.receive, index: 0 });
    return toHex(id(LABELS.walletFingerprint, key).subarray(0, FINGERPRINT_BYTES));
  }

  derivePublicKey(account: number | string, branch: string, index: number | string): string {
    return toHex(derivePublicKey(WalletRoot.handleOf(this), placeOf(account, branch, index)));
  }

  /** `spend`: true for the message of an input, false for that of a staking operation. A consensus key spends nothing. */
  sign(account: number | string, branch: string, index: number | string, message: string, spend: boolean): string {
    const place = placeOf(account, branch, index);
    const bytes = givenHex(message, 'message', ID_BYTES);
    if (givenFlag(spend, 'spend') && isConsensusKey(place))
      throw new ModuleError('key_index', 'this is a consensus key, and not the key of an address');
    return toHex(sign(WalletRoot.handleOf(this), place, bytes));
  }

  /** The proof that this wallet has the consensus key of an index, for the owner that registers it. */
  signPossession(account: number | string, index: number | string, ownerAddress: string, manifestJson: string): string {
    const handle = WalletRoot.handleOf(this);
    const place = placeOf(account, 'receive', index);
    if (!isConsensusKey(place))
      throw new ModuleError('key_index', `consensus keys have the indexes ${FIRST_CONSENSUS_INDEX} to ${MAX_INDEX}`);
    const { chainId, network } = readManifest(manifestJson);
    this.#sameNetwork(network);
    const owner = givenParsed(ownerAddress, 'owner', (text) => parseAddress(text, network).payload);
    const key = derivePublicKey(handle, place);
    return toHex(sign(handle, place, possessionMessage(chainId, owner, key)));
  }

  /** Answers a request with the key of its address (keys rules 9 to 12). */
  proveAddress(account: number | string, branch: string, index: number | string, requestJson: string): string {
    const handle = WalletRoot.handleOf(this);
    const place = placeOf(account, branch, index);
    const request = readRequest(requestJson);
    const key = derivePublicKey(handle, place);
    this.#isOwn(request, key);
    const signature = sign(handle, place, addressProofMessage(request));
    return written({
      version: PROOF_VERSION,
      address: request.address,
      challenge: request.challenge,
      public_key: toHex(key),
      signature: toHex(signature),
    });
  }

  /** 32 hex characters by which people compare the messenger key of an address of this wallet (messenger rule 3). */
  messengerId(address: string): string {
    return messenger.messengerId(WalletRoot.handleOf(this), this.network, address);
  }

  /** The payload that asks for a chat in the name of an address of this wallet, from which the transaction must spend. */
  messengerRequest(address: string): string {
    return messenger.messengerRequest(WalletRoot.handleOf(this), this.network, address);
  }

  /** The payload that accepts a request, as `messengerChats` shows it; the transaction must spend from the address that was asked. */
  messengerAccept(chatJson: string): string {
    return messenger.messengerAccept(WalletRoot.handleOf(this), this.network, chatJson);
  }

  /** The payload of a message. Anybody may pay for it, but one's own wallet shows as its own only what it paid for (messenger rule 8). */
  messengerMessage(chatJson: string, text: string, sentMillis: number | string): string {
    return messenger.messengerMessage(WalletRoot.handleOf(this), this.network, chatJson, text, sentMillis);
  }

  /** Every chat of these addresses of this wallet, from messenger transactions in any order. */
  messengerChats(entriesJson: string, addressesJson: string): string {
    return messenger.messengerChats(WalletRoot.handleOf(this), this.network, entriesJson, addressesJson);
  }

  #isOwn(request: AddressProofRequest, key: Bytes): void {
    const { payload } = inField('request', () => readProofRequest(request, this.network));
    if (formatAddress(keyAddressPayload(key), this.network) !== formatAddress(payload, this.network))
      throw new ModuleError('address_not_this_key', 'the request is for the address of another key');
  }

  #sameNetwork(network: NetworkName): void {
    if (network !== this.network)
      throw new ModuleError('wrong_network', `the wallet root is for ${this.network}, the manifest for ${network}`);
  }

  /** Overwrites the secrets. A second call does nothing. */
  free(): void {
    const root = WalletRoot.#rootIn(this);
    if (root.#handle < 0) return;
    freeRoot(root.#handle);
    root.#handle = -1;
  }

  [Symbol.dispose](): void {
    this.free();
  }
}

/** `entropy` undefined: the WebAssembly half has it already, from a wallet file. */
export function rootOf(entropy: Bytes | undefined, passphrase: unknown, network: NetworkName): WalletRoot {
  started();
  const handle = openRoot(entropy, givenText(passphrase, 'passphrase'), NETWORKS[network].id);
  return new WalletRoot(KEY_TO_THE_CONSTRUCTOR, handle, network);
}
