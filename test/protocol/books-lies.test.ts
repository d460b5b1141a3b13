/** Books rule 13: a pool that lies, however consistently, is never called proven. */
import { describe, expect, test } from 'vitest';
import { gatherEvidence } from '../../protocol/books-evidence.ts';
import { judgeList, judgeProof } from '../../protocol/books-verdict.ts';
import type { PoolList, PoolProof } from '../../protocol/pool-proof.ts';
import { LEDGER_LIES, unmarkedBlock } from './books-ledger-lies.ts';
import { copy, honest, SLICE, VICTIM } from './books-liar.ts';
import { LIES } from './books-lies.ts';
import { gathered, sourcesOf } from './books-sources.ts';

const ALL = { ...LIES, ...LEDGER_LIES };

describe('a pool that lies is never called proven', () => {
  test('there are seventy lies', () => expect(Object.keys(ALL).length).toBeGreaterThanOrEqual(70));

  for (const [name, lie] of Object.entries(ALL))
    test(name, () => {
      const { proof, evidence } = lie();
      expect(judgeProof(JSON.parse(JSON.stringify(proof)) as PoolProof, evidence).verdict).toBe('false');
    });

  test('two lies at once', () => {
    const lies = Object.values(LIES).map((lie) => lie());
    const truth = JSON.stringify(honest.proof(SLICE, VICTIM));
    const proofs = lies.filter(({ proof }) => JSON.stringify(proof) !== truth);
    expect(proofs.length).toBeGreaterThan(40);
    for (const { proof } of proofs)
      for (const { evidence } of lies) expect(judgeProof(proof, evidence).verdict).not.toBe('proven');
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
    const block = async () => {
      throw new Error('fetch failed');
    };
    const found = await gatherEvidence(proof, { pool, node: { ...node, block } as never });
    expect(judgeProof(proof, found).verdict).toBe('unchecked');
  });
});
