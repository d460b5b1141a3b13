/**
 * Commands of the documents, run as they are written by people who follow the pages: from fresh folders, as ordinary users. test/documented/substitutions.ts has all that is
 * changed in a line. Here are those that bring a chain of their own; money.deep.slow.test.ts and peers.deep.slow.test.ts have the others.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bridgeWithNode, poolAlone, poolOfMany } from './alone.ts';
import { addressIn, makesWallet } from './asking.ts';
import { filesOfFour, ownChain, registeredValidators, tryNetwork } from './nodes.ts';
import { Readers } from './reader.ts';

let readers: Readers;
beforeAll(async () => {
  readers = await Readers.open();
});
afterAll(() => readers?.close());

test('nodes with a chain of their own', async () => {
  const otto = readers.person('otto');
  await makesWallet(otto, 'svc-wallet init --generate-password');
  const address = addressIn(await otto.runs('svc-wallet new-address'));
  await ownChain(readers, otto);
  await filesOfFour(otto);
  await tryNetwork(readers, otto, address);
});

test('a genesis of two registered validators', () =>
  registeredValidators([readers.person('vera'), readers.person('walt')]));

test('a bridge with a node of its own, and one with TLS', () => bridgeWithNode(readers, readers.person('carl')));

test('a pool that needs nothing', () => poolAlone(readers, readers.person('eva')));

test('a pool with a database and Redis', () => poolOfMany(readers.person('dora')));

test('no program is left, and no line was passed over', () => {
  expect(readers.alive).toEqual([]);
  expect(readers.passedOver('alone', 'nodes')).toEqual([]);
});
