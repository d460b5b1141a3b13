import { afterAll, beforeAll, expect, test } from 'vitest';
import { BooksView } from '../../pool/api/books/books-view.ts';
import { ProofMaker } from '../../pool/api/books/proofs.ts';
import { ClosedWork } from '../../pool/books/closed-work.ts';
import { makeCredits } from '../../pool/books/credits.ts';
import { recordPaid } from '../../pool/books/rewards.ts';
import { type JournalRecord, SERVICES } from '../../pool/journal/journal-record.ts';
import { formatAddress } from '../../protocol/address.ts';
import { readPoolList } from '../../protocol/books/pool-list.ts';
import { checkPoolList, checkPoolProof, type PoolList, type PoolProof } from '../../protocol/books/pool-proof.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { count } from '../level.ts';
import { blockRecord as block, shareRecord as share } from './book-records.ts';
import { account, type BooksBed, openBooks, SLICE_CUTS } from './books-bed.ts';

let books: BooksBed;
let maker: ProofMaker;
const MINERS = 9;

async function pay(name: string, amount: bigint, height: number): Promise<void> {
  await books.fenced((transaction) =>
    recordPaid(transaction, {
      blockId: pattern(name, 48),
      transactionId: pattern(`reward of ${name}`, 48),
      outputIndex: 1,
      amount,
      height,
    }),
  );
}

beforeAll(async () => {
  books = await openBooks();
  maker = new ProofMaker({ network: 'development' }, { sql: books.sql });
  await books.height(0);
  for (let slice = 0; slice < 4; slice++) {
    const records: JournalRecord[] = [];
    for (let miner = 0; miner < MINERS; miner++)
      if ((miner + slice) % 3 !== 0) records.push(share('pplns', miner, BigInt(100 + 37 * miner + 11 * slice)));
    await books.take(records);
    await books.take([
      block('pplns', `first ${slice}`, slice * SLICE_CUTS, slice),
      block('pplns', `second ${slice}`, slice * SLICE_CUTS + 1, slice + 1),
      block('solo', `solo ${slice}`, slice * SLICE_CUTS, slice + 2),
    ]);
    await books.height((slice + 1) * SLICE_CUTS);
  }
  for (let slice = 0; slice < 4; slice++) {
    await pay(`first ${slice}`, 1_000_003n + BigInt(slice), 90);
    await pay(`second ${slice}`, 777n, 90);
    await pay(`solo ${slice}`, 5_000_001n, 90);
  }
  const options = { sliceCuts: SLICE_CUTS };
  await books.fenced((transaction) => makeCredits(transaction, new ClosedWork(), options, 200));
});
afterAll(() => books.close());

const miner = (n: number) => account(`miner ${n}`);
const addressOf = (n: number) => formatAddress(miner(n), 'development');
const proofOf = (service: number, slice: number, n: number) => maker.proof(service, slice, miner(n), addressOf(n));

/** As a client puts it together from the API's pages; here of three entries each. */
function listOf(service: number, slice: number): Promise<PoolList> {
  const view = new BooksView({ network: 'development', address: addressOf(0) }, { sql: books.sql });
  const limit = 3;
  const read = async (path: string) => {
    const [, what, , number, , cursor] =
      /^\/(proofs|slices)\/(pplns|solo)\/(\d+)\/(list|leaves)\?.*?(?:cursor=(.*))?$/.exec(path) as RegExpExecArray;
    const page = { cursor, limit };
    return what === 'proofs' ? maker.list(service, Number(number), page) : view.leaves(service, Number(number), page);
  };
  return readPoolList(SERVICES[service] as PoolList['service'], slice, read, limit);
}

test('every miner of every slice gets a proof that verifies, and the credits add up', async () => {
  for (let slice = 0; slice < 4; slice++)
    for (const service of [0, 1]) {
      let sum = 0n;
      for (let n = 0; n < MINERS; n++) {
        const proof = await proofOf(service, slice, n);
        const verdict = checkPoolProof(JSON.parse(JSON.stringify(proof)) as PoolProof);
        expect(verdict).toMatchObject({ valid: true });
        if (verdict.valid) sum += verdict.credit;
      }
      const list = await listOf(service, slice);
      expect(sum).toBe(BigInt(list.credited));
      expect(checkPoolList(list)).toMatchObject({ valid: true, credit: sum });
    }
  expect(await proofOf(0, 9, 0)).toBeUndefined();
});

test('with one character changed anywhere, no proof verifies', async () => {
  const text = JSON.stringify(await proofOf(0, 3, 2));
  const changes = [...text].flatMap((character, i) => {
    const other = /[0-9]/.test(character) ? String((Number(character) + 1) % 10) : /[a-f]/.test(character) ? '0' : '';
    return other === '' ? [] : [{ i, other }];
  });
  const step = Math.max(1, Math.floor(changes.length / count({ quick: 200, full: 1_500, deep: 100_000 })));
  let refused = 0;
  let tried = 0;
  for (let at = 0; at < changes.length; at += step) {
    const { i, other } = changes[at]!;
    const changed = text.slice(0, i) + other + text.slice(i + 1);
    let document: PoolProof;
    try {
      document = JSON.parse(changed) as PoolProof;
    } catch {
      continue;
    }
    tried++;
    if (!checkPoolProof(document).valid) refused++;
  }
  expect(tried).toBeGreaterThan(100);
  expect(refused).toBe(tried);
});

test('a list with one atom moved, an account added or a slice left out is refused', async () => {
  const list = await listOf(0, 3);
  const change = (edit: (copy: PoolList) => void) => {
    const copy = JSON.parse(JSON.stringify(list)) as PoolList;
    edit(copy);
    return checkPoolList(copy);
  };
  type Writable<T> = { -readonly [K in keyof T]: Writable<T[K]> };
  const write = <T>(value: T) => value as Writable<T>;
  const moved = change((copy) => {
    const [a, b] = write(copy).credits;
    a!.amount = String(BigInt(a!.amount) + 1n);
    b!.amount = String(BigInt(b!.amount) - 1n);
  });
  expect(moved).toEqual({ valid: false, reason: 'credit_amount' });
  const phantom = change((copy) => write(copy).window[0]!.leaves.push({ address: addressOf(99), work: '5' }));
  expect(phantom).toEqual({ valid: false, reason: 'slice_root' });
  expect(change((copy) => write(copy).window.shift())).toMatchObject({ valid: false });
  expect(change((copy) => write(copy).blocks.pop())).toEqual({ valid: false, reason: 'reward_sum' });
  for (const broken of [{}, { ...list, window: 5 }, { ...list, blocks: [null] }, { ...list, credits: [{}] }])
    expect(checkPoolList(broken as never)).toEqual({ valid: false, reason: 'malformed' });
});
