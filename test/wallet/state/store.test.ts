/** The wallet's state on disk: signed bytes are kept until a fate is final, and all request ids are found again. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { expect, test } from 'vitest';
import { encodeRecord, type OutgoingRecord, type RequestRecord } from '../../../wallet/state/records.ts';
import { WalletStore } from '../../../wallet/state/store.ts';
import { randomBytesOf } from '../../random.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { until } from '../../until.ts';

const signed: OutgoingRecord = {
  transaction: 'ab'.repeat(48),
  requestId: 'r',
  purpose: 'pay',
  state: 'signed',
  wireHex: 'c0ffee',
  inputs: ['x:0'],
  recipients: [{ to: 'somebody', amount: 5n }],
  change: 1n,
  fee: 2n,
  validUntilHeight: 9,
  createdMillis: 1,
  finalHeight: null,
  reason: null,
};
const request: RequestRecord = {
  requestId: 'übung/7 ~!',
  kind: 'payment',
  paramsDigest: '',
  createdMillis: 1,
  state: 'sent',
  recipients: signed.recipients,
  fee: 2n,
  feePerMass: 1n,
  transactions: [signed.transaction],
  remainingOutputs: 0,
  merge: null,
  failure: null,
};

test('the signed bytes stay through every change of the record, until its fate is final', async () => {
  const directory = join(temporaryDirectory(), 'store');
  const submitted: OutgoingRecord = { ...signed, state: 'submitted' };
  const final: OutgoingRecord = { ...signed, state: 'finalized', wireHex: '', finalHeight: 5 };
  for (const [change, open] of [
    [signed, [signed]],
    [submitted, [submitted]],
    [{ ...submitted, state: 'refused', reason: 'why' }, [{ ...submitted, state: 'refused', reason: 'why' }]],
    [final, []],
  ] as const) {
    const store = await WalletStore.open(directory);
    await store.openOutgoing();
    await store.write([{ outgoing: [change] }], true);
    expect(await store.openOutgoing()).toEqual(open);
    await store.close();
    const again = await WalletStore.open(directory);
    expect(await again.openOutgoing()).toEqual(open);
    expect(await again.outgoing(signed.transaction)).toEqual({ ...change, wireHex: '' });
    await again.close();
  }
});

test('bytes that stand in the record itself are found, and kept by the next change', async () => {
  const directory = join(temporaryDirectory(), 'store');
  const level = new ClassicLevel<string, string>(directory);
  await level.put(`t!${signed.transaction}`, encodeRecord(signed));
  await level.put(`p!${signed.transaction}`, '');
  await level.close();
  const store = await WalletStore.open(directory);
  expect(await store.openOutgoing()).toEqual([signed]);
  const submitted: OutgoingRecord = { ...signed, state: 'submitted' };
  await store.write([{ outgoing: [submitted] }], true);
  expect(await store.openOutgoing()).toEqual([submitted]);
  await store.close();
});

test('an open transaction without its bytes is a damaged state, not a payment that is never sent', async () => {
  const store = await WalletStore.open(join(temporaryDirectory(), 'store'));
  await store.write([{ outgoing: [{ ...signed, wireHex: '' }] }], true);
  await expect(store.openOutgoing()).rejects.toMatchObject({ code: 'state_damaged' });
  await store.close();
});

test('all request ids are found again, whatever characters they have', async () => {
  const directory = join(temporaryDirectory(), 'store');
  const store = await WalletStore.open(directory);
  const ids = ['a', 'übung/7 ~!', '鉱夫 1', '~', '!'];
  await store.write(
    ids.map((requestId) => ({ requests: [{ ...request, requestId }] })),
    true,
  );
  await store.close();
  const again = await WalletStore.open(directory);
  expect((await again.requestIds()).sort()).toEqual([...ids].sort());
  expect(await again.request('鉱夫 1')).toEqual({ ...request, requestId: '鉱夫 1' });
  await again.close();
});

test('requests are listed by the beginning of their id, page by page', async () => {
  const store = await WalletStore.open(join(temporaryDirectory(), 'store'));
  const ids = ['a-1', 'a-2', 'a-3', 'a', 'b-1', 'A-1'];
  await store.write([{ requests: ids.map((requestId) => ({ ...request, requestId })) }], true);
  const list = async (prefix: string, after?: string, limit = 10) =>
    (await store.requestsAfter(prefix, after, limit)).map(({ requestId }) => requestId);
  expect(await list('a-')).toEqual(['a-1', 'a-2', 'a-3']);
  expect(await list('a')).toEqual(['a', 'a-1', 'a-2', 'a-3']);
  expect(await list('a-', 'a-1', 1)).toEqual(['a-2']);
  expect(await list('a-', 'A-9')).toEqual(['a-1', 'a-2', 'a-3']);
  expect(await list('a-', 'b')).toEqual([]);
  expect(await list('c')).toEqual([]);
  await store.close();
});

test('a bit of a table that the disk has changed is found before anything is read: a request that was paid is not forgotten', async () => {
  const [original, directory] = [join(temporaryDirectory(), 'store'), join(temporaryDirectory(), 'store')];
  const requests = Array.from({ length: 40 }, (_, i) => ({ ...request, requestId: `payout-${i}` }));
  const store = await WalletStore.open(original);
  await store.write([{ meta: WalletStore.firstMeta('development'), requests }], true);
  await store.close();
  // The next start puts into a table what the one before has written.
  await (await WalletStore.open(original)).close();
  const [table = ''] = readdirSync(original).filter((name) => name.endsWith('.ldb'));
  const bytes = readFileSync(join(original, table));
  // The last bytes say what kind of file it is: the store itself looks at them.
  for (let at = 0; at < bytes.length - 48; at += 13) {
    cpSync(original, directory, { recursive: true });
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at);
    writeFileSync(join(directory, table), changed);
    const opened = await WalletStore.open(directory).catch((error: { code?: string }) => error.code);
    expect(opened, `byte ${at} of ${bytes.length}`).toBe('state_damaged');
    rmSync(directory, { recursive: true });
  }
});

test('a bit of the log that the disk has changed is found before the store forgets what is behind it; what a power failure cut off is no damage', async () => {
  const [original, directory] = [join(temporaryDirectory(), 'store'), join(temporaryDirectory(), 'store')];
  const store = await WalletStore.open(original);
  await store.write([{ meta: WalletStore.firstMeta('development') }], true);
  // The last one alone is longer than a block of the log.
  for (const [i, length] of [1, 200, 1, 40_000].entries())
    await store.write(
      [{ requests: [{ ...request, requestId: `payout-${i}`, paramsDigest: 'x'.repeat(length) }] }],
      true,
    );
  await store.close();
  const [log = ''] = readdirSync(original).filter((name) => name.endsWith('.log'));
  const bytes = readFileSync(join(original, log));
  const opened = async (changed: Uint8Array): Promise<unknown> => {
    cpSync(original, directory, { recursive: true });
    writeFileSync(join(directory, log), changed);
    try {
      const again = await WalletStore.open(directory);
      const { length } = await again.requestIds();
      await again.close();
      return length;
    } catch (error) {
      return (error as { code?: string }).code;
    } finally {
      rmSync(directory, { recursive: true });
    }
  };
  const flipped = (at: number): Buffer => {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at);
    return changed;
  };
  const places = [
    ...Array.from({ length: 90 }, (_, i) => i * 19),
    ...Array.from({ length: 10 }, (_, i) => 32_764 + i),
    bytes.length - 1,
  ];
  for (const at of places) expect(await opened(flipped(at)), `byte ${at} of ${bytes.length}`).toBe('state_damaged');
  const found: unknown[] = [];
  for (const length of [bytes.length - 1, 32_768, 20_000, 1_000, 3]) {
    found.push(await opened(bytes.subarray(0, length)));
    found.push(await opened(Buffer.concat([bytes.subarray(0, length), Buffer.alloc(bytes.length - length)])));
  }
  expect(found).toEqual([3, 'state_damaged', 3, 3, 3, 3, 1, 1, 0, 0]);
});

test('a bit of the list of tables that the disk has changed is found before the store deletes tables that it does not find there', async () => {
  const [original, directory] = [join(temporaryDirectory(), 'store'), join(temporaryDirectory(), 'store')];
  await (await WalletStore.open(original)).close();
  const store = await WalletStore.open(original);
  const of = (kind: RegExp) => readdirSync(original).filter((name) => kind.test(name));
  const [manifest = ''] = of(/^MANIFEST/);
  const first = readFileSync(join(original, manifest)).length;
  // The log becomes a table above 4 MB, at the next write; that adds a record to the list.
  for (let i = 0; i < 6; i++)
    await store.write([{ requests: [{ ...request, requestId: `${i}`, paramsDigest: 'x'.repeat(1_000_000) }] }], true);
  await until(() => readFileSync(join(original, manifest)).length > first);
  await store.close();
  const bytes = readFileSync(join(original, manifest));
  for (let at = first; at < bytes.length; at += at < first + 7 ? 1 : 16) {
    cpSync(original, directory, { recursive: true });
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ 8, at);
    writeFileSync(join(directory, manifest), changed);
    const opened = await WalletStore.open(directory).catch((error: { code?: string }) => error.code);
    expect(opened, `byte ${at} of ${bytes.length}`).toBe('state_damaged');
    rmSync(directory, { recursive: true });
  }
});

test('tables of many sizes, merged and packed, are whole', async () => {
  const directory = join(temporaryDirectory(), 'store');
  const random = randomBytesOf(1);
  const filler = (i: number) => (i % 3 === 0 ? random(150).toString('hex') : 'x'.repeat(i % 500));
  for (let round = 0; round < 6; round++) {
    const store = await WalletStore.open(directory);
    const requests = Array.from({ length: 1_500 }, (_, i) => ({
      ...request,
      requestId: `${(i * 7_919 + round) % 4_001}`,
      paramsDigest: filler(i),
    }));
    await store.write([{ requests }], true);
    await store.close();
  }
  const store = await WalletStore.open(directory);
  expect((await store.requestsAfter('', undefined, 10_000)).length).toBe((await store.requestIds()).length);
  await store.close();
});

test('a file of the state that is missing is found before the store begins anew and deletes the others', async () => {
  const [original, directory] = [join(temporaryDirectory(), 'store'), join(temporaryDirectory(), 'store')];
  for (const requestId of ['payout-1', 'payout-2']) {
    const store = await WalletStore.open(original);
    await store.write([{ requests: [{ ...request, requestId }] }], true);
    await store.close();
  }
  const names = readdirSync(original).filter((name) => !/^LO(CK|G)/.test(name));
  expect(names).toHaveLength(4);
  for (const name of names) {
    cpSync(original, directory, { recursive: true });
    rmSync(join(directory, name));
    await expect(WalletStore.open(directory), name).rejects.toMatchObject({ code: 'state_damaged' });
    expect(readdirSync(directory)).toEqual(readdirSync(original).filter((each) => each !== name));
    rmSync(directory, { recursive: true });
  }
  // Nothing but what the first start makes before its log.
  const first = readdirSync(original).find((name) => name.startsWith('MANIFEST')) as string;
  mkdirSync(directory);
  cpSync(join(original, first), join(directory, 'MANIFEST-000001'));
  await (await WalletStore.open(directory)).close();
});
