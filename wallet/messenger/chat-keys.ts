/**
 * The secrets of the messenger (messenger rules 2 to 7): keys of addresses, the encapsulation that accepts a request,
 * and the two keys of a chat, one a direction. ML-KEM-768 with a given coin uses noble, because node:crypto draws its
 * own; private keys are used only with node:crypto.
 */
import { createHash, createHmac, createPrivateKey, createPublicKey, decapsulate, type KeyObject } from 'node:crypto';
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import { parseAddress } from '../../protocol/address.ts';
import { type Bytes, concat, fromHex, utf8 } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { type Chat, chatName } from '../../protocol/messenger/chats.ts';
import { MESSENGER_KEY_BYTES, MESSENGER_NONCE_BYTES } from '../../protocol/messenger/payload.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { WalletRoot } from '../keys/derivation.ts';
import { open, seal } from './xchacha.ts';

const KEY_LABEL = 'SVC_MESSENGER_KEY_V1';
const COIN_LABEL = 'SVC_MESSENGER_COIN_V1';
const CHAT_LABEL = 'SVC_MESSENGER_CHAT_V1';
/** PKCS#8 of a bare ML-KEM-768 seed. */
const SEED_PREFIX = fromHex('3054020100300b060960864801650304040204428040');
/** Chats whose keys are cached: others are derived again when needed. */
const KEPT_CHATS = 256;

const hmac = (key: Bytes, data: Bytes): Uint8Array => new Uint8Array(createHmac('sha512', key).update(data).digest());

type Keys = { readonly fromRequester: Bytes; readonly fromAccepter: Bytes };

function overwrite({ fromRequester, fromAccepter }: Keys): void {
  fromRequester.fill(0);
  fromAccepter.fill(0);
}

export class ChatKeys {
  readonly #root: WalletRoot;
  readonly #kept = new BoundedMap<string, Keys>(KEPT_CHATS);

  constructor(root: WalletRoot) {
    this.#root = root;
  }

  #payload(address: string): Bytes {
    return parseAddress(address, this.#root.network).payload;
  }

  #privateKey(address: string): KeyObject {
    const seed = this.#root.labelled(KEY_LABEL, this.#payload(address));
    const der = concat(SEED_PREFIX, seed);
    seed.fill(0);
    const key = createPrivateKey({ key: Buffer.from(der.buffer), format: 'der', type: 'pkcs8' });
    der.fill(0);
    return key;
  }

  /** The key in a request from this address. */
  publicKey(address: string): Uint8Array<ArrayBuffer> {
    const spki = createPublicKey(this.#privateKey(address)).export({ format: 'der', type: 'spki' });
    return new Uint8Array(spki.subarray(spki.length - MESSENGER_KEY_BYTES));
  }

  #coin({ request, keyHex }: Chat): Bytes {
    const data = concat(fromHex(request), id(LABELS.messengerId, fromHex(keyHex)));
    return this.#root.labelled(COIN_LABEL, data).subarray(0, 32);
  }

  /** The answer that accepts a request: deterministic, so that the chat can be restored from the words alone. */
  accept(chat: Chat): Uint8Array<ArrayBuffer> {
    return new Uint8Array(ml_kem768.encapsulate(fromHex(chat.keyHex), this.#coin(chat)).cipherText);
  }

  #shared(chat: Chat): Bytes {
    if (chat.role === 'requester')
      return decapsulate(this.#privateKey(chat.own), Buffer.from(chat.accept?.ciphertextHex ?? '', 'hex'));
    const digest = createHash('sha3-256').update(fromHex(chat.keyHex)).digest();
    return createHash('sha3-512').update(this.#coin(chat)).update(digest).digest().subarray(0, 32);
  }

  #keys(chat: Chat): Keys {
    const known = this.#kept.use(chat.request);
    if (known !== undefined) return known;
    const pseudorandom = hmac(utf8(CHAT_LABEL), this.#shared(chat));
    const [requester, accepter] = chat.role === 'requester' ? [chat.own, chat.peer] : [chat.peer, chat.own];
    const info = concat(fromHex(chat.request), this.#payload(requester), this.#payload(accepter));
    // HKDF: the number of the direction, then that of the block.
    const key = (direction: number) => hmac(pseudorandom, concat(info, Uint8Array.of(direction, 1))).subarray(0, 32);
    const keys = { fromRequester: key(0), fromAccepter: key(1) };
    pseudorandom.fill(0);
    this.#keep(chat.request, keys);
    return keys;
  }

  /** The oldest are overwritten, not only dropped. */
  #keep(request: string, keys: Keys): void {
    if (this.#kept.size >= KEPT_CHATS) {
      const [oldest] = this.#kept;
      if (oldest !== undefined) {
        this.#kept.delete(oldest[0]);
        overwrite(oldest[1]);
      }
    }
    this.#kept.set(request, keys);
  }

  #keyAndAbout(chat: Chat, isOwn: boolean): { readonly key: Bytes; readonly about: Bytes } {
    const { fromRequester, fromAccepter } = this.#keys(chat);
    const key = (chat.role === 'requester') === isOwn ? fromRequester : fromAccepter;
    const [author, reader] = isOwn ? [chat.own, chat.peer] : [chat.peer, chat.own];
    const head = concat(Uint8Array.of(2, 3), fromHex(chatName(chat.request)));
    return { key, about: concat(head, this.#payload(author), this.#payload(reader)) };
  }

  /** A message of this wallet: nonce, ciphertext, tag. */
  seal(chat: Chat, nonce: Bytes, plain: Bytes): Uint8Array<ArrayBuffer> {
    const { key, about } = this.#keyAndAbout(chat, true);
    return concat(nonce, seal(key, nonce, about, plain));
  }

  open(chat: Chat, isOwn: boolean, sealed: Bytes): Uint8Array<ArrayBuffer> | undefined {
    const { key, about } = this.#keyAndAbout(chat, isOwn);
    return open(key, sealed.subarray(0, MESSENGER_NONCE_BYTES), about, sealed.subarray(MESSENGER_NONCE_BYTES));
  }

  close(): void {
    for (const keys of this.#kept.values()) overwrite(keys);
    this.#kept.clear();
  }
}
