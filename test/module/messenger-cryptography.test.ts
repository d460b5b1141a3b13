/**
 * ML-KEM-768 and XChaCha20-Poly1305 in WebAssembly against noble, node:crypto and the wallet: same keys, same ciphertexts and same boxes for random addresses, requests and
 * texts, and for ciphertexts with something changed, where ML-KEM gives a secret that nobody knows.
 */
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { ml_kem768 } from '@noble/post-quantum/ml-kem.js';
import { expect, test } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import { concat, fromHex, toHex } from '../../protocol/bytes.ts';
import type { Chat } from '../../protocol/messenger/chats.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { ChatKeys } from '../../wallet/messenger/chat-keys.ts';
import { open as openBox, seal as sealBox } from '../../wallet/messenger/xchacha.ts';
import { repeats, seed } from '../level.ts';
import { randomBytesOf } from '../random.ts';
import { startRaw } from './raw.ts';

const raw = startRaw();
const { calls } = raw;
const AT = { entropy: 0, passphrase: 64, request: 1024, addresses: 1088, secret: 2048, out: 4096, message: 8192 };
const [KEY, CIPHERTEXT, NONCE, TAG] = [1184, 1088, 24, 16];
const randomBytes = randomBytesOf(seed);
const random = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(randomBytes(length));

const entropy = random(32);
raw.put(AT.entropy, entropy);
const handle = calls.openRoot?.(AT.entropy, AT.passphrase, 0, AT.passphrase, 0, 4) as number;
const root = new WalletRoot(phraseOfEntropy(entropy), '', 'development');
const wallet = new ChatKeys(root);

const payload = (): Uint8Array<ArrayBuffer> => concat(Uint8Array.of(0), random(48));
const text = (address: Uint8Array): string => formatAddress(address, 'development');

function keyOf(address: Uint8Array): Uint8Array {
  raw.put(AT.addresses, address);
  calls.messengerKey?.(handle, AT.addresses, AT.out);
  return raw.get(AT.out, KEY);
}

function accept(request: Uint8Array, key: Uint8Array): Uint8Array | undefined {
  raw.put(AT.request, request);
  raw.put(AT.secret, key);
  return calls.messengerAccept?.(handle, AT.request, AT.secret, AT.out) === 1 ? raw.get(AT.out, CIPHERTEXT) : undefined;
}

function openChat(isRequester: boolean, request: Uint8Array, addresses: Uint8Array, secret: Uint8Array): boolean {
  raw.put(AT.request, request);
  raw.put(AT.addresses, addresses);
  raw.put(AT.secret, secret);
  return calls.openChat?.(handle, isRequester ? 1 : 0, AT.request, AT.addresses, AT.secret) === 1;
}

function seal(direction: number, nonce: Uint8Array, plain: Uint8Array): Uint8Array {
  raw.random = nonce;
  raw.put(AT.message + NONCE, plain);
  calls.sealMessage?.(direction, AT.message, plain.length);
  return raw.get(AT.message, NONCE + plain.length + TAG);
}

function open(direction: number, sealed: Uint8Array): Uint8Array | undefined {
  raw.put(AT.message, sealed);
  const length = sealed.length - NONCE - TAG;
  return calls.openMessage?.(direction, AT.message, length) === 1 ? raw.get(AT.message + NONCE, length) : undefined;
}

const chatOf = (
  role: Chat['role'],
  request: Uint8Array,
  [requester, accepter]: Uint8Array[],
  more: Partial<Chat>,
): Chat => ({
  request: toHex(request),
  height: 1,
  role,
  own: text((role === 'requester' ? requester : accepter) as Uint8Array),
  peer: text((role === 'requester' ? accepter : requester) as Uint8Array),
  keyHex: '',
  accept: null,
  ...more,
});

test('keys of addresses are those of noble and node:crypto', () => {
  for (let i = 0; i < repeats({ quick: 20, full: 150, deep: 10_000 }); i++) {
    const address = payload();
    const seed = root.labelled('SVC_MESSENGER_KEY_V1', address);
    const key = keyOf(address);
    expect(toHex(key)).toBe(toHex(ml_kem768.keygen(seed).publicKey));
    expect(toHex(key)).toBe(toHex(wallet.publicKey(text(address))));
  }
});

test('accepting: ciphertexts byte by byte as noble makes them, and both sides have the same keys', () => {
  for (let i = 0; i < repeats({ quick: 10, full: 100, deep: 10_000 }); i++) {
    const [requester, accepter, request] = [payload(), payload(), random(48)];
    const key = keyOf(requester);
    const ciphertext = accept(request, key) as Uint8Array;
    const chat = chatOf('accepter', request, [requester, accepter], { keyHex: toHex(key) });
    expect(toHex(ciphertext)).toBe(toHex(wallet.accept(chat)));
    const plain = random(i % 3 === 0 ? 1 + (i % 200) : 1 + (randomBytes(2).readUInt16LE() % 1990));
    const nonce = random(NONCE);
    expect(openChat(false, request, concat(requester, accepter), key)).toBe(true);
    const fromAccepter = seal(1, nonce, plain);
    expect(toHex(fromAccepter)).toBe(toHex(wallet.seal(chat, nonce, plain)));
    // The other side: this root has the requester's key too.
    const other = chatOf('requester', request, [requester, accepter], {
      accept: { transaction: '', height: 1, ciphertextHex: toHex(ciphertext) },
    });
    const second = new ChatKeys(root);
    expect(openChat(true, request, concat(requester, accepter), ciphertext)).toBe(true);
    expect(toHex(open(1, fromAccepter) as Uint8Array)).toBe(toHex(plain));
    expect(toHex(second.open(other, false, fromAccepter) as Uint8Array)).toBe(toHex(plain));
    expect(toHex(seal(0, nonce, plain))).toBe(toHex(second.seal(other, nonce, plain)));
    // The other direction, another chat, another bit.
    expect(open(0, fromAccepter)).toBeUndefined();
    const place = randomBytes(2).readUInt16LE() % fromAccepter.length;
    expect(
      open(
        1,
        fromAccepter.map((byte, at) => (at === place ? byte ^ (1 << (i % 8)) : byte)),
      ),
    ).toBeUndefined();
    expect(openChat(true, request, concat(accepter, requester), ciphertext)).toBe(true);
    expect(open(1, fromAccepter)).toBeUndefined();
  }
});

test('a ciphertext with something changed: the secret of implicit rejection, as noble and node:crypto have it', () => {
  for (let i = 0; i < repeats({ quick: 10, full: 150, deep: 10_000 }); i++) {
    const [requester, accepter, request] = [payload(), payload(), random(48)];
    const { publicKey, secretKey } = ml_kem768.keygen(root.labelled('SVC_MESSENGER_KEY_V1', requester));
    const { cipherText, sharedSecret } = ml_kem768.encapsulate(publicKey, random(32));
    const place = randomBytes(2).readUInt16LE() % CIPHERTEXT;
    const wrong =
      i % 10 === 0
        ? random(CIPHERTEXT)
        : i % 10 === 1
          ? new Uint8Array(CIPHERTEXT).fill(i % 20 === 1 ? 0 : 255)
          : cipherText.map((byte, at) => (at === place ? byte ^ (1 << (i % 8)) : byte));
    // Nothing else than noble's secret opens the box of the module.
    const rejected = ml_kem768.decapsulate(wrong, secretKey);
    expect(toHex(rejected)).not.toBe(toHex(sharedSecret));
    const [nonce, plain] = [random(NONCE), random(40)];
    const boxes = [cipherText, wrong].map((ciphertext) => {
      expect(openChat(true, request, concat(requester, accepter), ciphertext)).toBe(true);
      const sealed = seal(0, nonce, plain);
      const keys = new ChatKeys(root);
      const more = { accept: { transaction: '', height: 1, ciphertextHex: toHex(ciphertext) } };
      expect(toHex(sealed)).toBe(
        toHex(keys.seal(chatOf('requester', request, [requester, accepter], more), nonce, plain)),
      );
      return toHex(sealed);
    });
    expect(boxes[0]).not.toBe(boxes[1]);
  }
});

test('a key with a number of 3,329 or more is none; every other one is taken', () => {
  const key = keyOf(payload());
  for (let i = 0; i < 768; i += i < 8 ? 1 : 37) {
    const at = Math.floor(i / 2) * 3;
    for (const [number, sound] of [
      [3328, true],
      [3329, false],
      [4095, false],
    ] as const) {
      const wrong = new Uint8Array(key);
      if (i % 2 === 0) {
        wrong[at] = number & 255;
        wrong[at + 1] = ((wrong[at + 1] as number) & 0xf0) | (number >> 8);
      } else {
        wrong[at + 1] = ((wrong[at + 1] as number) & 0x0f) | ((number & 15) << 4);
        wrong[at + 2] = number >> 4;
      }
      expect(accept(random(48), wrong) !== undefined).toBe(sound);
      expect(openChat(false, random(48), concat(payload(), payload()), wrong)).toBe(sound);
    }
  }
});

test('XChaCha20-Poly1305: the example of the draft, and noble for texts of every length', () => {
  // draft-irtf-cfrg-xchacha-03, A.3.1.
  const key = Uint8Array.from({ length: 32 }, (_, i) => 0x80 + i);
  const nonce = fromHex('404142434445464748494a4b4c4d4e4f5051525354555657');
  const about = fromHex('50515253c0c1c2c3c4c5c6c7');
  const plain = new TextEncoder().encode(
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
  );
  const wanted =
    'bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452' +
    '2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49';
  expect(toHex(sealBox(key, nonce, about, plain))).toBe(wanted);
  for (let length = 0; length < 300; length++) {
    const [a, b, c, d] = [random(32), random(24), random(length % 40), random(length)];
    const sealed = sealBox(a, b, c, d);
    expect(toHex(sealed)).toBe(toHex(xchacha20poly1305(a, b, c).encrypt(d)));
    expect(openBox(a, b, c, sealed)).toEqual(d);
    const place = randomBytes(2).readUInt16LE() % sealed.length;
    expect(
      openBox(
        a,
        b,
        c,
        sealed.map((byte, at) => (at === place ? byte ^ 1 : byte)),
      ),
    ).toBeUndefined();
    expect(openBox(a, b, c, sealed.subarray(0, length))).toBeUndefined();
  }
});

test('the keys of a chat are gone when it is closed, and places outside the exchange buffer are refused', () => {
  openChat(true, random(48), concat(payload(), payload()), random(CIPHERTEXT));
  const box = seal(0, random(NONCE), random(10));
  calls.closeChat?.();
  expect(open(0, box)).toBeUndefined();
  const end = calls.exchangeBytes?.() as number;
  for (const work of [
    () => calls.sealMessage?.(0, end - 50, 11),
    () => calls.openMessage?.(0, 0, 0xffffffff),
    () => calls.messengerKey?.(handle, 0, end - 100),
    () => calls.messengerAccept?.(handle, 0, end - 100, 0),
    () => calls.openChat?.(handle, 1, 0, 0, end - 100),
    () => calls.openChat?.(31, 1, 0, 0, 0),
  ])
    expect(work).toThrow(WebAssembly.RuntimeError);
});
