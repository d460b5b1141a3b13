/**
 * The form of a sealed secret in a file (docs/wallet.md, Wallet file): AES-256-GCM under a key that scrypt makes from a
 * password. The file is readable JSON; everything in it outside the box is authenticated too.
 */

/** 128 MiB and about half a second for each guess. */
export const SCRYPT_LOG2_N = 17;
const MAX_SCRYPT_LOG2_N = 20;
const HEX = /^([0-9a-f]{2})+$/;

export type SealedBox = {
  readonly kdf: {
    readonly name: 'scrypt';
    readonly log2_n: number;
    readonly r: 8;
    readonly p: 1;
    readonly salt: string;
  };
  readonly cipher: { readonly name: 'aes-256-gcm'; readonly nonce: string };
  readonly box: string;
};

/** `damaged`: the file has another form. `password`: it has this form, and the password or a byte is wrong. */
export class SealedBoxError extends Error {
  override readonly name = 'SealedBoxError';
  readonly kind: 'damaged' | 'password';

  constructor(kind: 'damaged' | 'password', message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The names of the file and the figures of the box in a fixed order, whatever their order in the file. */
export const authenticatedText = (
  names: readonly (string | number)[],
  { kdf, cipher }: Omit<SealedBox, 'box'>,
): string => JSON.stringify([...names, kdf.name, kdf.log2_n, kdf.r, kdf.p, kdf.salt, cipher.name, cipher.nonce]);

/** Throws a SealedBoxError. */
export function readBox({ kdf, cipher, box }: { readonly [K in keyof SealedBox]?: unknown }): SealedBox {
  const damaged = (why: string) => new SealedBoxError('damaged', why);
  const { name, log2_n: log2N, r, p, salt } = (kdf ?? {}) as Record<string, unknown>;
  const { name: cipherName, nonce } = (cipher ?? {}) as Record<string, unknown>;
  if (name !== 'scrypt' || r !== 8 || p !== 1 || cipherName !== 'aes-256-gcm') throw damaged('another cipher');
  if (typeof log2N !== 'number' || !Number.isInteger(log2N) || log2N < 10 || log2N > MAX_SCRYPT_LOG2_N)
    throw damaged('the cost of scrypt is out of range');
  if (typeof salt !== 'string' || !HEX.test(salt) || typeof nonce !== 'string' || !/^[0-9a-f]{24}$/.test(nonce))
    throw damaged('salt or nonce');
  if (typeof box !== 'string' || !HEX.test(box) || box.length < 2 * 17) throw damaged('the sealed part');
  return { kdf: { name, log2_n: log2N, r, p, salt }, cipher: { name: cipherName, nonce }, box };
}
