/** Receipts are sums of the journal, slice by slice, exactly as its marks say; a hole leaves no receipt rather than a small one. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Journal } from '../../pool/journal/journal.ts';
import { encodeRecord, type ShareRecord } from '../../pool/journal/journal-record.ts';
import { rangesAfter } from '../../pool/receipts/receipt-maker.ts';
import { type MadeSheet, runSheetThread, type SheetOrder } from '../../pool/receipts/run-sheets.ts';
import { accountIn, JournalTally, type LeftOut } from '../../pool/receipts/tally.ts';
import { readReceiptLeaf } from '../../protocol/books/receipt.ts';
import { ByteReader, ByteWriter, toHex } from '../../protocol/bytes.ts';
import { accountOf } from '../bridge/stratum-client.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';

const share = (account: number, worker: string, work: bigint, service: ShareRecord['service'] = 'pplns') =>
  encodeRecord({ kind: 'share', service, account: accountOf(account), worker, work, atMillis: 1, identity: null });
const owned = encodeRecord({
  kind: 'ownership',
  owner: new Uint8Array(13),
  service: 'pplns',
  account: accountOf(1),
  worker: '',
});

const RECORDS = [
  owned,
  share(1, 'a', 10n),
  share(1, 'b', 20n),
  share(2, '', 5n, 'solo'),
  // The first slice ends here.
  share(1, 'a', 100n),
  share(2, '', 7n),
  // The second.
  share(1, 'a', 1_000n),
];
const RANGES = [
  { slice: 8, after: -1, through: 3, held: null },
  { slice: 9, after: 3, through: 5, held: null },
];

const shown = (
  leaves: readonly { worker: string; shares: number; work: bigint; open: bigint; accountWork: bigint }[],
) => leaves.map(({ worker, shares, work, open, accountWork }) => [worker, shares, work, open, accountWork]);

test('work is summed by worker and slice; what comes after is open', () => {
  const tally = new JournalTally(RANGES);
  for (const [sequence, record] of RECORDS.entries()) tally.take(sequence, record);
  expect(tally.holed).toEqual([]);
  const leaves = [...tally.leaves()];
  expect(leaves.map(({ service, slice }) => [service, slice])).toEqual([
    ['pplns', 8],
    ['solo', 8],
    ['pplns', 9],
  ]);
  const [eight, solo, nine] = leaves;
  expect(shown(eight?.leaves.filter(({ worker }) => worker !== '') ?? [])).toEqual([
    ['a', 1, 10n, 1_100n, 30n],
    ['b', 1, 20n, 0n, 30n],
  ]);
  // Nothing in the slice, but work that waits: the receipt shows that it is not forgotten.
  expect(shown(eight?.leaves.filter(({ worker }) => worker === '') ?? [])).toEqual([['', 0, 0n, 7n, 0n]]);
  expect(shown(solo?.leaves ?? [])).toEqual([['', 1, 5n, 0n, 5n]]);
  expect(shown(nine?.leaves ?? []).sort()).toEqual([
    ['', 1, 7n, 0n, 7n],
    ['a', 1, 100n, 1_000n, 100n],
  ]);
});

test('a hole in the journal costs the receipts of its slice only', () => {
  const tally = new JournalTally(RANGES);
  for (const [sequence, record] of RECORDS.entries()) if (sequence !== 2) tally.take(sequence, record);
  expect(tally.holed).toEqual([8]);
  expect([...tally.leaves()].map(({ slice }) => slice)).toEqual([9]);
  const cut = new JournalTally(RANGES);
  for (const [sequence, record] of RECORDS.slice(0, 5).entries()) cut.take(sequence, record);
  expect(cut.holed).toEqual([9]);
});

test('ranges begin where the marks are known to', () => {
  const marks = [
    { slice: 4, through: 10 },
    { slice: 5, through: 10 },
    { slice: 6, through: 30 },
  ];
  expect(rangesAfter(marks, -1, undefined).map(({ slice, after }) => [slice, after])).toEqual([
    [5, 10],
    [6, 10],
  ]);
  expect(rangesAfter(marks, -1, 4)[0]).toEqual({ slice: 4, after: -1, through: 10 });
  expect(rangesAfter(marks, 5, 4)).toEqual([{ slice: 6, after: 10, through: 30 }]);
});

const BOOKED = new ByteWriter(200).raw(accountOf(1)).u128(130n).raw(accountOf(2)).u128(7n).done();

/** All sheets of an order; the books hold the same in every slice. */
async function sheetsOf(order: SheetOrder, booked: Uint8Array = BOOKED) {
  const sheets: MadeSheet[] = [];
  let less = 0;
  const end = await runSheetThread(order, {
    ask: async () => booked,
    take: async (sheet, left) => {
      if (sheet !== null) sheets.push(sheet);
      less += left;
      return 'go';
    },
  });
  return { sheets, less, ...end };
}

test('a share that comes again counts once, as in the books', () => {
  const identity = { anchorHeight: 5, bytes: new Uint8Array(24).fill(9) };
  const twice = encodeRecord({
    kind: 'share',
    service: 'pplns',
    account: accountOf(1),
    worker: 'a',
    work: 10n,
    atMillis: 1,
    identity,
  });
  const tally = new JournalTally([
    { slice: 1, after: -1, through: 1, held: null },
    { slice: 2, after: 1, through: 2, held: null },
  ]);
  for (const sequence of [0, 1, 2]) tally.take(sequence, twice);
  expect([...tally.leaves()].map(({ slice, leaves }) => [slice, ...shown(leaves)])).toEqual([
    [1, ['a', 1, 10n, 0n, 10n]],
  ]);
});

test('a slice with shares that the books have elsewhere has no receipts', () => {
  const [eight, nine] = RANGES.map((range) => ({
    ...range,
    held: { after: range.after, through: range.through, closedHeight: 1_000 },
  }));
  const take = (ranges: typeof RANGES) => {
    const tally = new JournalTally(ranges as never);
    for (const [sequence, record] of RECORDS.entries()) tally.take(sequence, record);
    return { unheld: tally.unheld, slices: new Set([...tally.leaves()].map(({ slice }) => slice)) };
  };
  expect(take([eight, nine] as never)).toEqual({ unheld: [], slices: new Set([8, 9]) });
  const late = { ...nine, held: { after: 4, through: 6, closedHeight: 1_000 } };
  expect(take([eight, late] as never)).toEqual({ unheld: [9], slices: new Set([8]) });
  // An entry that is no share may stand on either side.
  const wide = { ...eight, held: { after: 0, through: 3, closedHeight: 1_000 } };
  expect(take([wide, nine] as never).unheld).toEqual([]);
});

test('a share in two journals has one receipt, that of the journal that counted, and no other share has less', () => {
  const random = randomOf(7);
  for (let round = 0; round < 40; round++) {
    const most = 1 + random(30);
    const identities = Array.from({ length: most }, (_, i) => ({ anchorHeight: 5, bytes: new Uint8Array(24).fill(i) }));
    const isKnown = new Set<unknown>();
    const counted = new Map<number, bigint>();
    const signed = new Map<number, bigint>();
    for (let journal = 0; journal < 3; journal++) {
      const records: Uint8Array[] = [];
      const doubled: number[] = [];
      for (let sequence = 0; sequence < 40; sequence++) {
        const identity = identities[random(2 * most)] ?? null;
        const [account, work] = [1 + random(3), BigInt(1 + random(9))];
        const isShare = random(10) > 0;
        const counts = identity === null || !isKnown.has(identity);
        const own = { kind: 'share', service: 'pplns', account: accountOf(account), worker: 'a' } as const;
        records.push(isShare ? encodeRecord({ ...own, work, atMillis: 1, identity }) : owned);
        if (isShare && !counts) doubled.push(sequence);
        if (!isShare || !counts) continue;
        isKnown.add(identity);
        counted.set(account, (counted.get(account) ?? 0n) + work);
      }
      const range = { slice: 1, after: -1, through: 39 };
      const tally = new JournalTally([{ ...range, held: { ...range, closedHeight: 1_000 } }], doubled);
      for (const [sequence, record] of records.entries()) tally.take(sequence, record);
      expect(tally.unheld).toEqual([]);
      for (const { leaves } of tally.leaves())
        for (const { account, work } of leaves) {
          const number = [1, 2, 3].find((one) => Buffer.from(accountOf(one)).equals(account)) as number;
          signed.set(number, (signed.get(number) ?? 0n) + work);
        }
    }
    expect(new Map([...signed].sort())).toEqual(new Map([...counted].sort()));
  }
});

test('what another front end signed is left out: a share of it alone, an account in its slice alone', () => {
  const identity = { anchorHeight: 5, bytes: new Uint8Array(24).fill(7) };
  const one = (account: number, known: typeof identity | null = null) =>
    encodeRecord({
      kind: 'share',
      service: 'pplns',
      account: accountOf(account),
      worker: 'a',
      work: 1n,
      atMillis: 1,
      identity: known,
    });
  const records = [one(1), one(1, identity), one(2), one(1), one(2), one(2)];
  const ranges = [
    { slice: 8, after: -1, through: 3, held: null },
    { slice: 9, after: 3, through: 5, held: null },
  ];
  const works = (doubled: readonly number[], leftOut?: LeftOut) => {
    const tally = new JournalTally(ranges, doubled, leftOut);
    for (const [sequence, record] of records.entries()) tally.take(sequence, record);
    return [...tally.leaves()].map(({ slice, leaves, span: { first, last } }) => [
      slice,
      `${first}-${last}`,
      ...leaves.map(({ work, accountWork }) => `${work}/${accountWork}`),
    ]);
  };
  const all = works([]);
  expect(all).toEqual([
    [8, '0-3', '3/3', '1/1'],
    [9, '4-5', '2/2'],
  ]);
  const none = new Set<string>();
  expect(works([], { shares: new Set([toHex(identity.bytes)]), accounts: none })).toEqual([
    [8, '0-3', '2/2', '1/1'],
    all[1],
  ]);
  expect(works([0], { shares: none, accounts: new Set([accountIn('pplns', 8, accountOf(2))]) })).toEqual([
    [8, '1-3', '2/2', '0/0'],
    all[1],
  ]);
});

test('the thread reads a journal on disk', async () => {
  const directory = temporaryDirectory();
  const bootId = Uint8Array.from({ length: 8 }, () => 0xab);
  mkdirSync(join(directory, 'ab'.repeat(8)));
  const journal = await Journal.open({ directory, bootId, segmentBytes: 200 });
  for (const record of RECORDS) await journal.append([record]);
  const order = { directory, bootId: journal.bootId, ranges: RANGES, doubled: [], last: 6 };
  const { sheets, holed, less } = await sheetsOf(order);
  expect({ holed, less }).toEqual({ holed: [], less: 0 });
  expect(sheets.map(({ service, slice, count }) => [service, slice, count])).toEqual([
    ['pplns', 8, 3],
    ['solo', 8, 1],
    ['pplns', 9, 2],
  ]);
  const reader = new ByteReader(sheets[1]?.pages[0]?.leaves as Uint8Array);
  expect(readReceiptLeaf(reader)).toMatchObject({ work: 5n });
  // What is on its way to the disk does not count yet.
  const before = await sheetsOf({ ...order, last: 5 });
  expect(before.sheets[0]?.root).not.toEqual(sheets[0]?.root);
  // An account that the books hold less of has its receipts all the same, and is counted.
  const poor = await sheetsOf(order, new ByteWriter(100).raw(accountOf(2)).u128(7n).done());
  expect(poor.sheets.map(({ root }) => root)).toEqual(sheets.map(({ root }) => root));
  expect(poor.less).toBe(3);
  // The thread is kept for the next order: neither a failed one nor two at once mix anything up.
  const failing = runSheetThread(order, { ask: () => Promise.reject(new Error('no books')), take: async () => 'go' });
  await expect(failing).rejects.toThrow('no books');
  const both = await Promise.all([sheetsOf(order), sheetsOf({ ...order, last: 5 })]);
  expect(both).toEqual([expect.objectContaining({ sheets, holed, less }), before]);
  // Kept for half a minute, it is being ended just when the next order comes.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  expect(await sheetsOf(order)).toMatchObject({ sheets });
  vi.advanceTimersByTime(30_000);
  expect(await sheetsOf(order)).toMatchObject({ sheets });
  await journal.close();
});
