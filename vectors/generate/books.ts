/** Books rules 1 to 13: slices with their leaves, records, a gap, the blocks of the chain, one list and two proofs of it. */
import { formatAddress } from '../../protocol/address.ts';
import { type BooksCommitment, commitmentText, readCommitment } from '../../protocol/books/books-commitment.ts';
import { booksHead } from '../../protocol/books/books-slice.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { addressOf, Books, honestDecisions, NETWORK } from './honest-books.ts';

const SLICE = 18;

export function booksVectors() {
  const books = new Books(honestDecisions());
  const evidence = books.evidence(SLICE);
  const last = books.records.at(-1)?.chain as string;
  return {
    terms: evidence.terms,
    slices: books.decisions.slices.map((work, i) => ({
      slice: books.decisions.firstSlice + i,
      leaves: [...work]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, value]) => ({ address: formatAddress(fromHex(key), NETWORK), work: String(value) })),
    })),
    records: books.records,
    head_with_an_unused_solo: toHex(booksHead({ pplns: last, solo: '00'.repeat(48) })),
    solo_records: books.solo,
    commitments: evidence.commitments?.map((each) => {
      const { number, slice, head } = readCommitment(each.payload_hex as string) as BooksCommitment;
      return { ...each, number, slice, head, text: commitmentText({ number, slice, head }) };
    }),
    rewards: Object.fromEntries(evidence.rewards ?? []),
    other_blocks: evidence.otherBlocks,
    list: books.list(SLICE),
    proofs: [1, 8].map((miner) => ({ address: addressOf(miner), proof: books.proof(SLICE, miner), verdict: 'proven' })),
  };
}
