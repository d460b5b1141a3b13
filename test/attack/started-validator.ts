/** A validator that has just started, with the engine by hand: its heights, ticks and the company it has are the test's. */
import { expect } from 'vitest';
import type { Company, Event, Proposal } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { listenFirst } from '../../node/consensus/engine/listening.ts';
import { openState } from '../../node/consensus/engine/recovery.ts';
import type { LastCut } from '../../node/consensus/engine/state.ts';
import { NIL, PRECOMMIT, type Vote, type VoteKind } from '../../node/consensus/engine/votes.ts';
import { committeeOf, SIGNATURE } from '../consensus/bench-member.ts';

export const SELF = 1;
export const OTHERS = [0, 2, 3];
export const ALL: Company = { members: OTHERS, named: 0 };
export const ONE: Company = { members: [3], named: 0 };
/** At the tip (rule 3), and while lost time is made up. */
export const [TICKS_A_CUT, LEAST_TICKS_A_CUT] = [5, 2.5];
export const committee = committeeOf(4);
export const NO_SIGNATURE = new Uint8Array(0);

export const cutOf = (height: number) => `cut ${height}`.padEnd(48, '.');
export const proposalOf = (height: number, signature = SIGNATURE): Proposal => ({
  height,
  round: 0,
  validRound: -1,
  cut: cutOf(height),
  signers: 0n,
  lastRound: 0,
  content: SIGNATURE,
  signature,
});
export const voteOf = (height: number, kind: VoteKind, member: number): Vote => ({
  kind,
  height,
  round: 0,
  cut: cutOf(height),
  member,
  signature: SIGNATURE,
});

/** A validator that starts at a height, 5 where nothing else is said, with a log of `logHeight` that holds `own`. */
export class Started {
  readonly state;
  readonly did: string[] = [];

  constructor(
    logHeight: number,
    height = 5,
    last?: LastCut,
    own?: { height: number; messages: readonly Vote[] },
    seats = committee,
  ) {
    const nothing = { lockedRound: -1, locked: NIL, validRound: -1, valid: NIL, polkas: [], proposals: [] };
    const recovered = own && {
      ...nothing,
      height: own.height,
      messages: own.messages.map((vote) => ({ type: 'vote', vote }) as const),
    };
    this.state = openState(height, seats, SELF, last, recovered);
    listenFirst(this.state, logHeight);
    this.feed({ type: 'begin' });
  }

  feed(event: Event): void {
    for (const effect of step(this.state, event)) {
      this.did.push(effect.do);
      if (effect.do === 'check')
        this.feed({ type: 'checked', height: effect.proposal.height, cut: effect.proposal.cut, valid: true });
    }
  }

  get listens(): boolean {
    return (this.state.listening?.ticks ?? 0) > 0;
  }

  /** The height becomes final, from a store or by messages that were sent as they came. */
  goesOn(from: 'store' | 'votes'): void {
    const { height } = this.state;
    const votes = OTHERS.map((member) => voteOf(height, PRECOMMIT, member));
    if (from === 'store')
      this.feed({
        type: 'finalized',
        finalized: {
          proof: { kind: PRECOMMIT, height, round: 0, cut: cutOf(height), votes },
          proposal: proposalOf(height, NO_SIGNATURE),
        },
      });
    else {
      this.feed({ type: 'proposal', proposal: proposalOf(height), timely: true });
      for (const vote of votes) this.feed({ type: 'vote', vote });
    }
    expect(this.state.step).toBe('decided');
    this.feed({ type: 'height', height: height + 1, committee, self: SELF });
    this.feed({ type: 'begin' });
  }

  /** Ticks until it has listened. */
  ticks(company: Company, most = 10_000): number {
    let ticks = 0;
    for (; this.listens && ticks < most; ticks++) this.feed({ type: 'tick', company });
    return ticks;
  }
}
