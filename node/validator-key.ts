/**
 * Keys of a validator in files (specification: Validator configuration): the seed of an ML-DSA-65 key, sealed under a password that stands in a file of its own. Both files may be read by
 * their owner alone.
 */
import type { KeyObject } from 'node:crypto';
import { keyAddressPayload } from '../protocol/address.ts';
import { type Bytes, fromHex, toHex } from '../protocol/bytes.ts';
import { CodedError } from '../protocol/coded-error.ts';
import type { NetworkName } from '../protocol/network.ts';
import { privateText } from '../runtime/private-file.ts';
import { openBox, readBox, SealedBoxError, sealBox } from '../runtime/sealed-box.ts';
import { privateKeyOfSeed, rawPublicKey } from './ml-dsa.ts';

export const VALIDATOR_ERROR_CODES = [
  'validator_config',
  'validator_key_damaged',
  'validator_key_password',
  'validator_key_foreign',
  'validator_pow_light',
] as const;

export class ValidatorError extends CodedError<(typeof VALIDATOR_ERROR_CODES)[number]> {
  override readonly name = 'ValidatorError';
}

/** What a key signs with: votes, or the fees of heartbeats. One is not taken for the other. */
export type KeyPurpose = 'consensus' | 'heartbeat-fee';

export type ValidatorKey = { readonly privateKey: KeyObject; readonly publicKey: Bytes; readonly address: Bytes };

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

export async function openValidatorKey(
  text: string,
  purpose: KeyPurpose,
  network: NetworkName,
  password: string,
): Promise<ValidatorKey> {
  let file: Record<string, unknown>;
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    throw new ValidatorError('validator_key_damaged', 'the key file is not JSON');
  }
  if (file === null || typeof file !== 'object' || file.format !== FORMAT || file.version !== VERSION)
    throw new ValidatorError('validator_key_damaged', 'this is not a key file of a validator that this release reads');
  if (file.purpose !== purpose || file.network !== network)
    throw new ValidatorError(
      'validator_key_foreign',
      `the key file is for ${String(file.purpose)} on ${String(file.network)}, not for ${purpose} on ${network}`,
    );
  try {
    const seed = await openBox(namesOf(purpose, network), readBox(file), password);
    if (!SEED.test(seed)) throw new SealedBoxError('damaged', 'the seed');
    const privateKey = privateKeyOfSeed(fromHex(seed));
    const publicKey = rawPublicKey(privateKey);
    return { privateKey, publicKey, address: keyAddressPayload(publicKey) };
  } catch (error) {
    if (!(error instanceof SealedBoxError)) throw error;
    if (error.kind === 'damaged')
      throw new ValidatorError('validator_key_damaged', `the key file is damaged: ${error.message}`);
    throw new ValidatorError('validator_key_password', 'wrong password, or the key file was changed');
  }
}

/** The password is the first line of its file. Relative paths count from the directory that the node was started in. */
export async function loadValidatorKey(
  files: { readonly keyFile: string; readonly passwordFile: string },
  purpose: KeyPurpose,
  network: NetworkName,
): Promise<ValidatorKey> {
  const text = privateText(files.keyFile, 'validator key');
  const password = privateText(files.passwordFile, 'validator password').split(/\r?\n/, 1)[0] as string;
  return await openValidatorKey(text, purpose, network, password);
}
