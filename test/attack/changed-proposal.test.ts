/** Whoever passes a proposal on can change nothing of it: each field that a member acts on is signed by the proposer, or hangs on what is signed. */
import { expect, test } from 'vitest';
import { signatureCheck, signedText } from '../../node/consensus/driver/signatures.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Proposal } from '../../node/consensus/engine/effects.ts';
import { privateKeyOfSeed, rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { consensusMessages } from '../../vectors/generate/consensus.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

test('a proposal with one field changed has no good signature', () => {
  const chain = pattern('changed proposal/chain', 48);
  const key = privateKeyOfSeed(pattern('changed proposal/key', 32));
  const committee = new Committee(pattern('changed proposal/set', 48), [{ publicKey: rawPublicKey(key), stake: 1n }]);
  const found = consensusMessages().find(({ name }) => name === 'proposal')?.message;
  if (found?.type !== 'proposal') throw new Error('there is no proposal among the vectors');
  const signed: Proposal = { ...found.proposal, signature: signMessage(key, signedText(chain, found)) };
  const isGood = (proposal: Proposal) => signatureCheck(chain).proposal(proposal, committee);
  expect(isGood(signed)).toBe(true);
  const { height, round, validRound, lastRound, cut } = signed;
  const changes: Partial<Proposal>[] = [
    { height: height + 1 },
    { round: round + 1 },
    { validRound: validRound - 1 },
    { lastRound: lastRound + 1 },
    { lastRound: 0 },
    { cut: `${cut.slice(1)}x` },
  ];
  for (const change of changes) expect(isGood({ ...signed, ...change }), Object.keys(change).join()).toBe(false);
});
