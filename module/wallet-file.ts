/** The wallet's own file (docs/wallet.md, Wallet file), sealed and opened here: either program reads what the other wrote. */
import { fromHex, toHex, utf8 } from '../protocol/bytes.ts';
import { authenticatedText, SCRYPT_LOG2_N, type SealedBox, SealedBoxError } from '../protocol/crypto/sealed-box.ts';
import { readWalletFileText, walletFileNames, walletFileText } from '../protocol/crypto/wallet-file.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { givenInteger, givenText } from './given.ts';
import { ModuleError } from './module-error.ts';
import { rootOf, WalletRoot } from './wallet-root.ts';
import { openSealed, sealRoot } from './wasm.ts';

/** 256 MiB: more than a page can count on is refused before any work. */
const MAX_LOG2_N = 18;
const MIN_LOG2_N = 10;
const MAX_FILE = 64 * 1024;
const MAX_BOX = 16 * 1024;
const MAX_SALT = 64;

/** The text of a wallet file. Takes about a second and 128 MiB: in a page, call it from a worker. */
export function sealWalletFile(root: WalletRoot, password: string, log2N: number | string = SCRYPT_LOG2_N): string {
  const handle = WalletRoot.handleOf(root);
  const cost = givenInteger(log2N, 'log2N', MAX_LOG2_N);
  if (cost < MIN_LOG2_N) throw new ModuleError('file_cost', `the cost of scrypt is 2^${MIN_LOG2_N} to 2^${MAX_LOG2_N}`);
  if (password === '')
    throw new ProtocolError('out_of_range', 'password must not be empty: it would protect nothing', {
      field: 'password',
    });
  const salt = crypto.getRandomValues(new Uint8Array(16));
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  const head = {
    kdf: { name: 'scrypt', log2_n: cost, r: 8, p: 1, salt: toHex(salt) },
    cipher: { name: 'aes-256-gcm', nonce: toHex(nonce) },
  } as const;
  const more = utf8(authenticatedText(walletFileNames(root.network), head));
  const box = sealRoot(handle, givenText(password, 'password'), { salt, nonce, log2N: cost, more });
  return walletFileText(root.network, { ...head, box: toHex(box) });
}

function readText(text: unknown): ReturnType<typeof readWalletFileText> {
  try {
    return readWalletFileText(givenText(text, 'file', MAX_FILE));
  } catch (error) {
    if (!(error instanceof SealedBoxError)) throw error;
    throw new ModuleError('file_damaged', `not a wallet file: ${error.message}`);
  }
}

const isTooLong = ({ kdf, box }: SealedBox): boolean => kdf.salt.length > 2 * MAX_SALT || box.length > 2 * MAX_BOX;

/** The root of the wallet in the file. It must be freed after use. */
export function openWalletFile(text: string, password: string): WalletRoot {
  const file = readText(text);
  const { kdf, cipher, box, network } = file;
  if (kdf.log2_n > MAX_LOG2_N)
    throw new ModuleError(
      'file_cost',
      `the file asks for scrypt with N = 2^${kdf.log2_n}; at most 2^${MAX_LOG2_N} is done here`,
    );
  if (isTooLong(file)) throw new ModuleError('file_damaged', 'not a wallet file: a part is too long');
  const opened = openSealed(fromHex(box), givenText(password, 'password'), {
    salt: fromHex(kdf.salt),
    nonce: fromHex(cipher.nonce),
    log2N: kdf.log2_n,
    more: utf8(authenticatedText(walletFileNames(network), file)),
  });
  if (opened.kind === 'password')
    throw new ModuleError('file_password', 'wrong password, or the wallet file was changed');
  if (opened.kind !== 'opened') throw new ModuleError('file_damaged', 'not a wallet file: something else is sealed');
  return rootOf(undefined, opened.passphrase, network);
}
