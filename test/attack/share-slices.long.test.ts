/**
 * Books rule 2 over random orders: journals of several front ends that come early, late and in pieces, nodes that are ahead, behind and going back, made-up
 * anchors, the accountant's own chain standing still and jumping, and accountants that begin anew. No work is lost, counted twice or moved to an earlier slice.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit } from '../../pool/audit/audit.ts';
import { Intake } from '../../pool/books/intake.ts';
import { unpackWork } from '../../pool/books/packed.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { count, seed } from '../level.ts';
import { shareRecord } from '../pool/book-records.ts';
import { type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { randomOf } from '../random.ts';

let books: BooksBed;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(() => books.close());

const AHEAD = 2;
const SERVICES = ['pplns', 'solo'] as const;

type Sent = { readonly service: 0 | 1; readonly anchor: number; readonly work: bigint; readonly record: JournalRecord };

/** A front end: what it has in its journal, and how much of it the books have been sent. */
class FrontEnd {
  readonly bootId: string;
  readonly journal: Sent[] = [];
  taken = 0;
  /** The newest slice that its journal has come to, by rule 2. */
  reached = 0;

  constructor(name: number) {
    this.bootId = name.toString(16).padStart(16, '0');
  }
}

test('whatever order journals, cuts and restarts come in, a share is in the slice of its journal’s newest anchor, or in the open one', async () => {
  const draw = randomOf(seed);
  const ends = Array.from({ length: 4 }, (_, i) => new FrontEnd(i + 1));
  const slices = new Map<string, number>();
  let intake = books.intake;
  let height = 0;
  let tip = 0;
  await books.height(0);
  const steps = count({ quick: 60, full: 240, deep: 3_000 });
  for (let step = 0; step < steps; step++) {
    const end = ends[draw(ends.length)] as FrontEnd;
    const what = draw(10);
    if (what < 5) {
      // Its node is anywhere: on the tip, far behind, a few slices ahead, or of another chain.
      const anchor = [tip, tip, Math.max(0, tip - draw(60)), tip + draw(4 * SLICE_CUTS), 10 ** 12][draw(5)] as number;
      const service = draw(2) as 0 | 1;
      const work = BigInt(1 + draw(1_000));
      const record = {
        ...shareRecord(SERVICES[service], draw(5), work),
        identity: freshIdentity(anchor),
      } as JournalRecord;
      end.journal.push({ service, anchor, work, record });
    } else if (what < 8) {
      // A piece of the journal, with what the books have already before it.
      const from = Math.max(0, end.taken - draw(4));
      const until = Math.min(end.journal.length, end.taken + 1 + draw(12));
      const newest = Math.floor(height / SLICE_CUTS) + AHEAD;
      const open = Math.floor(height / SLICE_CUTS);
      const entries = end.journal.slice(from, until).map(({ record }, i) => ({
        bootId: end.bootId,
        sequence: from + i,
        record: encodeRecord(record),
      }));
      if (entries.length > 0) await books.fenced((tx) => intake.take(tx, entries, newest));
      for (; end.taken < until; end.taken++) {
        const { anchor } = end.journal[end.taken] as Sent;
        const own = Math.floor(anchor / SLICE_CUTS);
        end.reached = Math.max(end.reached, open, own > newest ? 0 : own);
        slices.set(`${end.bootId} ${end.taken}`, end.reached);
      }
    } else if (what === 8) {
      tip += draw(2 * SLICE_CUTS);
      // The accountant's node makes no progress, or catches up over several slices at once.
      if (draw(3) > 0) height = Math.max(height, tip);
      await books.height(height);
    } else intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
  }
  const rows = await books.sql<
    { boot: string; sequence: bigint; slice: number }[]
  >`select encode(boot_id, 'hex') as boot,
    sequence, slice from shares`;
  expect(new Map(rows.map((row) => [`${row.boot} ${row.sequence}`, row.slice]))).toEqual(slices);
  expect(rows.length).toBe(ends.reduce((sum, end) => sum + end.taken, 0));
  expect(await sumsOf()).toEqual(dueSums(ends, slices));
  expect((await audit(books.sql, { network: 'development' })).findings).toEqual([]);
  await expectMarks(ends, slices);
  // All of it is in closed slices in the end.
  await books.height(Math.max(...slices.values()) * SLICE_CUTS + SLICE_CUTS);
  expect(await sumsOf()).toEqual(dueSums(ends, slices));
  expect((await books.sql`select 1 from later_work union all select 1 from open_work`).length).toBe(0);
  expect((await audit(books.sql, { network: 'development' })).findings).toEqual([]);
  await expectMarks(ends, slices);
});

/** Work by service and slice, out of closed slices, the open one and those to come. */
async function sumsOf(): Promise<Record<string, bigint>> {
  const sums: Record<string, bigint> = {};
  const add = (service: number, slice: number, work: bigint) => {
    if (work > 0n) sums[`${service}/${slice}`] = (sums[`${service}/${slice}`] ?? 0n) + work;
  };
  const closed = await books.sql<{ service: number; number: number; leaves: Buffer | null }[]>`select service, number,
    leaves from slices`;
  for (const { service, number, leaves } of closed)
    for (const { value } of leaves === null ? [] : unpackWork(leaves)) add(service, number, value);
  const rest = await books.sql<{ service: number; slice: number; work: string }[]>`select o.service, s.number as slice,
      o.work::text from open_work o join slices s on s.service = o.service and s.closed_height is null
    union all select service, slice, work::text from later_work`;
  for (const { service, slice, work } of rest) add(service, slice, BigInt(work));
  return sums;
}

function dueSums(ends: readonly FrontEnd[], slices: ReadonlyMap<string, number>): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const end of ends)
    for (const [i, { service, work }] of end.journal.slice(0, end.taken).entries()) {
      const key = `${service}/${slices.get(`${end.bootId} ${i}`)}`;
      sums[key] = (sums[key] ?? 0n) + work;
    }
  return sums;
}

/** What the front ends read of closed slices, to make receipts from: the last sequence of each. */
async function expectMarks(ends: readonly FrontEnd[], slices: ReadonlyMap<string, number>): Promise<void> {
  const [open] = await books.sql<{ number: number }[]>`select number from slices where closed_height is null limit 1`;
  for (const end of ends) {
    const rows = await books.sql<{ slice: number; through: bigint }[]>`select slice, through from slice_ends
      where boot_id = decode(${end.bootId}, 'hex') order by slice`;
    for (let slice = 0; slice < (open?.number ?? 0); slice++) {
      const through = rows.findLast((row) => row.slice <= slice)?.through ?? -1n;
      const inside = Array.from({ length: end.taken }, (_, i) => slices.get(`${end.bootId} ${i}`) as number);
      expect(Number(through), `${end.bootId} slice ${slice}`).toBe(inside.filter((each) => each <= slice).length - 1);
    }
  }
}
