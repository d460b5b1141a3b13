/**
 * Staking (docs/wallet.md, Staking): what stake, unstake and withdraw do on the current chain, and every refusal that
 * is possible before a key is used. The transaction itself is a payment like any other (outgoing.ts).
 */
import { parseAddress } from '../../protocol/address.ts';
import { formatCoins } from '../../protocol/amount.ts';
import type { StakingPosition } from '../../protocol/api/staking-documents.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { MIN_DELEGATION, UNBONDING_EPOCHS } from '../../protocol/staking/limits.ts';
import { ownersOf, positionsOf, readValidator, readValidators, type ValidatorState } from '../chain/staking-reads.ts';
import { changeAddress } from '../state/address-book.ts';
import type { OperationRecord } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { refuseUsedKey } from './consensus-key.ts';
import { recordOf, type StakingDependencies } from './operation-record.ts';
import { type RegisterWish, Registration } from './registration.ts';
import { ValidatorChanges } from './validator-changes.ts';

export type StakeWish = {
  readonly validator: string;
  readonly amount: bigint;
  readonly rewardAddress: string | undefined;
  /** Refuse in any other epoch: commission and state of a validator change with it. */
  readonly epoch: number | undefined;
};

export type UnstakeWish = {
  readonly position: string;
  /** Undefined is all of it. */
  readonly amount: bigint | undefined;
};

export class Staking {
  /** Changes by the owner of a validator. */
  readonly changes: ValidatorChanges;
  readonly #with: StakingDependencies;

  constructor(dependencies: StakingDependencies) {
    this.#with = dependencies;
    this.changes = new ValidatorChanges(dependencies);
  }

  validators(state: ValidatorState | undefined) {
    return readValidators(this.#with.client, state);
  }

  positions() {
    return positionsOf(this.#with.client, ownersOf(this.#with.book));
  }

  /** Checks that the validator accepts stake, and returns its terms. */
  async #validator(id: string, epoch: number | undefined) {
    const found = await readValidator(this.#with.client, id);
    if (found === undefined)
      throw new WalletError('validator_unknown', 'no validator has this identifier: see validators', {
        field: 'validator',
      });
    const { state } = found.validator;
    if (state === 'exiting' || state === 'slashed')
      throw new WalletError('validator_inactive', `the validator is ${state} and takes no stake: choose another one`, {
        validator: id,
        state,
      });
    if (epoch !== undefined && epoch !== found.epoch)
      throw new WalletError(
        'epoch_changed',
        `epoch ${found.epoch} has begun since the quote of epoch ${epoch}: look at the validator again`,
        { epoch: found.epoch, commission_bps: found.validator.commission_bps, state },
      );
    return found;
  }

  /** Terms of a stake, shown before the question. */
  async terms(validator: string) {
    const { epoch, validator: found } = await this.#validator(validator, undefined);
    return {
      epoch,
      validator_state: found.state,
      commission_bps: found.commission_bps,
      pending_commission: found.pending_commission,
    };
  }

  /**
   * The owner is the change address: it is never handed out, so returned stake is never taken for a customer's payment.
   */
  async stake({ validator, amount, rewardAddress, epoch }: StakeWish): Promise<OperationRecord> {
    if (amount < MIN_DELEGATION)
      throw new WalletError('stake_below_minimum', `at least ${formatCoins(MIN_DELEGATION)} coins are staked`, {
        field: 'amount',
        minimum: formatCoins(MIN_DELEGATION),
      });
    await this.#validator(validator, epoch);
    const owner = changeAddress(this.#with.book);
    const operation = {
      name: 'bond',
      validator: fromHex(validator),
      owner: this.#payload(owner),
      rewardAddress: this.#payload(rewardAddress ?? owner),
      amount,
    } as const;
    const terms = { rewardAddress: rewardAddress ?? owner, ...(epoch === undefined ? {} : { epoch }) };
    return recordOf(operation, { kind: 'stake', owner, validator, position: null, amount, terms });
  }

  /**
   * Cuts have passed since an operation was prepared (merging.ts): conditions that may have changed are checked again.
   */
  async recheck({ kind, validator, terms }: OperationRecord): Promise<void> {
    if (kind === 'stake') await this.#validator(validator, terms?.epoch);
    if (kind !== 'validator_register' || terms?.consensusKeyIndex === undefined) return;
    const { publicKey } = this.#with.keyring.key({ branch: 'receive', index: terms.consensusKeyIndex });
    await refuseUsedKey(publicKey, terms.consensusKeyIndex, this.#with);
  }

  async #position(id: string): Promise<StakingPosition> {
    const { positions } = await this.positions();
    const found = positions.find(({ position_id }) => position_id === id);
    if (found !== undefined) return found;
    throw new WalletError('position_unknown', 'this wallet has no such position: see positions', { field: 'position' });
  }

  async unstake({ position: id, amount: asked }: UnstakeWish): Promise<OperationRecord> {
    const position = await this.#position(id);
    if (position.kind === 'self_bond') throw refusedSelfBond(position);
    if (position.state === 'unbonding')
      throw new WalletError(
        'position_unbonding',
        `the position unbonds already: it can be withdrawn from cut ${position.release_height} on`,
        { release_height: position.release_height },
      );
    const principal = BigInt(position.principal);
    // A given amount is always a part: a node that reports it as the whole must not cause all of the position to
    // unbond.
    const splits = asked !== undefined;
    const amount = asked ?? principal;
    if (splits && (amount < MIN_DELEGATION || principal - amount < MIN_DELEGATION))
      throw new WalletError(
        'unstake_amount',
        `leave the amount out to take all of ${formatCoins(principal)} coins, or take a part so that both have at least ${formatCoins(MIN_DELEGATION)}`,
        { field: 'amount', principal: formatCoins(principal), minimum: formatCoins(MIN_DELEGATION) },
      );
    // All of it is written as 0: were the position slashed meanwhile, all that is left would unbond.
    const operation = { name: 'unbond', position: fromHex(id), amount: splits ? amount : 0n } as const;
    return recordOf(operation, { kind: 'unstake', ...about(position), amount, splits });
  }

  async withdraw(id: string): Promise<OperationRecord> {
    const position = await this.#position(id);
    const { state, principal, release_height, withdrawable } = position;
    if (state === 'bonded' && position.kind === 'self_bond') throw refusedSelfBond(position);
    if (state === 'bonded')
      throw new WalletError('position_bonded', 'the position is bonded: unstake it first, then wait for its release');
    if (principal === '0') throw new WalletError('position_empty', 'all of the position was burned');
    if (!withdrawable)
      throw new WalletError(
        'position_locked',
        `the position can be withdrawn from cut ${release_height} on, unless its validator is being slashed`,
        { release_height },
      );
    const operation = { name: 'withdraw', position: fromHex(id) } as const;
    return recordOf(operation, { kind: 'withdraw', ...about(position), amount: BigInt(principal) });
  }

  registration(wish: RegisterWish): Registration {
    return new Registration(wish, this.#with);
  }

  async redirect(id: string, to: string): Promise<OperationRecord> {
    const position = await this.#position(id);
    const operation = { name: 'reward_address', position: fromHex(id), address: this.#payload(to) } as const;
    return recordOf(operation, {
      kind: 'reward_address',
      ...about(position),
      amount: 0n,
      terms: { rewardAddress: to },
    });
  }

  #payload(address: string) {
    return parseAddress(address, this.#with.network).payload;
  }
}

const refusedSelfBond = ({ validator }: StakingPosition) =>
  new WalletError(
    'position_self_bond',
    `a self-bond is released by the exit of its validator alone: svc-wallet validator-exit --validator ${validator}, and withdraw ${UNBONDING_EPOCHS} epochs later`,
    { validator },
  );

const about = ({ owner_address, validator, position_id }: StakingPosition) => ({
  owner: owner_address,
  validator,
  position: position_id,
});
