/**
 * For each account, worker and slice no more is ever signed, by all front ends together and over all falls of the books, than
 * the slice's leaf says (books rules 17 and 20), whatever shares are in two journals and in whatever order journals come
 * again. And who has no share in two journals loses no receipt by those of others.
 */
import { expect, test } from 'vitest';
import type { ShareRecord } from '../../pool/journal/journal-record.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { EVIDENCE_FORMAT, judgeEvidence } from '../../protocol/evidence/receipt-evidence.ts';
import { count, seed } from '../level.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { type FrontEnd, newPoolKey, openFrontEnd, openReceipts, type ReceiptsBed } from '../pool/receipts-bed.ts';
import { type Random, randomOf } from '../random.ts';

const SLICES = 3;
const FALLS = 2;
/** The last of them has no share in two journals. */
const MINERS = 3;
const HONEST = MINERS - 1;

const share = (random: Random, miner: number): ShareRecord => ({
  kind: 'share',
  service: 'pplns',
  account: account(`miner ${miner}`),
  worker: `rig ${random(2)}`,
  work: BigInt(1 + random(3)),
  atMillis: Date.now(),
  identity: freshIdentity(0),
});

const shuffled = <T>(random: Random, all: readonly T[]): T[] =>
  all
    .map((one) => ({ one, at: random(1_000_000) }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one);

/** What is written to each journal in each slice. */
function plan(random: Random, ends: readonly FrontEnd[]): ShareRecord[][][] {
  const planned = Array.from({ length: SLICES + 2 }, () => ends.map((): ShareRecord[] => []));
  const put = (slice: number, end: number, one: ShareRecord) => planned[slice]?.[end]?.push(one);
  for (let slice = 1; slice <= SLICES; slice++) {
    for (const end of ends.keys()) for (let i = random(3); i > 0; i--) put(slice, end, share(random, random(MINERS)));
    for (let i = random(4); i > 0; i--) {
      const twice = share(random, random(HONEST));
      const [first = 0, second = 0, third = 0] = shuffled(random, [...ends.keys()]);
      put(slice, first, twice);
      // The other front end had another difficulty for it, or it came a slice later.
      put(slice + (random(6) === 0 ? 1 : 0), second, random(8) === 0 ? { ...twice, work: twice.work + 1n } : twice);
      if (random(4) === 0) put(slice, third, twice);
    }
  }
  return planned.map((slice) => slice.map((shares) => shuffled(random, shares)));
}

class History {
  readonly books: BooksBed;
  readonly beds: readonly ReceiptsBed[];
  readonly #ends: readonly FrontEnd[];
  readonly #random: Random;

  constructor(random: Random, ends: readonly FrontEnd[], beds: readonly ReceiptsBed[]) {
    this.#random = random;
    this.#ends = ends;
    this.beds = beds;
    this.books = (beds[0] as ReceiptsBed).books;
  }

  /** In the order of each journal, otherwise in any order and in batches of any size. */
  async take(ends: readonly number[]): Promise<void> {
    const { intake } = this.books;
    const at = ends.map(() => 0);
    for (;;) {
      const open = [...ends.keys()].filter((i) => (at[i] as number) < this.#of(ends[i] as number).records.length);
      if (open.length === 0) return;
      const i = open[this.#random(open.length)] as number;
      const { bootId, records } = this.#of(ends[i] as number);
      const { marks } = this.beds[ends[i] as number] as ReceiptsBed;
      const first = at[i] as number;
      const entries = records.slice(first, first + 1 + this.#random(6)).map((record, n) => {
        const { slice } = marks.sliceOf(bootId, first + n);
        return { bootId, sequence: first + n, record, ...(slice === undefined ? {} : { slice }) };
      });
      at[i] = first + entries.length;
      await this.books.fenced((transaction) => intake.take(transaction, entries));
    }
  }

  async close(slice: number): Promise<void> {
    await this.books.height((slice + 1) * SLICE_CUTS);
    for (const bed of this.beds) await bed.look();
  }

  /** One after the other or at once; some come later. */
  async sign(isSure: boolean): Promise<void> {
    const some = shuffled(this.#random, this.beds).filter(() => isSure || this.#random(4) > 0);
    if (this.#random(2) === 0) await Promise.all(some.map((bed) => bed.maker.round()));
    else for (const bed of some) await bed.maker.round();
  }

  #of(end: number): FrontEnd {
    return this.#ends[end] as FrontEnd;
  }
}

test.each(Array.from({ length: count({ full: 1, deep: 60 }) }, (_, i) => seed + i))(
  'no receipts of all histories together convict, and nobody else loses one (seed %i)',
  async (start) => {
    const random = randomOf(start);
    const key = newPoolKey();
    const ends: FrontEnd[] = [];
    for (const byte of shuffled(random, [0xab, 0xcd, 0xef])) ends.push(await openFrontEnd(undefined, byte));
    const all = [...ends.keys()];
    const planned = plan(random, ends);
    const held = new Map<string, Receipt>();
    const rebooked: string[] = [];
    for (let fall = 0; fall <= FALLS; fall++) {
      const books = await openBooks();
      const beds: ReceiptsBed[] = [];
      for (const end of ends) beds.push(await openReceipts(key, [end], books));
      const history = new History(random, ends, beds);
      try {
        await books.height(0);
        await history.close(0);
        // Each front end has told what it signed before.
        for (const { maker } of beds) await maker.round();
        const present = fall === 0 || random(3) > 0 ? all : all.filter(() => random(3) > 0);
        if (fall > 0) await history.take(present);
        for (let slice = 1; slice <= SLICES; slice++) {
          if (fall === 0) {
            for (const [i, end] of ends.entries()) await end.write(planned[slice]?.[i] ?? []);
            await history.take(all);
          }
          await history.close(slice);
          await history.sign(slice === SLICES);
        }
        await history.take(all);
        await history.close(SLICES + 1);
        // Who gave up because another signed at the same time comes again.
        for (let i = 0; i < ends.length; i++) await history.sign(true);
        rebooked.push(...(await collect(history, held, key)));
        if (present === all) await expectHonest(history);
      } finally {
        await books.close();
      }
    }
    expect(rebooked).toEqual([]);
  },
);

/** What miners hold after asking; where all that was ever signed of an account and slice convicts. */
async function collect(
  { beds }: History,
  held: Map<string, Receipt>,
  key: ReturnType<typeof newPoolKey>,
): Promise<string[]> {
  const charges: string[] = [];
  const [bed] = beds as [ReceiptsBed];
  for (let miner = 0; miner < MINERS; miner++) {
    const { slices } = await bed.view.ofAccount({ payload: account(`miner ${miner}`), after: 0 });
    for (const { receipts, leaf, record } of slices) {
      for (const receipt of receipts) held.set(JSON.stringify(receipt), receipt);
      const own = [...held.values()].filter(
        ({ address, slice }) => address === receipts[0]?.address && slice === record.slice,
      );
      const verdict = judgeEvidence(
        { format: EVIDENCE_FORMAT, pool_key: '', receipts: own, leaf, record },
        key.publicKey,
      );
      if (verdict.verdict === 'convicts') charges.push(`miner ${miner} slice ${record.slice}: ${verdict.charge}`);
    }
  }
  return charges;
}

/** Each sheet whose record is the one that was signed before has all work of who has no share in two journals. */
async function expectHonest({ books, beds }: History): Promise<void> {
  const logged = beds.flatMap((bed) => bed.logged);
  expect(logged.filter((line) => line.includes('the books do not have'))).toEqual([]);
  const changed = new Set(
    logged.flatMap((line) => (line.includes('another record') ? (/slice=(\d+)/.exec(line)?.[1] ?? 'all') : [])),
  );
  const rows = await books.sql<
    { slice: number; boot: string; work: string }[]
  >`select slice, encode(boot_id, 'hex') as boot,
    sum(work)::text as work from shares join accounts a on a.id = account_id
    where a.payload = ${Buffer.from(account(`miner ${HONEST}`))} group by slice, boot_id`;
  const booked = rows.filter(({ slice }) => !changed.has(String(slice)) && slice > 0);
  const { slices } = await (beds[0] as ReceiptsBed).view.ofAccount({ payload: account(`miner ${HONEST}`), after: 0 });
  const signed = new Set(
    slices.flatMap(({ receipts }) => receipts.map(({ slice, boot, account_work: work }) => `${slice} ${boot} ${work}`)),
  );
  expect(booked.map(({ slice, boot, work }) => `${slice} ${boot} ${work}`).filter((one) => !signed.has(one))).toEqual(
    [],
  );
}
