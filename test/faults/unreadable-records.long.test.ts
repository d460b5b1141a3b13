/**
 * A journal holds a record that the books cannot read or keep: a damaged disk, a program with a fault, a front end that lies. It is set aside and told of;
 * the shares before and after it count, and slices open as ever.
 */
import { expect, onTestFinished, test } from 'vitest';
import { Accountant } from '../../pool/accountant/accountant.ts';
import { encodeRecord, type JournalRecord, type TermsRecord } from '../../pool/journal/journal-record.ts';
import { JournalTally } from '../../pool/receipts/tally.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { blockRecord, shareRecord } from '../pool/book-records.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';

const BOOT = 'ab'.repeat(8);
const FEE = 10_000;

const terms = (other: Partial<TermsRecord>): TermsRecord => ({
  kind: 'terms',
  service: 'pplns',
  from: 1,
  through: 1,
  windowThousandths: 1000,
  feePpm: FEE,
  atMillis: 1,
  ...other,
});
const share = (other: object): JournalRecord => ({ ...shareRecord('pplns', 0, 5n), ...other }) as JournalRecord;
const block = (other: object): JournalRecord => ({ ...blockRecord('pplns', 'bad', 1, 0), ...other }) as JournalRecord;

/** Each of a form that the encoding allows. */
const BAD: Readonly<Record<string, Uint8Array>> = {
  'an unknown kind': Uint8Array.of(99, 0, ...pattern('rest', 80)),
  'an unknown service': Uint8Array.of(4, 7, ...pattern('rest', 80)),
  'a share cut short': encodeRecord(share({})).subarray(0, 70),
  'a share that names a height beyond all numbers': encodeRecord(share({})).map((byte, i, all) =>
    i >= all.length - 32 && i < all.length - 24 ? 0xff : byte,
  ),
  'terms of a slice beyond the column': encodeRecord(terms({ through: 4_294_967_295 })),
  'terms that end before they begin': encodeRecord(terms({ from: 5, through: 2 })),
  'a fee above everything': encodeRecord(terms({ feePpm: 1_000_001 })),
  'no window': encodeRecord(terms({ windowThousandths: 0 })),
  'a window beyond the column': encodeRecord(terms({ windowThousandths: 4_294_967_295 })),
  'a share without work': encodeRecord(share({ work: 0n })),
  'a share of more work than sums can hold': encodeRecord(share({ work: (1n << 128n) - 1n })),
  'a share of a time that no calendar has': encodeRecord(share({ atMillis: Number.MAX_SAFE_INTEGER })),
  'an account of no kind': encodeRecord(share({ account: Uint8Array.of(255, ...pattern('none', 48)) })),
  'a worker that no receipt has room for': encodeRecord(share({ worker: 'w'.repeat(65) })),
  'a worker with a zero byte': encodeRecord(share({ worker: 'a\0b' })),
  'a block of an anchor beyond all slices': encodeRecord(block({ anchorHeight: 2 ** 52 })),
  'a block of a time that no calendar has': encodeRecord(block({ atMillis: Number.MAX_SAFE_INTEGER })),
  'a block of fees beyond the column': encodeRecord(block({ carried: { fees: (1n << 64n) - 1n, mass: 1 } })),
  'a block of a mass beyond the column': encodeRecord(block({ carried: { fees: 1n, mass: 4_294_967_295 } })),
  'an owner without a form': encodeRecord({
    kind: 'ownership',
    service: 'pplns',
    account: account('miner 0'),
    worker: 'a\0b',
    owner: pattern('o', 13),
  }),
};

async function counted({ sql }: BooksBed): Promise<string> {
  const [row] = await sql`select coalesce(sum(work), 0)::text as work from shares`;
  return String(row?.work);
}

test('every record that cannot be read or kept is set aside, and all others count', async () => {
  const books = await openBooks();
  onTestFinished(() => books.close());
  await books.height(0);
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('test', { filter: readLevelFilter('warn'), format: 'text' }, { sink, now: Date.now });
  const accountant = new Accountant(
    {
      network: NETWORKS.development,
      sliceCuts: SLICE_CUTS,
      windowThousandths: 1000n,
      services: [0, 1],
      feePpm: new Map([[0, BigInt(FEE)]]),
      poolAddress: account('pool'),
      term: books.term,
    } as never,
    { sql: books.sql, chain: { headHeight: async () => 0, targetAt: async () => targetOfWork(1000n) }, log } as never,
  );
  let sequence = 0;
  let height = 0;
  const stopped: string[] = [];
  for (const [i, [name, bytes]] of Object.entries(BAD).entries()) {
    const good = () => encodeRecord(shareRecord('pplns', 1, 100n));
    const records = [good(), bytes, good()];
    const entries = records.map((record, n) => ({ bootId: BOOT, sequence: sequence + n, record }));
    try {
      const result = await accountant.takeIn(entries);
      expect(result, name).toMatchObject({ taken: 3, shares: 2, unread: 1 });
      sequence += records.length;
      height += SLICE_CUTS;
      await books.height(height);
    } catch (error) {
      stopped.push(`${name}: ${(error as Error).message}`);
    }
    if (stopped.length === 0) expect(await counted(books), name).toBe(String(200 * (i + 1)));
  }
  expect(stopped).toEqual([]);
  const kept = await books.sql`select sequence::int, record from unread_records order by sequence`;
  expect(kept.map((row) => Buffer.from(row.record as Uint8Array).toString('hex'))).toEqual(
    Object.values(BAD).map((bytes) => Buffer.from(bytes).toString('hex')),
  );
  expect(lines.filter((line) => line.includes('cannot be read'))).toHaveLength(kept.length);
  expect(await books.sql`select distinct fee_ppm, window_thousandths from slices where service = 0`).toEqual([
    { fee_ppm: FEE, window_thousandths: 1000 },
  ]);
});

test('a front end’s receipts: a record that cannot be read counts as missing, and stops nothing', () => {
  const ranges = [1, 2].map((slice) => ({ slice, after: 3 * slice - 4, through: 3 * slice - 1, held: null }));
  const tally = new JournalTally(ranges);
  const good = () => encodeRecord(shareRecord('pplns', 1, 100n));
  const records = [good(), BAD['an unknown kind'] as Uint8Array, good(), good(), good(), good()];
  for (const [i, record] of records.entries()) tally.take(i, record);
  expect(tally.holed).toEqual([1]);
  expect([...tally.leaves()].map(({ slice, leaves }) => [slice, leaves[0]?.work])).toEqual([[2, 300n]]);
});

test('terms are believed of slices that the chain has reached, and of no later one', async () => {
  const books = await openBooks();
  onTestFinished(() => books.close());
  await books.height(0);
  const record = encodeRecord(terms({ from: 0, through: 2_000_000_000, feePpm: 999_999 }));
  await books.fenced((tx) => books.intake.take(tx, [{ bootId: BOOT, sequence: 0, record }], 2));
  for (let slice = 1; slice <= 5; slice++) await books.height(slice * SLICE_CUTS);
  const rows = await books.sql`select number, fee_ppm from slices where service = 0 order by number`;
  expect(rows.map((row) => row.fee_ppm)).toEqual([FEE, 999_999, 999_999, FEE, FEE, FEE]);
  expect(await books.sql`select 1 from noted_terms`).toHaveLength(0);
});
