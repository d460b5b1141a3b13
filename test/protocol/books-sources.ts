/** A pool and a node that answer with what a proof's evidence holds: gathered again, it is that evidence. */
import { ApiError } from '../../protocol/api/client-calls.ts';
import { SOLO_MARK } from '../../protocol/books/block-service.ts';
import { type BooksSources, gatherEvidence } from '../../protocol/books/books-evidence.ts';
import { toHex } from '../../protocol/bytes.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import type { Lie } from './books-liar.ts';

const LATER = 1_000_000;

const extranonceOf = (isSolo: boolean): string => {
  const unique = new Uint8Array(17);
  unique[8] = isSolo ? SOLO_MARK | 1 : 1;
  return toHex(encodeExtranonce('tag', unique));
};

/** What the pool answers to a path below api/v1/; undefined for what it does not have. */
export function poolAnswer({ proof, evidence }: Lie, path: string): unknown {
  const { service, slice } = proof;
  const other = service === 'pplns' ? 'solo' : 'pplns';
  const [route = '', words = ''] = path.split('?');
  const query = new URLSearchParams(words);
  const page = (records: readonly { slice: number }[] | null) => ({
    slices: (records ?? [])
      .filter((record) => record.slice < Number.parseInt(query.get('cursor') ?? '999999999', 10))
      .reverse()
      .slice(0, Number(query.get('limit') ?? 50)),
  });
  switch (route) {
    case 'terms':
      return evidence.terms;
    case `proofs/${service}/${slice}`:
      return proof;
    case `slices/${service}`:
      return page(evidence.records);
    case `slices/${other}`:
      return page(evidence.otherRecords);
    case `slices/${other}/${slice}/blocks`:
      return { blocks: evidence.otherBlocks?.map((block_id) => ({ block_id, credited_with: slice })) };
    case `slices/${service}/${slice}/blocks`:
      return {
        blocks: [
          ...proof.blocks.map(({ block_id }) => ({ block_id, credited_with: slice })),
          ...(evidence.movedBlocks ?? []).map((block_id) => ({ block_id, credited_with: LATER })),
        ],
      };
    case 'commitments':
      return {
        commitments: evidence.commitments?.map(({ transaction_id, height }, i) => ({
          number: i + 1,
          state: 'finalized',
          transaction_id,
          final_height: height,
        })),
      };
    default:
      return undefined;
  }
}

export const nodeAnswers = ({ proof, evidence }: Lie) => ({
  cuts: ({ before }: { before: number }) => ({
    cuts: [{ height: before - 1, target: evidence.targets?.get(before - 1) }],
  }),
  addressChanges: () => ({
    changes: [...(evidence.rewards ?? [])].map(([transaction_id, { amount, height }]) => ({
      kind: 'received',
      source: 'work_reward',
      transaction_id,
      amount,
      finalized_height: height,
    })),
    indexed_height: LATER,
  }),
  cutTransactions: ({ height }: { height: number }) => ({
    transactions: (evidence.commitments ?? [])
      .filter((each) => each.height === height && each.payload_hex !== null)
      .map(({ transaction_id, payload_hex }) => ({ transaction_id, payload_hex, outcome: 'finalized' })),
  }),
  /** Undefined for a block that is on no ledger. */
  block: ({ id }: { id: string }) => {
    const service = evidence.blockServices?.get(id);
    if (service !== undefined) return { extranonce: extranonceOf(service === 'solo') };
    return evidence.otherBlocks?.includes(id) && !proof.blocks.some((block) => block.block_id === id)
      ? { extranonce: '00' }
      : undefined;
  },
});

export function sourcesOf(lie: Lie): BooksSources {
  const node = nodeAnswers(lie);
  const answering =
    <I, A>(answer: (input: I) => A) =>
    async (input: I): Promise<A> => {
      const found = answer(input);
      if (found === undefined) throw new ApiError('block_unknown', 404, 'not found');
      return found;
    };
  return {
    pool: async (path) => {
      const answer = poolAnswer(lie, path);
      if (answer === undefined) throw new Error(`no ${path}`);
      return answer;
    },
    node: {
      cuts: answering(node.cuts),
      addressChanges: answering(node.addressChanges),
      cutTransactions: answering(node.cutTransactions),
      block: answering(node.block),
    } as never,
    poolAddress: lie.evidence.poolAddress,
  };
}

export const gathered = (lie: Lie) => gatherEvidence(lie.proof, sourcesOf(lie));
