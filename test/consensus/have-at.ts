/** The question of a neighbour at a height that has nothing of its round. */
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { NIL } from '../../node/consensus/engine/votes.ts';
import type { Bytes } from '../../protocol/bytes.ts';

export const haveAt = (height: number): Bytes =>
  encodeMessage({
    type: 'have',
    have: {
      height,
      round: 0,
      prevotes: 0n,
      precommits: 0n,
      hasProposal: false,
      validRound: -1,
      wantPolka: -1,
      wantCut: NIL,
      lastRound: 0,
      lastPrecommits: 0n,
    },
  });
