/** Blocks between neighbours: nobody can keep a block from this node by offering it first, or by offering many that do not exist. */
import { beforeEach, expect, test } from 'vitest';
import { BlockExchange, decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/block-exchange.ts';
import type { CutDesk } from '../../node/consensus/cut-desk.ts';
import type { Peer } from '../../node/consensus/effects.ts';
import { blockId } from '../../protocol/header.ts';
import { silentLog } from '../node/bed.ts';

const idOf = (n: number) => {
  const id = new Uint8Array(48);
  new DataView(id.buffer).setUint32(0, n);
  return id;
};

let now = 0;
let sent: { to: Peer; type: string | undefined; count: number }[] = [];
let submitted: Uint8Array[] = [];
let lookedUp = 0;
let exchange: BlockExchange;

beforeEach(() => {
  now = 0;
  sent = [];
  submitted = [];
  lookedUp = 0;
  exchange = new BlockExchange({
    node: {
      chain: {
        block: () => {
          lookedUp++;
          return undefined;
        },
        blockBody: () => undefined,
        waitingBlocks: () => [],
      },
      submitBlock: async (header: Uint8Array) => {
        submitted.push(header);
        return { status: 'accepted', id: blockId(header) };
      },
      on: () => () => undefined,
    } as never,
    transport: {
      start: () => undefined,
      process: new Uint8Array(16),
      proven: () => undefined,
      company: () => [],
      placeOf: String,
      known: () => ['a', 'b', 'c'],
      peers: () => ['a', 'b', 'c'],
      send: (to, bytes) => {
        const message = decodeBlockMessage(bytes);
        sent.push({
          to,
          type: message?.type,
          count: message !== undefined && 'ids' in message ? message.ids.length : 1,
        });
      },
      drop: () => undefined,
      close: async () => undefined,
    },
    desk: { names: () => false } as unknown as CutDesk,
    askAgainMillis: 500,
    log: silentLog,
    steady: () => now,
  });
});

const offer = (peer: Peer, ...ids: Uint8Array[]) => exchange.take(peer, encodeBlockMessage({ type: 'offer', ids }));

test('a block that the first to offer it does not send is asked of the others that offered it', () => {
  for (const peer of ['a', 'b', 'c']) offer(peer, idOf(1));
  expect(sent).toEqual([{ to: 'a', type: 'want', count: 1 }]);
  now = 499;
  exchange.tick();
  expect(sent.length).toBe(1);
  now = 500;
  exchange.tick();
  expect(sent.at(-1)).toEqual({ to: 'b', type: 'want', count: 1 });
  // One that leaves is not waited for.
  exchange.left('b');
  expect(sent.at(-1)).toEqual({ to: 'c', type: 'want', count: 1 });
});

test('offers of blocks that do not exist fill the sender’s own count alone, and are given up', async () => {
  for (let i = 0; i < 100; i++) offer('a', ...Array.from({ length: 64 }, (_, n) => idOf(1_000 + i * 64 + n)));
  expect(sent.filter(({ to }) => to === 'a').reduce((sum, { count }) => sum + count, 0)).toBe(128);
  const header = new Uint8Array(312).fill(7);
  offer('b', blockId(header));
  expect(sent.at(-1)).toEqual({ to: 'b', type: 'want', count: 1 });
  exchange.take('b', encodeBlockMessage({ type: 'block', header, body: new Uint8Array(1) }));
  // Nobody asked this neighbour for it.
  exchange.take('c', encodeBlockMessage({ type: 'block', header: new Uint8Array(312), body: new Uint8Array(1) }));
  await Promise.resolve();
  expect(submitted).toEqual([header]);
  now = 5_000;
  exchange.tick();
  offer('a', idOf(5));
  expect(sent.at(-1)).toEqual({ to: 'a', type: 'want', count: 1 });
});

test('strangers that offer and ask for what does not exist cost a bounded number of reads, and take nothing from those that are known', () => {
  for (let i = 0; i < 1_000; i++) {
    const ids = Array.from({ length: 64 }, (_, n) => idOf(1_000_000 + i * 64 + n));
    exchange.take(`stranger ${i % 64}`, encodeBlockMessage({ type: i % 2 === 0 ? 'offer' : 'want', ids }));
  }
  expect(lookedUp).toBeLessThanOrEqual(4_000);
  const before = sent.length;
  offer('a', idOf(5));
  expect(sent.slice(before)).toEqual([{ to: 'a', type: 'want', count: 1 }]);
});
