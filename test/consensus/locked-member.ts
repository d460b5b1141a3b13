/** A member that locks, and what it wrote into its log. */
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Event, LogRecord } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { createState } from '../../node/consensus/engine/state.ts';
import { NIL, PRECOMMIT, PREVOTE, type Vote } from '../../node/consensus/engine/votes.ts';

export const LOG_OWNER = { chainId: new Uint8Array(48).fill(1), validatorId: new Uint8Array(48).fill(2) };
export const committee = new Committee(
  new Uint8Array(48),
  Array.from({ length: 4 }, () => ({ publicKey: new Uint8Array(0), stake: 10n })),
);
export const CUT = 'a cut'.padEnd(48, '.');
export const SIGNATURE = Uint8Array.of(7);
export const HEIGHT = 5;
export const SELF = 0;

export const vote = (kind: 1 | 2, round: number, member: number, cut = CUT): Vote => ({
  kind,
  height: HEIGHT,
  round,
  cut,
  member,
  signature: SIGNATURE,
});

/** A member that locks in round 0, signs on into round 1, and what it wrote. */
export function lockedMember(): LogRecord[] {
  const state = createState(HEIGHT, committee, SELF);
  const records: LogRecord[] = [];
  const feed = (event: Event): void => {
    for (const effect of step(state, event)) {
      if (effect.do === 'write') records.push(effect.record);
      if (effect.do === 'sign') feed({ type: 'signed', message: effect.message, signature: SIGNATURE });
      if (effect.do === 'check') feed({ type: 'checked', height: HEIGHT, cut: effect.proposal.cut, valid: true });
    }
  };
  feed({ type: 'begin' });
  const proposal = { height: HEIGHT, round: 0, validRound: -1, cut: CUT, signers: 0n, lastRound: 0 };
  feed({ type: 'proposal', timely: true, proposal: { ...proposal, content: SIGNATURE, signature: SIGNATURE } });
  for (const member of [1, 2]) feed({ type: 'vote', vote: vote(PREVOTE, 0, member) });
  for (const member of [1, 2]) feed({ type: 'vote', vote: vote(PRECOMMIT, 0, member, NIL) });
  feed({ type: 'timeout', kind: 'precommit', height: HEIGHT, round: 0 });
  feed({ type: 'timeout', kind: 'propose', height: HEIGHT, round: 1 });
  return records;
}
