/** The engine with one decision made wrongly. Each of these was made by somebody once; the simulator must find every one. */
import { RULES, type Rules } from '../../node/consensus/engine/rules.ts';
import { NIL, PRECOMMIT, type Vote } from '../../node/consensus/engine/votes.ts';

type Mutation = {
  readonly rules: Partial<Rules>;
  /** The check that must fail. */
  readonly finds: RegExp;
  /** The first seed that finds it, of those that are not among the first: at quick the search begins there. */
  readonly seed?: number;
};

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'a lock forgotten': { rules: { lockAllows: () => true }, finds: /agreement/, seed: 32 },
  // Mostly others tell it in time what it sent: it stops.
  'a vote sent before the write': {
    rules: { signed: (write, send) => [send, write] },
    finds: /second vote|key_runs_twice/,
    seed: 172,
  },
  'precommits of two rounds combined': {
    finds: /agreement|certificate/,
    rules: {
      decision: (round, { rounds, committee, height }) => {
        const cut = round.precommits.votes.find((vote) => vote !== undefined && vote.cut !== NIL)?.cut;
        if (cut === undefined) return undefined;
        const byMember = new Map<number, Vote>();
        for (const { precommits } of rounds.values())
          for (const vote of precommits.votes) if (vote?.cut === cut) byMember.set(vote.member, vote);
        const votes = [...byMember.values()].sort((a, b) => a.member - b.member);
        const stake = votes.reduce((sum, { member }) => sum + committee.stake(member), 0n);
        if (!RULES.isQuorum(stake, committee.total)) return undefined;
        return { kind: PRECOMMIT, height, round: round.round, cut, votes };
      },
    },
  },
  'a quorum of two thirds': {
    rules: { isQuorum: (stake, total) => stake * 3n >= total * 2n },
    finds: /certificate/,
    seed: 11,
  },
  'a quorum of more than half': { rules: { isQuorum: (stake, total) => stake * 2n > total }, finds: /certificate/ },
  'old polkas are not taken up again': { rules: { takesReproposals: false }, finds: /no progress/ },
  'votes of rounds that are over do not count': { rules: { looksBack: false }, finds: /no progress/ },
  'others in a later round are not followed': { rules: { jumps: false }, finds: /no progress/ },
  'nothing is sent again': { rules: { answers: false }, finds: /no progress/ },
};

export const mutated = (name: string): Rules => ({ ...RULES, ...MUTATIONS[name]?.rules });
