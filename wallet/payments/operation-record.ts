/** A staking operation as stored by the wallet, and the inputs for making one. */
import { toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { bondedBy, encodeOperation, type StakingOperation } from '../../protocol/staking/operation.ts';
import type { StakingClient } from '../chain/staking-reads.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Book } from '../state/book.ts';
import type { OperationRecord, OperationTerms } from '../state/records.ts';

export type StakingDependencies = {
  readonly client: StakingClient;
  readonly book: Book;
  readonly keyring: Keyring;
  readonly network: NetworkName;
};

type About = Pick<OperationRecord, 'kind' | 'owner' | 'validator' | 'position' | 'amount'> & {
  splits?: boolean;
  terms?: OperationTerms;
};

export function recordOf(operation: StakingOperation, about: About): OperationRecord {
  const { type, data } = encodeOperation(operation);
  return { splits: false, ...about, type, dataHex: toHex(data), bonded: bondedBy(operation) };
}
