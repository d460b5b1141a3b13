/** Blocks between neighbours: nobody can keep a block from this node by offering it first or again and again, or by offering many that do not exist; strangers are asked last. */
import { beforeEach, expect, test, vi } from 'vitest';
import { BlockExchange, decodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import type { CutDesk } from '../../node/consensus/driver/cut-desk.ts';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const idOf = (n: number) => {
  const id = new Uint8Array(48);
  new DataView(id.buffer).setUint32(0, n);
  return id;
};

let now = 0;
let sent: { to: Peer; type: string | undefined; count: number }[] = [];
let submitted: Uint8Array[] = [];
let lookedUp = 0;
/** The body of every block that this node has. */
let stored: Uint8Array | undefined;
let bodiesRead = 0;
let exchange: BlockExchange;
let isNamed = false;
let arrived: Peer[] = [];
let dropped: Peer[] = [];
/** What becomes of a block; undefined: it is accepted. */
let refusal: (() => Promise<string | undefined>) | undefined;
/** Known as well, where a test has them. */
let circuits: Peer[] = [];
/** Of blocks that wait for a cut. */
let waiting: Uint8Array[] = [];
let cutCame: (cut: { registered: readonly { id: Uint8Array }[] }) => void;

beforeEach(() => {
  now = 0;
  sent = [];
  submitted = [];
  lookedUp = 0;
  stored = undefined;
  bodiesRead = 0;
  isNamed = false;
  arrived = [];
  dropped = [];
  refusal = undefined;
  circuits = [];
  waiting = [];
  exchange = new BlockExchange({
    node: {
      chain: {
        block: () => {
          lookedUp++;
          return stored && { header: new Uint8Array(HEADER_BYTES) };
        },
        blockBody: () => {
          bodiesRead++;
          return stored;
        },
        waitingBlocks: () => waiting.map((id) => ({ id })),
        head: () => ({ height: 1 }),
      },
      submitBlock: async (header: Uint8Array) => {
        submitted.push(header);
        const code = await refusal?.();
        if (code !== undefined) return { status: 'refused', error: { code } };
        return { status: 'accepted', id: blockId(header) };
      },
      on: (event: string, heard: typeof cutCame) => {
        if (event === 'cut') cutCame = heard;
        return () => undefined;
      },
    } as never,
    transport: {
      start: () => undefined,
      process: new Uint8Array(16),
      proven: () => undefined,
      company: () => [],
      limitKey: String,
      accountOf: String,
      accountByWay: String,
      nearest: (peer) => (peer === 'circuit of c' ? 'c' : peer),
      known: () => ['a', 'b', 'c', ...circuits],
      isKnown: (peer) => ['a', 'b', 'c', ...circuits].includes(peer),
      peers: () => ['s', 't', 'a', 'b', 'c', ...circuits],
      send: (to, bytes) => {
        const message = decodeBlockMessage(bytes);
        sent.push({
          to,
          type: message?.type,
          count: message !== undefined && 'ids' in message ? message.ids.length : 1,
        });
      },
      drop: (peer) => void dropped.push(peer),
      close: async () => undefined,
    },
    desk: { names: () => isNamed, arrived: ({ from }: { from: Peer }) => arrived.push(from) } as unknown as CutDesk,
    askAgainMillis: 500,
    log: silentLog,
    steady: () => now,
  });
});

const offer = (peer: Peer, ...ids: Uint8Array[]) => exchange.take(peer, { type: 'offer', ids });

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

test('a member that offers over a circuit, and has a direct connection, is asked there first, as a relay may hold back what it carries; and over the circuit once nobody else is left', () => {
  circuits = ['circuit of c'];
  offer('circuit of c', idOf(1));
  expect(sent).toEqual([{ to: 'c', type: 'want', count: 1 }]);
  offer('b', idOf(1));
  now = 500;
  exchange.tick();
  now = 1_000;
  exchange.tick();
  expect(sent.map(({ to }) => to)).toEqual(['c', 'b', 'circuit of c']);
  isNamed = true;
  exchange.want([idOf(2)], 'circuit of c');
  expect(sent.at(-1)?.to).toBe('c');
});

test('offers of blocks that do not exist fill the sender’s own count alone, and are given up', async () => {
  for (let i = 0; i < 100; i++) offer('a', ...Array.from({ length: 64 }, (_, n) => idOf(1_000 + i * 64 + n)));
  expect(sent.filter(({ to }) => to === 'a').reduce((sum, { count }) => sum + count, 0)).toBe(128);
  const header = new Uint8Array(312).fill(7);
  offer('b', blockId(header));
  expect(sent.at(-1)).toEqual({ to: 'b', type: 'want', count: 1 });
  exchange.take('b', { type: 'block', header, body: new Uint8Array(1) });
  // Nobody asked this neighbour for it.
  exchange.take('c', { type: 'block', header: new Uint8Array(312), body: new Uint8Array(1) });
  await Promise.resolve();
  expect(submitted).toEqual([header]);
  now = 5_000;
  exchange.tick();
  offer('a', idOf(5));
  expect(sent.at(-1)).toEqual({ to: 'a', type: 'want', count: 1 });
});

test('a neighbour that leaves and comes again is served and looked up for as one that stays', () => {
  stored = new Uint8Array(1_000_000);
  const ask = (peer: Peer) => exchange.take(peer, { type: 'want', ids: [idOf(1)] });
  for (let i = 0; i < 200; i++) ask('a');
  const [served, once] = [sent.length, lookedUp];
  expect(served).toBeLessThan(100);
  exchange.left('a');
  for (let i = 0; i < 200; i++) ask('a');
  expect([sent.length, lookedUp]).toEqual([served, once]);
  stored = undefined;
  const ids = Array.from({ length: 64 }, (_, n) => idOf(n));
  for (let i = 0; i < 300; i++) offer('b', ...ids);
  const looked = lookedUp;
  exchange.left('b');
  offer('b', idOf(1));
  expect(lookedUp).toBe(looked);
});

test('strangers that offer and ask for what does not exist cost a bounded number of reads, and take nothing from those that are known', () => {
  for (let i = 0; i < 1_000; i++) {
    const ids = Array.from({ length: 64 }, (_, n) => idOf(1_000_000 + i * 64 + n));
    exchange.take(`stranger ${i % 64}`, { type: i % 2 === 0 ? 'offer' : 'want', ids });
  }
  expect(lookedUp).toBeLessThanOrEqual(4_000);
  const before = sent.length;
  offer('a', idOf(5));
  expect(sent.slice(before)).toEqual([{ to: 'a', type: 'want', count: 1 }]);
});

test('one stranger that asks without end takes no other stranger’s turn', () => {
  for (let n = 0; n < 5_000; n++) exchange.take('s', { type: 'want', ids: [idOf(n)] });
  offer('t', idOf(1_000_000));
  expect(asked()).toEqual(['t']);
});

test('strangers that ask for large blocks without end leave each other address its part, and reads of the store are bounded', () => {
  stored = new Uint8Array(MAX_BODY_BYTES);
  const want = (peer: Peer, times: number) => {
    const before = sent.length;
    for (let n = 0; n < times; n++) exchange.take(peer, { type: 'want', ids: [idOf(n)] });
    return sent.slice(before).length;
  };
  const parts = Array.from({ length: 6 }, (_, i) => want(`stranger ${i}`, 200));
  // Half of what is left for each that comes, and never nothing.
  expect(parts).toEqual([16, 8, 4, 2, 1, 1]);
  expect(bodiesRead).toBe(32);
  // Who takes less has more left: of what is regained everyone has a part again.
  now = 2_000;
  expect(want('stranger 5', 200)).toBeGreaterThan(want('stranger 0', 200));
});

const asked = () => sent.filter(({ type }) => type === 'want').map(({ to }) => to);

test('a stranger that offers a block every few milliseconds moves no slot and keeps none', () => {
  offer('s', idOf(1));
  expect(asked()).toEqual(['s']);
  for (; now < 400; now += 4) offer('s', idOf(1));
  // A member that offers it is asked at once, whoever was asked before.
  offer('a', idOf(1));
  expect(asked()).toEqual(['s', 'a']);
  for (const peer of ['b', 'c']) offer(peer, idOf(1));
  for (; now < 3_000; now += 4) {
    for (const stranger of ['s', 't']) offer(stranger, idOf(1));
    if (now % 500 === 0) exchange.tick();
  }
  // Each once, members first.
  expect(asked()).toEqual(['s', 'a', 'b', 'c', 't']);
});

test('blocks of a cut that a stranger brought are asked of all that are known first, and of each stranger once', () => {
  const ids = [idOf(1), idOf(2)];
  isNamed = true;
  for (const end = now + 10_000; now < end; now += 100) {
    if (now % 500 === 0) exchange.want(ids, 's');
    exchange.tick();
    offer('t', ...ids);
  }
  const order = asked();
  expect(new Set(order.slice(0, 3))).toEqual(new Set(['a', 'b', 'c']));
  expect(order.slice(3, 5)).toEqual(['s', 't']);
  // Those that are known may have it by now; strangers had their turn.
  expect(order.length).toBeGreaterThan(15);
  expect(order.slice(5).filter((peer) => peer === 's' || peer === 't')).toEqual([]);
});

test('the known neighbour that brought a cut is asked first for its blocks, and after a wrong body another one at once', () => {
  const header = new Uint8Array(312).fill(7);
  const id = blockId(header);
  isNamed = true;
  exchange.want([id], 'b');
  expect(asked()).toEqual(['b']);
  const body = { type: 'block', header, body: new Uint8Array(1) } as const;
  // One that was not asked, and one that answers twice.
  for (const peer of ['c', 'b', 'b']) exchange.take(peer, body);
  expect(arrived).toEqual(['b']);
  exchange.tick();
  expect(asked()).toEqual(['b']);
  exchange.want([id], 'b');
  expect(asked().length).toBe(2);
  expect(asked()[1]).not.toBe('b');
  exchange.take('b', body);
  exchange.take(asked()[1] as Peer, body);
  expect(arrived.length).toBe(2);
});

test('a source of a cut that has left keeps nobody from being asked again: those that are known may have the block by now', () => {
  isNamed = true;
  for (; now < 4_500; now += 500) exchange.want([idOf(1)], 'gone');
  expect([...asked()].sort()).toEqual(['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c']);
});

test('an offer costs the same, however many blocks that do not exist others have offered', () => {
  const looks = (peer: Peer, n: number) => {
    const look = vi.spyOn(Set.prototype, 'has');
    offer(peer, idOf(n));
    const count = look.mock.calls.length;
    look.mockRestore();
    return count;
  };
  const alone = looks('s', 1);
  for (let i = 0; i < 3_800; i++) offer(`stranger ${i % 64}`, idOf(1_000 + i));
  const among = looks('t', 2);
  expect(asked()).toContain('t');
  expect(among).toBeLessThanOrEqual(2 * alone);
});

const headerOf = (n: number) => new Uint8Array(312).fill(n);
const send = (peer: Peer, n: number, body = new Uint8Array(1)) =>
  exchange.take(peer, { type: 'block', header: headerOf(n), body });

test('blocks of one neighbour are checked one after the other, those of others meanwhile, and after one without work the rest cost nothing', async () => {
  const answers: (() => void)[] = [];
  refusal = () => new Promise((resolve) => answers.push(() => resolve('pow_above_target')));
  for (const peer of ['s', 'a'])
    for (let n = 1; n <= 100; n++) {
      offer(peer, blockId(headerOf(peer === 's' ? n : 100 + n)));
      send(peer, peer === 's' ? n : 100 + n);
    }
  expect(submitted).toEqual([headerOf(1), headerOf(101)]);
  answers[0]?.();
  await until(() => dropped.length > 0);
  expect(dropped).toEqual(['s']);
  expect(submitted.length).toBe(2);
  // What comes afterwards, over another connection, is looked at again.
  refusal = undefined;
  offer('t', blockId(headerOf(2)));
  send('t', 2);
  expect(submitted.at(-1)).toEqual(headerOf(2));
});

test('blocks that wait to be checked are bounded: in number of each neighbour, in bytes of all strangers', async () => {
  const started = Promise.withResolvers<undefined>();
  refusal = () => started.promise;
  // One is checked, so many wait, and further ones are not asked for.
  for (let n = 0; n < 200; n++) {
    offer('a', blockId(headerOf(n)));
    send('a', n);
  }
  expect(asked().length).toBe(128);
  const large = new Uint8Array(16 * 1024 * 1024);
  for (let n = 200; n < 206; n++) {
    offer('s', blockId(headerOf(n)));
    exchange.take('s', { type: 'block', header: headerOf(n), body: large });
  }
  started.resolve(undefined);
  await until(() => submitted.length >= 128 + 4);
  expect(submitted.length).toBe(128 + 4);
  offer('s', blockId(headerOf(210)));
  send('s', 210);
  expect(submitted.at(-1)).toEqual(headerOf(210));
});

test('what waits behind a false block costs its sender nothing later: others behind the same address may send as much', async () => {
  const large = new Uint8Array(16 * 1024 * 1024);
  const sendFour = (from: number) => {
    for (let n = from; n < from + 4; n++) {
      offer('s', blockId(headerOf(n)));
      send('s', n, large);
    }
  };
  refusal = async () => 'pow_above_target';
  sendFour(1);
  await until(() => dropped.length > 0);
  expect(submitted).toEqual([headerOf(1)]);
  refusal = undefined;
  sendFour(11);
  await until(() => submitted.length === 5);
});

test('blocks that a cut left out are offered to all again', () => {
  waiting = [idOf(1), idOf(2)];
  cutCame({ registered: [{ id: idOf(3) }] });
  expect(sent).toEqual(['s', 't', 'a', 'b', 'c'].map((to) => ({ to, type: 'offer', count: 2 })));
});

test('blocks of proposed cuts are asked of the known neighbours in turn', () => {
  isNamed = true;
  for (const n of [1, 2, 3, 4]) exchange.want([idOf(n)]);
  expect(asked()).toEqual(['a', 'b', 'c', 'a']);
});

test('nothing is remembered of those that have left once the blocks that they named are given up', () => {
  for (let i = 0; i < 100; i++) {
    exchange.left(`gone ${i}`);
    // As when a block of it is looked at after it left, and lacks a parent.
    offer(`gone ${i}`, idOf(i));
  }
  expect(exchange.neighbours).toBeGreaterThan(0);
  now = 8 * 500 + 1;
  exchange.tick();
  expect(exchange.neighbours).toBe(0);
});
