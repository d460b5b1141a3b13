/** Receipts to connections (docs/protocol/stratum.md, S33 to S36): those who ask get their own, on both wires; nobody else hears of it. */
import { expect, test } from 'vitest';
import { findEntry, ReceiptFanOut, type ReceiptMessage, sharedDelivery } from '../../bridge/shares/receipts.ts';
import type { FromServer } from '../../miner/client/wire.ts';
import { WireV1 } from '../../miner/client/wire-v1.ts';
import { WireV2 } from '../../miner/client/wire-v2.ts';
import {
  compareReceipts,
  type Receipt,
  type ReceiptHead,
  type ReceiptLeaf,
  receiptDocument,
  receiptSheet,
} from '../../protocol/books/receipt.ts';
import { toHex, utf8 } from '../../protocol/bytes.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';
import { encodeClientFrame } from '../../protocol/stratum/v2.ts';
import { BRIDGE } from './bed.ts';
import { deskBed, RecordingPeer } from './desk-bed.ts';
import { DeskFarm } from './desk-farm.ts';
import { accountOf, addressOf } from './stratum-client.ts';

const POOL = { ...BRIDGE, name: 'pplns', receipts: { key: new Uint8Array(1952).fill(3), api: 'https://pool.example' } };
const SIGNATURE = new Uint8Array(3309).fill(5);

function delivery(service: 'pplns' | 'solo', workers: readonly [number, string][]) {
  const leaves = workers
    .map(
      ([account, worker]): ReceiptLeaf => ({
        account: accountOf(account),
        worker,
        shares: 1,
        work: 10n,
        open: 0n,
        accountWork: 10n,
      }),
    )
    .sort(compareReceipts);
  const sheet = receiptSheet(leaves);
  const head: ReceiptHead = {
    network: 'development',
    service,
    slice: 5,
    boot: '09'.repeat(8),
    chain: '01'.repeat(48),
    root: '02'.repeat(48),
    accounts: 1,
    total_work: '10',
    receipts: leaves.length,
    receipts_root: toHex(sheet.root),
  };
  const receiptOf = (account: number, worker: string): Receipt => {
    const at = leaves.findIndex(
      (leaf) => leaf.worker === worker && compareReceipts(leaf, { account: accountOf(account), worker }) === 0,
    );
    return receiptDocument(head, SIGNATURE, entryOfBytes(sheet.entries[at] as Uint8Array));
  };
  return { sheet: sharedDelivery(head, SIGNATURE, sheet.entries), receiptOf };
}

/** What a miner's own wire makes of everything that was written. */
function heard(form: 'v1' | 'v2', peer: RecordingPeer, sent: number): FromServer[] {
  const wire = form === 'v1' ? new WireV1(false) : new WireV2(false);
  if (form === 'v1') {
    wire.encode({ kind: 'subscribe', subscribe: { agent: 'a', tag: '', session: null } });
    wire.encode({ kind: 'authorize', authorize: { username: 'a', password: '' } });
    for (let i = 0; i < sent; i++) wire.encode({ kind: 'receipts' });
  }
  const messages: FromServer[] = [];
  for (const bytes of peer.written) wire.receive(bytes, (message) => messages.push(message));
  return messages;
}

for (const form of ['v1', 'v2'] as const)
  test(`a miner of ${form} that asks gets the offer and its own receipts, one that does not gets nothing`, async () => {
    const bed = await deskBed();
    const miner = async (worker: string, asks: boolean, service = POOL as typeof BRIDGE) => {
      const peer = new RecordingPeer();
      const conversation = bed.desk.open(service, form, peer, '203.0.113.9');
      const wire = form === 'v1' ? new WireV1(false) : new WireV2(false);
      const say = async (message: Parameters<typeof wire.encode>[0]) => {
        const bytes = wire.encode(message);
        conversation.receive(typeof bytes === 'string' ? utf8(bytes) : bytes);
        await bed.settle();
      };
      await say({ kind: 'subscribe', subscribe: { agent: 'a', tag: '', session: null } });
      await say({ kind: 'authorize', authorize: { username: `${addressOf(1)}.${worker}`, password: '' } });
      if (asks) await say({ kind: 'receipts' });
      return { peer, conversation, said: () => heard(form, peer, asks ? 1 : 0) };
    };
    const [asking, silent, slow, plain] = [
      await miner('a', true),
      await miner('a', false),
      await miner('a', true),
      await miner('a', true, BRIDGE),
    ];
    expect(asking.said().find(({ kind }) => kind === 'receipts')).toEqual({ kind: 'receipts', offer: POOL.receipts });
    expect(plain.said().find(({ kind }) => kind === 'receipts')).toEqual({ kind: 'receipts', offer: null });
    slow.peer.queued = 100_000;
    const { sheet, receiptOf } = delivery('pplns', [
      [1, 'a'],
      [1, 'b'],
      [2, 'a'],
      [3, ''],
    ]);
    bed.desk.receipts(sheet);
    bed.desk.receipts(delivery('solo', [[1, 'a']]).sheet);
    await bed.settle();
    const receipts = (each: typeof asking) =>
      each.said().flatMap((message) => (message.kind === 'receipt' ? [message.receipt] : []));
    expect(receipts(asking)).toEqual([receiptOf(1, 'a')]);
    for (const each of [silent, slow, plain]) expect(receipts(each)).toEqual([]);
    // Gone, and a second slice: nothing is said into the void, the others go on.
    bed.desk.gone(asking.conversation, 'closed by the miner');
    slow.peer.queued = 0;
    bed.desk.receipts(sheet);
    await bed.settle();
    expect(receipts(asking).length).toBe(1);
    expect(receipts(slow)).toEqual([receiptOf(1, 'a')]);
  });

test('a farm gets the receipts of all its rigs, as it reads them, and the head of a sheet once', async () => {
  const RIGS = 200;
  const names = Array.from({ length: RIGS }, (_, i) => `rig-${i}`);
  const bed = await deskBed();
  const farm = new DeskFarm(bed, POOL);
  await farm.begin(names, { rigs: RIGS });
  await farm.send({ type: 'receipts' });
  const { sheet } = delivery('pplns', [...names.map((name): [number, string] => [1, name]), [2, 'rig-1']]);
  farm.peer.queued = 100_000;
  bed.desk.receipts(sheet);
  bed.desk.receipts(sheet);
  const receipts = () => farm.said.flatMap((frame) => (frame.type === 'receipt' ? [frame.entry.leaf.worker] : []));
  await farm.send();
  expect(receipts()).toEqual([]);
  farm.peer.queued = 0;
  for (let i = 0; i < 10; i++) await farm.send();
  expect(receipts()).toEqual([...names, ...names]);
  expect(farm.said.filter(({ type }) => type === 'receiptHead').length).toBe(2);
});

test('before the login nobody gets receipts', async () => {
  const bed = await deskBed();
  const peer = new RecordingPeer();
  bed.desk.open(POOL, 'v2', peer, '203.0.113.9').receive(encodeClientFrame({ type: 'receipts' }));
  await bed.settle();
  expect(heard('v2', peer, 0)).toMatchObject([{ kind: 'refused', error: { code: 25 } }]);
});

test('an entry is found among many by account and worker', () => {
  const workers = Array.from({ length: 300 }, (_, i): [number, string] => [i % 100, `w${i}`]);
  const { sheet } = delivery('pplns', workers);
  for (const [account, worker] of workers)
    expect(entryOfBytes(findEntry(sheet, accountOf(account), worker) as Uint8Array).leaf.worker).toBe(worker);
  expect(findEntry(sheet, accountOf(5), 'nobody')).toBeUndefined();
});

test('sheets wait for farms that read slowly, but old ones are kept for none of them', () => {
  const names = Array.from({ length: 100 }, (_, i) => `rig-${i}`);
  const farmOf = () => {
    const got: number[] = [];
    const receipt = (message: ReceiptMessage): void => void got.push(JSON.parse(message.line()).params.slice);
    const peer = { queued: 0 };
    const session = { member: { service: 'pplns', account: accountOf(1) }, workers: names };
    return { isEnding: false, peer, session, receipt, flush: () => {}, got };
  };
  const fanOut = new ReceiptFanOut<ReturnType<typeof farmOf>>({
    soon: (run) => run(),
    now: () => 0,
    onDefect: () => {},
  });
  const { sheet } = delivery('pplns', [[1, 'rig-99']]);
  const farm = farmOf();
  farm.peer.queued = 1;
  fanOut.ask(farm);
  for (let slice = 1; slice <= 20; slice++) {
    fanOut.deliver({ ...sheet, head: { ...sheet.head, slice } });
    fanOut.sendDelayed();
  }
  expect(farm.got).toEqual([]);
  farm.peer.queued = 0;
  for (let i = 0; i < 40; i++) fanOut.sendDelayed();
  expect(farm.got).toEqual([13, 14, 15, 16, 17, 18, 19, 20]);
  expect(fanOut.skipped).toBe(12);
});

test('the names of a farm are read when a sheet is sent, not kept for each that waits; where its account has no work, not at all', () => {
  let reads = 0;
  const names = Array.from({ length: 100 }, (_, i) => `rig-${i}`);
  const session = {
    member: { service: 'pplns', account: accountOf(1) },
    get workers() {
      reads++;
      return names;
    },
  };
  const got: string[] = [];
  const receipt = (message: ReceiptMessage): void => void got.push(JSON.parse(message.line()).params.worker);
  const farm = { isEnding: false, peer: { queued: 1 }, session, receipt, flush: () => {} };
  const fanOut = new ReceiptFanOut<typeof farm>({ soon: (run) => run(), now: () => 0, onDefect: () => {} });
  fanOut.ask(farm);
  for (let i = 0; i < 5; i++) fanOut.deliver(delivery('pplns', [[2, 'rig-99']]).sheet);
  expect(reads).toBe(0);
  const { sheet } = delivery('pplns', [
    [1, 'rig-99'],
    [1, 'new'],
  ]);
  for (let i = 0; i < 5; i++) fanOut.deliver(sheet);
  expect(reads).toBe(1);
  names[99] = 'new';
  farm.peer.queued = 0;
  for (let i = 0; i < 20; i++) fanOut.sendDelayed();
  expect(got).toEqual(['rig-99', 'new', 'new', 'new', 'new']);
});

test('a connection that cannot be sent its receipt is told of, and keeps no other one’s back', () => {
  const defects: unknown[] = [];
  const got: string[] = [];
  const rigOf = (name: string, receipt: () => void) => {
    const session = { member: { service: 'pplns', account: accountOf(1) }, workers: [name] };
    return { name, isEnding: false, peer: { queued: 0 }, session, receipt, flush: () => {} };
  };
  const fanOut = new ReceiptFanOut<ReturnType<typeof rigOf>>({
    soon: (run) => run(),
    now: () => 0,
    onDefect: ({ name }, error) => void defects.push([name, (error as Error).message]),
  });
  fanOut.ask(
    rigOf('a', () => {
      throw new Error('no frame');
    }),
  );
  fanOut.ask(rigOf('b', () => void got.push('b')));
  fanOut.deliver(
    delivery('pplns', [
      [1, 'a'],
      [1, 'b'],
    ]).sheet,
  );
  fanOut.sendDelayed();
  expect([defects, got, fanOut.sent]).toEqual([[['a', 'no frame']], ['b'], 1]);
});

test('many farms that wait for receipts take a few milliseconds of a tick, and each has its turn', () => {
  let now = 0;
  const fanOut = new ReceiptFanOut<ReturnType<typeof farmOf>>({
    soon: (run) => run(),
    now: () => now,
    onDefect: () => {},
  });
  const names = Array.from({ length: 200 }, (_, i) => `rig-${i}`);
  const farmOf = () => {
    const got: string[] = [];
    const receipt = (message: ReceiptMessage): void => {
      got.push(JSON.parse(message.line()).params.worker);
      now++;
    };
    const session = { member: { service: 'pplns', account: accountOf(1) }, workers: names };
    return { isEnding: false, peer: { queued: 0 }, session, receipt, flush: () => {}, got };
  };
  const { sheet } = delivery(
    'pplns',
    names.flatMap((name, i): [number, string][] => (i % 64 === 0 ? [[1, name]] : [])),
  );
  const farms = Array.from({ length: 40 }, farmOf);
  for (const farm of farms) fanOut.ask(farm);
  fanOut.deliver(sheet);
  expect(farms.every(({ got }) => got.length === 1)).toBe(true);
  let least = 1;
  for (let ticks = 1; farms.some(({ got }) => got.length < 4); ticks++) {
    expect(ticks).toBeLessThan(40);
    const before = now;
    fanOut.sendDelayed();
    expect(now - before).toBeLessThanOrEqual(5);
    const lengths = farms.map(({ got }) => got.length);
    least = Math.min(...lengths);
    expect(Math.max(...lengths) - least).toBeLessThanOrEqual(1);
  }
  expect(farms.map(({ got }) => got)).toEqual(farms.map(() => ['rig-0', 'rig-64', 'rig-128', 'rig-192']));
});
