/**
 * The file of a validator's key (specification: Validator configuration): the seed of an ML-DSA-65 key, sealed under a password from a file of its own. The wallet writes it,
 * the node reads it.
 */
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { readBox, SealedBoxError } from '../../protocol/crypto/sealed-box.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { openBox, sealBox } from './sealed-box.ts';

/** The purpose of a key: votes, or the fees of heartbeats. One is not accepted as the other. */
export type KeyPurpose = 'consensus' | 'heartbeat-fee';

const FORMAT = 'svc-validator-key';
const VERSION = 1;
const SEED = /^[0-9a-f]{64}$/;

const namesOf = (purpose: KeyPurpose, network: NetworkName) => [FORMAT, VERSION, purpose, network];

export async function sealValidatorKey(
  seed: Bytes,
  purpose: KeyPurpose,
  network: NetworkName,
  password: string,
  log2N?: number,
): Promise<string> {
  const box = await sealBox(namesOf(purpose, network), toHex(seed), password, log2N);
  return `${JSON.stringify({ format: FORMAT, version: VERSION, purpose, network, ...box }, null, 2)}\n`;
}

export type OpenedSeed =
  | { readonly kind: 'seed'; readonly seed: Uint8Array<ArrayBuffer> }
  /** `foreign`: a valid file of another purpose or network. */
  | { readonly kind: 'damaged' | 'password' | 'foreign'; readonly reason: string };

/** Never throws because of the file's contents. */
export async function openValidatorSeed(
  text: string,
  purpose: KeyPurpose,
  network: NetworkName,
  password: string,
): Promise<OpenedSeed> {
  let file: Record<string, unknown>;
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    return { kind: 'damaged', reason: 'the key file is not JSON' };
  }
  if (file === null || typeof file !== 'object' || file.format !== FORMAT)
    return { kind: 'damaged', reason: 'this is not a key file of a validator' };
  if (file.version !== VERSION) {
    const found = `the key file has version ${String(file.version)}, and this release reads ${VERSION}`;
    return { kind: 'damaged', reason: `${found}: use a newer release` };
  }
  if (file.purpose !== purpose || file.network !== network) {
    const found = `for ${String(file.purpose)} on ${String(file.network)}`;
    return { kind: 'foreign', reason: `the key file is ${found}, not for ${purpose} on ${network}` };
  }
  try {
    const seed = await openBox(namesOf(purpose, network), readBox(file), password);
    if (!SEED.test(seed)) throw new SealedBoxError('damaged', 'the seed');
    return { kind: 'seed', seed: fromHex(seed) };
  } catch (error) {
    if (!(error instanceof SealedBoxError)) throw error;
    return error.kind === 'damaged'
      ? { kind: 'damaged', reason: `the key file is damaged: ${error.message}` }
      : { kind: 'password', reason: 'wrong password, or the key file was changed' };
  }
}

/** The password is the first line of its file. */
export const passwordIn = (text: string): string => text.split(/\r?\n/, 1)[0] as string;
