/** Receipts of an account with more workers than may have one each: no share is lost, and those with the most work keep theirs. */
import { expect, test } from 'vitest';
import { encodeRecord } from '../../pool/journal/journal-record.ts';
import { foldWorkers, JournalTally } from '../../pool/receipts/tally.ts';
import { OTHERS, OWN_RECEIPTS, type Receipt, type ReceiptLeaf } from '../../protocol/books/receipt.ts';
import { signedWork } from '../../protocol/evidence/receipt-evidence.ts';
import { seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { account } from './books-bed.ts';

const sum = (leaves: readonly ReceiptLeaf[], of: 'work' | 'open') =>
  leaves.reduce((total, leaf) => total + leaf[of], 0n);
const shares = (leaves: readonly ReceiptLeaf[]) => leaves.reduce((total, leaf) => total + leaf.shares, 0);

test('random sheets: at most so many receipts an account, the same sums, and nobody folded who worked more than one kept', () => {
  const draw = randomOf(seed);
  for (let round = 0; round < 200; round++) {
    const most = 1 + draw(6);
    const leaves = Array.from({ length: draw(40) }, (_, i): ReceiptLeaf => {
      const name = account(`a${draw(3)}`);
      const [work, open] = [BigInt(draw(50)), BigInt(draw(9))];
      return { account: name, worker: `w${i}`, shares: draw(5), work, open, accountWork: 7n };
    });
    const folded = foldWorkers(leaves, most);
    for (const field of ['work', 'open'] as const) expect(sum(folded, field)).toBe(sum(leaves, field));
    expect(shares(folded)).toBe(shares(leaves));
    for (const [, own] of Map.groupBy(folded, (leaf) => Buffer.from(leaf.account).toString('hex'))) {
      const kept = own.filter(({ worker }) => worker !== OTHERS);
      expect(kept.length).toBeLessThanOrEqual(most);
      const gone = leaves.filter(
        (leaf) => own[0] !== undefined && Buffer.compare(leaf.account, own[0].account) === 0 && !kept.includes(leaf),
      );
      const least = kept.reduce((min, { work, open }) => (work + open < min ? work + open : min), 1_000n);
      if (kept.length === most) for (const { work, open } of gone) expect(work + open <= least).toBe(true);
      else expect(gone).toEqual([]);
    }
  }
});

test('a stranger with thousands of names leaves the receipts of an account bounded, and its rig has its own', () => {
  const own = account('victim');
  const names = OWN_RECEIPTS + 500;
  const tally = new JournalTally([{ slice: 1, after: -1, through: names, held: null }]);
  const common = { kind: 'share', service: 'pplns', account: own, atMillis: 1, identity: null } as const;
  for (let i = 0; i < names; i++) tally.take(i, encodeRecord({ ...common, worker: `x${i}`, work: 256n }));
  tally.take(names, encodeRecord({ ...common, worker: 'rig', work: 100_000n }));
  const [sheet] = tally.leaves();
  const leaves = sheet?.leaves ?? [];
  expect(leaves.length).toBe(OWN_RECEIPTS + 1);
  expect(leaves.find(({ worker }) => worker === 'rig')).toMatchObject({ shares: 1, work: 100_000n });
  expect(leaves.find(({ worker }) => worker === OTHERS)).toMatchObject({ shares: 501, work: 501n * 256n });
  expect(new Set(leaves.map(({ accountWork }) => accountWork))).toEqual(new Set([100_000n + BigInt(names) * 256n]));
});

test('sheets of one slice that were made twice fold different workers, and all their receipts together say no more than was accepted', () => {
  const draw = randomOf(seed);
  const own = account('a');
  for (let round = 0; round < 500; round++) {
    const most = 1 + draw(5);
    const works = Array.from({ length: 1 + draw(12) }, () => BigInt(draw(3) === 0 ? 0 : draw(50)));
    const accountWork = works.reduce((total, work) => total + work, 0n);
    const sheets = Array.from({ length: 1 + draw(3) }, (_, sheet) => {
      const leaves = works.map((work, i): ReceiptLeaf => {
        return { account: own, worker: `w${i}`, shares: 1, work, open: BigInt(draw(60)), accountWork };
      });
      return foldWorkers(leaves, most).map(({ worker, work }) => ({
        boot: 'aa',
        receipts_root: String(sheet),
        worker,
        work: String(work),
        account_work: String(accountWork),
      }));
    });
    const some = sheets.flat().filter(() => draw(4) > 0);
    expect(signedWork(some as unknown as Receipt[])).toBe(some.length === 0 ? 0n : accountWork);
  }
});
