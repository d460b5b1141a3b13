/**
 * The WebAssembly half: starting it, and its calls with bytes instead of places in memory. Secrets go into its memory and are overwritten there; what comes
 * out is public.
 */
import { sha384 as portableSha384 } from '@noble/hashes/sha2.js';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { type Bytes, concat, utf8 } from '../protocol/bytes.ts';
import { useSha384 } from '../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../protocol/crypto/key-sizes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { ModuleError } from './module-error.ts';

type Exports = {
  readonly memory: WebAssembly.Memory;
  exchange(): number;
  exchangeBytes(): number;
  words(): number;
  sha384(offset: number, length: number, out: number): void;
  verify(key: number, message: number, length: number, signature: number): number;
  openRoot(
    entropy: number,
    text: number,
    length: number,
    normal: number,
    normalLength: number,
    network: number,
  ): number;
  freeRoot(handle: number): void;
  derivePublicKey(handle: number, account: number, branch: number, index: number, out: number): void;
  sign(
    handle: number,
    account: number,
    branch: number,
    index: number,
    message: number,
    length: number,
    out: number,
  ): void;
  passphraseAt(handle: number): number;
  passphraseLength(handle: number): number;
  sealRoot(
    handle: number,
    key: number,
    nonce: number,
    more: number,
    moreLength: number,
    text: number,
    length: number,
    out: number,
  ): number;
  openSealed(
    key: number,
    nonce: number,
    more: number,
    moreLength: number,
    box: number,
    length: number,
    entropy: number,
  ): number;
  scrypt(password: number, length: number, salt: number, saltLength: number, log2N: number, out: number): number;
  messengerKey(handle: number, address: number, out: number): void;
  messengerAccept(handle: number, request: number, key: number, out: number): number;
  openChat(handle: number, isRequester: number, request: number, addresses: number, secret: number): number;
  closeChat(): void;
  sealMessage(direction: number, nonce: number, length: number): void;
  openMessage(direction: number, nonce: number, length: number): number;
};

/** Where things stand in the exchange buffer. Nothing here is longer than its place: the callers check. */
const AT = {
  key: 0,
  signature: 2048,
  entropy: 6144,
  nonce: 6208,
  digest: 6272,
  more: 6400,
  passphrase: 8192,
  normal: 12_288,
  message: 20_480,
};
const MAX_PASSPHRASE = 1024;
/** NFKD makes at most 18 characters of one; the place for it has 8 KiB. */
const MAX_NORMAL = 8192;
const MAX_PASSWORD = 4096;
const MAX_MESSAGE = 65_536;
const SALT_AT = MAX_PASSWORD;
const STRETCHED_AT = 2 * MAX_PASSWORD;

let compiled: WebAssembly.Module | undefined;
let running: Exports | undefined;

function instantiate(module: WebAssembly.Module): Exports {
  let memory: WebAssembly.Memory | undefined;
  const random = (at: number, length: number): void => {
    crypto.getRandomValues(new Uint8Array((memory as WebAssembly.Memory).buffer, at, length));
  };
  const exports = new WebAssembly.Instance(module, { env: { random } }).exports as unknown as Exports;
  memory = exports.memory;
  return exports;
}

/** Once; later calls change nothing, so that roots that are open stay good. */
export function startWith(module: WebAssembly.Module): void {
  if (running !== undefined) return;
  const exports = instantiate(module);
  const list = new Uint8Array(exports.memory.buffer, exports.words(), 8 * wordlist.length);
  for (const [i, word] of wordlist.entries()) list.set(utf8(word), 8 * i);
  compiled = module;
  running = exports;
  const hash = (bytes: Bytes): Uint8Array<ArrayBuffer> => {
    if (bytes.length > MAX_MESSAGE) return portableSha384(bytes);
    exchange().set(bytes, AT.message);
    exports.sha384(AT.message, bytes.length, AT.digest);
    return exchange().slice(AT.digest, AT.digest + 48);
  };
  useSha384(hash, (head, rest) => hash(concat(head, rest)));
}

export const isStarted = (): boolean => running !== undefined;

export function started(): Exports {
  if (running === undefined) throw new ModuleError('module_not_started', 'call init() and wait for it first');
  return running;
}

const exchangeOf = (exports: Exports): Uint8Array<ArrayBuffer> =>
  new Uint8Array(exports.memory.buffer as ArrayBuffer, exports.exchange(), exports.exchangeBytes());
export const exchange = (): Uint8Array<ArrayBuffer> => exchangeOf(started());

export function verifySignature(publicKey: Bytes, message: Bytes, signature: Bytes): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signature.length !== SIGNATURE_BYTES || message.length > MAX_MESSAGE)
    return false;
  const buffer = exchange();
  buffer.set(publicKey, AT.key);
  buffer.set(signature, AT.signature);
  buffer.set(message, AT.message);
  return started().verify(AT.key, AT.message, message.length, AT.signature) === 1;
}

/** `entropy` undefined: it is in the exchange buffer already, from `openSealed`. */
export function openRoot(entropy: Bytes | undefined, passphrase: string, network: number): number {
  const exports = started();
  const buffer = exchange();
  const text = utf8(passphrase);
  const normal = utf8(passphrase.normalize('NFKD'));
  if (text.length > MAX_PASSPHRASE || normal.length > MAX_NORMAL) {
    forgetEntropy();
    text.fill(0);
    normal.fill(0);
    throw new ProtocolError(
      'too_long',
      `a passphrase has at most ${MAX_PASSPHRASE} bytes, and ${MAX_NORMAL} in its normal form (NFKD)`,
    );
  }
  if (entropy !== undefined) buffer.set(entropy, AT.entropy);
  buffer.set(text, AT.passphrase);
  buffer.set(normal, AT.normal);
  const handle = exports.openRoot(AT.entropy, AT.passphrase, text.length, AT.normal, normal.length, network);
  text.fill(0);
  normal.fill(0);
  if (handle < 0) throw new ModuleError('roots_exhausted', '32 wallet roots are open: free one');
  return handle;
}

export const freeRoot = (handle: number): void => started().freeRoot(handle);

export type KeyPlace = { readonly account: number; readonly branch: number; readonly index: number };

export function derivePublicKey(handle: number, { account, branch, index }: KeyPlace): Uint8Array<ArrayBuffer> {
  started().derivePublicKey(handle, account, branch, index, AT.key);
  return exchange().slice(AT.key, AT.key + PUBLIC_KEY_BYTES);
}

export function sign(handle: number, { account, branch, index }: KeyPlace, message: Bytes): Uint8Array<ArrayBuffer> {
  exchange().set(message, AT.message);
  started().sign(handle, account, branch, index, AT.message, message.length, AT.signature);
  return exchange().slice(AT.signature, AT.signature + SIGNATURE_BYTES);
}

/** The key that scrypt makes goes from the memory of its instance to the other's without becoming a value here. */
function stretchInto(password: string, salt: Bytes, log2N: number): void {
  const buffer = exchange();
  const own = instantiate(compiled as WebAssembly.Module);
  const bytes = utf8(password.normalize('NFKC'));
  try {
    if (bytes.length > MAX_PASSWORD)
      throw new ProtocolError('too_long', `a password has at most ${MAX_PASSWORD} bytes`);
    const place = exchangeOf(own);
    place.set(bytes, 0);
    place.set(salt, SALT_AT);
    if (own.scrypt(0, bytes.length, SALT_AT, salt.length, log2N, STRETCHED_AT) === 0)
      throw new ModuleError(
        'module_memory',
        `scrypt needs ${2 ** (log2N - 10)} MiB of memory, and there is not as much`,
      );
    buffer.set(exchangeOf(own).subarray(STRETCHED_AT, STRETCHED_AT + 32), AT.key);
  } finally {
    bytes.fill(0);
    exchangeOf(own).fill(0);
  }
}

export type BoxHead = { readonly salt: Bytes; readonly log2N: number; readonly nonce: Bytes; readonly more: Bytes };

/** The entropy and passphrase of a root, sealed; with the tag. */
export function sealRoot(
  handle: number,
  password: string,
  { salt, log2N, nonce, more }: BoxHead,
): Uint8Array<ArrayBuffer> {
  const exports = started();
  const at = exports.passphraseAt(handle);
  const passphrase = new Uint8Array(exports.memory.buffer, at, exports.passphraseLength(handle));
  const text = utf8(JSON.stringify(new TextDecoder('utf-8', { ignoreBOM: true }).decode(passphrase)));
  try {
    stretchInto(password, salt, log2N);
    const buffer = exchange();
    buffer.set(nonce, AT.nonce);
    buffer.set(more, AT.more);
    buffer.set(text, AT.normal);
    const length = exports.sealRoot(handle, AT.key, AT.nonce, AT.more, more.length, AT.normal, text.length, AT.message);
    return exchange().slice(AT.message, AT.message + length);
  } finally {
    text.fill(0);
  }
}

export type Opened =
  | { readonly kind: 'opened'; readonly passphrase: string }
  | { readonly kind: 'password' | 'damaged' };

/** On success the entropy is in the exchange buffer, for `openRoot`. */
export function openSealed(box: Bytes, password: string, { salt, log2N, nonce, more }: BoxHead): Opened {
  stretchInto(password, salt, log2N);
  const buffer = exchange();
  buffer.set(nonce, AT.nonce);
  buffer.set(more, AT.more);
  buffer.set(box, AT.message);
  const length = started().openSealed(AT.key, AT.nonce, AT.more, more.length, AT.message, box.length, AT.entropy);
  if (length < 0) return { kind: length === -1 ? 'password' : 'damaged' };
  const text = exchange().subarray(AT.message, AT.message + length);
  let passphrase: unknown;
  try {
    passphrase = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text));
  } catch {
    passphrase = undefined;
  }
  text.fill(0);
  if (typeof passphrase === 'string' && passphrase.isWellFormed() && utf8(passphrase).length <= MAX_PASSPHRASE)
    return { kind: 'opened', passphrase };
  forgetEntropy();
  return { kind: 'damaged' };
}

export const forgetEntropy = (): void => void exchange().fill(0, AT.entropy, AT.entropy + 32);
