/**
 * Commands of the documents, run as they are written by people who follow the pages: from fresh folders, as ordinary users, with a terminal that asks and answers.
 * test/documented/substitutions.ts has all that is changed in a line. Here are those about coins, on one chain: a pool and its rig, wallets, an address of three, chats.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressIn, makesWallet } from './asking.ts';
import { comparePayouts, lookAtPool, poolWithWallet, restorePool, rig, startPool } from './pools.ts';
import { type Reader, Readers, type Running } from './reader.ts';
import { asksDaemon, chainWithCoins, chat, firstSteps, multisig, restores } from './wallets.ts';

let readers: Readers;
let people: Record<'anna' | 'bert' | 'cleo' | 'paul' | 'tom', Reader>;
let annas = '';
let berts = '';
const running: Record<string, Running> = {};

beforeAll(async () => {
  readers = await Readers.open();
  const names = ['anna', 'bert', 'cleo', 'paul', 'tom'];
  people = Object.fromEntries(names.map((name) => [name, readers.person(name)])) as typeof people;
});
afterAll(() => readers?.close());

test('wallets and addresses', async () => {
  for (const person of [people.anna, people.cleo]) await makesWallet(person, 'bin/svc-wallet init --generate-password');
  const words = await makesWallet(people.bert, 'svc-wallet init --generate-password');
  annas = addressIn(await people.anna.runs('bin/svc-wallet new-address'));
  berts = addressIn(await people.bert.runs('svc-wallet new-address'));
  await restores(people.tom, words, berts);
});

test('a node, a pool and a rig', async () => {
  running.node = await chainWithCoins(readers, people.anna, annas);
  running.pool = await startPool(people.paul);
  running.rig = await rig(people.tom, berts);
});

test('a wallet that pays', async () => {
  running.wallet = await firstSteps(readers, people.anna, berts);
  await asksDaemon(people.anna);
});

test('an address of three', () => multisig(readers, [people.anna, people.bert, people.cleo]));

test('chats', () => chat(readers, people.anna, people.bert, berts));

test('the books of the pool, copied, audited and restored', async () => {
  await lookAtPool(readers, people.paul, berts);
  await running.rig?.stop();
  await running.pool?.stop();
  await restorePool(people.paul);
  await comparePayouts(people.paul);
});

test('a pool at the wallet of another program', async () => {
  await poolWithWallet(readers, people.anna);
  await running.wallet?.stop();
  await running.node?.stop();
});

test('no program is left, and no line was passed over', () => {
  expect(readers.alive).toEqual([]);
  expect(readers.passedOver('wallets', 'pools')).toEqual([]);
});
