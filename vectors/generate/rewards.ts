/**
 * Tables of the work half (ledger rule 37), small enough to check with pencil and paper: anchors, the blocks registered for them, the fees those
 * executed, and what each is paid when the anchor's window closes. test/node/reward-vectors.test.ts plays them on the real ledger.
 */
import { payAnchor } from '../../node/ledger/rewards.ts';
import { toHex } from '../../protocol/bytes.ts';
import { firstInterval, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

/** `fees` are those of the transactions that the block is the first to execute. */
type Block = {
  readonly name: string;
  readonly first_byte: number;
  readonly fees: readonly number[];
  readonly expires?: true;
};
type Anchor = { readonly anchor: number; readonly says: string; readonly blocks: readonly Block[] };

const ANCHORS: readonly Anchor[] = [
  {
    anchor: 0,
    says: 'three blocks: 781,250,000 is 3 times 260,416,666 and 2 over; the two lowest identifiers get one more',
    blocks: [
      { name: 'A', first_byte: 0x30, fees: [] },
      { name: 'B', first_byte: 0x10, fees: [] },
      { name: 'C', first_byte: 0x20, fees: [] },
    ],
  },
  { anchor: 1, says: 'no work: its half waits for the next anchor that has some', blocks: [] },
  {
    anchor: 2,
    says: 'one block takes both halves, and half of each fee rounded down: 100,000 and 50,001',
    blocks: [{ name: 'D', first_byte: 0x40, fees: [200_001, 100_003] }],
  },
  {
    anchor: 3,
    says: 'its only block is registered by no cut up to 99 and expires: nothing for it, the half goes on',
    blocks: [{ name: 'E', first_byte: 0x50, fees: [], expires: true }],
  },
  {
    anchor: 4,
    says: 'two blocks share two halves; fees go to the block that executed, odd atoms of fees to the stake half',
    blocks: [
      { name: 'F', first_byte: 0x61, fees: [77_777] },
      { name: 'G', first_byte: 0x60, fees: [] },
    ],
  },
  {
    anchor: 5,
    says: 'seven blocks: 781,250,000 is 7 times 111,607,142 and 6 over',
    blocks: [7, 6, 5, 4, 3, 2, 1].map((i) => ({ name: `H${i}`, first_byte: 0x70 + i, fees: [] })),
  },
];

export function rewardVectors() {
  const { amount } = firstInterval();
  let carried = 0n;
  const anchors = ANCHORS.map(({ anchor, says, blocks }) => {
    const subsidy = subsidyOfCut(amount, anchor);
    const { work } = splitHalves(subsidy);
    const registered = blocks.filter((block) => block.expires === undefined);
    const carriedIn = carried;
    const payment = payAnchor(
      work,
      carried,
      registered.map((block) => ({
        id: new Uint8Array(48).fill(block.first_byte, 0, 1),
        payout: new Uint8Array(49),
        feeShare: block.fees.reduce((sum, fee) => sum + splitHalves(BigInt(fee)).work, 0n),
      })),
    );
    carried = payment.carry;
    return {
      anchor,
      says,
      subsidy: subsidy.toString(),
      work_half: work.toString(),
      carried_in: carriedIn.toString(),
      paid_in_cut: anchor + REGISTRATION_WINDOW,
      blocks: blocks.map(({ first_byte, ...block }) => ({
        ...block,
        block_id: toHex(new Uint8Array(48).fill(first_byte, 0, 1)),
      })),
      payouts: payment.shares.map((share) => ({
        block: blocks.find((block) => block.first_byte === share.id[0])?.name,
        subsidy: share.subsidy.toString(),
        fees: share.feeShare.toString(),
        amount: share.amount.toString(),
      })),
      carried_out: payment.carry.toString(),
    };
  });
  return {
    about:
      'The work half by ledger rule 37. Amounts in atoms. Every subsidy is that of the first interval; payouts are in the order of block identifiers.',
    anchors,
  };
}
