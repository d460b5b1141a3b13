/** Blocks at the door (ledger rule 41): each single thing wrong is refused with its own code; replays, late blocks, used bodies. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import type { NodeErrorCode } from '../../node/node-error.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { merkleRoot } from '../../protocol/crypto/merkle.ts';
import { decodeBody, encodeBody, MIN_TRANSACTION_BYTES } from '../../protocol/ledger/body.ts';
import { decodeHeader, encodeHeader, type Header } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { Bed, quickHash, searchNonce } from './bed.ts';

const alice = developmentKey('alice').address;

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open();
});
afterEach(async () => {
  await bed.close();
});

async function refusal(header: Bytes, body: Bytes): Promise<NodeErrorCode | undefined> {
  const outcome = await bed.node.submitBlock(header, body);
  return outcome.status === 'refused' ? outcome.error.code : undefined;
}

const flipped = (bytes: Bytes): Uint8Array<ArrayBuffer> => {
  const copy = Uint8Array.from(bytes);
  copy[0] = (copy[0] as number) ^ 1;
  return copy;
};

test('each field and root alone, when wrong, has its own refusal', async () => {
  await bed.seal(3);
  await bed.pay([bed.treasury(0)], [{ address: alice, amount: 1n }]);
  const good = bed.make(alice);
  const header = decodeHeader(good.header);
  const wrong: [NodeErrorCode, Partial<Header>][] = [
    ['network_mismatch', { networkId: 2 }],
    ['anchor_unknown', { anchorHeight: 4 }],
    ['anchor_mismatch', { anchorHeight: 2 }],
    ['anchor_mismatch', { anchorId: flipped(header.anchorId) }],
    ['state_root_mismatch', { stateRoot: flipped(header.stateRoot) }],
    ['target_mismatch', { target: header.target - 1n }],
    ['timestamp_too_early', { timestampMillis: bed.node.chain.head().timestampMillis }],
    ['timestamp_too_late', { timestampMillis: bed.now + 10_001 }],
    ['parents_root_mismatch', { parentsRoot: flipped(header.parentsRoot) }],
    ['transactions_root_mismatch', { transactionsRoot: flipped(header.transactionsRoot) }],
    ['reward_root_mismatch', { rewardRoot: flipped(header.rewardRoot) }],
  ];
  for (const [code, change] of wrong)
    expect([code, await refusal(encodeHeader({ ...header, ...change }), good.body)]).toEqual([code, code]);
  expect(await refusal(good.header.subarray(1), good.body)).toBe('header_malformed');
  const version = Uint8Array.from(good.header);
  version[0] = 2;
  expect(await refusal(version, good.body)).toBe('header_malformed');
  const windowEnd = Uint8Array.from(good.header);
  windowEnd[16] = (windowEnd[16] as number) + 1;
  expect(await refusal(windowEnd, good.body)).toBe('header_malformed');
  expect(await refusal(good.header, good.body.subarray(1))).toBe('body_malformed');
  expect(await refusal(good.header, Buffer.concat([good.body, Buffer.alloc(1)]))).toBe('body_malformed');
  expect(await bed.node.submitBlock(good.header, good.body)).toMatchObject({ status: 'accepted' });
});

test('a body whose transactions, parents or payout are wrong inside', async () => {
  await bed.pay([bed.treasury(0)], [{ address: alice, amount: 1n }]);
  const good = bed.make(alice);
  const header = decodeHeader(good.header);
  const body = decodeBody(good.body);
  const [wire] = body.transactions as [Bytes];
  const twice = { ...body, transactions: [wire, wire] };
  expect(
    await refusal(encodeHeader({ ...header, transactionsRoot: merkleRoot(twice.transactions) }), encodeBody(twice)),
  ).toBe('block_transaction_invalid');
  const junk = { ...body, transactions: [new Uint8Array(MIN_TRANSACTION_BYTES)] };
  expect(
    await refusal(encodeHeader({ ...header, transactionsRoot: merkleRoot(junk.transactions) }), encodeBody(junk)),
  ).toBe('block_transaction_invalid');
  const orphan = { ...body, parents: [new Uint8Array(48).fill(9)] };
  expect(await refusal(encodeHeader({ ...header, parentsRoot: merkleRoot(orphan.parents) }), encodeBody(orphan))).toBe(
    'parent_unknown',
  );
});

test('the hash is checked against the target', async () => {
  await bed.close();
  bed = await Bed.open({ genesis: { initialWork: 1_000_000n } });
  const { header, body, target } = bed.node.template({ payout: alice, maxTransactions: 0 });
  expect(await refusal(header, body)).toBe('pow_above_target');
  expect(target).toBeLessThan(2n ** 237n);
});

test('a replay is known, before and after registration; the block counts once', async () => {
  const { header, body } = bed.make(alice);
  const sent = await Promise.all(Array.from({ length: 5 }, () => bed.node.submitBlock(header, body)));
  expect(sent.map(({ status }) => status).sort()).toEqual(['accepted', 'known', 'known', 'known', 'known']);
  expect((await bed.seal()).registered.length).toBe(1);
  expect(await bed.node.submitBlock(header, body)).toMatchObject({ status: 'known' });
  expect((await bed.seal()).registered.length).toBe(0);
});

test('a block is accepted until its window closes, and late afterwards', async () => {
  const early = bed.make(alice);
  const never = bed.make(alice);
  await bed.seal(95);
  expect(await bed.node.submitBlock(early.header, early.body)).toMatchObject({ status: 'accepted' });
  const last = await bed.seal();
  expect([last.registered.length, last.rewards.length]).toEqual([1, 1]);
  expect(await refusal(never.header, never.body)).toBe('block_too_late');
});

test('a body is not used for a second block while the first is in its window', async () => {
  const { header, body } = bed.make(alice);
  expect(await bed.node.submitBlock(header, body)).toMatchObject({ status: 'accepted' });
  const other = Uint8Array.from(header);
  other[311] = 1;
  expect(await refusal(other, body)).toBe('body_used');
  await bed.seal(2);
  expect(await refusal(other, body)).toBe('body_used');
});

test('blocks beyond 64 wait, lowest hash first, children after parents, and none is lost', async () => {
  for (let i = 0; i < 80; i++) {
    const template = bed.node.template({ payout: alice, maxTransactions: 0 });
    const header = decodeHeader(template.header);
    // A block of its own, without the parents the template suggests, for every third.
    const body = decodeBody(template.body);
    const lone = { ...body, parents: [] };
    const made =
      i % 3 === 0
        ? {
            header: encodeHeader({
              ...header,
              parentsRoot: merkleRoot([]),
              rewardRoot: rewardRoot(alice, lone.extranonce),
            }),
            body: encodeBody(lone),
          }
        : { header: template.header, body: template.body };
    expect(await bed.node.submitBlock(searchNonce(made.header, header.target), made.body)).toMatchObject({
      status: 'accepted',
    });
  }
  const first = await bed.seal();
  const second = await bed.seal();
  expect([first.registered.length, second.registered.length]).toEqual([64, 16]);
  for (const cut of [first, second]) {
    const seen = new Set(first === cut ? [] : first.registered.map(({ id }) => Buffer.from(id).toString('hex')));
    for (const { id, parents } of cut.registered) {
      for (const parent of parents) expect(seen.has(Buffer.from(parent).toString('hex'))).toBe(true);
      seen.add(Buffer.from(id).toString('hex'));
    }
  }
  expect(quickHash(first.registered[0]?.header as Bytes).length).toBe(32);
});

test('a clock that goes backwards neither stops the chain nor dates blocks before their anchor', async () => {
  await bed.seal(2);
  bed.now -= 3_600_000;
  const before = bed.node.chain.head().timestampMillis;
  const { header, body } = bed.make(alice);
  expect(decodeHeader(header).timestampMillis).toBe(before + 1);
  // To this clock the anchor is an hour ahead, and what builds on it cannot be dated before it.
  expect(await bed.node.submitBlock(header, body)).toMatchObject({ status: 'accepted' });
  const far = encodeHeader({ ...decodeHeader(header), timestampMillis: before + 10_001 });
  expect(await refusal(far, body)).toBe('timestamp_too_late');
  const cut = await bed.node.seal();
  expect(cut.header.timestampMillis).toBe(before + 1);
});
