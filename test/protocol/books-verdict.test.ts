/** Books rule 13: an honest pool's proofs are proven, and nothing is that was not checked. books-lies.test.ts has the liars. */
import { describe, expect, test } from 'vitest';
import {
  type BooksEvidence,
  type BooksVerdict,
  judgeList,
  judgeProof,
  rewardTransaction,
} from '../../protocol/books/books-verdict.ts';
import { blockIdOf, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, lyingBooks, MINERS, SLICE, VICTIM } from './books-liar.ts';

describe('an honest pool', () => {
  test('has its proofs proven, of every slice and every miner, present or absent', () => {
    for (const { slice } of honest.records)
      for (let miner = 0; miner < MINERS + 2; miner++)
        expect([slice, miner, judgeProof(honest.proof(slice, miner), honest.evidence(slice))]).toMatchObject([
          slice,
          miner,
          { verdict: 'proven' },
        ]);
  });

  test('is said to be on the ledger once a payout covers the slices of a proof', () => {
    const judged = (commitments: BooksEvidence['commitments']) =>
      judgeProof(honest.proof(SLICE, VICTIM), { ...honest.evidence(SLICE), commitments });
    const early = honest.commitment(SLICE - 1, 1);
    const later = honest.commitment(SLICE, 2);
    expect(judged([])).toMatchObject({ verdict: 'proven', committed: null });
    expect(judged([early])).toMatchObject({ verdict: 'proven', committed: null });
    const { transaction_id, height } = later;
    expect(judged([early, later])).toMatchObject({ verdict: 'proven', committed: { transaction_id, height } });
  });

  test('has its lists proven', () => {
    for (const { slice } of honest.records)
      expect(judgeList(honest.list(slice), honest.evidence(slice))).toMatchObject({
        verdict: 'proven',
        credit: BigInt(honest.list(slice).credited),
      });
  });

  test('is not called proven where something was not checked', () => {
    const all = honest.evidence(SLICE);
    const judged = (change: Partial<BooksEvidence>) => judgeProof(honest.proof(SLICE, VICTIM), { ...all, ...change });
    const missing = (verdict: BooksVerdict) => (verdict.verdict === 'unchecked' ? verdict.missing : verdict);
    expect(missing(judged({ terms: null }))).toEqual(['terms']);
    expect(missing(judged({ records: null }))).toEqual(['records', 'commitments']);
    expect(missing(judged({ records: all.records!.slice(14) }))).toEqual(['records_reach']);
    expect(missing(judged({ records: all.records!.slice(0, 10) }))).toEqual(['records_reach', 'commitments']);
    expect(missing(judged({ targets: null }))).toEqual(['target']);
    expect(missing(judged({ rewards: null }))).toEqual(['rewards']);
    const [, ...others] = honest.proof(SLICE, VICTIM).blocks;
    const paid = new Map(others.map(({ transaction_id: id }) => [id, all.rewards!.get(id)!]));
    expect(missing(judged({ rewards: paid, lateRewards: null }))).toEqual(['rewards']);
    expect(judged({ rewards: paid })).toEqual({ verdict: 'false', reason: 'reward_unknown' });
    expect(missing(judged({ otherBlocks: null }))).toEqual(['other_service']);
    expect(missing(judged({ blockServices: null }))).toEqual(['block_service']);
    expect(missing(judged({ commitments: null }))).toEqual(['commitments']);
    expect(missing(judged({ otherRecords: null }))).toEqual(['commitments']);
    expect(missing(judged({ otherRecords: [] }))).toEqual(['commitments']);
  });

  test('is not called proven on its word that a later list credits a block', () => {
    const books = lyingBooks((decisions) => {
      const last = decisions.blocks.findLastIndex((each) => each.slice === SLICE && each.service === 'pplns');
      decisions.blocks.splice(last, 1);
    });
    const left = honest.evidence(SLICE);
    const listed = new Set(books.proof(SLICE, VICTIM).blocks.map((block) => block.block_id));
    const movedBlocks = honest
      .proof(SLICE, VICTIM)
      .blocks.flatMap((block) => (listed.has(block.block_id) ? [] : [block.block_id]));
    expect(movedBlocks).toHaveLength(1);
    expect(judgeProof(books.proof(SLICE, VICTIM), { ...left, movedBlocks })).toMatchObject({
      verdict: 'unchecked',
      missing: ['later_list'],
    });
  });

  test('may credit a late reward with a later list, which the chain confirms', () => {
    const late = lyingBooks(
      (decisions) => void decisions.blocks.push({ slice: SLICE, service: 'pplns', reward: 1_234n, finder: 1 }),
    );
    const all = honest.evidence(SLICE);
    const block = blockIdOf(SLICE, 'pplns', 2);
    const evidence = { ...all, blockServices: new Map([...all.blockServices!, [block, 'pplns']] as const) };
    const third = rewardTransaction(block);
    const lateRewards = new Map([[third, { amount: '1234', height: SLICE * SLICE_CUTS }]]);
    expect(judgeProof(late.proof(SLICE, VICTIM), { ...evidence, lateRewards })).toMatchObject({ verdict: 'proven' });
    expect(judgeProof(late.proof(SLICE, VICTIM), evidence)).toEqual({ verdict: 'false', reason: 'reward_unknown' });
  });
});
