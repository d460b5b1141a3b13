/** As money.deep.slow.test.ts: the commands of docs/network.md, which share one network, and bridge and miner on it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressIn, makesWallet } from './asking.ts';
import { bridgeOfTwoNodes, bridges } from './miners.ts';
import { laterNodes, snapshots, twoNodes } from './peers.ts';
import { type Reader, Readers, type Running } from './reader.ts';

let readers: Readers;
let anna: Reader;
let first: Running;

beforeAll(async () => {
  readers = await Readers.open();
  anna = readers.person('anna');
});
afterAll(() => readers?.close());

test('two nodes that follow each other, and a bridge with a miner', async () => {
  await makesWallet(anna, 'bin/svc-wallet init --generate-password');
  const address = addressIn(await anna.runs('bin/svc-wallet new-address'));
  first = await twoNodes(readers, anna, address);
  await bridges(anna, address);
});

test('snapshots, and nodes that begin with one', async () => {
  await snapshots(readers, anna, first);
  const follower = await laterNodes(readers, anna);
  await bridgeOfTwoNodes(readers, anna);
  await follower.stop();
  await first.stop();
});

test('no program is left, and no line was passed over', () => {
  expect(readers.alive).toEqual([]);
  expect(readers.passedOver('peers', 'miners')).toEqual([]);
});
