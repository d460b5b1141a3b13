/**
 * The wallet file (docs/wallet.md, Wallet file): the entropy and passphrase, sealed with AES-256-GCM under a key that
 * scrypt makes from the password. JSON, so that a person can see what it is; everything but the box is authenticated too.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { toHex } from '../../protocol/bytes.ts';
import { NETWORK_NAMES, type NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/durable-file.ts';
import { WalletError } from '../wallet-error.ts';
import { ENTROPY_BYTES } from './phrase.ts';
import { PRIVATE_MODE, readPrivateFile } from './private-file.ts';

export type WalletSecrets = { readonly entropy: Uint8Array; readonly passphrase: string };

/** 128 MiB and about half a second for each guess. */
export const SCRYPT_LOG2_N = 17;
const MAX_SCRYPT_LOG2_N = 20;
const FORMAT = 'svc-wallet';
const HEX = /^([0-9a-f]{2})+$/;

type Header = {
  readonly format: typeof FORMAT;
  readonly version: 1;
  readonly network: NetworkName;
  readonly kdf: {
    readonly name: 'scrypt';
    readonly log2_n: number;
    readonly r: 8;
    readonly p: 1;
    readonly salt: string;
  };
  readonly cipher: { readonly name: 'aes-256-gcm'; readonly nonce: string };
};

function stretch(password: string, { salt, log2_n: log2N, r, p }: Header['kdf']): Promise<Buffer> {
  const N = 2 ** log2N;
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), Buffer.from(salt, 'hex'), 32, { N, r, p, maxmem: 256 * N * r }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

/** The header as it is authenticated: its fields in the order of this type, whatever the order in the file. */
const headerBytes = ({ format, version, network, kdf, cipher }: Header): Buffer =>
  Buffer.from(
    JSON.stringify([format, version, network, kdf.name, kdf.log2_n, kdf.r, kdf.p, kdf.salt, cipher.name, cipher.nonce]),
  );

export async function sealWalletFile(
  secrets: WalletSecrets,
  network: NetworkName,
  password: string,
  log2N: number = SCRYPT_LOG2_N,
): Promise<string> {
  const header: Header = {
    format: FORMAT,
    version: 1,
    network,
    kdf: { name: 'scrypt', log2_n: log2N, r: 8, p: 1, salt: randomBytes(16).toString('hex') },
    cipher: { name: 'aes-256-gcm', nonce: randomBytes(12).toString('hex') },
  };
  const key = await stretch(password, header.kdf);
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.from(header.cipher.nonce, 'hex'));
  cipher.setAAD(headerBytes(header));
  const plain = JSON.stringify({ entropy: toHex(secrets.entropy), passphrase: secrets.passphrase });
  const box = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  key.fill(0);
  return `${JSON.stringify({ ...header, box: box.toString('hex') }, null, 2)}\n`;
}

function readHeader(text: string): { header: Header; box: Buffer } {
  const damaged = (why: string) => new WalletError('file_damaged', `not a wallet file: ${why}`);
  let file: Partial<Header> & { box?: unknown };
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    throw damaged('no JSON');
  }
  if (file === null || typeof file !== 'object' || file.format !== FORMAT) throw damaged('another format');
  if (file.version !== 1) throw damaged(`version ${String(file.version)} is not known to this release`);
  const { kdf, cipher, network, box } = file;
  const { log2_n: log2N, salt } = kdf ?? {};
  if (kdf?.name !== 'scrypt' || kdf.r !== 8 || kdf.p !== 1 || cipher?.name !== 'aes-256-gcm')
    throw damaged('another cipher');
  if (!Number.isInteger(log2N) || (log2N as number) < 10 || (log2N as number) > MAX_SCRYPT_LOG2_N)
    throw damaged('the cost of scrypt is out of range');
  if (network === undefined || !NETWORK_NAMES.includes(network)) throw damaged('no such network');
  if (
    typeof salt !== 'string' ||
    !HEX.test(salt) ||
    typeof cipher.nonce !== 'string' ||
    !/^[0-9a-f]{24}$/.test(cipher.nonce)
  )
    throw damaged('salt or nonce');
  if (typeof box !== 'string' || !HEX.test(box) || box.length < 2 * 17) throw damaged('the sealed part');
  return { header: { format: FORMAT, version: 1, network, kdf, cipher }, box: Buffer.from(box, 'hex') };
}

export async function openWalletFile(
  text: string,
  password: string,
): Promise<{ secrets: WalletSecrets; network: NetworkName }> {
  const { header, box } = readHeader(text);
  const key = await stretch(password, header.kdf);
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(header.cipher.nonce, 'hex'));
  key.fill(0);
  decipher.setAAD(headerBytes(header));
  decipher.setAuthTag(box.subarray(box.length - 16));
  let plain: Buffer;
  try {
    plain = Buffer.concat([decipher.update(box.subarray(0, box.length - 16)), decipher.final()]);
  } catch {
    throw new WalletError('file_password', 'wrong password, or the wallet file was changed');
  }
  const { entropy, passphrase } = JSON.parse(plain.toString('utf8')) as { entropy: string; passphrase: string };
  plain.fill(0);
  const bytes = new Uint8Array(Buffer.from(entropy, 'hex'));
  if (bytes.length !== ENTROPY_BYTES) throw new WalletError('file_damaged', 'not a wallet file: the entropy');
  return { secrets: { entropy: bytes, passphrase }, network: header.network };
}

export function readWalletFile(path: string): string {
  const text = readPrivateFile(path, 'file_readable_by_others');
  if (text === undefined)
    throw new WalletError('file_missing', `there is no wallet ${path}: create one with svc-wallet init`, { path });
  return text;
}

export const writeWalletFile = (path: string, text: string): Promise<void> => writeDurably(path, text, PRIVATE_MODE);
