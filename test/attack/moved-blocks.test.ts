/**
 * A pool may hold a block's reward, or credit it with a later list than that of its slice (books rules 7 and 15), and says so itself. One that says
 * it of a block that no list ever credits must not have its proofs called proven; one that says it truly is not called false.
 */
import { expect, test } from 'vitest';
import { judgeProof } from '../../protocol/books/books-verdict.ts';
import { Books, honestDecisions } from '../../vectors/generate/honest-books.ts';
import { honest, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { gathered } from '../protocol/books-sources.ts';

const verdictOf = async (books: Books) => {
  const proof = books.proof(SLICE, VICTIM);
  const listed = new Set(proof.blocks.map(({ block_id }) => block_id));
  const movedBlocks = honest
    .blocks(SLICE, 'pplns')
    .map(({ block_id }) => block_id)
    .filter((id) => !listed.has(id));
  const lie = { proof, evidence: { ...honest.evidence(SLICE), movedBlocks } };
  return judgeProof(proof, await gathered(lie));
};

test('an honest list is proven', async () => {
  expect(await verdictOf(honest)).toMatchObject({ verdict: 'proven' });
});

test('a list without a block that is said to come later is not', async () => {
  const decisions = honestDecisions();
  const last = decisions.blocks.findLastIndex((each) => each.slice === SLICE && each.service === 'pplns');
  decisions.blocks.splice(last, 1);
  expect(await verdictOf(new Books(decisions))).toMatchObject({ verdict: 'unchecked', missing: ['later_list'] });
});
