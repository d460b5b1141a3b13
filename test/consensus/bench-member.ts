/** One member of four with equal stake, moved by hand: what it signs, sends and decides. Signing, execution and the disk answer at once. */
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Effect, Event, Proposal } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { listenFirst } from '../../node/consensus/engine/listening.ts';
import { createState, type LastCut } from '../../node/consensus/engine/state.ts';
import type { CutName, Vote, VoteKind } from '../../node/consensus/engine/votes.ts';

export const HEIGHT = 9;
export const SIGNATURE = Uint8Array.of(1);
export const cutNamed = (name: string): CutName => name.padEnd(48, '.');

export const committeeOf = (size: number): Committee =>
  new Committee(
    new Uint8Array(48).fill(3),
    Array.from({ length: size }, () => ({ publicKey: SIGNATURE, stake: 10n })),
  );

export const vote = (kind: VoteKind, round: number, member: number, cut: CutName, height = HEIGHT): Vote => ({
  kind,
  height,
  round,
  cut,
  member,
  signature: SIGNATURE,
});

export const proposal = (round: number, cut: CutName, validRound = -1, signers = 0n): Proposal => ({
  height: HEIGHT,
  round,
  validRound,
  cut,
  signers,
  lastRound: 0,
  content: SIGNATURE,
  signature: SIGNATURE,
});

export class BenchMember {
  readonly state;
  readonly effects: Effect[] = [];
  readonly signed: [round: number, kind: VoteKind, cut: CutName][] = [];

  /** `logHeight`: of a member that starts with such a log; without it, one that is at work. */
  constructor(self: number, size = 4, last?: LastCut, logHeight?: number) {
    this.state = createState(HEIGHT, committeeOf(size), self, last);
    if (logHeight !== undefined) listenFirst(this.state, logHeight);
    this.feed({ type: 'begin' });
  }

  feed(event: Event): Effect[] {
    const effects = step(this.state, event);
    this.effects.push(...effects);
    for (const effect of effects) {
      if (effect.do === 'check') this.feed({ type: 'checked', height: HEIGHT, cut: effect.proposal.cut, valid: true });
      if (effect.do !== 'sign') continue;
      if (effect.message.type === 'vote') {
        const { round, kind, cut } = effect.message.vote;
        this.signed.push([round, kind, cut]);
      }
      this.feed({ type: 'signed', message: effect.message, signature: SIGNATURE });
    }
    return effects;
  }

  votes(kind: VoteKind, round: number, cut: CutName, ...members: number[]): void {
    for (const member of members) this.feed({ type: 'vote', vote: vote(kind, round, member, cut) });
  }

  proposes(round: number, cut: CutName, validRound = -1): void {
    this.feed({ type: 'proposal', proposal: proposal(round, cut, validRound), timely: true });
  }

  timeout(kind: 'propose' | 'prevote' | 'precommit', round: number): void {
    this.feed({ type: 'timeout', kind, height: HEIGHT, round });
  }

  effect<K extends Effect['do']>(kind: K): Extract<Effect, { do: K }>[] {
    return this.effects.filter((effect): effect is Extract<Effect, { do: K }> => effect.do === kind);
  }
}

/** A member that does not propose in the first rounds. */
export function follower(rounds: number, size = 4): number {
  const committee = committeeOf(size);
  const proposers = new Set(Array.from({ length: rounds }, (_, round) => committee.proposer(HEIGHT, round)));
  const self = [...Array(size).keys()].find((member) => !proposers.has(member));
  if (self === undefined) throw new Error('everybody proposes');
  return self;
}
