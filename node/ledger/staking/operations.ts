/**
 * The eleven operations against the ledger (ledger rules 62 to 69). `prepare` only reads: it refuses, or returns the
 * required signer, further signatures, and a function that carries out the operation. Admission and cuts use it on
 * different states.
 */
import { keyAddressPayload } from '../../../protocol/address.ts';
import type { Bytes } from '../../../protocol/bytes.ts';
import { voteMessage } from '../../../protocol/consensus/vote.ts';
import {
  CHANGE_DELAY_EPOCHS,
  COMMISSION_DELAY_EPOCHS,
  EVIDENCE_EPOCHS,
  epochOf,
  MIN_DELEGATION,
  unbondingCuts,
} from '../../../protocol/staking/limits.ts';
import {
  consensusKeyHash,
  delegationId,
  endpointMessage,
  possessionMessage,
  selfBondId,
  validatorId,
  withdrawalOutpoint,
} from '../../../protocol/staking/names.ts';
import type {
  Bond,
  ChangeCommission,
  ChangeEndpoint,
  Evidence,
  Exit,
  Heartbeat,
  Register,
  RewardAddress,
  Rotate,
  StakingOperation,
  Unbond,
  Withdraw,
} from '../../../protocol/staking/operation.ts';
import type { Outpoint } from '../../../protocol/transactions/transaction.ts';
import type { StakingLayer, StakingReads } from './layer.ts';
import { type Position, releaseOf, rolled } from './position.ts';
import { type Sweep, slash, sweepReached } from './slashing.ts';
import { asOf, isActive, keyIn, type Validator } from './validator.ts';

/** Where and when an operation would be carried out. */
export type OperationContext = {
  readonly staking: StakingReads;
  /** Height of the cut. */
  readonly height: number;
  readonly intervalCuts: number;
  readonly chainId: Bytes;
  readonly transactionId: Bytes;
  /** Address of input 0: the sender of evidence. */
  readonly payer: Bytes;
  /** Slashings that have not reached all positions yet. */
  readonly sweeps: readonly Sweep[];
  /** Whether this validator still has to be paid for the last interval. */
  isPaymentDue(validator: Bytes): boolean;
};

/** `invalid` never becomes possible, `no_effect` may. */
export type OperationRefusal = {
  readonly reason: 'invalid' | 'no_effect';
  readonly detail: OperationRefusalCode;
};

export const OPERATION_REFUSAL_CODES = [
  'validator_unknown',
  'validator_inactive',
  'validator_slashed',
  'consensus_key_used',
  'change_pending',
  'position_unknown',
  'position_self_bond',
  'position_unbonding',
  'position_bonded',
  'position_locked',
  'position_empty',
  'unbond_amount',
  'heartbeat_epoch',
  'heartbeat_repeated',
  'evidence_expired',
  'evidence_early',
  'evidence_key_unknown',
] as const;
export type OperationRefusalCode = (typeof OPERATION_REFUSAL_CODES)[number];

export type Proof = { readonly publicKey: Bytes; readonly message: Bytes; readonly signature: Bytes };

/** An output that an operation makes besides those of its transaction. */
export type Withdrawal = { readonly outpoint: Outpoint; readonly address: Bytes; readonly amount: bigint };

export type Prepared = {
  /** The validator concerned. */
  readonly validator: Bytes;
  /** The required signer; with the key if the ledger has it outside the registry. */
  readonly signer: { readonly address: Bytes; readonly publicKey?: Bytes };
  /** Signatures inside the operation. */
  readonly proofs: readonly Proof[];
  readonly withdrawal?: Withdrawal;
  /** Slashing that begins with it. */
  readonly sweep?: Sweep;
  apply(layer: StakingLayer): void;
};

type Answer = Prepared | OperationRefusal;

const invalid = (detail: OperationRefusalCode): OperationRefusal => ({ reason: 'invalid', detail });
const later = (detail: OperationRefusalCode): OperationRefusal => ({ reason: 'no_effect', detail });

export function prepare(operation: StakingOperation, context: OperationContext): Answer {
  switch (operation.name) {
    case 'register':
      return register(operation, context);
    case 'bond':
      return bond(operation, context);
    case 'unbond':
      return unbond(operation, context);
    case 'withdraw':
      return withdraw(operation, context);
    case 'reward_address':
      return redirect(operation, context);
    case 'heartbeat':
      return heartbeat(operation, context);
    case 'rotate':
      return rotate(operation, context);
    case 'endpoint':
      return changeEndpoint(operation, context);
    case 'commission':
      return changeCommission(operation, context);
    case 'exit':
      return exit(operation, context);
    case 'evidence':
      return evidence(operation, context);
  }
}

const epochNow = ({ height, intervalCuts }: OperationContext): number => epochOf(height, intervalCuts);

function register(operation: Register, context: OperationContext): Answer {
  const { consensusKey, possession, owner, rewardAddress, amount, commission, endpoint } = operation;
  const keyHash = consensusKeyHash(consensusKey);
  if (context.staking.isKeyUsed(keyHash)) return invalid('consensus_key_used');
  const epoch = epochNow(context);
  const id = validatorId(consensusKey);
  return {
    validator: id,
    signer: { address: owner },
    proofs: [
      {
        publicKey: consensusKey,
        message: possessionMessage(context.chainId, owner, consensusKey),
        signature: possession,
      },
    ],
    apply(layer) {
      layer.useKey(keyHash);
      layer.putValidator({
        id,
        owner,
        key: consensusKey,
        keyFrom: epoch,
        formerKeys: [],
        endpoint,
        commission,
        seatFrom: epoch + 2,
        heartbeatEpoch: epoch,
        jailedUntil: 0,
        stake: amount,
        exitHeight: 0,
        slashHeight: 0,
      });
      layer.putPosition(
        newPosition({ id: selfBondId(id), kind: 'self_bond', validator: id, owner, rewardAddress }, amount, epoch),
      );
      layer.bonded += amount;
    },
  };
}

export const newPosition = (
  who: Pick<Position, 'id' | 'kind' | 'validator' | 'owner' | 'rewardAddress'>,
  principal: bigint,
  epoch: number,
): Position => ({ ...who, principal, epoch, atStart: 0n, atPrevious: 0n, releaseHeight: 0 });

/** The record as of now, where it is active. */
function activeValidator(id: Bytes, context: OperationContext): Validator | OperationRefusal {
  const validator = context.staking.validator(id);
  if (validator === undefined) return later('validator_unknown');
  return isActive(validator) ? asOf(validator, epochNow(context)) : invalid('validator_inactive');
}

function bond(operation: Bond, context: OperationContext): Answer {
  const validator = activeValidator(operation.validator, context);
  if ('reason' in validator) return validator;
  const { owner, rewardAddress, amount } = operation;
  const id = delegationId(context.transactionId);
  return {
    validator: validator.id,
    signer: { address: owner },
    proofs: [],
    apply(layer) {
      const who = { id, kind: 'delegation' as const, validator: validator.id, owner, rewardAddress };
      layer.putPosition(newPosition(who, amount, epochNow(context)));
      layer.putValidator({ ...validator, stake: validator.stake + amount });
      layer.bonded += amount;
    },
  };
}

type Held = { readonly position: Position; readonly validator: Validator };

function held(id: Bytes, { staking }: OperationContext): Held | OperationRefusal {
  const position = staking.position(id);
  if (position === undefined) return later('position_unknown');
  return { position, validator: staking.validator(position.validator) as Validator };
}

function unbond(operation: Unbond, context: OperationContext): Answer {
  const found = held(operation.position, context);
  if ('reason' in found) return found;
  const { position, validator } = found;
  if (position.kind === 'self_bond') return invalid('position_self_bond');
  if (position.releaseHeight !== 0 || !isActive(validator)) return invalid('position_unbonding');
  const whole = operation.amount === 0n;
  const amount = whole ? position.principal : operation.amount;
  if (!whole && position.principal - amount < MIN_DELEGATION) return invalid('unbond_amount');
  const epoch = epochNow(context);
  const releaseHeight = context.height + unbondingCuts(context.intervalCuts);
  return {
    validator: validator.id,
    signer: { address: position.owner },
    proofs: [],
    apply(layer) {
      const kept = rolled(position, epoch);
      if (whole) layer.putPosition({ ...kept, releaseHeight });
      else {
        layer.putPosition({ ...kept, principal: kept.principal - amount });
        const part = newPosition({ ...position, id: delegationId(context.transactionId) }, amount, epoch);
        layer.putPosition({ ...part, releaseHeight });
      }
      layer.putValidator({ ...asOf(validator, epoch), stake: validator.stake - amount });
      layer.bonded -= amount;
      layer.unbonding += amount;
    },
  };
}

function withdraw(operation: Withdraw, context: OperationContext): Answer {
  const found = held(operation.position, context);
  if ('reason' in found) return found;
  const { position, validator } = found;
  const release = releaseOf(position, validator, context.intervalCuts);
  if (release === undefined) return later('position_bonded');
  if (position.principal === 0n) return invalid('position_empty');
  if (context.height < release || !sweepReached(context.sweeps, position)) return later('position_locked');
  return {
    validator: validator.id,
    signer: { address: position.owner },
    proofs: [],
    withdrawal: {
      outpoint: withdrawalOutpoint(position.id, context.transactionId),
      address: position.owner,
      amount: position.principal,
    },
    apply(layer) {
      layer.removePosition(position);
      layer.unbonding -= position.principal;
    },
  };
}

function redirect(operation: RewardAddress, context: OperationContext): Answer {
  const found = held(operation.position, context);
  if ('reason' in found) return found;
  const { position } = found;
  return {
    validator: position.validator,
    signer: { address: position.owner },
    proofs: [],
    apply: (layer) => layer.putPosition({ ...position, rewardAddress: operation.address }),
  };
}

function heartbeat(operation: Heartbeat, context: OperationContext): Answer {
  const validator = activeValidator(operation.validator, context);
  if ('reason' in validator) return validator;
  const epoch = epochNow(context);
  if (operation.epoch > epoch) return later('heartbeat_epoch');
  if (operation.epoch < epoch) return invalid('heartbeat_epoch');
  if (validator.heartbeatEpoch === epoch) return invalid('heartbeat_repeated');
  return {
    validator: validator.id,
    signer: { address: keyAddressPayload(validator.key), publicKey: validator.key },
    proofs: [],
    apply: (layer) => layer.putValidator({ ...validator, heartbeatEpoch: epoch }),
  };
}

function rotate(operation: Rotate, context: OperationContext): Answer {
  const validator = activeValidator(operation.validator, context);
  if ('reason' in validator) return validator;
  const { consensusKey, possession, endpoint } = operation;
  const keyHash = consensusKeyHash(consensusKey);
  if (context.staking.isKeyUsed(keyHash)) return invalid('consensus_key_used');
  // An endpoint that is announced does not stop a rotation, which may be urgent and names an endpoint of its own.
  if (validator.nextKey !== undefined) return later('change_pending');
  const epoch = epochNow(context) + CHANGE_DELAY_EPOCHS;
  const { owner } = validator;
  return {
    validator: validator.id,
    signer: { address: owner },
    proofs: [
      {
        publicKey: consensusKey,
        message: possessionMessage(context.chainId, owner, consensusKey),
        signature: possession,
      },
    ],
    apply(layer) {
      layer.useKey(keyHash);
      layer.putValidator({
        ...validator,
        nextKey: { value: consensusKey, epoch },
        nextEndpoint: { value: endpoint, epoch },
      });
    },
  };
}

function changeEndpoint(operation: ChangeEndpoint, context: OperationContext): Answer {
  const validator = activeValidator(operation.validator, context);
  if ('reason' in validator) return validator;
  if (validator.nextEndpoint !== undefined) return later('change_pending');
  const { endpoint, signature } = operation;
  const epoch = epochNow(context) + CHANGE_DELAY_EPOCHS;
  return {
    validator: validator.id,
    signer: { address: validator.owner },
    proofs: [
      { publicKey: validator.key, message: endpointMessage(context.chainId, validator.id, endpoint), signature },
    ],
    apply: (layer) => layer.putValidator({ ...validator, nextEndpoint: { value: endpoint, epoch } }),
  };
}

function changeCommission(operation: ChangeCommission, context: OperationContext): Answer {
  const validator = activeValidator(operation.validator, context);
  if ('reason' in validator) return validator;
  if (validator.nextCommission !== undefined) return later('change_pending');
  const epoch = epochNow(context) + COMMISSION_DELAY_EPOCHS;
  return {
    validator: validator.id,
    signer: { address: validator.owner },
    proofs: [],
    apply: (layer) => layer.putValidator({ ...validator, nextCommission: { value: operation.commission, epoch } }),
  };
}

function exit(operation: Exit, context: OperationContext): Answer {
  const validator = activeValidator(operation.validator, context);
  if ('reason' in validator) return validator;
  return {
    validator: validator.id,
    signer: { address: validator.owner },
    proofs: [],
    apply(layer) {
      layer.putValidator({ ...validator, exitHeight: context.height, stake: 0n });
      layer.bonded -= validator.stake;
      layer.unbonding += validator.stake;
    },
  };
}

function evidence(operation: Evidence, context: OperationContext): Answer {
  const { staking, height, intervalCuts, chainId } = context;
  const validator = staking.validator(operation.validator);
  if (validator === undefined) return later('validator_unknown');
  if (validator.slashHeight !== 0) return invalid('validator_slashed');
  const [{ vote }] = operation.votes;
  if (vote.height > height) return later('evidence_early');
  if (height > vote.height + EVIDENCE_EPOCHS * intervalCuts) return invalid('evidence_expired');
  const publicKey = keyIn(validator, epochOf(vote.height, intervalCuts));
  if (publicKey === undefined) return invalid('evidence_key_unknown');
  return {
    validator: validator.id,
    signer: { address: context.payer },
    proofs: operation.votes.map(({ vote, signature }) => ({
      publicKey,
      message: voteMessage(chainId, vote),
      signature,
    })),
    sweep: { validator: validator.id, height, reached: undefined },
    apply: (layer) => slash(layer, asOf(validator, epochNow(context)), context),
  };
}
