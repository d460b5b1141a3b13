/** A member that sends blocks over many connections, or over ever new ones (consensus rule 19): it has the room of one. */
import { beforeEach, expect, test } from 'vitest';
import { BlockExchange } from '../../node/consensus/driver/block-exchange.ts';
import type { CutDesk } from '../../node/consensus/driver/cut-desk.ts';
import { EARLY_LIMITS } from '../../node/mining/early-blocks.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { encodeBody } from '../../protocol/ledger/body.ts';
import { blockId, encodeHeader } from '../../protocol/ledger/header.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const HEAD = 7;
const MEBIBYTE = 1024 * 1024;

let submitted: Bytes[] = [];
/** What the node says of a block. */
let verdict: () => Promise<'anchor_unknown' | undefined>;
let cut: (() => void) | undefined;
let head = HEAD;
let exchange: BlockExchange;

/** `NAME#NUMBER`: a connection of a member. */
const connections: string[] = [];
const connectionOf = (member: string): string => {
  const connection = `${member}#${connections.length}`;
  connections.push(connection);
  return connection;
};

beforeEach(() => {
  submitted = [];
  connections.length = 0;
  verdict = async () => undefined;
  cut = undefined;
  head = HEAD;
  exchange = new BlockExchange({
    node: {
      chain: { block: () => undefined, waitingBlocks: () => [], head: () => ({ height: head }) },
      submitBlock: async (header: Bytes) => {
        submitted.push(header);
        const code = await verdict();
        return code === undefined
          ? { status: 'accepted', id: blockId(header) }
          : { status: 'refused', error: { code } };
      },
      on: (event: string, handler: (event: unknown) => void) => {
        if (event === 'cut') cut = () => handler({ registered: [] });
        return () => undefined;
      },
    } as never,
    transport: {
      start: () => undefined,
      process: new Uint8Array(16),
      proven: () => undefined,
      company: () => [],
      limitKey: String,
      accountOf: (peer) => String(peer).replace(/#\d+$/, ''),
      accountByWay: String,
      nearest: (peer) => peer,
      known: () => connections,
      isKnown: (peer) => connections.includes(peer as string),
      peers: () => connections,
      send: () => undefined,
      drop: () => undefined,
      close: async () => undefined,
    },
    desk: { names: () => false } as unknown as CutDesk,
    askAgainMillis: 500,
    log: silentLog,
    steady: () => 0,
  });
});

const zero = new Uint8Array(48);
let made = 0;
const headerOf = (anchorHeight: number): Bytes =>
  encodeHeader({
    networkId: 3,
    anchorHeight,
    anchorId: zero,
    stateRoot: zero,
    parentsRoot: zero,
    transactionsRoot: zero,
    rewardRoot: zero,
    target: 1n << 255n,
    timestampMillis: ++made,
    nonce: new Uint8Array(8),
  });

/** Offers it, and sends it when it is asked for. */
function brings(connection: string, body: Bytes): Bytes {
  const header = headerOf(HEAD + 1);
  exchange.take(connection, { type: 'offer', ids: [blockId(header)] });
  exchange.take(connection, { type: 'block', header, body });
  return header;
}

test('blocks that come early over ever new connections of one member take no room from those of others', async () => {
  const early = encodeBody({
    parents: [],
    payout: new Uint8Array(49),
    extranonce: new Uint8Array(4),
    transactions: [],
  });
  verdict = async () => (head === HEAD ? 'anchor_unknown' : undefined);
  const honest = connectionOf('honest');
  const expected = Array.from({ length: 30 }, () => brings(honest, early));
  await until(() => submitted.length === 30);
  for (let connection = 0; connection < 40; connection++) {
    const liar = connectionOf('liar');
    for (let block = 0; block < 20; block++) brings(liar, early);
  }
  await until(() => submitted.length === 30 + 40 * 20);
  await new Promise((resolve) => setImmediate(resolve));
  submitted = [];
  head = HEAD + 1;
  cut?.();
  await until(() => submitted.length === EARLY_LIMITS.blocks);
  const kept = new Set(submitted.map((header) => Buffer.from(header).toString('hex')));
  expect(expected.filter((header) => kept.has(Buffer.from(header).toString('hex')))).toHaveLength(expected.length);
});

test('bodies that wait for their turn are bounded for a member, on however many connections it sends them', async () => {
  const started = Promise.withResolvers<undefined>();
  verdict = () => started.promise;
  const body = new Uint8Array(MEBIBYTE);
  const liars = Array.from({ length: 3 }, () => connectionOf('liar'));
  for (const liar of liars) for (let block = 0; block < 30; block++) brings(liar, body);
  // Another one has room of its own.
  brings(connectionOf('honest'), body);
  started.resolve(undefined);
  await until(() => submitted.length === 64 + 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(submitted).toHaveLength(64 + 1);
  // What was looked at takes no room any more.
  for (let block = 0; block < 10; block++) brings(liars[0] as string, body);
  await until(() => submitted.length === 64 + 1 + 10);
});
