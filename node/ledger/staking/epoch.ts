/**
 * The effects of a cut on stake after its transactions (ledger rules 63 to 68): slashing continues, the last interval
 * is paid, attendance is recorded, and the last cut of an epoch closes it: absent members are jailed, the pool is
 * assigned to the payments, the next committee is fixed.
 */
import { ATTENDANCE_NEEDED, JAIL_EPOCHS, paymentVisits, SLASHING_VISITS } from '../../../protocol/staking/limits.ts';
import type { StakePayout } from '../effects.ts';
import { type Attendance, attend, nobodyYet } from './attendance.ts';
import { type Committee, nextCommittee } from './committee.ts';
import type { StakingLayer } from './layer.ts';
import { beginWalk, type PaymentWalk, payVisits } from './payment.ts';
import { type Sweep, sweep } from './slashing.ts';
import { asOf, type Validator } from './validator.ts';

/** The part of the state about stake, besides the sets and totals. */
export type StakeState = {
  /** Stake halves of the running interval. */
  readonly pool: bigint;
  /** Height of the next cut. */
  readonly committee: Committee;
  /** Committee of the previous epoch; its members are being paid. */
  readonly previous: Committee;
  readonly attendance: Attendance;
  readonly walk?: PaymentWalk;
  readonly sweeps: readonly Sweep[];
};

export type StakeInput = {
  readonly height: number;
  readonly intervalCuts: number;
  readonly signers: bigint;
  /** Stake halves of this cut's subsidy and fees. */
  readonly earned: bigint;
  /** Slashings that this cut's evidence began. */
  readonly begun: readonly Sweep[];
};

export function advanceStake(
  before: StakeState,
  layer: StakingLayer,
  input: StakeInput,
): { readonly stake: StakeState; readonly payouts: readonly StakePayout[] } {
  const { height, intervalCuts, signers } = input;
  const k = height % intervalCuts;
  const sweeps = sweep(layer, [...before.sweeps, ...input.begun], SLASHING_VISITS, input);
  let pool = before.pool + input.earned;
  let payouts: readonly StakePayout[] = [];
  let { walk } = before;
  if (walk !== undefined) {
    const payment = payVisits(walk, before.previous, layer, paymentVisits(intervalCuts));
    payouts = payment.payouts;
    walk = payment.walk;
    // Remainders from rounding are added to the current pool; so would amounts that the last cut of an interval could
    // not pay.
    if (payment.done || k === intervalCuts - 1) {
      pool += walk.pool - walk.paid;
      walk = undefined;
    }
  }
  const attendance = attend(before.attendance, k, signers, intervalCuts);
  const { committee, previous } = before;
  const running = { pool, committee, previous, attendance, ...(walk && { walk }), sweeps };
  return { stake: k === intervalCuts - 1 ? closeEpoch(running, layer) : running, payouts };
}

function closeEpoch({ pool, committee, attendance, sweeps }: StakeState, layer: StakingLayer): StakeState {
  const records = committee.members.map(({ validatorId }) => layer.validator(validatorId) as Validator);
  const attended = (i: number): boolean => (attendance.windows[i] as number) >= ATTENDANCE_NEEDED;
  records.forEach((record, i) => {
    if (!attended(i))
      layer.putValidator({ ...asOf(record, committee.epoch), jailedUntil: committee.epoch + 1 + JAIL_EPOCHS });
  });
  const walk = beginWalk(committee, pool, (_, i) => attended(i) && (records[i] as Validator).slashHeight === 0);
  const next = nextCommittee(committee, layer.activeValidators(), (id) => layer.validator(id) as Validator);
  return {
    pool: walk === undefined ? pool : 0n,
    committee: next,
    previous: committee,
    attendance: nobodyYet(next.members.length),
    ...(walk && { walk }),
    sweeps,
  };
}
