/**
 * A miner that announces its own valid blocks wrongly: names or rewards that are not the block's, and the block itself to
 * who asks for it whole. Whoever takes the block hands on what is true of it, and no honest node is blamed by the next.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import {
  decodeRelayQuestion,
  encodeShortBlock,
  encodeWaiting,
  encodeWires,
} from '../../node/network/relay/relay-messages.ts';
import { encodeBlocksAnswer } from '../../node/network/sync/sync-messages.ts';
import { type Body, decodeBody, MAX_BODY_TRANSACTIONS } from '../../protocol/ledger/body.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { PeerRoom } from '../network/memory-peers.ts';
import { PayingChain } from '../network/paying-chain.ts';
import type { NetNode } from '../network/peers.ts';
import { searchNonce } from '../node/bed.ts';
import { until } from '../until.ts';

const MALLORY = developmentKey('mallory').address;
const STRANGER = developmentKey('stranger').address;

let chain: PayingChain;
let room: PeerRoom;
let source: NetNode;
let relay: NetNode;
let follower: NetNode;
beforeEach(async () => {
  chain = new PayingChain();
  room = new PeerRoom();
  source = await chain.start(() => ({ openPeers: room.opens('source') }));
  relay = await chain.bed.start('relay', { follows: true }, () => ({ openPeers: room.opens('relay') }));
  follower = await chain.bed.start('follower', { follows: true }, () => ({ openPeers: room.opens('follower') }));
  room.connect('relay', 'source');
  room.connect('follower', 'relay');
  await chain.bed.seal(source, 1);
  await until(() => [relay, follower].every(({ node }) => node.chain.head().height > 0 && node.chain.sync().synced));
});
afterEach(() => chain.bed.close());

/** A name that nobody has: the relay asks for the transaction, which it does not get, and then for the whole block. */
const UNKNOWN = Uint8Array.from({ length: 8 }, () => 0xff);
const PAYMENTS = 2;

type Change = (announced: Uint8Array, body: Body) => Uint8Array;

/** A block of the miner that carries payments, and what it announces of it. */
async function found(extranonce: number, change: Change) {
  const { node } = source;
  for (let i = 0; i < PAYMENTS; i++) await chain.pay(source);
  await until(() => [relay, follower].every((at) => at.node.mempool.count >= node.mempool.count));
  const template = node.template({
    payout: MALLORY,
    maxTransactions: 100,
    draw: extranonce,
    extranonce: Buffer.from([0, 0, 0, 0, extranonce]),
  });
  const header = searchNonce(template.header, template.target);
  const body = decodeBody(template.body);
  expect(body.transactions.length).toBeGreaterThanOrEqual(PAYMENTS);
  return { header, bytes: template.body, announced: change(encodeShortBlock(header, body), body) };
}

/** Announced to the relay alone, and delivered whole. */
async function announce(extranonce: number, change: Change): Promise<void> {
  const { header, bytes: whole, announced } = await found(extranonce, change);
  const name = `mallory-${extranonce}`;
  const answer = async (_: string, protocol: string, bytes: Uint8Array) => {
    if (protocol !== 'relay') return undefined;
    const question = decodeRelayQuestion(bytes);
    if (question.type === 'block') return encodeBlocksAnswer([{ header, body: whole }]);
    if (question.type === 'waiting') return encodeWaiting({ transactions: [], blocks: [] });
    const asked = question.type === 'carried' ? question.indexes : question.ids;
    return encodeWires(asked.map(() => undefined));
  };
  room.enter(name, { answer }, 'relay');
  expect(await room.node('relay').hear(name, 'blocks', announced)).toBe('ignore');
  await until(() => follower.node.chain.block(blockId(header)) !== undefined);
}

/** Offset of the names of transactions: they are at the end. */
const namesAt = (announced: Uint8Array, { transactions }: Body) => announced.length - 8 * transactions.length;

const withoutFirst = (announced: Uint8Array, body: Body): Uint8Array => {
  const changed = Uint8Array.from(announced);
  changed.set(UNKNOWN, namesAt(announced, body));
  return changed;
};

const CHANGES: Record<string, Change> = {
  'another payout': (announced, body) => {
    const changed = withoutFirst(announced, body);
    changed.set(STRANGER, announced.length - encodeShortBlock(new Uint8Array(0), body).length);
    return changed;
  },
  "one name that is not the transaction's": withoutFirst,
  'a payout that is none': (announced, body) => {
    const changed = withoutFirst(announced, body);
    changed[announced.length - encodeShortBlock(new Uint8Array(0), body).length] = 0xee;
    return changed;
  },
  'one transaction again and again, more than fit into a body': (announced, body) => {
    const at = namesAt(announced, body);
    const names = announced.subarray(at);
    const count = MAX_BODY_TRANSACTIONS - 1;
    const many = new Uint8Array(at + 8 * (count + 1));
    many.set(announced.subarray(0, at));
    new DataView(many.buffer).setUint16(at - 2, count + 1, true);
    many.set(UNKNOWN, at);
    for (let i = 1; i <= count; i++) many.set(names.subarray(0, 8), at + 8 * i);
    return many;
  },
};

/** Two blocks for each change. */
const ANNOUNCED = Object.entries(CHANGES).flatMap(([name, change], i) =>
  [1, 2].map((nth) => [2 * i + nth, name, change] as const),
);

test('whatever is changed, the block arrives, and what is wrong is not handed on', async () => {
  for (const [extranonce, name, change] of ANNOUNCED) {
    await announce(extranonce, change);
    expect(
      room.blamed.filter(({ peer }) => !peer.startsWith('mallory')),
      name,
    ).toEqual([]);
  }
  expect(room.broken).toEqual([]);
});

test('whatever is changed, a node that hands it on and has the block is not blamed', async () => {
  const at = room.node('follower');
  for (const [extranonce, name, change] of ANNOUNCED) {
    const { header, bytes, announced } = await found(extranonce, change);
    at.part('relay');
    expect(await relay.node.submitBlock(header, bytes)).toMatchObject({ status: 'accepted' });
    at.join('relay', 'outbound');
    expect(await at.hear('relay', 'blocks', announced)).toBe('ignore');
    expect(follower.node.chain.block(blockId(header))).toBeDefined();
    expect(room.blamed, name).toEqual([]);
  }
});
