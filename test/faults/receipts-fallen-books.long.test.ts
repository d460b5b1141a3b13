/** An honest pool signs nothing that convicts it, whatever state its database comes back in (books rules 17 and 20). */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { SLICES_FILE } from '../../pool/journal/journal.ts';
import { encodeRecord } from '../../pool/journal/journal-record.ts';
import type { PoolKey } from '../../pool/receipts/pool-key.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { EVIDENCE_FORMAT, judgeEvidence } from '../../protocol/evidence/receipt-evidence.ts';
import { account, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { type FrontEnd, newPoolKey, openFrontEnd, openReceipts, type ReceiptsBed } from '../pool/receipts-bed.ts';

const share = (miner: number, work: bigint, anchorHeight = 0) => ({
  kind: 'share' as const,
  service: 'pplns' as const,
  account: account(`miner ${miner}`),
  worker: 'rig',
  work,
  atMillis: Date.now(),
  identity: freshIdentity(anchorHeight),
});

/** What a miner holds after asking, and whether anything of it convicts. */
async function collect(bed: ReceiptsBed, key: PoolKey, held: Receipt[]): Promise<string[]> {
  const charges: string[] = [];
  const { slices } = await bed.view.ofAccount({ payload: account('miner 0'), after: 0 });
  for (const { receipts, leaf, record } of slices) {
    held.push(...receipts);
    const verdict = judgeEvidence({ format: EVIDENCE_FORMAT, pool_key: '', receipts, leaf, record }, key.publicKey);
    if (verdict.verdict === 'convicts') charges.push(`${record.slice} ${verdict.charge}`);
  }
  for (const { slice } of held) {
    const receipts = held.filter((each) => each.slice === slice);
    const all = { format: EVIDENCE_FORMAT, pool_key: '', receipts, leaf: null, record: null } as const;
    if (judgeEvidence(all, key.publicKey).verdict === 'convicts') charges.push(`${slice} all`);
  }
  return charges;
}

/** Slices 0 and 1: the second has the work of the front ends. */
async function first(bed: ReceiptsBed, ends: readonly FrontEnd[]): Promise<void> {
  await bed.books.height(0);
  await bed.books.height(SLICE_CUTS);
  await bed.look();
  for (const end of ends) await end.write([share(0, 100n), share(0, 101n), share(1, 102n)]);
  for (const end of ends) await bed.take(end);
  await bed.books.height(2 * SLICE_CUTS);
  await bed.look();
  await bed.maker.round();
}

test.each([{ remembers: true }, { remembers: false }])(
  'the books fell back while a front end was away: its old slice is not signed anew (%o)',
  async ({ remembers }) => {
    const key = newPoolKey();
    const end = await openFrontEnd();
    const held: Receipt[] = [];
    const before = await openReceipts(key, [end]);
    await first(before, [end]);
    expect(before.delivered).toEqual([`pplns/1/${end.bootId}`]);
    expect(await collect(before, key, held)).toEqual([]);
    // Without the memory the miner's first receipts were lost too: what is signed now must be right by itself.
    if (!remembers) {
      rmSync(join(end.directory, 'signed-slices'), { force: true });
      held.length = 0;
    }
    // A copy from when slice 1 was open; slices close by height, and the entries come when 3 is open.
    const after = await openReceipts(key, [end]);
    await after.books.height(0);
    await after.books.height(SLICE_CUTS);
    await after.books.height(3 * SLICE_CUTS);
    await after.take(end, { marked: true });
    await after.books.height(4 * SLICE_CUTS);
    await after.look();
    await after.maker.round();
    expect(await collect(after, key, held)).toEqual([]);
    expect(after.logged.join('\n')).toContain('no receipts');
    // The next slices are signed as ever.
    await end.write([share(0, 7n)]);
    await after.take(end, { marked: true });
    await after.books.height(5 * SLICE_CUTS);
    await after.look();
    await after.maker.round();
    expect(after.delivered.at(-1)).toBe(`pplns/4/${end.bootId}`);
    expect(await collect(after, key, held)).toEqual([]);
  },
);

test('what one front end sent in time does not cover what another sent too late', async () => {
  const key = newPoolKey();
  const early = await openFrontEnd();
  const away = await openFrontEnd(early.directory, 0xcd);
  const before = await openReceipts(key, [early, away]);
  await first(before, [early, away]);
  expect(before.delivered.length).toBe(2);
  rmSync(join(early.directory, 'signed-slices'), { force: true });
  const after = await openReceipts(key, [early, away]);
  await after.books.height(0);
  await after.books.height(SLICE_CUTS);
  await after.take(early, { marked: true });
  await after.books.height(2 * SLICE_CUTS);
  await after.take(away, { marked: true });
  await after.books.height(3 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  expect(await collect(after, key, [])).toEqual([]);
  expect(after.delivered).toContain(`pplns/1/${early.bootId}`);
  expect(after.delivered).not.toContain(`pplns/1/${away.bootId}`);
});

test('the books fell back while a machine was away: it signs no other record of a slice than the others signed before', async () => {
  const key = newPoolKey();
  const here = await openFrontEnd();
  const away = await openFrontEnd(undefined, 0xcd);
  const held: Receipt[] = [];
  const before = await openReceipts(key, [here]);
  const other = await openReceipts(key, [away], before.books);
  await before.books.height(0);
  await before.books.height(SLICE_CUTS);
  await before.look();
  await other.look();
  await here.write([share(0, 100n)]);
  await away.write([share(0, 101n)]);
  await before.take(here);
  await other.take(away);
  // The second machine ends before it has seen that the slice is closed.
  await before.books.height(2 * SLICE_CUTS);
  await before.look();
  await before.maker.round();
  expect(await collect(before, key, held)).toEqual([]);
  expect(held.length).toBe(1);
  // A copy from when slice 1 was open: it closes without what the second machine holds.
  const after = await openReceipts(key, [here]);
  await after.books.height(0);
  await after.books.height(SLICE_CUTS);
  await after.take(here, { marked: true });
  await after.books.height(2 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  const back = await openReceipts(key, [away], after.books);
  await back.look();
  await back.take(away, { marked: true });
  await back.maker.round();
  expect(await collect(after, key, held)).toEqual([]);
  expect(back.delivered).toEqual([]);
  // What is signed by nobody yet is signed by both.
  await here.write([share(0, 102n)]);
  await after.take(here, { marked: true });
  await after.books.height(3 * SLICE_CUTS);
  for (const bed of [after, back]) {
    await bed.look();
    await bed.maker.round();
  }
  expect([after.delivered.at(-1), back.delivered.at(-1)]).toEqual([`pplns/2/${here.bootId}`, `pplns/2/${away.bootId}`]);
  expect(await collect(after, key, held)).toEqual([]);
  // In a new term all have told what they signed before one of them signs.
  await here.write([share(0, 103n)]);
  await after.take(here, { marked: true });
  await after.books.height(4 * SLICE_CUTS);
  await after.look();
  await after.books.sql`update term set number = number + 1`;
  await after.maker.round();
  expect(after.delivered.at(-1)).toBe(`pplns/2/${here.bootId}`);
  await after.maker.round();
  expect(after.delivered.at(-1)).toBe(`pplns/3/${here.bootId}`);
});

test('the books fell with the machine that had signed a slice: another machine knows what it signed, and tells it to those that come later', async () => {
  const key = newPoolKey();
  const gone = await openFrontEnd();
  const away = await openFrontEnd(undefined, 0xcd);
  const stays = await openFrontEnd(undefined, 0xef);
  const held: Receipt[] = [];
  const before = await openReceipts(key, [gone]);
  const other = await openReceipts(key, [away], before.books);
  const idle = await openReceipts(key, [stays], before.books);
  await before.books.height(0);
  await before.books.height(SLICE_CUTS);
  for (const bed of [before, other, idle]) await bed.look();
  await gone.write([share(0, 100n)]);
  await away.write([share(0, 101n)]);
  for (const [bed, end] of [
    [before, gone],
    [other, away],
  ] as const)
    await bed.take(end);
  // The second machine ends before it has seen that the slice is closed; the third has no work in it.
  await before.books.height(2 * SLICE_CUTS);
  await before.look();
  await before.maker.round();
  // Rows that nobody tells spoil nothing.
  await before.books.sql`insert into signed_slices values (7, 1, 'x'), (0, 2000000000, ${'0'.repeat(32)})`;
  await idle.maker.round();
  expect(await collect(before, key, held)).toEqual([]);
  expect(held.length).toBe(1);
  // A copy from when slice 1 was open: it closes without what the first machine holds.
  const after = await openReceipts(key, [stays]);
  const back = await openReceipts(key, [away], after.books);
  await after.books.height(0);
  await after.books.height(SLICE_CUTS);
  await after.maker.round();
  await back.look();
  await back.take(away, { marked: true });
  await after.books.height(2 * SLICE_CUTS);
  for (let i = 0; i < 2; i++) {
    await back.look();
    await back.maker.round();
  }
  expect(await collect(after, key, held)).toEqual([]);
  expect(back.logged.join('\n')).toContain('another record of the slice was signed before');
});

test('a machine that begins anew with a backup signs no slice that the books close without its work: the lost machine may have signed it', async () => {
  const key = newPoolKey();
  const lost = await openFrontEnd();
  const held: Receipt[] = [];
  const before = await openReceipts(key, [lost]);
  await first(before, [lost]);
  await lost.write([share(0, 103n)]);
  await before.take(lost, { marked: true });
  await before.books.height(3 * SLICE_CUTS);
  await before.look();
  await before.maker.round();
  expect(await collect(before, key, held)).toEqual([]);
  expect(held.map(({ slice }) => slice)).toEqual([1, 2]);
  // A copy from when slice 1 was open. Miners are there before the books have caught up.
  const fresh = await openFrontEnd(undefined, 0xcd);
  const after = await openReceipts(key, [fresh]);
  await after.books.height(0);
  await after.books.height(SLICE_CUTS);
  await after.look();
  await fresh.write([share(0, 7n)]);
  for (const slice of [2, 3, 4]) {
    await after.books.height(slice * SLICE_CUTS);
    await after.look();
    await after.maker.round();
  }
  expect(await collect(after, key, held)).toEqual([]);
  await after.take(fresh, { marked: true });
  await after.books.height(5 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  expect(await collect(after, key, held)).toEqual([]);
  expect(after.delivered).toEqual([`pplns/4/${fresh.bootId}`]);
});

test('an accountant whose node is far behind counts work of now in a slice of long ago: nobody signs that', async () => {
  const key = newPoolKey();
  const lost = await openFrontEnd();
  const held: Receipt[] = [];
  const before = await openReceipts(key, [lost]);
  await first(before, [lost]);
  await lost.write([share(0, 103n)]);
  await before.take(lost, { marked: true });
  await before.books.height(3 * SLICE_CUTS);
  await before.look();
  await before.maker.round();
  expect(await collect(before, key, held)).toEqual([]);
  // A copy from when slice 1 was open; the miners' jobs are of slice 9, and the accountant's node is in slice 2.
  const fresh = await openFrontEnd(undefined, 0xcd);
  const after = await openReceipts(key, [fresh]);
  await after.books.height(0);
  await after.books.height(2 * SLICE_CUTS);
  await after.look();
  await fresh.write([share(0, 7n, 9 * SLICE_CUTS)]);
  await after.take(fresh, { marked: true, newest: 4 });
  await after.books.height(3 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  expect(await collect(after, key, held)).toEqual([]);
  expect(after.delivered).toEqual([]);
  expect(after.logged.join('\n')).toContain('the books were behind');
  // Of its own time it is signed.
  await fresh.write([share(0, 8n, 9 * SLICE_CUTS + 3)]);
  await after.books.height(9 * SLICE_CUTS);
  await after.take(fresh, { marked: true });
  await after.books.height(10 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  expect(await collect(after, key, held)).toEqual([]);
  expect(after.delivered).toEqual([`pplns/9/${fresh.bootId}`]);
});

test('a fall after which the slice closes as it did costs no receipt', async () => {
  const key = newPoolKey();
  const end = await openFrontEnd();
  const held: Receipt[] = [];
  const before = await openReceipts(key, [end]);
  await first(before, [end]);
  await collect(before, key, held);
  const after = await openReceipts(key, [end]);
  await after.books.height(0);
  await after.books.height(SLICE_CUTS);
  await after.take(end, { marked: true });
  await after.books.height(2 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  expect(after.delivered).toEqual([`pplns/1/${end.bootId}`]);
  expect(await collect(after, key, held)).toEqual([]);
  expect(held.length).toBe(2);
});

test('fee and W changed between a copy of the books and their fall: slices that were published open with the terms that they had', async () => {
  const key = newPoolKey();
  const end = await openFrontEnd();
  const before = await openReceipts(key, [end]);
  await first(before, [end]);
  await before.books.height(3 * SLICE_CUTS);
  await before.look();
  const held: Receipt[] = [];
  await collect(before, key, held);
  const recordsOf = async ({ books }: ReceiptsBed) =>
    await books.sql<
      { service: number; number: number; fee_ppm: number; chain: string | null }[]
    >`select service, number,
      fee_ppm, encode(chain, 'hex') as chain from slices order by service, number`;
  const published = await recordsOf(before);
  // A copy from when slice 0 was open, under a pool that was started with other fees since.
  const fees = new Map([
    [0, 77_000n],
    [1, 88_000n],
  ]);
  const after = await openReceipts(key, [end]);
  await after.books.height(0);
  await after.take(end, { marked: true });
  await after.books.height(4 * SLICE_CUTS, fees);
  await after.look();
  await after.maker.round();
  const now = await recordsOf(after);
  // Slice 3 was open when the books fell: it was published with its terms, too.
  const open = published.filter(({ number }) => number === 3);
  expect(now.filter(({ number }) => number < 3)).toEqual(published.filter(({ number }) => number < 3));
  expect(now.filter(({ number }) => number === 3).map((row) => row.fee_ppm)).toEqual(open.map((row) => row.fee_ppm));
  expect(now.filter(({ number }) => number === 4).map((row) => row.fee_ppm)).toEqual([77_000, 88_000]);
  for (const { slice, chain } of held)
    expect(now.find(({ service, number }) => service === 0 && number === slice)?.chain).toBe(chain);
  expect(await collect(after, key, held)).toEqual([]);
  expect(after.delivered).toEqual([`pplns/1/${end.bootId}`]);
  // Nothing is left of what was noted: the next slices open with the terms of their own time.
  expect(await after.books.sql`select 1 from noted_terms`).toHaveLength(0);
});

test('a clock of the database that jumps by two days takes no receipts that miners have yet to compare', async () => {
  const key = newPoolKey();
  const end = await openFrontEnd();
  const bed = await openReceipts(key, [end]);
  await first(bed, [end]);
  await bed.books.sql`update receipt_sheets set made_at = now() - interval '2 days'`;
  await end.write([share(0, 103n)]);
  await bed.take(end, { marked: true });
  await bed.books.height(3 * SLICE_CUTS);
  await bed.look();
  await bed.maker.round();
  const { slices } = await bed.view.ofAccount({ payload: account('miner 0'), after: 0 });
  expect(slices.map(({ slice }) => slice)).toEqual([1, 2]);
});

test('a copy of a journal that a person put back under another name is no witness of shares that the books had already', async () => {
  const key = newPoolKey();
  const end = await openFrontEnd();
  const held: Receipt[] = [];
  const before = await openReceipts(key, [end]);
  await first(before, [end]);
  expect(await collect(before, key, held)).toEqual([]);
  const copy = await openFrontEnd(end.directory, 0xcd);
  const missing = encodeRecord(share(0, 50n, SLICE_CUTS));
  const records = [...end.records, missing];
  await copy.journal.append(records);
  copy.records.push(...records);
  const after = await openReceipts(key, [end, copy], before.books);
  await after.look();
  await after.take(copy, { marked: true });
  const worked = async () => {
    await end.write([share(0, 7n)]);
    await after.take(end, { marked: true });
  };
  await worked();
  await after.books.height(3 * SLICE_CUTS);
  await after.look();
  await after.maker.round();
  expect(await collect(after, key, held)).toEqual([]);
  // What is missing in the damaged journal was booked, and the copy is the witness of that.
  expect(after.delivered).toEqual([`pplns/2/${end.bootId}`, `pplns/2/${copy.bootId}`]);
  expect(new Set(held.map(({ slice, work }) => `${slice} ${work}`))).toEqual(new Set(['1 201', '2 50', '2 7']));
  const [booked] = await after.books.sql<
    { total: string }[]
  >`select total::text from slices where number = 2 and service = 0`;
  expect(booked?.total).toBe('57');
});

test('who gets a share into two journals takes the receipts of nobody else', async () => {
  const key = newPoolKey();
  const [one, other] = [await openFrontEnd(), await openFrontEnd(undefined, 0xcd)];
  const bed = await openReceipts(key, [one]);
  const second = await openReceipts(key, [other], bed.books);
  await bed.books.height(0);
  await bed.books.height(SLICE_CUTS);
  await bed.look();
  await second.look();
  const [first, last] = [share(0, 5n), share(0, 6n)];
  await one.write([first, share(1, 100n), last]);
  await other.write([first, share(1, 200n), share(2, 300n), last]);
  await bed.take(one);
  await second.take(other);
  await bed.books.height(2 * SLICE_CUTS);
  for (const each of [bed, second]) {
    await each.look();
    await each.maker.round();
  }
  expect(second.delivered).toEqual([`pplns/1/${other.bootId}`]);
  const works = async (miner: string) => {
    const { slices } = await bed.view.ofAccount({ payload: account(miner), after: 0 });
    return slices.flatMap(({ receipts }) => receipts.map(({ work }) => work));
  };
  expect([await works('miner 0'), (await works('miner 1')).sort(), await works('miner 2')]).toEqual([
    ['11'],
    ['100', '200'],
    ['300'],
  ]);
  expect(await collect(bed, key, [])).toEqual([]);
});

test('a share in two journals, which the books take in the other order after a fall: it is signed for one of them alone, and all beside it', async () => {
  const key = newPoolKey();
  const [one, other] = [await openFrontEnd(), await openFrontEnd(undefined, 0xcd)];
  const held: Receipt[] = [];
  const twice = share(0, 5n);
  await one.write([twice, share(0, 100n)]);
  await other.write([twice, share(0, 200n), share(1, 7n)]);
  for (const isTurned of [false, true]) {
    const bed = await openReceipts(key, [one]);
    const second = await openReceipts(key, [other], bed.books);
    await bed.books.height(0);
    await bed.books.height(SLICE_CUTS);
    for (const each of [bed, second]) {
      await each.look();
      await each.maker.round();
    }
    for (const end of isTurned ? [other, one] : [one, other]) await bed.take(end, { marked: isTurned });
    await bed.books.height(2 * SLICE_CUTS);
    for (const each of [bed, second]) {
      await each.look();
      await each.maker.round();
    }
    expect([...bed.delivered, ...second.delivered]).toEqual([`pplns/1/${one.bootId}`, `pplns/1/${other.bootId}`]);
    const { slices } = await bed.view.ofAccount({ payload: account('miner 0'), after: 0 });
    const [{ receipts, leaf, record }] = slices as [(typeof slices)[number]];
    held.push(...receipts);
    const evidence = { format: EVIDENCE_FORMAT, pool_key: '', receipts: held, leaf, record } as const;
    expect(judgeEvidence(evidence, key.publicKey)).toEqual({
      verdict: 'does_not',
      why: 'books_suffice',
      signed: 305n,
      booked: 305n,
    });
  }
  expect(held.map(({ work }) => work)).toEqual(['105', '200', '100', '200']);
});

/** A database that is another one from the first query on that has this text. */
function fallingAt(text: string, before: Sql, fall: () => Promise<Sql>): Sql {
  let present = before;
  return new Proxy(before, {
    get: (_, name) => Reflect.get(present, name),
    apply: (_, __, [first, ...rest]: Parameters<Sql>) => {
      const isThat = present === before && Array.isArray(first) && String(first).includes(text);
      if (!isThat) return present(first, ...rest);
      return fall().then((sql) => {
        present = sql;
        return sql(first, ...rest);
      });
    },
  });
}

test('the books fall while a sheet is made: it is not signed in a term in which others have signed its shares', async () => {
  const key = newPoolKey();
  const [one, other] = [await openFrontEnd(), await openFrontEnd(undefined, 0xcd)];
  const twice = share(0, 5n);
  await one.write([twice, share(0, 100n)]);
  await other.write([twice, share(0, 200n)]);
  const [old, books] = [await openBooks(), await openBooks()];
  onTestFinished(() => old.close().then(() => books.close()));
  const second = await openReceipts(key, [other], books);
  const sql = fallingAt('insert into signed_slices values', old.sql, async () => {
    for (const height of [0, SLICE_CUTS]) await books.height(height);
    await second.look();
    await second.maker.round();
    for (const end of [other, one]) await second.take(end);
    await books.height(2 * SLICE_CUTS);
    await second.look();
    await second.maker.round();
    expect(second.delivered).toEqual([`pplns/1/${other.bootId}`]);
    return books.sql;
  });
  const bed = await openReceipts(key, [one], { ...old, sql });
  for (const height of [0, SLICE_CUTS]) await old.height(height);
  await bed.look();
  for (const end of [one, other]) await bed.take(end);
  await old.height(2 * SLICE_CUTS);
  await bed.look();
  await old.sql`update term set number = number + 100`;
  for (let i = 0; i < 4; i++) await bed.maker.round();
  expect(bed.delivered).toEqual([`pplns/1/${one.bootId}`]);
  const { slices } = await second.view.ofAccount({ payload: account('miner 0'), after: 0 });
  const [{ receipts, leaf, record }] = slices as [(typeof slices)[number]];
  const evidence = { format: EVIDENCE_FORMAT, pool_key: '', receipts, leaf, record } as const;
  expect(judgeEvidence(evidence, key.publicKey)).toMatchObject({ verdict: 'does_not', booked: 305n });
});

test('a copy that fills the hole of a journal, of which a sheet was signed before the books fell, signs none of it again', async () => {
  const key = newPoolKey();
  const end = await openFrontEnd();
  const before = await openReceipts(key, [end]);
  const work = async (bed: ReceiptsBed, take: () => Promise<void>) => {
    for (const height of [0, SLICE_CUTS]) await bed.books.height(height);
    await bed.look();
    await bed.maker.round();
    await take();
    await bed.books.height(2 * SLICE_CUTS);
    await bed.look();
    await bed.maker.round();
    const { slices } = await bed.view.ofAccount({ payload: account('miner 0'), after: 0 });
    return slices;
  };
  await end.write(Array.from({ length: 40 }, () => share(0, 1n)));
  const held = (await work(before, () => before.take(end))).flatMap(({ receipts }) => receipts);
  expect(held.map(({ work }) => work)).toEqual(['40']);
  const copy = await openFrontEnd(end.directory, 0xcd);
  await copy.journal.append(end.records);
  copy.records.push(...end.records);
  copyFileSync(join(end.directory, end.bootId, SLICES_FILE), join(end.directory, copy.bootId, SLICES_FILE));
  const after = await openReceipts(key, [copy]);
  const damaged = async () => {
    const { bootId, records } = end;
    const entry = (sequence: number) => ({ bootId, sequence, slice: 1, record: records[sequence] as Uint8Array });
    const sequences = [...end.records.keys()].filter((sequence) => sequence < 20 || sequence > 24);
    const entries = sequences.map((sequence) => (sequence === 25 ? { ...entry(25), after: 19 } : entry(sequence)));
    await after.books.fenced((transaction) => after.books.intake.take(transaction, entries));
    await after.take(copy, { marked: true });
  };
  const slices = await work(after, damaged);
  const [booked] = await after.books.sql`select total::text from slices where number = 1 and service = 0`;
  expect(booked).toEqual({ total: '40' });
  expect([slices, after.logged.join()]).toEqual([[], expect.stringContaining('what was signed of it before')]);
});

test('shares that an earlier release noted as counted before take no receipts from the journal where they count', async () => {
  const key = newPoolKey();
  const [one, other] = [await openFrontEnd(), await openFrontEnd(undefined, 0xcd)];
  const [noted, twice] = [share(0, 5n), share(0, 6n)];
  await other.write([noted, twice, share(0, 200n)]);
  await one.write([share(1, 1n), noted]);
  const bed = await openReceipts(key, [one]);
  const second = await openReceipts(key, [other], bed.books);
  for (const height of [0, SLICE_CUTS]) await bed.books.height(height);
  for (const each of [bed, second]) await each.look();
  expect(one.records.length).toBeGreaterThan(2);
  await one.write([twice, share(1, 100n)]);
  for (const end of [other, one]) await bed.take(end);
  // A run of then has no more than the places, also of entries between that are no shares.
  await bed.books.sql`delete from doubled_shares where sequence = 1`;
  await bed.books.sql`insert into doubled_shares (boot_id, sequence) values
    (${Buffer.from(one.bootId, 'hex')}, 1), (${Buffer.from(one.bootId, 'hex')}, 2)`;
  await bed.books.height(2 * SLICE_CUTS);
  for (const each of [bed, second]) {
    await each.look();
    await each.maker.round();
  }
  const { slices } = await bed.view.ofAccount({ payload: account('miner 0'), after: 0 });
  expect(slices.flatMap(({ receipts }) => receipts.map(({ work }) => work))).toEqual(['211']);
});
