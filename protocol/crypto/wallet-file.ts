/**
 * The wallet file without its secret (docs/wallet.md, Wallet file): its header fields and the sealed box. Sealing and
 * opening are done by the program.
 */
import { NETWORK_NAMES, type NetworkName } from '../network.ts';
import { readBox, type SealedBox, SealedBoxError } from './sealed-box.ts';

const FORMAT = 'svc-wallet';
const VERSION = 1;

/** What is authenticated beside the figures of the box. */
export const walletFileNames = (network: NetworkName): readonly (string | number)[] => [FORMAT, VERSION, network];

export const walletFileText = (network: NetworkName, box: SealedBox): string =>
  `${JSON.stringify({ format: FORMAT, version: VERSION, network, ...box }, null, 2)}\n`;

/** Throws a SealedBoxError. */
export function readWalletFileText(text: string): SealedBox & { readonly network: NetworkName } {
  const damaged = (why: string) => new SealedBoxError('damaged', why);
  let file: Record<string, unknown>;
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    throw damaged('no JSON');
  }
  if (file === null || typeof file !== 'object' || file.format !== FORMAT) throw damaged('another format');
  if (file.version !== VERSION)
    throw damaged(`its version is ${String(file.version)}, and this release reads ${VERSION}: use a newer release`);
  const box = readBox(file);
  const network = NETWORK_NAMES.find((name) => name === file.network);
  if (network === undefined) throw damaged('no such network');
  return { network, ...box };
}
