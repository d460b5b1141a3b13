/**
 * Keys of a validator from their files (runtime/files/validator-key-file.ts). Key and password file must be readable only by
 * their owner.
 */
import type { KeyObject } from 'node:crypto';
import { keyAddressPayload } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { CodedError } from '../../protocol/coded-error.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { privateText } from '../../runtime/files/private-file.ts';
import { type KeyPurpose, openValidatorSeed, passwordIn } from '../../runtime/files/validator-key-file.ts';
import { privateKeyOfSeed, rawPublicKey } from '../ml-dsa.ts';

export { type KeyPurpose, sealValidatorKey } from '../../runtime/files/validator-key-file.ts';

export const VALIDATOR_ERROR_CODES = [
  'validator_config',
  'validator_key_damaged',
  'validator_key_password',
  'validator_key_foreign',
  'validator_pow_light',
  'validator_pruned',
] as const;

export class ValidatorError extends CodedError<(typeof VALIDATOR_ERROR_CODES)[number]> {
  override readonly name = 'ValidatorError';
}

export type ValidatorKey = { readonly privateKey: KeyObject; readonly publicKey: Bytes; readonly address: Bytes };

export async function openValidatorKey(
  text: string,
  purpose: KeyPurpose,
  network: NetworkName,
  password: string,
): Promise<ValidatorKey> {
  const opened = await openValidatorSeed(text, purpose, network, password);
  if (opened.kind !== 'seed') throw new ValidatorError(`validator_key_${opened.kind}`, opened.reason);
  const privateKey = privateKeyOfSeed(opened.seed);
  opened.seed.fill(0);
  const publicKey = rawPublicKey(privateKey);
  return { privateKey, publicKey, address: keyAddressPayload(publicKey) };
}

/** Relative paths count from the directory that the node was started in. */
export async function loadValidatorKey(
  files: { readonly keyFile: string; readonly passwordFile: string },
  purpose: KeyPurpose,
  network: NetworkName,
): Promise<ValidatorKey> {
  const text = privateText(files.keyFile, 'validator key');
  const password = passwordIn(privateText(files.passwordFile, 'validator password'));
  return await openValidatorKey(text, purpose, network, password);
}
