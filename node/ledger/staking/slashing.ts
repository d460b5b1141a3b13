/**
 * Slashing (ledger rule 68): the whole self-bond at once, and a tenth of every delegation that is active or not yet
 * released, spread over cuts. The cut that executed the evidence decides what can be slashed; a position that the sweep
 * has not reached cannot be withdrawn.
 */
import { type Bytes, compareBytes, equalBytes } from '../../../protocol/bytes.ts';
import { epochOf, SLASHED_PART } from '../../../protocol/staking/limits.ts';
import { selfBondId } from '../../../protocol/staking/names.ts';
import type { StakingLayer } from './layer.ts';
import { type Position, releaseOf, rolled } from './position.ts';
import { isActive, type Validator } from './validator.ts';

/** A slashing that goes through the delegations to a validator in order of their identifiers. */
export type Sweep = {
  readonly validator: Bytes;
  /** Of the cut that executed the evidence. */
  readonly height: number;
  /** The last delegation that it has visited. */
  readonly reached: Bytes | undefined;
};

type Moment = { readonly height: number; readonly intervalCuts: number };

const isSlashable = (position: Position, validator: Validator, evidence: Moment): boolean => {
  const release = releaseOf(position, validator, evidence.intervalCuts);
  return release === undefined || release > evidence.height;
};

/** Whether slashing allows a withdrawal of this position. A self-bond is slashed at once. */
export function sweepReached(sweeps: readonly Sweep[], position: Position): boolean {
  if (position.kind === 'self_bond') return true;
  const sweep = sweeps.find(({ validator }) => equalBytes(validator, position.validator));
  return sweep === undefined || (sweep.reached !== undefined && compareBytes(position.id, sweep.reached) <= 0);
}

/** Burns the self-bond and makes all delegations unbond. `validator` is the record as of now. */
export function slash(
  layer: StakingLayer,
  validator: Validator,
  context: Moment & { isPaymentDue(validator: Bytes): boolean },
): void {
  if (isActive(validator)) {
    layer.bonded -= validator.stake;
    layer.unbonding += validator.stake;
  }
  const own = layer.position(selfBondId(validator.id));
  if (own !== undefined && isSlashable(own, validator, context)) {
    layer.unbonding -= own.principal;
    layer.burned += own.principal;
    // An empty position is removed, but only after its earnings were paid.
    if (context.isPaymentDue(validator.id))
      layer.putPosition({ ...rolled(own, epochOf(context.height, context.intervalCuts)), principal: 0n });
    else layer.removePosition(own);
  }
  layer.putValidator({ ...validator, stake: 0n, slashHeight: context.height });
}

/** One cut's part of the pending slashings; returns those that continue. */
export function sweep(
  layer: StakingLayer,
  sweeps: readonly Sweep[],
  visits: number,
  { height, intervalCuts }: Moment,
): readonly Sweep[] {
  const epoch = epochOf(height, intervalCuts);
  let left = visits;
  const going: Sweep[] = [];
  for (const each of sweeps) {
    const validator = layer.validator(each.validator) as Validator;
    const ids = left === 0 ? [] : layer.delegations(each.validator, each.reached, left);
    for (const id of ids) {
      const position = layer.position(id) as Position;
      if (!isSlashable(position, validator, { height: each.height, intervalCuts })) continue;
      const burned = position.principal / SLASHED_PART;
      if (burned === 0n) continue;
      layer.putPosition({ ...rolled(position, epoch), principal: position.principal - burned });
      layer.unbonding -= burned;
      layer.burned += burned;
    }
    if (ids.length === left) going.push({ ...each, reached: ids.at(-1) ?? each.reached });
    left -= ids.length;
  }
  return going;
}
