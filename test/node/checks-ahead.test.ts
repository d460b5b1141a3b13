/** A cut waits for signatures that are being checked, no longer than it may, and for those of its own blocks alone. */
import { expect, test } from 'vitest';
import { ChecksAhead } from '../../node/mempool/checks-ahead.ts';
import { WorkPool } from '../../node/mining/work-pool.ts';
import { fromUtf8, utf8 } from '../../protocol/bytes.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import { silentLog } from './bed.ts';

const idOf = (n: number) => new Uint8Array(48).fill(n);
const transaction = (name: string) => ({ id: utf8(name), name, body: { inputs: [{}], outputs: [{}, {}] } });

test('a cut waits for the checks of its blocks, and is not kept by others or beyond its time', async () => {
  const open = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const read: Outpoint[] = [];
  const ahead = new ChecksAhead({
    isVerified: ({ name }) => name === 'seen',
    output: () => ({}) as never,
    verify: ({ name }) => new Promise((resolve, reject) => open.set(name, { resolve, reject })),
    // A store that fails is no reason for a cut to wait or to fail.
    read: async (made) => {
      read.push(...made);
      throw new Error('the store is closed');
    },
    log: silentLog,
  });
  const begin = (id: number, ...names: string[]) =>
    ahead.begin({ id: idOf(id), transactions: names.map(transaction) as never });
  begin(1, 'a', 'b', 'seen');
  begin(2, 'c');
  begin(3, 'seen');
  expect([...open.keys()]).toEqual(['a', 'b', 'c']);
  const outputs = read.map(({ transactionId, outputIndex }) => `${fromUtf8(transactionId)} ${outputIndex}`);
  expect(outputs.slice(0, 6)).toEqual(['a 0', 'a 1', 'b 0', 'b 1', 'seen 0', 'seen 1']);
  // Nothing is under way for these.
  await ahead.settled(3_600_000, [idOf(3), idOf(9)]);
  let isSettled = false;
  const waiting = ahead.settled(3_600_000, [idOf(1)]).then(() => {
    isSettled = true;
  });
  open.get('a')?.resolve();
  await new Promise(setImmediate);
  expect(isSettled).toBe(false);
  // Whatever comes of it: execution decides.
  open.get('b')?.reject(new Error('the worker died'));
  await waiting;
  // The other block never ends: the time does.
  await ahead.settled(1);
  open.get('c')?.resolve();
  await ahead.settled(3_600_000);
});

test('what a block spends of another waiting block, or of itself, is checked ahead too', () => {
  const pool = new WorkPool({ maxBlocks: 8, maxBytes: 1_000 });
  const checked: [string, bigint[]][] = [];
  const ahead = new ChecksAhead({
    isVerified: () => false,
    output: (outpoint) => pool.output(outpoint),
    verify: async ({ name }, spends) => void checked.push([name, spends.map(({ amount }) => amount)]),
    read: async () => undefined,
    log: silentLog,
  });
  const arrives = (id: number, name: string, inputs: readonly [string, number][]) => {
    const spent = inputs.map(([of, outputIndex]) => ({ transactionId: utf8(of), outputIndex }));
    const body = { inputs: spent, outputs: [{ amount: BigInt(id) }, { amount: BigInt(id * 10) }] };
    const transactions = [{ id: utf8(name), name, body }];
    const block = { id: idOf(id), bodyId: idOf(id), bodyBytes: new Uint8Array(1), transactions };
    pool.add(block as never);
    ahead.begin(block as never);
  };
  arrives(1, 'a', [['of no block', 0]]);
  arrives(2, 'b', [['a', 1]]);
  arrives(3, 'c', [
    ['b', 0],
    ['a', 0],
  ]);
  arrives(4, 'd', [['a', 2]]);
  expect(checked).toEqual([
    ['b', [10n]],
    ['c', [2n, 1n]],
  ]);
});
