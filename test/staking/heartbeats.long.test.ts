/** Validators inside a node: heartbeats from their own rewards keep them in the committee; without them the committee stays all the same. */
import { afterEach, expect, test } from 'vitest';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { FullNode } from '../../node/full-node.ts';
import { type DevelopmentKey, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME, outpointKey } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import { type HeartbeatFees, Heartbeats } from '../../node/validator/heartbeats.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { decodeTransaction } from '../../protocol/transactions/transaction.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { Bed, developmentKeys, silentLog } from '../node/bed.ts';
import { operationTransaction, rotation } from './signed.ts';

const INTERVAL = 24;
const ACTIVE = { exitHeight: 0, slashHeight: 0, heartbeatEpoch: 0, formerKeys: [] };
const miner = developmentKey('miner').address;
let bed: Bed | undefined;
afterEach(() => bed?.close());

async function open(): Promise<{ bed: Bed; heartbeats: Heartbeats }> {
  const opened = await Bed.open({
    genesis: { validators: 3, intervalCuts: INTERVAL },
    dependencies: { indexers: [addressIndex] },
  });
  bed = opened;
  const { node } = opened;
  const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
  const heartbeats = new Heartbeats({
    node,
    keys: [0, 1, 2, 3].map((member) => developmentKey(validatorName(member))),
    unspent: async (address, after) => (await index.unspent(address, after && outpointKey(after), 8)).value,
    log: silentLog,
  });
  return { bed: opened, heartbeats };
}

const heartbeatEpochs = async (of: Bed) =>
  (await of.node.chain.validators({ limit: 64 })).map(({ heartbeatEpoch }) => heartbeatEpoch);

test('one heartbeat an epoch each, paid from stake rewards', async () => {
  const { bed, heartbeats } = await open();
  let sent = 0;
  for (let height = 1; height < 5 * INTERVAL; height++) {
    await heartbeats.tick();
    const { epoch } = bed.node.chain.staking();
    // In epoch 0 genesis counts, and there are no rewards to pay with.
    if (epoch === 0) expect(bed.node.mempool.count).toBe(0);
    if (bed.node.mempool.count > 0) await bed.mine(miner);
    const effects = await bed.seal();
    sent += effects.transactions.filter(({ outcome }) => outcome === 'executed').length;
    expect(effects.transactions.every(({ outcome }) => outcome === 'executed')).toBe(true);
  }
  expect(sent).toBe(3 * 4);
  expect(await heartbeatEpochs(bed)).toEqual([4, 4, 4]);
  expect(bed.node.chain.staking().stake.committee.members.length).toBe(3);
});

test('a chain without work, so without heartbeats, keeps its committee', async () => {
  const { bed, heartbeats } = await open();
  for (let height = 1; height < 6 * INTERVAL; height++) {
    await heartbeats.tick();
    await bed.seal();
  }
  expect(await heartbeatEpochs(bed)).toEqual([0, 0, 0]);
  expect(bed.node.chain.staking().stake.committee).toMatchObject({ epoch: 6 });
  expect(bed.node.chain.staking().stake.committee.members.length).toBe(3);
  // The waiting ones are of the running epoch: those of the epochs before have left.
  expect([...bed.node.mempool.list()].length).toBeLessThanOrEqual(3);
});

test('a validator with a fee key: that key pays, up to the cap; the two messages of the specification', async () => {
  const payer = developmentKey('fee key');
  const key = developmentKey(validatorName(0));
  const fund = [{ address: payer.address, amount: 100_000_000n }];
  const opened = await Bed.open({
    genesis: { validators: 3, intervalCuts: INTERVAL, fund },
    dependencies: { indexers: [addressIndex] },
  });
  bed = opened;
  const { node } = opened;
  const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
  const told: string[] = [];
  const note = (message: string) => void told.push(message);
  const log = { ...silentLog, info: note, warn: note } as typeof silentLog;
  const heartbeatsWith = (fees: Partial<HeartbeatFees>) =>
    new Heartbeats({
      node,
      keys: [key],
      log,
      fees: { validatorId: validatorId(key.publicKey), key: payer, maxFeeAtoms: 50_000_000n, ...fees },
      unspent: async (address, after) => (await index.unspent(address, after && outpointKey(after), 8)).value,
    });
  await opened.seal(INTERVAL);
  await heartbeatsWith({ maxFeeAtoms: 1n }).tick();
  await heartbeatsWith({ key: developmentKey('poor') }).tick();
  expect(told).toEqual(['validator heartbeat exceeds configured fee cap', 'cannot fund validator heartbeat']);
  expect(node.mempool.count).toBe(0);
  await heartbeatsWith({ feePerMass: 20n }).tick();
  const [waiting] = [...node.mempool.list()];
  expect(decodeTransaction(waiting?.wire ?? new Uint8Array()).body.outputs.map(({ address }) => address)).toEqual([
    payer.address,
  ]);
  await opened.mine(miner);
  const effects = await opened.seal();
  expect(effects.transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  expect(effects.fees).toBe(20n * BigInt((effects.transactions[0] as { mass: number }).mass));
  expect(node.chain.staking().validator(validatorId(key.publicKey))?.heartbeatEpoch).toBe(1);
});

test('dust from strangers leaves no validator without a heartbeat', async () => {
  const key = developmentKey(validatorName(0));
  const outpoint = (i: number) => ({ transactionId: pattern(`output ${i}`, 48), outputIndex: 0 });
  const output = (i: number, amount: bigint) => ({ outpoint: outpoint(i), amount, source: 'regular' as const });
  // The coins lie behind three pages of dust, beside a smaller output that would do.
  const dust = Array.from({ length: 200 }, (_, i) => output(i, 1n));
  const unspent = [...dust, output(200, 900_000n), output(201, 90_000_000n), output(202, 1n)];
  const sent: Uint8Array[] = [];
  const node = {
    chain: {
      chainId: pattern('chain', 48),
      head: () => ({ height: 30 }),
      staking: () => ({ epoch: 1, validator: () => ({ ...ACTIVE, key: key.publicKey }) }),
    },
    mempool: { spender: () => undefined },
    submitTransaction: async (wire: Uint8Array) => {
      sent.push(wire);
      return { status: 'accepted' };
    },
  } as unknown as FullNode;
  const heartbeats = new Heartbeats({
    node,
    keys: [key],
    log: silentLog,
    unspent: async (_, after) => {
      const from =
        after === undefined ? 0 : unspent.findIndex((each) => each.outpoint.transactionId === after.transactionId) + 1;
      return unspent.slice(from, from + 64);
    },
  });
  await heartbeats.tick();
  const [wire] = sent as [Uint8Array];
  expect(decodeTransaction(wire).body.inputs).toEqual([outpoint(201)]);
});

test('after a rotation the node with the new key sends the heartbeats, and the one with the old key none', async () => {
  const owner = developmentKey(validatorName(0));
  const second = developmentKey('second consensus key');
  const id = validatorId(owner.publicKey);
  const payers = ['old payer', 'new payer'].map((name) => developmentKey(name));
  const fund = payers.map(({ address }) => ({ address, amount: 100_000_000n }));
  const opened = await Bed.open({
    genesis: { validators: 3, intervalCuts: INTERVAL, fund },
    dependencies: {
      indexers: [addressIndex],
      certify: certifyWith([...developmentKeys(3), second.privateKey]),
    },
  });
  bed = opened;
  const { node } = opened;
  const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
  const told: string[] = [];
  const note = (message: string) => void told.push(message);
  const of = (key: DevelopmentKey, payer: DevelopmentKey) =>
    new Heartbeats({
      node,
      keys: [key],
      log: { ...silentLog, info: note, warn: note } as typeof silentLog,
      fees: { validatorId: id, key: payer, maxFeeAtoms: 50_000_000n },
      unspent: async (address, after) => (await index.unspent(address, after && outpointKey(after), 8)).value,
    });
  const [before, after] = [of(owner, payers[0] as DevelopmentKey), of(second, payers[1] as DevelopmentKey)];
  const rotate = rotation(node.chain, id, second, owner);
  const paid = { key: developmentKey(TREASURY), spend: opened.treasury(0) };
  await node.submitTransaction(operationTransaction(node.chain, paid, rotate, { signer: owner }));
  const beats: [number, string][] = [];
  for (let height = 1; height < 6 * INTERVAL; height++) {
    for (const [name, heartbeats] of [
      ['before', before],
      ['after', after],
    ] as const) {
      const waiting = node.mempool.count;
      await heartbeats.tick();
      if (node.mempool.count > waiting) beats.push([node.chain.staking().epoch, name]);
    }
    if (node.mempool.count > 0) await opened.mine(miner);
    await opened.seal();
  }
  // The new key signs from the second epoch after that of the rotation.
  expect(beats).toEqual([
    [1, 'before'],
    [2, 'after'],
    [3, 'after'],
    [4, 'after'],
    [5, 'after'],
  ]);
  expect(told).toEqual([]);
});
