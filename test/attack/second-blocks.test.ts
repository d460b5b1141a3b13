/**
 * Several blocks with one body, each with its own work, whose payments no mempool has. Every node hands on that there is a
 * second one, and the next asks it for what it has not taken.
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
import { toHex } from '../../protocol/bytes.ts';
import { decodeBody, encodeBody, transactionsRoot } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { PeerRoom } from '../network/memory-peers.ts';
import { PayingChain } from '../network/paying-chain.ts';
import { type NetNode, treasuryOutput } from '../network/peers.ts';
import { payment, searchNonce } from '../node/bed.ts';
import { until } from '../until.ts';

const MALLORY = developmentKey('mallory').address;
const BLOCKS = 12;

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

/** Blocks that differ in their time alone. */
function twins(count: number) {
  const { node } = source;
  const secret = payment(node.chain, [treasuryOutput(node.chain, 0)], [{ address: MALLORY, amount: 5n }]);
  const template = node.template({ payout: MALLORY, maxTransactions: 0 });
  const transactions = [secret];
  const body = encodeBody({ ...decodeBody(template.body), transactions });
  const header = { ...decodeHeader(template.header), transactionsRoot: transactionsRoot({ transactions }) };
  return Array.from({ length: count }, (_, i) => {
    const timestampMillis = header.timestampMillis + i;
    return { header: searchNonce(encodeHeader({ ...header, timestampMillis }), template.target), body };
  });
}

/** A miner that has the blocks, and tells the relay. `asked`: for whole blocks. */
function comes(blocks: ReturnType<typeof twins>) {
  const byId = new Map(blocks.map((block) => [toHex(blockId(block.header)), block]));
  const asked: string[] = [];
  const answer = async (_: string, protocol: string, bytes: Uint8Array) => {
    if (protocol !== 'relay') return undefined;
    const question = decodeRelayQuestion(bytes);
    if (question.type === 'block') asked.push(toHex(question.block));
    if (question.type === 'block') return encodeBlocksAnswer([byId.get(toHex(question.block))]);
    if (question.type === 'carried')
      return encodeWires(decodeBody((blocks[0] as { body: Uint8Array }).body).transactions);
    if (question.type === 'waiting') return encodeWaiting({ transactions: [], blocks: [] });
    return encodeWires(question.ids.map(() => undefined));
  };
  room.enter('mallory', { answer }, 'relay');
  const heard = new Set<string>();
  room.enter(
    'listener',
    { answer: async () => undefined, heard: (_, topic, data) => void (topic === 'blocks' && heard.add(toHex(data))) },
    'follower',
  );
  return { asked, heard };
}

test('a node that hands on the second of two blocks with one body can deliver it, and is not blamed by the next', async () => {
  const blocks = twins(BLOCKS);
  const { heard } = comes(blocks);
  for (const { header, body } of blocks)
    expect(await room.node('relay').hear('mallory', 'blocks', encodeShortBlock(header, decodeBody(body)))).toBe(
      'accept',
    );
  await until(() => heard.size >= BLOCKS || room.blamed.length >= BLOCKS - 2);
  expect(room.blamed.filter(({ peer }) => peer !== 'listener')).toEqual([]);
  expect(room.broken).toEqual([]);
  // The next one hands them on as well: honest ones build on none of them.
  expect(heard.size).toBe(BLOCKS);
});

test('the second of two blocks with one body is fetched once, however often and wrongly it is announced, and every node hears of it', async () => {
  const blocks = twins(2);
  const { asked, heard } = comes(blocks);
  const tell = (data: Uint8Array) => room.node('relay').hear('mallory', 'blocks', data);
  const [first, second] = blocks.map(({ header, body }) => encodeShortBlock(header, decodeBody(body)));
  expect(await tell(first as Uint8Array)).toBe('accept');
  for (let i = 1; i <= BLOCKS; i++) {
    const wrong = Uint8Array.from(second as Uint8Array);
    // The last byte is of a transaction's name.
    wrong[wrong.length - 1] = (wrong.at(-1) as number) ^ i;
    expect(await tell(wrong)).toBe('ignore');
  }
  expect(asked).toHaveLength(1);
  await until(() => heard.has(toHex(second as Uint8Array)));
  expect(room.blamed.filter(({ peer }) => peer !== 'listener')).toEqual([]);
});
