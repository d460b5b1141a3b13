/** Lies that only the ledger shows: history told anew after a payout, blocks moved to the other service, another pool's address. */
import { commitmentPayload, headAt } from '../../protocol/books/books-commitment.ts';
import { FIRST_CHAIN, type SliceRecord } from '../../protocol/books/books-slice.ts';
import type { BooksEvidence } from '../../protocol/books/books-verdict.ts';
import { toHex, utf8 } from '../../protocol/bytes.ts';
import { addressOf, blockIdOf, keyOf } from '../../vectors/generate/honest-books.ts';
import { honest, type Lie, lyingBooks, rechained, SLICE, VICTIM } from './books-liar.ts';

const evidenceLie = (change: (evidence: BooksEvidence) => Partial<BooksEvidence>): Lie => {
  const evidence = honest.evidence(SLICE);
  return { proof: honest.proof(SLICE, VICTIM), evidence: { ...evidence, ...change(evidence) } };
};
const carried = (payload: (slice: number, head: string) => string | null): Lie =>
  evidenceLie(({ commitments }) => ({
    commitments: commitments!.map((each, i) => {
      const record = honest.records.at(-1)!;
      const head = headAt({ pplns: record.chain, solo: honest.solo.at(-1)!.chain });
      return i === 0 ? { ...each, payload_hex: payload(record.slice, head) } : each;
    }),
  }));
/** Slices told anew, in every document of the pool; only what a payout wrote to the ledger stays. */
const rewritten = (slice: number, work: bigint): Lie => {
  const books = lyingBooks(({ slices, firstSlice }) => void slices[slice - firstSlice]!.set(keyOf(VICTIM), work));
  const { commitments } = honest.evidence(SLICE);
  return { proof: books.proof(SLICE, VICTIM), evidence: { ...books.evidence(SLICE), commitments } };
};
/** The last PPLNS block of the slice is left out of the list and called one of solo. */
const calledSolo = (isMarked: boolean): Lie => {
  const books = lyingBooks(({ blocks }) => {
    blocks.splice(
      blocks.findLastIndex((each) => each.slice === SLICE && each.service === 'pplns'),
      1,
    );
  });
  const evidence = honest.evidence(SLICE);
  const moved = blockIdOf(SLICE, 'pplns', 1);
  return {
    proof: books.proof(SLICE, VICTIM),
    evidence: {
      ...evidence,
      otherBlocks: [...evidence.otherBlocks!, moved],
      blockServices: new Map([...evidence.blockServices!].filter(([block]) => isMarked || block !== moved)),
    },
  };
};
/** A block of the list shows the other service itself. */
const ofSolo = (): Lie => {
  const evidence = honest.evidence(SLICE);
  const blockServices = new Map([...evidence.blockServices!, [blockIdOf(SLICE, 'pplns', 1), 'solo']] as const);
  return { proof: honest.proof(SLICE, VICTIM), evidence: { ...evidence, blockServices } };
};

export const LEDGER_LIES: Readonly<Record<string, () => Lie>> = {
  'a block of solo in the list of PPLNS': ofSolo,
  'a slice of the window told anew after a payout': () => rewritten(SLICE - 1, 1n),
  'an old slice told anew after a payout': () => rewritten(5, 1n),
  'work given to the victim after a payout': () => rewritten(SLICE - 2, 1_000_000n),
  'a payout that carries nothing': () => carried(() => ''),
  'a payout that the ledger does not have': () => carried(() => null),
  'a payout that carries another text': () => carried(() => `00${toHex(utf8('thank you'))}`),
  'a payout that carries another form of it': () =>
    carried((slice, head) => `00${toHex(utf8(`SVC-BOOKS/2 01 ${slice} ${head}`))}`),
  'a payout that carries a payload of another kind': () =>
    carried((slice, head) => `01${commitmentPayload({ number: 1, slice, head }).slice(2)}`),
  'a payout that carries the head of another slice': () =>
    carried((slice, head) => commitmentPayload({ number: 1, slice: slice - 1, head })),
  'a payout that carries the head of another pool': () =>
    carried((slice) => commitmentPayload({ number: 1, slice, head: 'ab'.repeat(48) })),
  'a payout that carries the head without solo': () =>
    carried((slice) =>
      commitmentPayload({ number: 1, slice, head: headAt({ pplns: honest.records.at(-1)!.chain, solo: FIRST_CHAIN }) }),
    ),
  'records of solo told anew after a payout': () =>
    evidenceLie(({ otherRecords }) => ({
      otherRecords: rechained(otherRecords!.map((record): SliceRecord => ({ ...record, fee_ppm: 0 }))),
    })),
  'records of solo that do not hash to their chain': () =>
    evidenceLie(({ otherRecords }) => ({
      otherRecords: otherRecords!.map((record) => ({ ...record, total_work: '5' })),
    })),
  'a block of PPLNS called one of solo': () => calledSolo(true),
  'an address that the victim’s jobs do not pay': () => evidenceLie(() => ({ poolAddress: addressOf(50) })),
};

/** What cannot be told: the ledger does not say which service a block was found for. */
export const unmarkedBlock = (): Lie => calledSolo(false);
