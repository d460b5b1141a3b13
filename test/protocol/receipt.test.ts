/** Receipts and evidence (books rules 17 to 20): what a pool signed is shown by its key alone, and nothing that it did not sign. */
import { readFileSync } from 'node:fs';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect, test } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import type { SliceRecord } from '../../protocol/books/books-slice.ts';
import { branchDocument } from '../../protocol/books/pool-proof.ts';
import {
  compareReceipts,
  type Receipt,
  type ReceiptHead,
  type ReceiptLeaf,
  receiptDocument,
  receiptMessage,
  receiptRefusal,
  receiptSheet,
} from '../../protocol/books/receipt.ts';
import { compareBytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { sumBranch, sumTree } from '../../protocol/crypto/sum-tree.ts';
import {
  EVIDENCE_FORMAT,
  type Evidence,
  isSignedRecord,
  judgeEvidence,
  signedWork,
} from '../../protocol/evidence/receipt-evidence.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';
import { accountOf } from '../bridge/stratum-client.ts';
import { honest } from './books-liar.ts';

const key = ml_dsa65.keygen(new Uint8Array(32).fill(7));
const other = ml_dsa65.keygen(new Uint8Array(32).fill(8));

/** The books of one slice, and the receipts of one front end for it. */
function pool(booked: readonly [number, bigint][], leaves: readonly ReceiptLeaf[], changes: Partial<ReceiptHead> = {}) {
  const rows = booked
    .map(([account, value]) => ({ key: accountOf(account), value }))
    .sort((a, b) => compareBytes(a.key, b.key));
  const tree = sumTree(rows);
  const sorted = [...leaves].sort(compareReceipts);
  const sheet = receiptSheet(sorted);
  const head: ReceiptHead = {
    network: 'development',
    service: 'pplns',
    slice: 12,
    boot: 'ab'.repeat(8),
    chain: 'cd'.repeat(48),
    root: toHex(tree.root.hash),
    accounts: tree.root.count,
    total_work: String(tree.root.sum),
    receipts: sorted.length,
    receipts_root: toHex(sheet.root),
    ...changes,
  };
  const signature = ml_dsa65.sign(receiptMessage(head), key.secretKey);
  const receipts = sheet.entries.map((entry) => receiptDocument(head, signature, entryOfBytes(entry)));
  const leafOf = (account: number) => {
    const at = rows.findIndex((row) => compareBytes(row.key, accountOf(account)) === 0);
    return { value: String(rows[at]?.value), branch: branchDocument(sumBranch(tree, at)) };
  };
  const receiptOf = (account: number, worker: string) => {
    const address = formatAddress(accountOf(account), 'development');
    return receipts.find((each) => each.address === address && each.worker === worker) as Receipt;
  };
  return { receipts, leafOf, receiptOf };
}

const leaf = (account: number, worker: string, work: bigint, accountWork = work): ReceiptLeaf => ({
  account: accountOf(account),
  worker,
  shares: 3,
  work,
  open: 5n,
  accountWork,
});

const evidence = (receipts: readonly Receipt[], own: Evidence['leaf']): Evidence => ({
  format: EVIDENCE_FORMAT,
  pool_key: toHex(key.publicKey),
  receipts,
  leaf: own,
  record: null,
});

test('every receipt of a sheet of any size is good under the key, and no field of it can be changed', () => {
  for (const count of [1, 2, 3, 7, 16, 33]) {
    const leaves = Array.from({ length: count }, (_, i) => leaf(i + 1, `rig${i}`, BigInt(i) * 10n));
    const { receipts } = pool([[1, 5n]], leaves);
    for (const receipt of receipts) expect(receiptRefusal(receipt, key.publicKey)).toBeUndefined();
  }
  const { receipts } = pool([[1, 5n]], [leaf(1, 'a', 100n), leaf(2, 'b', 200n), leaf(3, 'c', 300n)]);
  const good = receipts[1] as Receipt;
  expect(receiptRefusal(good, other.publicKey)).toBe('signature');
  const changes: Partial<Receipt>[] = [
    { service: 'solo' },
    { slice: 13 },
    { network: 'mainnet' },
    { boot: '00'.repeat(8) },
    { chain: '00'.repeat(48) },
    { root: '00'.repeat(48) },
    { accounts: 2 },
    { total_work: '6' },
    { receipts: 2 },
    { receipts_root: '00'.repeat(48) },
    { worker: 'x' },
    { shares: 4 },
    { work: '201', account_work: '201' },
    { open: '6' },
    { account_work: '400' },
    { index: 0 },
    { siblings: '' },
    { siblings: `${good.siblings}00` },
    { signature: `${good.signature.slice(2)}00` },
    { address: 'nobody' },
    { work: '-1' },
  ];
  for (const change of changes) expect(receiptRefusal({ ...good, ...change } as Receipt, key.publicKey)).toBeDefined();
});

test('books that hold less than was signed convict; enough, or what somebody else signed, does not', () => {
  const dishonest = pool(
    [
      [1, 95n],
      [2, 200n],
    ],
    [leaf(1, 'a', 60n, 100n), leaf(1, 'b', 40n, 100n), leaf(2, '', 200n)],
  );
  const own = [dishonest.receiptOf(1, 'a')];
  expect(judgeEvidence(evidence(own, dishonest.leafOf(1)), key.publicKey)).toEqual({
    verdict: 'convicts',
    charge: 'books_less',
    signed: 100n,
    booked: 95n,
  });
  // One receipt shown twice, or two workers of one front end, count once.
  const twice = [...own, ...own, dishonest.receiptOf(1, 'b')];
  expect(signedWork(twice)).toBe(100n);
  expect(judgeEvidence(evidence([dishonest.receiptOf(2, '')], dishonest.leafOf(2)), key.publicKey)).toMatchObject({
    why: 'books_suffice',
    signed: 200n,
    booked: 200n,
  });
  const why = (made: Evidence, by = key.publicKey) => judgeEvidence(made, by);
  expect(why(evidence(own, dishonest.leafOf(1)), other.publicKey)).toMatchObject({ why: 'key' });
  expect(why(evidence(own, dishonest.leafOf(2)))).toMatchObject({ why: 'leaf' });
  expect(why(evidence(own, null))).toMatchObject({ why: 'no_leaf' });
  expect(why(evidence([], dishonest.leafOf(1)))).toMatchObject({ why: 'malformed' });
  expect(why({} as Evidence)).toMatchObject({ why: 'malformed' });
  expect(why(evidence([...own, dishonest.receiptOf(2, '')], dishonest.leafOf(1)))).toMatchObject({
    why: 'other_slice',
  });
  expect(why(evidence([{ ...own[0], account_work: '900' } as Receipt], dishonest.leafOf(1)))).toMatchObject({
    why: 'receipt',
  });
});

test('two front ends add up, and two records of one slice convict by themselves', () => {
  const first = pool([[1, 150n]], [leaf(1, 'a', 100n)]);
  const second = pool([[1, 150n]], [leaf(1, 'a', 60n)], { boot: 'ee'.repeat(8) });
  const both = [first.receiptOf(1, 'a'), second.receiptOf(1, 'a')];
  expect(judgeEvidence(evidence(both, first.leafOf(1)), key.publicKey)).toMatchObject({ signed: 160n, booked: 150n });
  const rewritten = pool([[1, 100n]], [leaf(1, 'a', 60n)], { boot: 'ee'.repeat(8), chain: 'ef'.repeat(48) });
  const split = [first.receiptOf(1, 'a'), rewritten.receiptOf(1, 'a')];
  expect(judgeEvidence(evidence(split, null), key.publicKey)).toMatchObject({ charge: 'two_books' });
});

test('a record is the signed one only where its hash, root, accounts and total are those of the receipt', () => {
  const [record, next] = honest.records as [SliceRecord, SliceRecord];
  const { chain, root, accounts, total_work } = record;
  const [receipt] = pool([[1, 5n]], [leaf(1, 'a', 100n)], { chain, root, accounts, total_work }).receipts as [Receipt];
  expect(isSignedRecord(record, receipt)).toBe(true);
  for (const wrong of [
    { chain: next.chain },
    { root: next.root },
    { accounts: accounts + 1 },
    { total_work: next.total_work },
  ])
    expect([wrong, isSignedRecord(record, { ...receipt, ...wrong })]).toEqual([wrong, false]);
  // What the record calls its hash is not asked: another total has another one.
  for (const told of [{ total_work: '1' }, { previous: next.previous }, { fee_ppm: 1 }])
    expect(isSignedRecord({ ...record, ...told }, { ...receipt, ...told } as Receipt)).toBe(false);
  expect(isSignedRecord(null as never, receipt)).toBe(false);
});

test('the vectors hold: each receipt under the key, the evidence as it says', () => {
  const file = JSON.parse(readFileSync(new URL('../../vectors/receipts.json', import.meta.url), 'utf8'));
  const publicKey = fromHex(file.pool_key);
  for (const receipt of file.receipts) expect(receiptRefusal(receipt, publicKey)).toBeUndefined();
  for (const { evidence: made, verdict, signed, booked } of file.evidence)
    expect(judgeEvidence(made, publicKey)).toMatchObject({ verdict, signed: BigInt(signed), booked: BigInt(booked) });
});

test('workers of a front end add up, whatever is signed for the account: a pool cannot say less there', () => {
  const split = pool([[1, 100n]], [leaf(1, 'a', 100n, 100n), leaf(1, 'b', 100n, 100n)]);
  const both = [split.receiptOf(1, 'a'), split.receiptOf(1, 'b'), split.receiptOf(1, 'a')];
  const convicts = { verdict: 'convicts', charge: 'books_less', signed: 200n, booked: 100n };
  expect(judgeEvidence(evidence(both, split.leafOf(1)), key.publicKey)).toEqual(convicts);
  // One of them alone does not: the books hold as much.
  expect(judgeEvidence(evidence(both.slice(0, 1), split.leafOf(1)), key.publicKey)).toMatchObject({
    why: 'books_suffice',
  });
  // A receipt that contradicts itself is still the pool's word.
  const odd = pool([[1, 60n]], [leaf(1, 'a', 100n, 0n)]);
  expect(receiptRefusal(odd.receiptOf(1, 'a'), key.publicKey)).toBeUndefined();
  expect(judgeEvidence(evidence([odd.receiptOf(1, 'a')], odd.leafOf(1)), key.publicKey)).toMatchObject({
    charge: 'books_less',
    signed: 100n,
    booked: 60n,
  });
  // A sheet that was made again says the same of a worker, and that counts once.
  const again = pool([[1, 100n]], [leaf(1, 'a', 60n, 100n), leaf(1, 'b', 40n, 100n), leaf(2, 'c', 1n)]);
  const before = pool([[1, 100n]], [leaf(1, 'a', 60n, 100n), leaf(1, 'b', 40n, 100n)]);
  const names = ['a', 'b'];
  const all = [...names.map((name) => before.receiptOf(1, name)), ...names.map((name) => again.receiptOf(1, name))];
  expect(signedWork(all)).toBe(100n);
});
