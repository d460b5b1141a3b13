/** Somebody with a hand in the database changes rows of accounts: the books of all others go on, and what was published stays proven. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BooksView } from '../../pool/api/books/books-view.ts';
import { ProofMaker } from '../../pool/api/books/proofs.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import { formatAddress } from '../../protocol/address.ts';
import { checkPoolProof, type PoolProof } from '../../protocol/books/pool-proof.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { blockRecord, shareRecord } from '../pool/book-records.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';

const [VICTIM, OTHER, STRANGER, THIRD] = [1, 2, 3, 4];
const payloadOf = (miner: number) => Buffer.from(account(`miner ${miner}`));
const addressOf = (miner: number) => formatAddress(payloadOf(miner), 'development');

let books: BooksBed;
beforeEach(async () => {
  books = await openBooks();
  await books.height(0);
  await books.take([VICTIM, OTHER].map((miner) => shareRecord('pplns', miner, 100n)));
});
afterEach(() => books.close());

/** What the row of a miner's account says from now on. */
async function change(miner: number, to: { readonly payload?: Buffer; readonly address?: string }): Promise<number> {
  const { sql } = books;
  await sql`alter table accounts disable trigger user`;
  const [row] = await sql<
    { id: number }[]
  >`update accounts set ${sql(to)} where address = ${addressOf(miner)} returning id`;
  await sql`alter table accounts enable trigger user`;
  books.intake.forget();
  return (row as { id: number }).id;
}

const work = async () => {
  const rows = await books.sql<{ payload: Buffer; address: string; work: string }[]>`select n.payload, a.address,
      o.work::text as work from open_work o join account_names n on n.account_id = o.account_id
      join accounts a on a.id = o.account_id order by n.payload`;
  return new Map(rows.map(({ payload, address, work }) => [payload.toString('hex'), { address, work: BigInt(work) }]));
};
const workOf = async (miner: number) => (await work()).get(payloadOf(miner).toString('hex'));

test.each([
  ['address', { address: addressOf(STRANGER) }],
  ['payload', { payload: payloadOf(STRANGER) }],
  ['address and payload', { address: addressOf(STRANGER), payload: payloadOf(STRANGER) }],
])('whose %s stands in the row of another is booked to an account of its own, and so are all others', async (_, to) => {
  const id = await change(VICTIM, to);
  await books.take([VICTIM, OTHER, STRANGER, THIRD].map((miner) => shareRecord('pplns', miner, 7n)));
  expect(await workOf(VICTIM)).toEqual({ address: addressOf(VICTIM), work: 107n });
  expect(await workOf(OTHER)).toEqual({ address: addressOf(OTHER), work: 107n });
  expect(await workOf(STRANGER)).toEqual({ address: addressOf(STRANGER), work: 7n });
  expect(await workOf(THIRD)).toEqual({ address: addressOf(THIRD), work: 7n });
  const log = await books.sql<
    { details: object }[]
  >`select details from operator_log where action = 'account_restored'`;
  expect(log).toMatchObject([{ details: { account: id } }]);
});

test('two rows that were changed one after the other are both given back what they were made with', async () => {
  await change(VICTIM, { address: addressOf(STRANGER), payload: payloadOf(STRANGER) });
  await change(OTHER, { address: addressOf(VICTIM), payload: payloadOf(VICTIM) });
  await books.take([VICTIM, OTHER, STRANGER].map((miner) => shareRecord('pplns', miner, 7n)));
  expect(await workOf(VICTIM)).toEqual({ address: addressOf(VICTIM), work: 107n });
  expect(await workOf(OTHER)).toEqual({ address: addressOf(OTHER), work: 107n });
  expect(await workOf(STRANGER)).toEqual({ address: addressOf(STRANGER), work: 7n });
});

test('a row that was changed makes nobody’s proof false, and its holder is nobody else', async () => {
  await books.height(SLICE_CUTS);
  await books.take([blockRecord('pplns', 'a block', SLICE_CUTS, VICTIM)]);
  await books.height(2 * SLICE_CUTS);
  const paid = { blockId: pattern('a block', 48), transactionId: pattern('reward', 48), outputIndex: 0 };
  await books.fenced((transaction) => recordPaid(transaction, { ...paid, amount: 1_000_000n, height: 100 }));
  await books.fenced((transaction) => makeCredits(transaction, new ClosedWork(), { sliceCuts: SLICE_CUTS }, 200));
  const proofs = async () => {
    const maker = new ProofMaker({ network: 'development' }, { sql: books.sql });
    const made = [];
    for (const miner of [VICTIM, OTHER, STRANGER])
      made.push((await maker.proof(0, 1, payloadOf(miner), addressOf(miner))) as PoolProof);
    return made;
  };
  const before = await proofs();
  for (const proof of before) expect(checkPoolProof(proof)).toMatchObject({ valid: true });
  await change(VICTIM, { address: addressOf(STRANGER), payload: payloadOf(STRANGER) });
  expect(await proofs()).toEqual(before);
  const view = new BooksView({ network: 'development', address: addressOf(OTHER) }, { sql: books.sql });
  const { leaves } = await view.leaves(0, 0, { cursor: undefined, limit: 9 });
  expect(leaves.map(({ address }) => address).sort()).toEqual([addressOf(VICTIM), addressOf(OTHER)].sort());
});
