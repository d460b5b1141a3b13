/**
 * A pool may credit a block with a later list than that of its slice (books rule 7), and says so itself. One that says it of a
 * block that no list ever credits must not have its proofs called proven.
 */
import { expect, test } from 'vitest';
import { type BooksSources, gatherEvidence } from '../../protocol/books-evidence.ts';
import { judgeProof } from '../../protocol/books-verdict.ts';
import { Books, honestDecisions, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';

const SLICE = 18;
const MINER = 1;
const honest = new Books(honestDecisions());

/** Pool and node as they answer; the pool says of each block of the slice that it is not in `listed` that it comes later. */
function sources(listed: ReadonlySet<string>): BooksSources {
  const known = honest.evidence(SLICE);
  const answers: Record<string, unknown> = {
    terms: known.terms,
    [`slices/solo/${SLICE}/blocks`]: {
      blocks: honest.blocks(SLICE, 'solo').map(({ block_id }) => ({ block_id, credited_with: SLICE })),
    },
    [`slices/pplns/${SLICE}/blocks`]: {
      blocks: honest.blocks(SLICE, 'pplns').map(({ block_id }) => ({
        block_id,
        credited_with: listed.has(block_id) ? SLICE : SLICE + 1_000,
      })),
    },
  };
  const changes = [...(known.rewards ?? [])].map(([transaction_id, { amount }]) => ({
    kind: 'received',
    source: 'work_reward',
    transaction_id,
    amount,
    finalized_height: SLICE * SLICE_CUTS + 97,
  }));
  return {
    pool: async (path) =>
      path.startsWith('slices/pplns?')
        ? { slices: honest.records.filter((record) => record.slice <= SLICE).reverse() }
        : answers[path],
    node: {
      cuts: async ({ before }: { before: number }) => ({
        cuts: [{ height: before - 1, target: known.targets?.get(before - 1) }],
      }),
      addressChanges: async () => ({ changes, indexed_height: 1_000_000 }),
      block: async () => Promise.reject(new Error('no such block')),
    } as never,
  };
}

const verdictOf = async (books: Books) => {
  const proof = books.proof(SLICE, MINER);
  const listed = new Set(proof.blocks.map(({ block_id }) => block_id));
  return judgeProof(proof, await gatherEvidence(proof, sources(listed)));
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
