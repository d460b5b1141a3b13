/**
 * The wallet file (docs/wallet.md, Wallet file): the entropy and passphrase, sealed with AES-256-GCM under a key that
 * scrypt makes from the password. JSON, so that a person can see what it is; everything but the box is authenticated too.
 */
import { toHex } from '../../protocol/bytes.ts';
import { SealedBoxError } from '../../protocol/crypto/sealed-box.ts';
import { readWalletFileText, walletFileNames, walletFileText } from '../../protocol/crypto/wallet-file.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { openBox, sealBox } from '../../runtime/files/sealed-box.ts';
import { WalletError } from '../wallet-error.ts';
import { ENTROPY_BYTES } from './phrase.ts';
import { PRIVATE_MODE, readPrivateFile } from './private-file.ts';

export { SCRYPT_LOG2_N } from '../../protocol/crypto/sealed-box.ts';

export type WalletSecrets = { readonly entropy: Uint8Array; readonly passphrase: string };

export async function sealWalletFile(
  secrets: WalletSecrets,
  network: NetworkName,
  password: string,
  log2N?: number,
): Promise<string> {
  const plain = JSON.stringify({ entropy: toHex(secrets.entropy), passphrase: secrets.passphrase });
  return walletFileText(network, await sealBox(walletFileNames(network), plain, password, log2N));
}

const damaged = (why: string) => new WalletError('file_damaged', `not a wallet file: ${why}`);

export async function openWalletFile(
  text: string,
  password: string,
): Promise<{ secrets: WalletSecrets; network: NetworkName }> {
  let plain: string;
  let network: NetworkName;
  try {
    const file = readWalletFileText(text);
    network = file.network;
    plain = await openBox(walletFileNames(network), file, password);
  } catch (error) {
    if (!(error instanceof SealedBoxError)) throw error;
    if (error.kind === 'damaged') throw damaged(error.message);
    throw new WalletError('file_password', 'wrong password, or the wallet file was changed');
  }
  const { entropy, passphrase } = JSON.parse(plain) as { entropy: string; passphrase: string };
  const bytes = new Uint8Array(Buffer.from(entropy, 'hex'));
  if (bytes.length !== ENTROPY_BYTES) throw damaged('the entropy');
  return { secrets: { entropy: bytes, passphrase }, network };
}

export function readWalletFile(path: string): string {
  const text = readPrivateFile(path, 'file_readable_by_others');
  if (text === undefined)
    throw new WalletError('file_missing', `there is no wallet ${path}: create one with svc-wallet init`, { path });
  return text;
}

export const writeWalletFile = (path: string, text: string): Promise<void> => writeDurably(path, text, PRIVATE_MODE);
