/** A running node's report about its part in consensus. */
import { toHex } from '../../protocol/bytes.ts';
import { ATTENDANCE_WINDOWS } from '../../protocol/staking/limits.ts';
import type { ConsensusState } from '../consensus/engine/state.ts';
import { type ConsensusDump, dumpOf } from '../consensus/log/dump.ts';
import type { FullNode } from '../full-node.ts';
import type { Seat } from '../validator/seat-watch.ts';
import { memberIndex, type Standing } from '../validator/validator-state.ts';

export type ValidatorReport = {
  readonly id: string;
  readonly standing: Standing;
  readonly epoch: number;
  readonly attended_windows: number;
  readonly windows_over: number;
  readonly heartbeat_epoch: number | null;
};

export type ConsensusReport = {
  readonly validator: ValidatorReport | null;
  readonly neighbours: number;
  readonly consensus: ConsensusDump;
  readonly trace: string;
};

function validatorReport(node: FullNode, { validator: id, standing }: Seat): ValidatorReport {
  const staking = node.chain.staking();
  const { epoch, stake, intervalCuts } = staking;
  return {
    id: toHex(id),
    standing,
    epoch,
    attended_windows: stake.attendance.windows[memberIndex(staking, id)] ?? 0,
    windows_over: Math.floor(((node.chain.head().height + 1) % intervalCuts) / (intervalCuts / ATTENDANCE_WINDOWS)),
    heartbeat_epoch: staking.validator(id)?.heartbeatEpoch ?? null,
  };
}

/** Without a seat to watch the node has no key. */
export const consensusReport = (
  node: FullNode,
  state: ConsensusState,
  seat: Seat | undefined,
  neighbours: number,
  trace: string,
): ConsensusReport => ({
  validator: seat === undefined ? null : validatorReport(node, seat),
  neighbours,
  consensus: dumpOf(state),
  trace,
});
