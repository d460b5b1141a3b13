/** Methods of the group Staking. Those that move money are harmless to repeat with the same `request_id`. */

import { formatCoins } from '../../protocol/amount.ts';
import { flag, integer, object, oneOf, optional, text } from '../../protocol/api/schema.ts';
import { VALIDATOR_STATES } from '../../protocol/api/staking-documents.ts';
import { MAX_ENDPOINT_BYTES } from '../../protocol/staking/endpoint.ts';
import { DEFAULT_COMMISSION } from '../../protocol/staking/limits.ts';
import { CONSENSUS_KEY_INDEXES } from '../keys/derivation.ts';
import type { OperationOrder } from '../payments/outgoing.ts';
import type { AddressRecord } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { quoted, sendResult } from './documents.ts';
import {
  type Answer,
  addressField,
  amountField,
  method,
  readAmount,
  readRewardAddress,
  requestIdField,
  wish,
} from './method.ts';
import { positionDocument, validatorDocument } from './staking-documents.ts';

export const idField = text({ pattern: '^[0-9a-f]{96}$', description: '96 hex characters' });
/** An invalid endpoint is refused with a remedy (overlay-endpoint.ts), which a pattern here would not give. */
export const endpointField = text({
  maxLength: 4 * MAX_ENDPOINT_BYTES,
  description: 'what svcd validator-endpoint prints',
});
export const terms = { request_id: requestIdField, dry_run: optional(flag('only say what it would do and cost')) };

export async function operate(wallet: Wallet, order: OperationOrder, dryRun: boolean): Promise<Answer> {
  if (!dryRun) return sendResult(await wallet.outgoing.operate(order));
  const quote = await wallet.outgoing.quoteOperation(order);
  return quoted(order, quote);
}

/** The wallet's first address, marked as used: otherwise `new-address` could hand it out, and rewards would go to another customer. */
async function firstAddress(wallet: Wallet, keep: boolean): Promise<string> {
  const first = wallet.book.branches.receive[0] as AddressRecord;
  if (keep && !first.given) {
    const record = { ...first, given: true, label: 'validator rewards', createdMillis: wallet.now() };
    await wallet.journal.commit({ addresses: [record] }, true);
  }
  return first.address;
}

const total = (amounts: readonly string[]): string => formatCoins(amounts.reduce((sum, one) => sum + BigInt(one), 0n));

export const stakingMethods = {
  validators: method(
    'Staking',
    'Validators and their state, most stake first',
    object({ state: optional(oneOf(VALIDATOR_STATES)) }),
    async (wallet, { state }) => {
      const { validators, epoch, interval_cuts, finalized_height } = await wallet.staking.validators(state);
      return { validators: validators.map(validatorDocument), epoch, interval_cuts, finalized_height };
    },
  ),
  positions: method('Staking', 'Stake that this wallet owns, bonded and unbonding', object({}), async (wallet) => {
    const { positions, finalizedHeight } = await wallet.staking.positions();
    const sum = (wanted: (one: (typeof positions)[number]) => boolean) =>
      total(positions.filter(wanted).map(({ principal }) => principal));
    return {
      positions: positions.map((one) => positionDocument(one, wallet.book.open.values())),
      bonded: sum(({ state }) => state === 'bonded'),
      unbonding: sum(({ state }) => state === 'unbonding'),
      withdrawable: sum(({ withdrawable }) => withdrawable),
      finalized_height: finalizedHeight,
    };
  }),
  stake: method(
    'Staking',
    'Bonds an amount to a validator; a new position',
    object({
      validator: idField,
      amount: amountField,
      ...terms,
      reward_address: optional(addressField),
      compound_first: optional(flag('merge outputs first when the stake needs more than 8')),
      epoch: optional(integer({ minimum: 0, description: 'refuse in any other epoch than the one of the quote' })),
    }),
    async (wallet, params) => {
      const { validator, reward_address: rewardAddress, epoch, request_id: requestId } = params;
      const amount = readAmount(params.amount, 'amount');
      if (rewardAddress !== undefined) readRewardAddress(wallet, rewardAddress, 'reward_address');
      const result = await operate(
        wallet,
        {
          requestId,
          kind: 'stake',
          position: undefined,
          compoundFirst: params.compound_first === true,
          params: wish(params),
          prepare: () => wallet.staking.stake({ validator, amount, rewardAddress, epoch }),
        },
        params.dry_run === true,
      );
      return result.submitted === false ? { ...result, ...(await wallet.staking.terms(validator)) } : result;
    },
  ),
  unstake: method(
    'Staking',
    'Unbonds a delegation or a part of it; it can be withdrawn ten days later',
    object({ position: idField, amount: optional(amountField), ...terms }),
    (wallet, params) => {
      const { position, request_id: requestId } = params;
      const amount = params.amount === undefined ? undefined : readAmount(params.amount, 'amount');
      const prepare = () => wallet.staking.unstake({ position, amount });
      return operate(
        wallet,
        { requestId, kind: 'unstake', position, compoundFirst: false, params: wish(params), prepare },
        params.dry_run === true,
      );
    },
  ),
  withdraw: method(
    'Staking',
    'Pays a position that is released back to this wallet',
    object({ position: idField, ...terms }),
    (wallet, params) => {
      const { position, request_id: requestId } = params;
      const prepare = () => wallet.staking.withdraw(position);
      return operate(
        wallet,
        { requestId, kind: 'withdraw', position, compoundFirst: false, params: wish(params), prepare },
        params.dry_run === true,
      );
    },
  ),
  validator_register: method(
    'Staking',
    'Registers a validator with a self-bond (beyond the specification: its command calls it)',
    object({
      amount: amountField,
      overlay_endpoint_hex: endpointField,
      ...terms,
      commission_bps: optional(integer({ minimum: 0, default: DEFAULT_COMMISSION })),
      reward_address: optional(addressField),
      consensus_key_index: optional(integer({ minimum: 0, default: CONSENSUS_KEY_INDEXES.last })),
      compound_first: optional(flag('merge outputs first when the bond needs more than 8')),
    }),
    async (wallet, params) => {
      const { commission_bps: commissionBps = DEFAULT_COMMISSION, reward_address: given, dry_run: dryRun } = params;
      const { consensus_key_index: consensusKeyIndex = CONSENSUS_KEY_INDEXES.last } = params;
      const amount = readAmount(params.amount, 'amount');
      const rewardAddress =
        given === undefined
          ? await firstAddress(wallet, dryRun !== true)
          : readRewardAddress(wallet, given, 'reward_address');
      const endpointHex = params.overlay_endpoint_hex;
      const registration = wallet.staking.registration({
        amount,
        commissionBps,
        endpointHex,
        rewardAddress,
        consensusKeyIndex,
      });
      return await operate(
        wallet,
        {
          requestId: params.request_id,
          kind: 'validator_register',
          position: registration.position,
          compoundFirst: params.compound_first === true,
          params: wish(params),
          prepare: () => registration.prepare(),
          complete: () => registration.complete(),
        },
        dryRun === true,
      );
    },
  ),
  reward_address: method(
    'Staking',
    'Sends the rewards of a position elsewhere (beyond the specification: its command calls it)',
    object({ position: idField, to: addressField, ...terms }),
    (wallet, params) => {
      const { position, request_id: requestId } = params;
      const to = readRewardAddress(wallet, params.to, 'to');
      const prepare = () => wallet.staking.redirect(position, to);
      return operate(
        wallet,
        { requestId, kind: 'reward_address', position, compoundFirst: false, params: wish(params), prepare },
        params.dry_run === true,
      );
    },
  ),
};
