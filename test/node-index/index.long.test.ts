/** The address index: it agrees with the ledger, it never claims a cut it has not seen, and it can be made again from the blocks. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FullNode, UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { addressIndex, decodeBalance } from '../../node/index/address-index.ts';
import {
  afterPrefix,
  decodeEvent,
  eventOrder,
  eventPlace,
  INDEX_NAME,
  key,
  placeBytes,
  SPACES,
} from '../../node/index/index-keys.ts';
import { IndexReader, IndexUnavailable, type PlacedEvent } from '../../node/index/index-reader.ts';
import { rebuildIndex } from '../../node/index/rebuild.ts';
import type { StoreReader } from '../../node/store/cut-indexer.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { count, seed } from '../level.ts';
import { Bed, createdFor } from '../node/bed.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';

const NAMES = ['alice', 'bob', 'carol', 'miner'];

/** Random payments between a few people, several blocks a cut. */
async function play(bed: Bed, cuts: number): Promise<void> {
  const random = randomOf(seed);
  const owned = new Map<string, UnspentOutput[]>([[TREASURY, Array.from({ length: 64 }, (_, i) => bed.treasury(i))]]);
  for (let i = 0; i < cuts; i++) {
    for (const name of [TREASURY, ...NAMES]) {
      const outputs = owned.get(name) ?? [];
      if (outputs.length === 0 || random(3) === 0) continue;
      const spent = outputs.splice(0, 1 + random(2));
      const to = NAMES[random(NAMES.length)] as string;
      const total = spent.reduce((sum, { amount }) => sum + amount, 0n);
      if (total < 1_000_000n) continue;
      await bed.pay(spent, [{ address: developmentKey(to).address, amount: total / 3n }], {
        key: developmentKey(name),
      });
    }
    // Past the time a draw of transactions is kept.
    bed.now += 6_000;
    for (let block = 0; block <= random(3); block++) await bed.mine(developmentKey('miner').address, 1_000, block);
    const effects = await bed.seal();
    for (const name of [TREASURY, ...NAMES])
      owned.set(name, [...(owned.get(name) ?? []), ...createdFor(effects, developmentKey(name).address)]);
  }
}

const indexOf = (node: FullNode) => new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);

const entriesOf = async (store: { range(from: Uint8Array, to: Uint8Array): Promise<[Uint8Array, Uint8Array][]> }) =>
  (await store.range(Buffer.of(0), Buffer.of(255))).map(
    ([at, value]) => `${Buffer.from(at).toString('hex')} ${Buffer.from(value).toString('hex')}`,
  );

test('balances, outputs and the ledger agree after random payments, also after a restart', async () => {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  onTestFinished(() => bed.close());
  await play(bed, count({ quick: 20, full: 60, deep: 400 }));
  await bed.reopen();
  const { node } = bed;
  const index = indexOf(node);
  const reader = node.chain.reader(INDEX_NAME);
  const prefix = Buffer.of(SPACES.balance);
  let total = 0n;
  let outputs = 0;
  for (const [at, value] of await reader.range(prefix, afterPrefix(prefix))) {
    const address = at.subarray(1);
    const balance = decodeBalance(value);
    total += balance.atoms;
    outputs += balance.utxos;
    const unspent = (await index.unspent(address, undefined, 100_000)).value;
    expect(unspent).toHaveLength(balance.utxos);
    expect(unspent.reduce((sum, { amount }) => sum + amount, 0n)).toBe(balance.atoms);
    for (const { outpoint, amount, source } of unspent)
      expect(node.chain.output(outpoint)).toMatchObject({ amount, source, address: Uint8Array.from(address) });
  }
  expect(total).toBe(node.chain.supply().outputs);
  expect(outputs).toBe(node.chain.supply().outputCount);
  expect(index.height()).toBe(node.chain.head().height);
});

test('history and changes are the same events, whatever the pages', async () => {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  onTestFinished(() => bed.close());
  await play(bed, count({ quick: 20, full: 60, deep: 300 }));
  const index = indexOf(bed.node);
  const head = bed.node.chain.head().height;
  const random = randomOf(seed + 1);
  const shown = ({ height, place, kind, amount }: PlacedEvent) => `${height} ${place} ${kind} ${amount}`;
  const all = new Map<string, string[]>();
  for (let height = 0; height <= head; height++)
    for (const change of await index.changes(height, 0, 100_000)) {
      const name = Buffer.from(change.address).toString('hex');
      all.set(name, [...(all.get(name) ?? []), shown(change)]);
    }
  for (const [name, expected] of all) {
    const address = Buffer.from(name, 'hex');
    for (let round = 0; round < 4; round++) {
      const limit = 1 + random(40);
      const backwards: string[] = [];
      let before: Uint8Array | undefined;
      for (;;) {
        const { value } = await index.history(address, before, limit);
        backwards.push(...value.map((event) => shown({ ...eventPlace(event), ...decodeEvent(event) })));
        if (value.length < limit) break;
        before = eventOrder(value.at(-1) as Uint8Array);
      }
      expect(backwards.reverse()).toEqual(expected);
      const from = random(head + 1);
      const forwards: string[] = [];
      let after: Uint8Array = placeBytes(from, 0xffffffff);
      for (;;) {
        const events = await index.eventsAfter(address, after, head, limit);
        forwards.push(...events.map(shown));
        const last = events.at(-1);
        if (last === undefined || events.length < limit) break;
        after = placeBytes(last.height, last.place);
      }
      expect(forwards).toEqual(expected.filter((text) => Number(text.split(' ')[0]) > from));
    }
  }
});

test('an address without news costs no range of the store', async () => {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  onTestFinished(() => bed.close());
  await play(bed, 20);
  const head = bed.node.chain.head().height;
  const reader = bed.node.chain.reader(INDEX_NAME);
  let ranges = 0;
  const counted: StoreReader = {
    get: (key) => reader.get(key),
    range: (...range) => reader.range(...range),
    values: (...range) => {
      ranges++;
      return reader.values(...range);
    },
  };
  const index = new IndexReader(counted, () => head);
  const changed = new Map<string, number>();
  for (let height = 0; height <= head; height++)
    for (const { address } of await index.changes(height, 0, 100_000))
      changed.set(Buffer.from(address).toString('hex'), height);
  ranges = 0;
  for (const [name, height] of [...changed, ['00'.repeat(49), 0] as const]) {
    const address = Buffer.from(name, 'hex');
    expect(await index.eventsAfter(address, placeBytes(height, 0xffffffff), head, 16)).toEqual([]);
    expect(await index.eventsAfter(address, placeBytes(head, 0xffffffff), head, 16)).toEqual([]);
  }
  expect(ranges).toBe(0);
});

test('a rebuild gives the same index, byte for byte', async () => {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  onTestFinished(() => bed.close());
  await play(bed, count({ quick: 10, full: 110, deep: 300 }));
  const before = await entriesOf(bed.node.chain.reader(INDEX_NAME));
  expect(before.length).toBeGreaterThan(100);
  await bed.node.close();
  const store = await LedgerStore.open(join(bed.directory, 'store'));
  const scratch = await LedgerStore.open(join(temporaryDirectory(), 'scratch'), { durable: false });
  let last = 0;
  await rebuildIndex(store, scratch, (height) => {
    last = height;
  });
  expect(last).toBe(store.state().height);
  expect(await entriesOf(store.reader(INDEX_NAME))).toEqual(before);
  await scratch.close();
  await store.close();
  await bed.openNode();
});

test('an index that missed cuts says so until it is rebuilt', async () => {
  const bed = await Bed.open({ dependencies: { indexers: [] } });
  onTestFinished(() => bed.close());
  await play(bed, 3);
  expect(() => indexOf(bed.node).height()).toThrow(IndexUnavailable);
  await bed.node.close();
  const scratchDirectory = temporaryDirectory();
  const rebuild = async (name: string) => {
    const store = await LedgerStore.open(join(bed.directory, 'store'));
    const scratch = await LedgerStore.open(join(scratchDirectory, name), { durable: false });
    await rebuildIndex(store, scratch, () => undefined);
    await scratch.close();
    await store.close();
  };
  await rebuild('first');
  await bed.openNode();
  expect(indexOf(bed.node).height()).toBe(3);
  await bed.seal(2);
  expect(() => indexOf(bed.node).height()).toThrow(IndexUnavailable);
  const stale = bed.node.chain.reader(INDEX_NAME);
  const operations = addressIndex.operations(await bed.seal(), stale);
  expect(operations).toEqual([]);
  await bed.node.close();
  await rebuild('second');
  await bed.openNode();
  expect(indexOf(bed.node).height()).toBe(6);
});

test('a chain whose bodies were pruned cannot be rebuilt, and keeps the index it has', async () => {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  onTestFinished(() => bed.close());
  await play(bed, 5);
  await bed.seal(100);
  expect(await bed.node.pruneBodies(50)).toBeGreaterThan(0);
  const before = await entriesOf(bed.node.chain.reader(INDEX_NAME));
  await bed.node.close();
  const store = await LedgerStore.open(join(bed.directory, 'store'));
  const scratch = await LedgerStore.open(join(temporaryDirectory(), 'scratch'), { durable: false });
  await expect(rebuildIndex(store, scratch, () => undefined)).rejects.toMatchObject({ code: 'index_body_missing' });
  expect(await entriesOf(store.reader(INDEX_NAME))).toEqual(before);
  await scratch.close();
  await store.close();
  await bed.openNode();
});

test('keys sort by height, whatever the height', () => {
  const at = (height: number) => {
    const place = Buffer.alloc(12);
    place.writeBigUInt64BE(BigInt(height));
    return key(SPACES.change, place);
  };
  for (const [low, high] of [
    [0, 1],
    [255, 256],
    [65_535, 65_536],
    [2 ** 32 - 1, 2 ** 32],
  ] as const)
    expect(Buffer.compare(at(low), at(high))).toBe(-1);
});
