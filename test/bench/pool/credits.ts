/** A block's credits over 100,000 accounts: in one slice, and in each of the twelve slices that a window spans at least. */
import { ClosedWork } from '../../../pool/books/closed-work.ts';
import { makeCredits } from '../../../pool/books/credits.ts';
import { recordPaid } from '../../../pool/books/rewards.ts';
import type { JournalRecord } from '../../../pool/journal/journal-record.ts';
import { WINDOW_SLICES } from '../../../protocol/books/books-slice.ts';
import { targetOfWork } from '../../../protocol/ledger/target.ts';
import { useNativeSha384 } from '../../../runtime/native/native-sha384.ts';
import { accountOf } from '../../bridge/stratum-client.ts';
import { type BooksBed, openBooks, SLICE_CUTS } from '../../pool/books-bed.ts';
import { freshIdentity } from '../../pool/fresh-identity.ts';
import type { Bench } from '../harness.ts';

const ACCOUNTS = 100_000;
const BATCH = 10_000;

const share = (number: number): JournalRecord => ({
  kind: 'share',
  service: 'pplns',
  account: accountOf(number),
  worker: 'w',
  work: BigInt(1_000 + ((number * 7_919) % 100_003)),
  atMillis: Date.now(),
  identity: freshIdentity(),
});

async function addBlock(books: BooksBed, number: number, anchorHeight: number): Promise<void> {
  const blockId = new Uint8Array(48).fill(number + 1);
  await books.take([
    {
      kind: 'block',
      service: 'pplns',
      account: accountOf(0),
      worker: 'w',
      blockId,
      anchorHeight,
      target: targetOfWork(1_000n),
      extranonce: new Uint8Array(20),
      atMillis: Date.now(),
    },
  ]);
  await books.fenced((transaction) =>
    recordPaid(transaction, { blockId, transactionId: blockId, outputIndex: 0, amount: 98_765_432_109n, height: 10 }),
  );
}

export async function benchCredits(b: Bench): Promise<void> {
  useNativeSha384();
  const books = await openBooks();
  const closed = new ClosedWork();
  const options = { sliceCuts: SLICE_CUTS };
  const credit = async (name: string, slice: number) => {
    await addBlock(books, slice, slice * SLICE_CUTS);
    const [from, cpu] = [performance.now(), process.cpuUsage()];
    const [list] = await books.fenced((transaction) =>
      makeCredits(transaction, closed, options, (slice + 1) * SLICE_CUTS + 200),
    );
    if (list === undefined || list.shares.length !== ACCOUNTS)
      throw new Error('the credit list is not what it should be');
    b.figure(name, performance.now() - from, 'ms');
    b.figure(`${name}-cpu`, process.cpuUsage(cpu).user / 1000, 'ms of the pool');
    b.note(`${name}: ${list.window.parts.length} slices in the window`);
  };
  await books.height(0);
  for (let from = 0; from < ACCOUNTS; from += BATCH)
    await books.take(Array.from({ length: BATCH }, (_, i) => share(from + i)));
  const close = performance.now();
  await books.height(SLICE_CUTS);
  b.figure('slice-close-100k', performance.now() - close, 'ms');
  await credit('credits-100k-one-slice', 1);
  // Eleven more slices like the first; a window is never less than the last twelve.
  await books.sql`insert into slices (service, number, window_work, opened_height, closed_height, total, root, leaves,
      slice_cuts, window_thousandths, fee_ppm, target, previous, chain)
    select service, number + n, window_work, opened_height, closed_height, total, root, leaves,
      slice_cuts, window_thousandths, fee_ppm, target, previous, chain
    from slices, generate_series(2, ${WINDOW_SLICES}) as n where service = 0 and number = 0`;
  await books.sql`update slices set window_work = (select sum(total) from slices where service = 0)
    where service = 0 and closed_height is null`;
  await books.sql`update slices set number = number + 20 where closed_height is null`;
  // W is that of a block's own slice, so each of them is there.
  await books.sql`insert into slices (service, number, window_work, opened_height, slice_cuts, window_thousandths, fee_ppm, target)
    select service, number + n, window_work, opened_height, slice_cuts, window_thousandths, fee_ppm, target
    from slices, generate_series(1, 2) as n where closed_height is null`;
  for (const round of [1, 2, 3]) await credit(`credits-100k-twelve-slices-${round}`, 20 + round);
  await books.close();
}
