/**
 * A secret in a file, sealed with AES-256-GCM under a key that scrypt makes from a password (protocol/crypto/sealed-box.ts has its form). Wallets and keys of
 * validators are kept in it.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { authenticatedText, SCRYPT_LOG2_N, type SealedBox, SealedBoxError } from '../../protocol/crypto/sealed-box.ts';

function stretch(password: string, { salt, log2_n: log2N, r, p }: SealedBox['kdf']): Promise<Buffer> {
  const N = 2 ** log2N;
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), Buffer.from(salt, 'hex'), 32, { N, r, p, maxmem: 256 * N * r }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

/** `names` say what the file is: they are authenticated, and stored beside the box. */
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
  cipher.setAAD(Buffer.from(authenticatedText(names, head)));
  const box = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  key.fill(0);
  return { ...head, box: box.toString('hex') };
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
  decipher.setAAD(Buffer.from(authenticatedText(names, sealed)));
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
