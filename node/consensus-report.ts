/** What a running node tells about its part in consensus. */
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { ATTENDANCE_WINDOWS } from '../protocol/staking/limits.ts';
import { type ConsensusDump, dumpOf } from './consensus/dump.ts';
import type { ConsensusState } from './consensus/state.ts';
import type { FullNode } from './full-node.ts';

export type ValidatorReport = {
  readonly id: string;
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

/** `named` by its key. A validator keeps the name of its first key: of a rotated one the committee knows it. */
function validatorReport(node: FullNode, named: Bytes, self: number): ValidatorReport {
  const { epoch, stake, intervalCuts, validator } = node.chain.staking();
  const id = stake.committee.members[self]?.validatorId ?? named;
  return {
    id: toHex(id),
    epoch,
    attended_windows: stake.attendance.windows[self] ?? 0,
    windows_over: Math.floor(((node.chain.head().height + 1) % intervalCuts) / (intervalCuts / ATTENDANCE_WINDOWS)),
    heartbeat_epoch: validator(id)?.heartbeatEpoch ?? null,
  };
}

export const consensusReport = (
  node: FullNode,
  state: ConsensusState,
  id: Bytes | undefined,
  neighbours: number,
  trace: string,
): ConsensusReport => ({
  validator: id === undefined ? null : validatorReport(node, id, state.self),
  neighbours,
  consensus: dumpOf(state),
  trace,
});
