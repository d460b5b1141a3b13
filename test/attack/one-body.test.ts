/**
 * A body must not be used for a second block. Of two blocks on one body sent at the same moment one is refused, and leaves nothing
 * behind that could keep the node from its next cut or its next start.
 */
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { certifyWith } from '../../node/chain/certificate.ts';
import { certifiable } from '../../node/chain/open-chain.ts';
import type { BlockRecord } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { applySound } from '../../node/ledger/sound-blocks.ts';
import type { Committee } from '../../node/ledger/staking/committee.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { KEYS } from '../../node/store/keys.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { type Bytes, compareBytes, toHex } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { blockId, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { Bed, developmentKeys, quickHash } from '../node/bed.ts';

const RAW = { keyEncoding: 'view', valueEncoding: 'view' } as const;
type Made = ReturnType<Bed['make']>;

const mallory = developmentKey('mallory').address;
const alice = developmentKey('alice').address;

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open();
});
afterEach(async () => {
  await bed.close();
});

/** The same block with other nonces: at work 1 every hash is below the target. */
const twins = (header: Bytes, count: number): Uint8Array<ArrayBuffer>[] =>
  Array.from({ length: count }, (_, i) => {
    const twin = Uint8Array.from(header);
    twin[NONCE_OFFSET] = i;
    return twin;
  });

async function goesOn(): Promise<void> {
  await bed.seal();
  await bed.reopen();
  await bed.seal(2);
  const id = await bed.mine(alice);
  expect((await bed.seal()).registered.map((block) => Buffer.from(block.id))).toContainEqual(Buffer.from(id));
}

test('many blocks on one body at once: one is taken, the rest refused, and the chain goes on after a restart', async () => {
  await bed.seal();
  const { header, body } = bed.make(mallory);
  const outcomes = await Promise.all(twins(header, 8).map((twin) => bed.node.submitBlock(twin, body)));
  expect(outcomes.filter(({ status }) => status === 'accepted').length).toBe(1);
  for (const outcome of outcomes) if (outcome.status === 'refused') expect(outcome.error.code).toBe('body_used');
  await bed.reopen();
  expect([...bed.node.chain.waitingBlocks()].length).toBe(1);
  await goesOn();
});

test('a refused block leaves no record behind', async () => {
  await bed.seal();
  const { header, body } = bed.make(mallory);
  await Promise.all(twins(header, 4).map((twin) => bed.node.submitBlock(twin, body)));
  const [kept] = [...bed.node.chain.waitingBlocks()];
  await bed.node.close();
  const store = await LedgerStore.open(join(bed.directory, 'store'));
  const records = await store.waitingKeys();
  await store.close();
  expect(records.map(({ id }) => toHex(id))).toEqual([toHex(kept?.id as Bytes)]);
  await bed.openNode();
  await goesOn();
});

test('a block that had to leave for a better one keeps its body until its window closes', async () => {
  await bed.close();
  bed = await Bed.open({ options: { workPoolBlocks: 1 } });
  await bed.seal();
  const [low, high] = [bed.make(mallory), bed.make(mallory)].sort((a, b) =>
    compareBytes(quickHash(a.header), quickHash(b.header)),
  ) as [Made, Made];
  expect(await bed.node.submitBlock(high.header, high.body)).toMatchObject({ status: 'accepted' });
  expect(await bed.node.submitBlock(low.header, low.body)).toMatchObject({ status: 'accepted' });
  for (const twin of twins(high.header, 64))
    if (compareBytes(quickHash(twin), quickHash(high.header)) !== 0)
      expect(await bed.node.submitBlock(twin, high.body)).toMatchObject({ error: { code: 'body_used' } });
  // The best of both comes back, whatever the order in the store.
  await bed.reopen();
  expect([...bed.node.chain.waitingBlocks()].map(({ header }) => toHex(header))).toEqual([toHex(low.header)]);
  expect((await bed.seal()).registered.length).toBe(1);
  expect(await bed.node.submitBlock(high.header, high.body)).toMatchObject({ status: 'accepted' });
  expect((await bed.seal()).registered.length).toBe(1);
  expect((await bed.seal(96)).rewards.length).toBe(0);
  await goesOn();
});

test('a block pushed out while a cut registers it leaves its body taken', async () => {
  await bed.close();
  const release = Promise.withResolvers<void>();
  let held = Promise.resolve();
  const certify = certifyWith(developmentKeys(1));
  bed = await Bed.open({
    options: { workPoolBlocks: 1 },
    dependencies: {
      certify: async (cut) => {
        await held;
        return await certify(cut);
      },
    },
  });
  await bed.seal();
  const [low, high] = [bed.make(mallory), bed.make(mallory)].sort((a, b) =>
    compareBytes(quickHash(a.header), quickHash(b.header)),
  ) as [Made, Made];
  await bed.node.submitBlock(high.header, high.body);
  held = release.promise;
  const sealing = bed.seal();
  expect(await bed.node.submitBlock(low.header, low.body)).toMatchObject({ status: 'accepted' });
  // `high` is out of the pool and not registered yet.
  for (const twin of twins(high.header, 64)) {
    const outcome = await bed.node.submitBlock(twin, high.body);
    if (outcome.status === 'refused') expect(outcome.error.code).toBe('body_used');
    else expect(outcome.status).toBe('known');
  }
  release.resolve();
  expect((await sealing).registered.map(({ header }) => toHex(header))).toEqual([toHex(high.header)]);
  await goesOn();
});

test('a block pushed out comes again while a cut that registers it is written: what the cut says of it stays', async () => {
  await bed.close();
  bed = await Bed.open({ options: { workPoolBlocks: 1 } });
  await bed.seal();
  const [low, high] = [bed.make(mallory), bed.make(mallory)].sort((a, b) =>
    compareBytes(quickHash(a.header), quickHash(b.header)),
  ) as [Made, Made];
  await bed.node.submitBlock(high.header, high.body);
  const { ledger, chain } = bed.node as ConsensusNode;
  const committee = ledger.committee(ledger.head().height + 1) as Committee;
  const cut = ledger.make({ timestampMillis: bed.now + 2_500, signers: 1n });
  const certificate = await certifyWith(developmentKeys(1))(certifiable(cut.state, committee, cut.effects.cutId));
  await bed.node.submitBlock(low.header, low.body);
  // Writes that are not synced are slow from here on: those of waiting blocks.
  const { batch } = ClassicLevel.prototype;
  const slow = Promise.withResolvers<void>();
  const changed = async (of: ClassicLevel, ...words: unknown[]): Promise<void> => {
    if (!(words[1] as { sync?: boolean } | undefined)?.sync) await slow.promise;
    await (batch as (...given: unknown[]) => Promise<void>).apply(of, words);
  };
  ClassicLevel.prototype.batch = function (this: ClassicLevel, ...words: unknown[]) {
    return changed(this, ...words);
  } as typeof batch;
  onTestFinished(() => {
    ClassicLevel.prototype.batch = batch;
  });
  // Another proposed cut names it too.
  const admitted = ledger.admit(high.header, high.body, { header: cut.effects.header } as ProposedCut);
  await new Promise(setImmediate);
  await ledger.commit(cut, certificate);
  slow.resolve();
  await admitted;
  expect(chain.block(blockId(high.header))).toMatchObject({ registeredHeight: cut.state.height });
  await goesOn();
});

/** Records as a crash, an older version or a failing disk may leave them. */
test('whatever waits in the store is checked again at the start; what is bad is set aside and named', async () => {
  await bed.seal();
  const made = bed.make(mallory);
  const template = bed.make(mallory);
  const good = bed.make(alice);
  const late = bed.make(mallory);
  await bed.seal(96);
  const current = bed.make(alice);
  const old = await registered();
  await bed.node.close();

  const store = await LedgerStore.open(join(bed.directory, 'store'));
  const record = (header: Bytes): BlockRecord => ({ ...(old.record as BlockRecord), id: blockId(header), header });
  const unregistered = (header: Bytes): BlockRecord => {
    const { registeredHeight: _, ...rest } = record(header);
    return { ...rest, reward: { state: 'waiting' } };
  };
  const hash = quickHash(current.header);
  const twin = twins(current.header, 2)[1] as Bytes;
  await store.addWaiting(unregistered(current.header), current.body, hash);
  await store.addWaiting(unregistered(twin), current.body, quickHash(twin));
  await store.addWaiting(unregistered(late.header), late.body, quickHash(late.header));
  await store.addWaiting(unregistered(made.header), template.body, quickHash(made.header));
  await store.addWaiting(unregistered(good.header), Buffer.from('junk'), quickHash(good.header));
  await store.addWaiting({ ...unregistered(current.header), id: new Uint8Array(48).fill(7) }, current.body, hash);
  await store.addWaiting(old.record as BlockRecord, old.body as Bytes, hash);
  await store.close();
  const raw = new ClassicLevel<Uint8Array, Uint8Array>(join(bed.directory, 'store'), RAW);
  await raw.put(KEYS.waiting(new Uint8Array(48).fill(8)), hash);
  await raw.put(KEYS.waiting(new Uint8Array(48).fill(9)), hash);
  await raw.put(KEYS.block(new Uint8Array(48).fill(9)), Buffer.from('no record'));
  await raw.put(KEYS.body(new Uint8Array(48).fill(9)), Buffer.from('no body'));
  await raw.put(KEYS.waiting(Buffer.from('short')), Buffer.from('short'));
  await raw.close();

  await bed.openNode();
  const [first] = [current.header, twin].sort((a, b) => compareBytes(quickHash(a), quickHash(b)));
  expect([...bed.node.chain.waitingBlocks()].map(({ header }) => toHex(header))).toEqual([toHex(first as Bytes)]);
  // What a cut has decided stays as it was.
  expect(bed.node.chain.block(old.id)).toEqual(old.record);
  expect((await bed.seal()).registered.length).toBe(1);
  await goesOn();
});

/** A block that a cut has registered, with its record and body. */
async function registered() {
  const id = await bed.mine(alice);
  await bed.seal();
  return { id, record: bed.node.chain.block(id), body: bed.node.chain.blockBody(id) };
}

test('a block that breaks a cut all the same is left out, and only that one', () => {
  const apply = (blocks: readonly number[]): number => {
    if (blocks.includes(3) || blocks.includes(5)) throw new Error('cannot be executed');
    return blocks.reduce((sum, block) => sum + block, 0);
  };
  const { result, broken } = applySound([1, 3, 4, 5], apply);
  expect([result, broken.map(({ block }) => block)]).toEqual([5, [3, 5]]);
  expect(() =>
    applySound([1], () => {
      throw new Error('the ledger is broken');
    }),
  ).toThrow('the ledger is broken');
});
