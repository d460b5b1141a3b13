/**
 * The node's doors under structured mutations of good blocks and transactions: roots made right again so that the deeper checks are reached, many at once, cuts and
 * restarts in between, clocks that jump. Nothing throws, nothing stops the node, whatever was accepted can be read, and the chain goes on after every restart.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Submission, UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import { readCandidate, readTemplateRequest } from '../../node/mining/requests.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { type Bytes, compareBytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { merkleRoot } from '../../protocol/crypto/merkle.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { type Body, decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader, encodeHeader, type Header } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import {
  decodeTransaction,
  encodeTransaction,
  encodeTransactionBody,
  spendMessage,
  type Transaction,
  type TransactionBody,
} from '../../protocol/transactions/transaction.ts';
import { ApiBed } from '../api/api-bed.ts';
import { count, seed } from '../level.ts';
import type { Bed } from '../node/bed.ts';
import { randomOf } from '../random.ts';
import { lasts } from '../watch/limits.ts';

const STEPS = count({ quick: 100, full: 300, deep: 10_000 });
const { address: treasury, privateKey, publicKey } = developmentKey(TREASURY);
const alice = developmentKey('alice').address;

let api: ApiBed;
let bed: Bed;
let random: (limit: number) => number;
beforeEach(async () => {
  api = await ApiBed.open();
  bed = api.bed;
  random = randomOf(seed);
});
afterEach(() => api.close());

const pick = <T>(...values: readonly T[]): T => values[random(values.length)] as T;
const chance = (percent: number): boolean => random(100) < percent;
const bytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length).map(() => random(256));
/** Numbers at the edges of fields. */
const edge = (): number =>
  pick(0, 1, 2, 95, 96, 97, 255, 65_536, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER - 96);

function bent(of: Bytes): Uint8Array<ArrayBuffer> {
  const copy = Uint8Array.from(of);
  const at = random(Math.max(1, copy.length));
  if (chance(20)) return copy.slice(0, at);
  if (chance(10)) return Uint8Array.from([...copy, ...bytes(1 + random(4))]);
  if (copy.length > 0) copy[at] = (copy[at] as number) ^ (1 << random(8));
  return copy;
}

/** What the treasury has by now, and sometimes something it had: whether that is spent is for the doors to find out. */
const purse = new Map<string, UnspentOutput>();
const source = (): UnspentOutput =>
  purse.size > 0 && chance(80) ? pick(...[...purse.values()].slice(-24)) : bed.treasury(random(24));

async function seal(): Promise<CutEffects> {
  const effects = await bed.seal();
  const name = ({ outpoint }: UnspentOutput) => `${toHex(outpoint.transactionId)}:${outpoint.outputIndex}`;
  for (const output of effects.created) if (equalBytes(output.address, treasury)) purse.set(name(output), output);
  for (const output of effects.spent) purse.delete(name(output));
  return effects;
}

function signed(body: TransactionBody, spends: readonly UnspentOutput[]): Transaction {
  const message = encodeTransactionBody(body);
  return {
    body,
    witnesses: spends.map((output, i) => {
      const signature = signMessage(privateKey, spendMessage(message, i, output));
      return chance(80) ? { profile: 'inline', publicKey, signature } : { profile: 'referenced', signature };
    }),
  };
}

function transaction(): Uint8Array<ArrayBuffer> {
  const spends = Array.from({ length: 1 + random(2) }, source);
  const good = bed.payment([spends[0] as UnspentOutput], [{ address: alice, amount: BigInt(1 + random(1_000)) }]);
  if (chance(40)) return good;
  if (chance(30)) return bent(good);
  const { body } = decodeTransaction(good);
  const amount = (): bigint => pick(1n, 5n, (spends[0] as UnspentOutput).amount, 2n ** 50n);
  const address = () => pick(alice, treasury, Uint8Array.from([pick(0, 1, 2), ...bytes(48)]));
  const changed: TransactionBody = {
    ...body,
    ...(chance(20) ? { validFromHeight: edge() } : {}),
    ...(chance(20) ? { validUntilHeight: edge() } : {}),
    ...(chance(40) ? { inputs: spends.map(({ outpoint }) => outpoint) } : {}),
    ...(chance(20) ? { inputs: [{ transactionId: bytes(48), outputIndex: random(3) }] } : {}),
    ...(chance(40)
      ? { outputs: Array.from({ length: random(4) }, () => ({ address: address(), amount: amount() })) }
      : {}),
    ...(chance(20) ? { payload: Uint8Array.from([pick(0, 1, 2), ...bytes(random(40))]) } : {}),
    ...(chance(5) ? { chainId: bytes(48) } : {}),
  };
  return encodeTransaction(signed(changed, spends.slice(0, changed.inputs.length)));
}

type Block = { readonly header: Bytes; readonly body: Bytes };

/** What cannot even be written down is tried as a plain bend instead. */
function orBent<T>(make: () => T, otherwise: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof ProtocolError) return otherwise();
    throw error;
  }
}

function changedBody(body: Body): Body {
  const known = [...bed.node.chain.waitingBlocks()].map(({ id }) => id);
  const parent = (): Bytes => (chance(70) && known.length > 0 ? pick(...known) : bytes(48));
  return {
    ...body,
    ...(chance(30) ? { payout: Uint8Array.from([pick(0, 1, 2), ...bytes(48)]) } : {}),
    ...(chance(50) ? { extranonce: Uint8Array.from([0, ...bytes(random(30))]) } : {}),
    ...(chance(40) ? { parents: Array.from({ length: random(9) }, parent).sort(compareBytes) } : {}),
    ...(chance(50)
      ? { transactions: Array.from({ length: random(4) }, () => orBent(transaction, () => bytes(60))) }
      : {}),
  };
}

function block(): Block {
  const template = bed.node.template({ payout: alice, maxTransactions: 20, draw: random(3) });
  const good = { header: template.header, body: template.body };
  if (chance(10)) return good;
  if (chance(15)) return { ...good, header: bent(good.header) };
  if (chance(10)) return { ...good, body: bent(good.body) };
  return orBent(
    () => {
      const body = changedBody(decodeBody(good.body));
      const roots: Partial<Header> = {
        parentsRoot: merkleRoot(body.parents),
        transactionsRoot: merkleRoot(body.transactions),
        rewardRoot: rewardRoot(body.payout, body.extranonce),
      };
      const odd: Partial<Header> = chance(25)
        ? pick<Partial<Header>>(
            { anchorHeight: edge() },
            { timestampMillis: edge() },
            { timestampMillis: bed.now + pick(-1, 0, 1, 9_999, 10_001, 3_600_000) },
            { target: pick(0n, 1n, 2n ** 255n, 2n ** 256n - 1n) },
            { networkId: pick(1, 2, 3) },
            { stateRoot: bytes(48) },
            { anchorId: bytes(48) },
          )
        : {};
      const header = { ...decodeHeader(good.header), ...(chance(85) ? roots : {}), ...odd, nonce: bytes(8) };
      return { header: encodeHeader(header), body: encodeBody(body) };
    },
    () => ({ header: bent(good.header), body: bent(good.body) }),
  );
}

const isOutcome = ({ status }: Submission): boolean => ['accepted', 'known', 'refused'].includes(status);
const told = new Map<string, number>();
const note = (outcome: Submission): void => {
  const name = outcome.status === 'refused' ? outcome.error.code : outcome.status;
  told.set(name, (told.get(name) ?? 0) + 1);
};

/** One move of an attacker: a few blocks and transactions at once, some on one body. */
async function attack(): Promise<void> {
  const sent: Promise<Submission>[] = [];
  for (let i = 1 + random(3); i > 0; i--) {
    const { header, body } = block();
    // By the listener's own reading of the request, so that nothing gets past it here that it would stop.
    const read = readCandidate({ header_hex: toHex(header), body_hex: toHex(body) });
    if ('error' in read) throw new Error('hex of bytes is always read');
    sent.push(bed.node.submitBlock(read.value.header, read.value.body, pick('own', 'relayed')));
    if (chance(30) && header.length === 312) {
      const twin = Uint8Array.from(header);
      twin.set(bytes(8), 304);
      sent.push(bed.node.submitBlock(twin, body));
    }
  }
  for (let i = random(2); i > 0; i--) sent.push(bed.node.submitTransaction(orBent(transaction, () => bytes(80))));
  if (chance(30)) sent.push(seal().then((): Submission => ({ status: 'known', id: new Uint8Array() })));
  for (const outcome of await Promise.all(sent)) {
    expect(isOutcome(outcome)).toBe(true);
    if (outcome.status === 'refused') expect(outcome.error.code).not.toBe('node_stopped');
    note(outcome);
  }
}

/** A cut can be made, an honest block is taken, and everything that was accepted can be shown. */
async function goesOn(): Promise<void> {
  const id = await bed.mine(alice, 0);
  const cut = await seal();
  // More than 64 may wait; then the block's turn comes later.
  expect(cut.registered.length).toBeGreaterThan(0);
  expect(bed.node.chain.block(id)).toBeDefined();
  const { height } = bed.node.chain.head();
  for (let at = Math.max(1, height - 5); at <= height; at++) {
    let cursor: string | undefined;
    do {
      const page = await api.client.cutTransactions({ height: at, ...(cursor === undefined ? {} : { cursor }) });
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }
  for (const { block_id } of (await api.client.recentBlocks({ limit: 20 })).blocks)
    expect((await api.client.block({ id: block_id })).block_id).toBe(block_id);
  const supply = bed.node.chain.supply();
  const held = supply.outputs + supply.bonded + supply.unbonding + supply.workReserve + supply.stakeReserve;
  expect(held + supply.burned).toBe(supply.minted);
}

test(
  'mutations of blocks and transactions neither stop the node nor keep it from starting again',
  lasts(120, 'it sends thousands of broken inputs'),
  async () => {
    told.clear();
    purse.clear();
    await bed.seal(2);
    for (let step = 1; step <= STEPS; step++) {
      await attack();
      if (chance(5)) bed.now += pick(-3_600_000, -8_000, 8_000, 3_600_000);
      if (step % 50 !== 0) continue;
      await goesOn();
      await api.restart();
      await goesOn();
    }
    // The mutations reach every depth: some are accepted, and many different things are found wrong with the others.
    expect(told.get('accepted')).toBeGreaterThan(STEPS / 20);
    for (const code of [
      'header_malformed',
      'body_malformed',
      'transactions_root_mismatch',
      'parent_unknown',
      'body_used',
    ])
      expect([code, told.has(code)]).toEqual([code, true]);
  },
);

test('requests of any JSON are read or refused, never thrown at', () => {
  const values = [
    null,
    true,
    -1,
    1.5,
    2 ** 53,
    '',
    'zz',
    'ABCD',
    '00',
    [],
    {},
    [[]],
    { a: 1 },
    '\u0000',
    'x'.repeat(10_000),
  ];
  const value = (): unknown => pick<unknown>(...values);
  for (let i = 0; i < STEPS * 10; i++) {
    const candidate = { header_hex: value(), body_hex: value(), ...(chance(20) ? { more: value() } : {}) };
    const template = { payout: value(), max_transactions: value(), draw: value(), extranonce: value() };
    for (const json of [candidate, template, value()]) {
      expect(typeof readCandidate(json)).toBe('object');
      expect(typeof readTemplateRequest(json, 'development')).toBe('object');
    }
  }
});
