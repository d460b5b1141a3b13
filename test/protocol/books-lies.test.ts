/** Books rule 13: a pool that lies, however consistently, is never called proven. */
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { type BooksFalse, judgeList, judgeProof } from '../../protocol/books/books-verdict.ts';
import type { PoolList, PoolProof } from '../../protocol/books/pool-proof.ts';
import { count } from '../level.ts';
import { LEDGER_LIES, unmarkedBlock } from './books-ledger-lies.ts';
import { copy, honest, SLICE, VICTIM } from './books-liar.ts';
import { LIES } from './books-lies.ts';
import { gathered, sourcesOf } from './books-sources.ts';

const ALL = { ...LIES, ...LEDGER_LIES };

/** By what each is found out: a lie that only its amount gave away would show nothing about the check that it is meant for. */
const FOUND_BY: Partial<Record<BooksFalse, readonly string[]>> = {
  slice_branch: [
    'a leaf of a large tree as one of a small tree',
    'present, shown absent between its neighbours',
    'present, shown absent as before the first',
    'present, shown absent as after the last',
    'present, shown absent in an empty tree',
    'present, shown absent in a tree that is called empty',
    'a neighbour with another index',
    'one account more in the count',
    'a root changed',
    'another leaf of the tree as the victim’s',
    'a smaller value with the right branch',
    'sums of siblings exchanged',
    'a sibling too many',
    'a fractional index',
    'a negative index',
    'a count beyond all bounds',
  ],
  credit_branch: ['one account less in the credits'],
  credit_amount: ['credits without the victim', 'a hundred atoms less for the victim'],
  terms: [
    'a higher fee, against the published records',
    'a higher fee in the records too',
    'a lower fee',
    'another factor of W in the records',
    'other slice lengths in the records',
  ],
  fee: ['a fee that does not follow from its rate'],
  window_slices: [
    'the newest slice of the window left out',
    'a slice in the middle of the window left out',
    'every slice in which the victim worked left out',
    'the proof of a pool that begins now',
  ],
  window_work: [
    'a W that is too small',
    'a W that is too large',
    'a W that the window does not reach',
    'blocks of another slice',
  ],
  record_window_work: ['a small W in the records too'],
  record_target: ['another target and the W that follows from it'],
  record_order: ['a record left out', 'records of the other service', 'records that pretend to be the first'],
  record_chain: [
    'a record changed without its hash',
    'a record that does not join the one before',
    'records of solo that do not hash to their chain',
  ],
  slice_record: ['another root in the records'],
  reward_unknown: ['an invented block'],
  reward_name: ['an invented transaction', 'another output', 'a block named twice, in both services'],
  reward_amount: [
    'a reward smaller than the chain paid',
    'a reward larger than the chain paid',
    'two rewards exchanged',
  ],
  reward_left_out: ['a block left out'],
  malformed: ['a block repeated', 'another network', 'another version', 'a sum beyond 128 bits', 'a negative sum'],
  window_order: ['the window in another order', 'a window that begins with the own slice'],
  window_arithmetic: ['a part counted more', 'a total changed'],
  block_service: ['a block of solo in the list of PPLNS', 'a block of PPLNS called one of solo'],
  commitment: [
    'a slice of the window told anew after a payout',
    'an old slice told anew after a payout',
    'work given to the victim after a payout',
    'a payout that carries the head of another slice',
    'a payout that carries the head of another pool',
    'a payout that carries the head without solo',
    'records of solo told anew after a payout',
  ],
  commitment_missing: [
    'a payout that carries nothing',
    'a payout that the ledger does not have',
    'a payout that carries another text',
    'a payout that carries another form of it',
    'a payout that carries a payload of another kind',
  ],
  pool_address: ['an address that the victim’s jobs do not pay'],
};

describe('a pool that lies is never called proven', () => {
  test('there are seventy lies', () => expect(Object.keys(ALL).length).toBeGreaterThanOrEqual(70));

  for (const [name, lie] of Object.entries(ALL))
    test(name, () => {
      const { proof, evidence } = lie();
      const [reason] = Object.entries(FOUND_BY).find(([, names]) => names.includes(name)) ?? [];
      expect(judgeProof(JSON.parse(JSON.stringify(proof)) as PoolProof, evidence)).toEqual({
        verdict: 'false',
        reason,
      });
    });

  test('two lies at once', () => {
    const lies = Object.values(LIES).map((lie) => lie());
    const truth = JSON.stringify(honest.proof(SLICE, VICTIM));
    const proofs = lies.filter(({ proof }) => JSON.stringify(proof) !== truth);
    expect(proofs.length).toBeGreaterThan(40);
    const step = count({ quick: 4, full: 1, deep: 1 });
    for (const [i, { proof }] of proofs.entries())
      for (const [j, { evidence }] of lies.entries()) {
        if ((i + j) % step !== 0) continue;
        expect(judgeProof(proof, evidence).verdict).not.toBe('proven');
      }
  });

  test('one atom moved in a list', () => {
    const list = copy(honest.list(SLICE));
    list.credits[0]!.amount = String(BigInt(list.credits[0]!.amount) + 1n);
    list.credits[1]!.amount = String(BigInt(list.credits[1]!.amount) - 1n);
    expect(judgeList(list as PoolList, honest.evidence(SLICE))).toEqual({ verdict: 'false', reason: 'credit_amount' });
  });

  test('a block whose service the ledger does not tell is not proven to be of the other one', () => {
    const { proof, evidence } = unmarkedBlock();
    expect(judgeProof(proof, evidence)).toMatchObject({ verdict: 'unchecked', missing: ['block_service'] });
  });

  // A stranger's block: nobody's extranonce of a pool has that form. Left open, it would keep every audit of the pool from a verdict.
  test('a block with an extranonce that shows no service is one of PPLNS', async () => {
    const lie = unmarkedBlock();
    const moved = lie.evidence.otherBlocks!.at(-1)!;
    const evidence = await gathered(lie);
    expect(evidence.blockServices?.get(moved)).toBe('pplns');
    expect(judgeProof(lie.proof, evidence)).toEqual({ verdict: 'false', reason: 'block_service' });
  });

  test('blocks that are made up do not keep the ledger from being asked for those that it paid', async () => {
    const lie = unmarkedBlock();
    const invented = Array.from({ length: 1_000 }, (_, i) => i.toString(16).padStart(96, '0'));
    const otherBlocks = [...(lie.evidence.otherBlocks ?? []), ...invented];
    const evidence = await gathered({ ...lie, evidence: { ...lie.evidence, otherBlocks } });
    expect(judgeProof(lie.proof, evidence)).toEqual({ verdict: 'false', reason: 'block_service' });
  });

  test('a node that fails is not held against the pool', async () => {
    const proof = honest.proof(SLICE, VICTIM);
    const evidence = honest.evidence(SLICE);
    const rewards = new Map(evidence.rewards);
    // As if its anchor were of an earlier slice: the node is asked for the block itself.
    rewards.delete(proof.blocks[0]!.transaction_id);
    const { pool, node } = sourcesOf({ proof, evidence: { ...evidence, rewards } });
    const verdictWith = async (error: Error) => {
      const block = () => Promise.reject(error);
      const found = await gatherEvidence(proof, { pool, node: { ...node, block } as never });
      return judgeProof(proof, found).verdict;
    };
    for (const error of [new Error('fetch failed'), new ApiError('too_many_requests', 429, 'later')])
      expect(await verdictWith(error)).toBe('unchecked');
    // One that answers that there is no such block has told something.
    expect(await verdictWith(new ApiError('block_unknown', 404, 'none'))).toBe('false');
  });
});
