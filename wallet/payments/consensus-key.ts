/** Checks of a consensus key for registrations and changes: its index, and that no validator has it. */
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { readValidators } from '../chain/staking-reads.ts';
import { CONSENSUS_KEY_INDEXES } from '../keys/derivation.ts';
import { WalletError, type WalletErrorCode } from '../wallet-error.ts';
import type { StakingDependencies } from './operation-record.ts';

/** Turns a protocol error of a field into a refusal with the field's name. */
export function protocolField<T>(field: string, code: WalletErrorCode, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError(code, error.message, { field, reason: error.code });
  }
}

export function checkKeyIndex(index: number): void {
  const { first, last } = CONSENSUS_KEY_INDEXES;
  if (index < first || index > last)
    throw new WalletError('key_index_invalid', `a consensus key has an index from ${first} to ${last}`, {
      field: 'consensus_key_index',
    });
}

/** A key is used by one validator, once. Only the node knows former keys, and refuses them. */
export async function refuseUsedKey(
  publicKey: Bytes,
  index: number,
  { client, network }: Pick<StakingDependencies, 'client' | 'network'>,
): Promise<void> {
  const { validators } = await readValidators(client, undefined);
  const address = formatAddress(keyAddressPayload(publicKey), network);
  const id = toHex(validatorId(publicKey));
  for (const one of validators)
    if (one.validator_id === id || one.consensus_key_address === address)
      throw new WalletError(
        'consensus_key_used',
        `validator ${one.validator_id} has or had the key of index ${index}: choose another index`,
        { field: 'consensus_key_index', validator: one.validator_id },
      );
}
