/**
 * A secret in a file, sealed with AES-256-GCM under a key that scrypt makes from a password. The file is JSON, so that a person can see what it is; everything in it but the box is
 * authenticated too. Wallets and keys of validators are kept in it.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';

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

function stretch(password: string, { salt, log2_n: log2N, r, p }: SealedBox['kdf']): Promise<Buffer> {
  const N = 2 ** log2N;
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), Buffer.from(salt, 'hex'), 32, { N, r, p, maxmem: 256 * N * r }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

/** The names of the file and the figures of the box in a fixed order, whatever their order in the file. */
const authenticated = (names: readonly (string | number)[], { kdf, cipher }: Omit<SealedBox, 'box'>): Buffer =>
  Buffer.from(JSON.stringify([...names, kdf.name, kdf.log2_n, kdf.r, kdf.p, kdf.salt, cipher.name, cipher.nonce]));

/** `names` say what the file is: they are authenticated, and stand in it beside the box. */
export async function sealBox(
  names: readonly (string | number)[],
  plain: string,
  password: string,
  log2N: number = SCRYPT_LOG2_N,
): Promise<SealedBox> {
  const head = {
    kdf: { name: 'scrypt', log2_n: log2N, r: 8, p: 1, salt: randomBytes(16).toString('hex') },
    cipher: { name: 'aes-256-gcm', nonce: randomBytes(12).toString('hex') },
  } as const;
  const key = await stretch(password, head.kdf);
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.from(head.cipher.nonce, 'hex'));
  cipher.setAAD(authenticated(names, head));
  const box = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  key.fill(0);
  return { ...head, box: box.toString('hex') };
}

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

export async function openBox(
  names: readonly (string | number)[],
  sealed: SealedBox,
  password: string,
): Promise<string> {
  const key = await stretch(password, sealed.kdf);
  const box = Buffer.from(sealed.box, 'hex');
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.cipher.nonce, 'hex'));
  key.fill(0);
  decipher.setAAD(authenticated(names, sealed));
  decipher.setAuthTag(box.subarray(box.length - 16));
  try {
    const plain = Buffer.concat([decipher.update(box.subarray(0, box.length - 16)), decipher.final()]);
    const text = plain.toString('utf8');
    plain.fill(0);
    return text;
  } catch {
    throw new SealedBoxError('password', 'wrong password, or the file was changed');
  }
}
