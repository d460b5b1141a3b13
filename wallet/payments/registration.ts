/**
 * The registration of a validator (docs/wallet.md, Staking; ledger rule 63): its consensus key comes from the wallet's words, and proves by a
 * signature that this owner has it. Everything that can be refused is refused before that key signs.
 */
import { parseAddress } from '../../protocol/address.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { SIGNATURE_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { MIN_SELF_BOND } from '../../protocol/staking/limits.ts';
import { possessionMessage, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { checkCommission, type Register } from '../../protocol/staking/operation.ts';
import { type SigningKey, signMessage } from '../keys/signing.ts';
import { changeAddress } from '../state/address-book.ts';
import type { OperationRecord } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { checkKeyIndex, protocolField, refuseUsedKey } from './consensus-key.ts';
import { recordOf, type StakingDependencies } from './operation-record.ts';
import { readEndpoint } from './overlay-endpoint.ts';

export type RegisterWish = {
  readonly amount: bigint;
  readonly commissionBps: number;
  readonly endpointHex: string;
  readonly rewardAddress: string;
  readonly consensusKeyIndex: number;
};

/** Checks that need no chain. Returns the endpoint. */
export function checkTerms(wish: Omit<RegisterWish, 'rewardAddress'>): Bytes {
  if (wish.amount < MIN_SELF_BOND)
    throw new WalletError('stake_below_minimum', `a validator bonds at least ${formatCoins(MIN_SELF_BOND)} coins`, {
      field: 'amount',
      minimum: formatCoins(MIN_SELF_BOND),
    });
  protocolField('commission_bps', 'commission_invalid', () => checkCommission(wish.commissionBps));
  checkKeyIndex(wish.consensusKeyIndex);
  return readEndpoint(wish.endpointHex);
}

export class Registration {
  readonly #with: StakingDependencies;
  readonly #wish: RegisterWish;
  readonly #key: SigningKey;
  readonly #operation: Register;

  /** Runs the checks that need no chain. */
  constructor(wish: RegisterWish, dependencies: StakingDependencies) {
    const { keyring, book, network } = dependencies;
    const { amount, commissionBps, consensusKeyIndex: index } = wish;
    const endpoint = checkTerms(wish);
    this.#with = dependencies;
    this.#wish = wish;
    this.#key = keyring.key({ branch: 'receive', index });
    const payload = (address: string): Bytes => parseAddress(address, network).payload;
    this.#operation = {
      name: 'register',
      consensusKey: this.#key.publicKey,
      possession: new Uint8Array(SIGNATURE_BYTES),
      owner: payload(changeAddress(book)),
      rewardAddress: payload(wish.rewardAddress),
      amount,
      commission: commissionBps,
      endpoint,
    };
  }

  get validator(): string {
    return toHex(validatorId(this.#key.publicKey));
  }

  /** The position of the self-bond. */
  get position(): string {
    return toHex(selfBondId(validatorId(this.#key.publicKey)));
  }

  async prepare(): Promise<OperationRecord> {
    await refuseUsedKey(this.#key.publicKey, this.#wish.consensusKeyIndex, this.#with);
    return this.#record(this.#operation);
  }

  /** Signs for the possession of the consensus key. */
  async complete(): Promise<OperationRecord> {
    const chainId = fromHex(this.#with.book.meta.chainId as string);
    const message = possessionMessage(chainId, this.#operation.owner, this.#key.publicKey);
    return this.#record({ ...this.#operation, possession: await signMessage(this.#key, message) });
  }

  #record(operation: Register): OperationRecord {
    const { validator, position } = this;
    const owner = changeAddress(this.#with.book);
    const { amount, commissionBps, rewardAddress, consensusKeyIndex } = this.#wish;
    const terms = { commissionBps, rewardAddress, consensusKeyIndex };
    return recordOf(operation, { kind: 'validator_register', owner, validator, position, amount, terms });
  }
}
