/** Routes about stake: positions, validators, and what an amount may earn (ledger rules 60 to 69). */

import { ADDRESS_PAYLOAD_BYTES, keyAddressPayload } from '../../protocol/address.ts';
import type { StakingPosition, ValidatorDocument } from '../../protocol/api/documents.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { ID_BYTES, id, idFromHex } from '../../protocol/crypto/identifier.ts';
import { splitHalves } from '../../protocol/ledger/emission.ts';
import { selfBondId } from '../../protocol/staking/names.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import type { Chain, Staking } from '../full-node.ts';
import { type Position, releaseOf } from '../ledger/staking/position.ts';
import { sweepReached } from '../ledger/staking/slashing.ts';
import { asOf, isActive, type Validator } from '../ledger/staking/validator.ts';
import { memberIndex, stateOf } from '../validator/validator-state.ts';
import { addressText, cursorPlace, ownerPlace } from './address-routes.ts';
import { type ApiContext, type Handlers, readAddresses } from './api-context.ts';
import { refusal } from './api-error.ts';
import { makeCursor } from './cursor.ts';

/** Rows read, of all states, for a page of one state. */
const VALIDATORS_LOOKED_AT = 256;

function positionDocument(context: ApiContext, staking: Staking, position: Position): StakingPosition {
  const validator = staking.validator(position.validator) as Validator;
  const release = releaseOf(position, validator, staking.intervalCuts);
  const next = context.node.chain.head().height + 1;
  const withdrawable =
    release !== undefined && release <= next && position.principal > 0n && sweepReached(staking.stake.sweeps, position);
  return {
    position_id: nativeHex(position.id),
    kind: position.kind,
    validator: nativeHex(position.validator),
    owner_address: addressText(context, position.owner),
    reward_address: addressText(context, position.rewardAddress),
    principal: position.principal.toString(),
    state: release === undefined ? 'bonded' : 'unbonding',
    release_height: release ?? null,
    withdrawable,
  };
}

function validatorDocument(context: ApiContext, staking: Staking, record: Validator): ValidatorDocument {
  const validator = asOf(record, staking.epoch);
  const member = memberIndex(staking, validator.id);
  const own = staking.position(selfBondId(validator.id));
  const selfBond = own?.principal ?? 0n;
  const { nextCommission, nextEndpoint, nextKey } = validator;
  return {
    validator_id: nativeHex(validator.id),
    owner_address: addressText(context, validator.owner),
    reward_address: own === undefined ? null : addressText(context, own.rewardAddress),
    state: stateOf(staking, validator),
    committee: member >= 0,
    stake: validator.stake.toString(),
    self_bond: selfBond.toString(),
    delegated: (isActive(validator) ? validator.stake - selfBond : 0n).toString(),
    delegations: staking.delegationCount(validator.id),
    commission_bps: validator.commission,
    pending_commission:
      nextCommission === undefined ? null : { commission_bps: nextCommission.value, epoch: nextCommission.epoch },
    consensus_key_address: addressText(context, keyAddressPayload(validator.key)),
    pending_consensus_key_epoch: nextKey?.epoch ?? null,
    endpoint: nativeHex(validator.endpoint),
    pending_endpoint:
      nextEndpoint === undefined ? null : { endpoint: nativeHex(nextEndpoint.value), epoch: nextEndpoint.epoch },
    heartbeat_epoch: validator.heartbeatEpoch,
    seat_from_epoch: validator.seatFrom,
    jailed_until_epoch: validator.jailedUntil > staking.epoch ? validator.jailedUntil : null,
    attended_windows: member < 0 ? null : (staking.stake.attendance.windows[member] as number),
    exit_height: validator.exitHeight || null,
    slash_height: validator.slashHeight || null,
  };
}

const headOf = (context: ApiContext, staking: Staking) => ({
  api_version: 1 as const,
  finalized_height: context.node.chain.head().height,
  epoch: staking.epoch,
  interval_cuts: staking.intervalCuts,
  validator_set_id: nativeHex(staking.stake.committee.setId),
});

const TRIES = 20;
const RETRY_MILLIS = 1_000;

/** The result of reads at one cut, which is the head when this resolves. If the head moves meanwhile, everything is read again. */
async function ofOneCut<T>(chain: Pick<Chain, 'head'>, read: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { height } = chain.head();
    const value = await read();
    if (chain.head().height === height) return value;
  }
  throw refusal('too_busy', 'cuts come faster than this can be read; try again', {}, RETRY_MILLIS);
}

export const stakingRoutes: Pick<
  Handlers,
  'stakingEstimate' | 'stakingPositions' | 'stakingValidators' | 'stakingValidator'
> = {
  stakingEstimate(context, { query }) {
    const amount = BigInt(query.amount);
    const { stake, intervalCuts } = context.node.chain.staking();
    const { height, bonded } = context.node.chain.supply();
    const cuts = (height + 1) % intervalCuts;
    const pool =
      cuts === 0
        ? splitHalves(context.node.chain.emission().state.amount).stake
        : (stake.pool * BigInt(intervalCuts)) / BigInt(cuts);
    let sharing = 0n;
    for (const { earning } of stake.committee.members) sharing += earning;
    // The amount is part of the total stake: without its own weight the estimate would be too high.
    const reward = amount === 0n ? 0n : (pool * amount) / (sharing + amount);
    return {
      api_version: 1,
      finalized_height: height,
      amount: query.amount,
      total_bonded: bonded.toString(),
      sharing_stake: sharing.toString(),
      pool_per_day: pool.toString(),
      reward_per_day: reward.toString(),
    };
  },

  async stakingPositions(context, { body }) {
    const { node } = context;
    const owners = readAddresses(context, body.addresses).map(({ payload }) => payload);
    const limit = body.limit ?? 256;
    const scope = `positions ${toHex(id('SVC_API_CURSOR_V1', Buffer.concat(owners)))}`;
    const place = cursorPlace(scope, body.cursor, ADDRESS_PAYLOAD_BYTES + ID_BYTES);
    const from = ownerPlace(owners, place?.subarray(0, ADDRESS_PAYLOAD_BYTES));
    const found = await ofOneCut(node.chain, async () => {
      const read: Position[] = [];
      // One owner after the other, so that a request does not read 64 pages at once.
      for (let i = from; i < owners.length && read.length <= limit; i++) {
        const after = i === from ? place?.subarray(ADDRESS_PAYLOAD_BYTES) : undefined;
        read.push(...(await node.chain.positionsOf(owners[i] as Bytes, { after, limit: limit + 1 - read.length })));
      }
      return read;
    });
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const staking = node.chain.staking();
    return {
      api_version: 1,
      finalized_height: node.chain.head().height,
      positions: page.map((position) => positionDocument(context, staking, position)),
      next_cursor: found.length > limit && last ? makeCursor(scope, Buffer.concat([last.owner, last.id])) : undefined,
    };
  },

  async stakingValidators(context, { query }) {
    const limit = query.limit ?? 64;
    const scope = `validators ${query.state ?? 'all'}`;
    const after = cursorPlace(scope, query.cursor, ID_BYTES);
    // Anybody with the bond can register, so the number of validators is unbounded.
    const read = query.state === undefined ? limit : VALIDATORS_LOOKED_AT;
    const { chain } = context.node;
    const records = await ofOneCut(chain, () => chain.validators({ after, limit: read + 1 }));
    const staking = chain.staking();
    const validators: ValidatorDocument[] = [];
    let looked = 0;
    for (; looked < Math.min(read, records.length) && validators.length < limit; looked++) {
      const record = records[looked] as Validator;
      if (query.state === undefined || stateOf(staking, asOf(record, staking.epoch)) === query.state)
        validators.push(validatorDocument(context, staking, record));
    }
    const last = records[looked - 1];
    return {
      ...headOf(context, staking),
      validators,
      next_cursor: looked < records.length && last ? makeCursor(scope, last.id) : undefined,
    };
  },

  stakingValidator(context, { params }) {
    const staking = context.node.chain.staking();
    const record = staking.validator(idFromHex(params.id));
    if (record === undefined) throw refusal('validator_unknown', 'no validator has this identifier');
    return { ...headOf(context, staking), validator: validatorDocument(context, staking, record) };
  },
};
