/** Consensus (rules 2, 5, 15, 18 and 22): who proposes, what is signed, each message of the overlay, and a connection. */

import { encodeForward } from '../../node/consensus/driver/forwarding.ts';
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Message, Proposal } from '../../node/consensus/engine/effects.ts';
import { PRECOMMIT, PREVOTE, type Vote } from '../../node/consensus/engine/votes.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { proposalMessage } from '../../protocol/consensus/proposal.ts';
import { proposerPoint } from '../../protocol/consensus/proposer.ts';
import { voteMessage } from '../../protocol/consensus/vote.ts';
import { blocksRoot, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import { overlayVectors, relayRecordVector } from './overlay.ts';
import { pattern } from './pattern.ts';

const HEIGHT = 77;
const chain = pattern('consensus/chain', 48);
const name = (bytes: Bytes): string => Buffer.from(bytes).toString('latin1');

function proposedCut(): { content: Uint8Array; id: Uint8Array; signers: bigint } {
  const blockIds = [pattern('consensus/block 0', 48), pattern('consensus/block 1', 48)];
  const signers = 0b1011n;
  const header = encodeCutHeader({
    networkId: 4,
    height: HEIGHT,
    timestampMillis: 1_800_000_192_500,
    previousId: pattern('consensus/previous', 48),
    blocksRoot: blocksRoot(blockIds),
    stateRoot: pattern('consensus/state', 48),
    validatorSetId: pattern('consensus/set', 48),
    blockCount: blockIds.length,
    signers,
  });
  return { content: concat(header, ...blockIds), id: cutId(header), signers };
}

export function consensusMessages(): { readonly name: string; readonly message: Message }[] {
  const { content, id, signers } = proposedCut();
  const cut = name(id);
  const signature = pattern('consensus/signature', SIGNATURE_BYTES);
  const proposal: Proposal = {
    height: HEIGHT,
    round: 2,
    validRound: 0,
    cut,
    signers,
    lastRound: 1,
    content,
    signature,
  };
  const vote = (kind: 1 | 2, member: number, forCut = cut): Vote => ({
    kind,
    height: HEIGHT,
    round: 2,
    cut: forCut,
    member,
    signature: pattern(`consensus/signature ${member}`, SIGNATURE_BYTES),
  });
  const proof = (kind: 1 | 2) => ({ kind, height: HEIGHT, round: 2, cut, votes: [0, 2].map((i) => vote(kind, i)) });
  const have = {
    height: HEIGHT,
    round: 2,
    prevotes: 0b101n,
    precommits: 1n << 63n,
    hasProposal: true,
    validRound: -1,
    wantPolka: 0,
    wantCut: cut,
    lastRound: 1,
    lastPrecommits: 0b1011n,
  };
  const bare = { ...proposal, validRound: -1, lastRound: 0, signature: new Uint8Array(0) };
  return [
    { name: 'proposal', message: { type: 'proposal', proposal } },
    { name: 'prevote', message: { type: 'vote', vote: vote(PREVOTE, 3) } },
    { name: 'precommit for no cut', message: { type: 'vote', vote: vote(PRECOMMIT, 63, '') } },
    { name: 'polka', message: { type: 'proof', proof: proof(PREVOTE) } },
    { name: 'have', message: { type: 'have', have } },
    { name: 'final cut', message: { type: 'finalized', finalized: { proof: proof(PRECOMMIT), proposal: bare } } },
  ];
}

/** The vote that the forwarded message carries. */
const forwardedVote = (): Message =>
  consensusMessages().find(({ message }) => message.type === 'vote')?.message as Message;

export function consensusVectors(): unknown {
  const setId = pattern('consensus/set', 48);
  const stakes = [400_000n, 250_000n, 100_000n, 100_000n];
  const committee = new Committee(
    setId,
    stakes.map((stake) => ({ publicKey: new Uint8Array(0), stake })),
  );
  const { id } = proposedCut();
  const place = { height: HEIGHT, round: 2, validRound: 0, cutId: id, lastRound: 1 };
  return {
    proposers: {
      validator_set_id: toHex(setId),
      stakes: stakes.map(String),
      turns: Array.from({ length: 12 }, (_, i) => {
        const [height, round] = [1 + (i % 6) * 1_000, Math.floor(i / 6)];
        const point = proposerPoint(setId, height, round);
        return { height, round, point: String(point), member: committee.proposer(height, round) };
      }),
    },
    signed: {
      chain_id: toHex(chain),
      cut_id: toHex(id),
      height: HEIGHT,
      round: 2,
      valid_round: 0,
      last_round: 1,
      proposal: toHex(proposalMessage(chain, place)),
      fresh_proposal: toHex(proposalMessage(chain, { ...place, validRound: -1 })),
      prevote: toHex(voteMessage(chain, { kind: 'prevote', ...place })),
      precommit: toHex(voteMessage(chain, { kind: 'precommit', ...place })),
      precommit_for_no_cut: toHex(voteMessage(chain, { kind: 'precommit', ...place, cutId: new Uint8Array(48) })),
    },
    messages: consensusMessages().map(({ name, message }) => ({ name, hex: toHex(encodeMessage(message)) })),
    forward: { members: '9', hex: toHex(encodeForward(9n, encodeMessage(forwardedVote()))) },
    connection: overlayVectors(),
    relay_record: relayRecordVector(),
  };
}
