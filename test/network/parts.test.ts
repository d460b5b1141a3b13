/** The decisions and formats of the network, without a network. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { networkPlan } from '../../node/network/network-options.ts';
import { decodeHello, encodeHello, isNewer, mismatch } from '../../node/network/peers/hello.ts';
import { admitInbound, type Inbound, subnetOf } from '../../node/network/peers/inbound-limits.ts';
import { isDialable, isWorthTelling, placeOf } from '../../node/network/peers/peer-address.ts';
import { PeerBook } from '../../node/network/peers/peer-book.ts';
import { faultOf } from '../../node/network/peers/peer-fault.ts';
import { PeerHeights } from '../../node/network/peers/peer-heights.ts';
import { afterFault, FLOOR, isBeyondBearing, lostAt, NO_FAULT } from '../../node/network/peers/peer-score.ts';
import {
  decodeBatch,
  decodeRelayQuestion,
  decodeShortBlock,
  decodeWaiting,
  decodeWires,
  encodeBatch,
  encodeRelayQuestion,
} from '../../node/network/relay/relay-messages.ts';
import { CHUNK_BYTES, encodeChunk, NO_CHUNK } from '../../node/network/snapshots/snapshot-messages.ts';
import { AskOrder } from '../../node/network/sync/ask-order.ts';
import { BlockFetch, type FetchedBlock } from '../../node/network/sync/block-fetch.ts';
import {
  decodeBlocksAnswer,
  decodeCutsAnswer,
  decodeHeadersAnswer,
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeSyncQuestion,
} from '../../node/network/sync/sync-messages.ts';
import { decodePeers, encodePeers } from '../../node/network/thread/peer-exchange.ts';
import { concat, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { reachOf } from '../../runtime/clients/address-reach.ts';
import { count, seed } from '../level.ts';

const HELLO = { chainId: new Uint8Array(48).fill(7), ruleSet: 1, release: '0.1.0', height: 12 };

test('a hello comes back as it was; another chain or rule set is a mismatch', () => {
  expect(decodeHello(encodeHello(HELLO))).toEqual(HELLO);
  expect(mismatch(HELLO, HELLO)).toBeUndefined();
  expect(mismatch(HELLO, { ...HELLO, chainId: new Uint8Array(48) })).toBe('it is on another chain');
  expect(mismatch(HELLO, { ...HELLO, ruleSet: 2 })).toBe('it follows rule set 2');
  expect(() => decodeHello(encodeHello({ ...HELLO, release: 'a\u0007b' }))).toThrow(ProtocolError);
});

test('only a release that is written as one and comes later is newer', () => {
  expect(isNewer('0.10.0', '0.9.9')).toBe(true);
  expect(isNewer('0.1.0', '0.1.0')).toBe(false);
  expect(isNewer('9.9.9-beta', '0.1.0')).toBe(false);
  expect(isNewer('99999999999.0.0', '0.1.0')).toBe(false);
});

const LIMITS = { places: 6, perAddress: 2, perSubnet: 3 };
const inbound = (...addresses: string[]): Inbound[] =>
  addresses.map((address, id) => ({ id, address, subnet: subnetOf(address) }));

test('one address and one network have few places; a crowded network gives way when all are taken', () => {
  expect(admitInbound(inbound('10.0.0.1', '10.0.0.1'), '10.0.0.1', LIMITS)).toEqual({ admitted: false });
  expect(admitInbound(inbound('10.0.0.1', '10.0.0.2', '10.0.0.3'), '10.0.0.4', LIMITS)).toEqual({ admitted: false });
  expect(admitInbound(inbound('10.0.0.1', '10.0.0.2'), '10.0.0.4', LIMITS)).toEqual({ admitted: true });
  const full = inbound('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.1.1', '10.0.2.1', '10.0.3.1');
  expect(admitInbound(full, '10.9.0.1', LIMITS)).toEqual({ admitted: true, evict: 2 });
  expect(
    admitInbound(inbound('1.0.0.1', '2.0.0.1', '3.0.0.1', '4.0.0.1', '5.0.0.1', '6.0.0.1'), '7.0.0.1', LIMITS),
  ).toEqual({ admitted: false });
  expect(admitInbound(inbound('127.0.0.1', '127.0.0.1', '127.0.0.1'), '127.0.0.1', LIMITS)).toEqual({ admitted: true });
  expect(subnetOf('2001:db8:1:2::9')).toBe(subnetOf('2001:db8:1:ffff::1'));
});

test('faults add up, are forgiven with time, and one that no accident explains is enough', () => {
  const twice = afterFault(afterFault(NO_FAULT, 'unanswered', 0), 'unanswered', 0);
  expect(lostAt(twice, 0)).toBe(20);
  expect(lostAt(twice, 60_000)).toBe(15);
  expect(isBeyondBearing(twice)).toBe(false);
  expect(isBeyondBearing(afterFault(NO_FAULT, 'false_proof', 0))).toBe(true);
  expect(afterFault({ lost: FLOOR, atMillis: 0 }, 'malformed', 0).lost).toBe(FLOOR);
});

const near = () => false;
const NAMES = [
  '12D3KooWRDpNuGjW9RjrH3Yy7R8JUxL97omQbYxWgvhK9zAboK9J',
  '12D3KooWQYV9dGMFoRzNStwpXztXaBUjtPqi6aU76ZgUriHhKust',
] as const;
const at = (ip: string, port = 28705, peer: string = NAMES[0]) => `/ip4/${ip}/tcp/${port}/p2p/${peer}`;

test('the operator’s peers are dialled first and for ever, others less and less often until they are forgotten', () => {
  const [first, other] = ['/ip4/192.0.2.1/tcp/28705', at('198.51.100.1')];
  const book = new PeerBook([first], near);
  book.told(other);
  book.told('/ip4/192.0.2.1/udp/1/quic-v1');
  expect(book.next(0, () => false, [])).toBe(first);
  book.failed(first, 0);
  expect(book.next(0, () => false, [])).toBe(other);
  for (let i = 0; i < 3; i++) book.failed(other, 0);
  expect(book.next(1e12, (address) => address === first, [])).toBeUndefined();
  for (let i = 0; i < 50; i++) book.failed(first, 0);
  expect(book.next(30_001, () => false, [])).toBe(first);
  book.worked(first, at('192.0.2.1'), 5);
  expect(book.good(9)).toEqual([{ address: at('192.0.2.1'), lastGood: 5 }]);
});

test('two connections into one network are enough', () => {
  const book = new PeerBook([], near);
  book.told(at('192.0.2.9'));
  expect(book.next(0, () => false, ['192.0.2.1', '192.0.2.2'])).toBeUndefined();
  expect(book.next(0, () => false, ['192.0.2.1'])).toBe(at('192.0.2.9'));
});

test('what strangers tell takes no place of peers that this node reached, and one host or network has few places', () => {
  const book = new PeerBook([], near);
  for (let i = 0; i < 200; i++) book.remember(at(`1.2.${i}.9`), 1_000 + i);
  for (let i = 0; i < 4_000; i++) book.told(at('66.6.6.6', 1_000 + i));
  for (let i = 0; i < 4_000; i++) book.told(at(`77.${i >> 8}.${i & 255}.7`));
  expect(book.good(500)).toHaveLength(200);
  const taken = new Set<string>();
  for (;;) {
    const next = book.next(0, (address) => taken.has(address), []);
    if (next === undefined) break;
    // Those that were reached come first, the latest of them before the others.
    if (taken.size < 200) expect(next).toBe(at(`1.2.${199 - taken.size}.9`));
    taken.add(next);
  }
  expect(taken.size).toBeLessThanOrEqual(700);
  expect([...taken].filter((address) => address.includes('66.6.6.6')).length).toBeLessThanOrEqual(2);
  // Nobody is told of an address that this node did not reach itself.
  expect(book.given(32).every((address) => address.includes('/1.2.'))).toBe(true);
});

test('names and addresses without an identity are the operator’s alone', () => {
  const book = new PeerBook(['/dns4/seed.example.org/tcp/28705'], near);
  for (const told of [
    '/dns4/postgres.internal/tcp/5432',
    `/dns4/a.example/tcp/1/p2p/${NAMES[0]}`,
    '/ip4/8.8.8.8/tcp/1',
  ])
    book.told(told);
  expect(book.next(0, (address) => address.includes('seed'), [])).toBeUndefined();
  // The address to which the operator's name led can be remembered and told.
  book.worked('/dns4/seed.example.org/tcp/28705', at('8.8.8.8'), 7);
  expect(book.given(32)).toEqual([at('8.8.8.8')]);
});

test('an address of a private network is no business of strangers, however it is written', () => {
  const hidden = ['::ffff:7f00:1', '0:0:0:0:0:ffff:7f00:1', '0:0:0:0:0:0:0:1', '::127.0.0.1', '64:ff9b::7f00:1'];
  const others = [
    '127.0.0.1',
    '10.0.0.1',
    '192.168.1.1',
    '169.254.1.1',
    '0.0.0.0',
    '224.0.0.1',
    '2002:7f00:1::',
    'fd00::1',
    'fe80::1',
  ];
  for (const ip of [...hidden, ...others]) expect(isWorthTelling(ip, '8.8.8.8'), ip).toBe(false);
  expect(isWorthTelling('10.0.0.1', '10.0.0.2')).toBe(true);
  expect(isWorthTelling('127.0.0.1', '10.0.0.2')).toBe(false);
  expect(isWorthTelling('127.0.0.1', '127.0.0.1')).toBe(true);
  expect(isWorthTelling('8.8.8.8', '192.0.2.1')).toBe(true);
  expect(reachOf('2a00:1450:4001:831::200e')).toBe('public');
  expect(isDialable('/ip4/127.0.0.1/tcp/0')).toBe(false);
  expect(isDialable('/dns4/seed.example.org/tcp/28705')).toBe(true);
  expect(isDialable('/ip4/192.0.2.1/udp/28705/quic-v1')).toBe(true);
  expect(isDialable('/dns6/seed.example.org/udp/28705/quic-v1')).toBe(true);
  for (const word of ['/ip4/192.0.2.1/udp/28705', '/ip4/192.0.2.1/udp/0/quic-v1', '/ip4/192.0.2.1/tcp/1/quic-v1'])
    expect(isDialable(word)).toBe(false);
});

test('an address is told in bytes and has one form', () => {
  const place = { ip: '192.0.2.1', port: 1, peer: NAMES[0] };
  const six = { ip: '2001:db8:0:0:0:0:0:1', port: 2, peer: NAMES[1] };
  const text = [at('192.0.2.1', 1), `/ip6/2001:db8::1/tcp/2/p2p/${NAMES[1]}`, 'junk', '/dns4/a.example/tcp/1'];
  expect(decodePeers(encodePeers(text))).toEqual([place, six]);
  expect(placeOf(`/ip6/::ffff:c000:201/tcp/1/p2p/${NAMES[0]}`)).toEqual(place);
  const mapped = encodePeers([text[1] as string]);
  mapped.set([...new Uint8Array(10), 255, 255, 192, 0, 2, 1], 2);
  expect(() => decodePeers(mapped)).toThrow(ProtocolError);
});

test('what a peer proved stays proven when it leaves; a claim proves nothing', () => {
  const heights = new PeerHeights();
  expect([heights.proven, heights.best(5, false)]).toEqual([-1, -1]);
  heights.joined('liar', 1_000_000_000);
  heights.joined('honest', 7);
  expect([heights.proven, heights.best(5, false)]).toEqual([-1, -1]);
  heights.proved('honest', 7);
  heights.left('honest');
  expect([heights.proven, heights.best(5, true), heights.count]).toEqual([7, 7, 1]);
});

test('the height that a delivering peer claims is shown to a node that is behind, and to no other', () => {
  const heights = new PeerHeights();
  heights.joined('honest', 599);
  heights.joined('boaster', 1_000_000);
  heights.proved('honest', 455);
  expect(heights.best(455, false)).toBe(599);
  heights.proved('honest', 599);
  // It delivered once, claims more and then has nothing.
  heights.heard('honest', 2_000_000);
  expect([heights.best(599, true), heights.best(599, false)]).toEqual([599, 2_000_000]);
  heights.failed('honest', 600);
  expect(heights.best(599, false)).toBe(599);
});

test('that all who are ahead have pruned what comes next is said by all peers, or of a head that stands still: not by the claims of one', () => {
  const heights = new PeerHeights();
  heights.joined('honest', 100);
  heights.says('honest', 100, 0);
  heights.joined('liar', 0);
  heights.says('liar', 1_000_000, 999_999);
  expect([heights.isPruned(100, false), heights.isPruned(100, true)]).toEqual([false, true]);
  // It is ahead, and has the next cut.
  heights.heard('honest', 101);
  expect([heights.isPruned(100, false), heights.isPruned(100, true)]).toEqual([false, false]);
  heights.left('honest');
  expect(heights.isPruned(100, false)).toBe(true);
});

const PLAN = { p2p: 'on', p2pListen: [], p2pAnnounce: [], bootstrap: [], maxPeers: 50 } as const;

test('a development node has no peers unless it is told; every other network listens', () => {
  expect(networkPlan({ ...PLAN, network: 'development' })).toBeUndefined();
  expect(networkPlan({ ...PLAN, network: 'mainnet' })?.listen).toEqual(['/ip4/0.0.0.0/tcp/28705']);
  expect(networkPlan({ ...PLAN, network: 'testnet' })?.listen).toEqual(['/ip4/0.0.0.0/tcp/28707']);
  const listens = networkPlan({ ...PLAN, network: 'development', p2pListen: [{ host: '::1', port: 9 }] });
  expect(listens?.listen).toEqual(['/ip6/::1/tcp/9']);
  const told = networkPlan({ ...PLAN, network: 'development', bootstrap: ['/ip4/192.0.2.1/tcp/1'] });
  expect(told?.listen).toEqual([]);
  expect(networkPlan({ ...PLAN, network: 'mainnet', p2p: 'off' })).toBeUndefined();
  expect(networkPlan({ ...PLAN, network: 'mainnet', p2pListen: ['off'] })?.listen).toEqual([]);
  const both = { ...PLAN, network: 'mainnet', p2p: 'off', bootstrap: ['/ip4/192.0.2.1/tcp/1'] } as const;
  expect(() => networkPlan(both)).toThrow(/--p2p is off/);
});

test('in turn each is asked before another is asked twice, also where one comes again and again; who is busy soon has a second try', () => {
  let now = 0;
  const order = new AskOrder(() => now);
  const peers = ['honest', 'a', 'b', 'c'];
  for (const peer of peers) order.joined(peer);
  const asked = (busy: string) =>
    Array.from({ length: 9 }, () => {
      order.left('a');
      order.joined('a');
      const peer = order.next(peers) as string;
      const held = order.asked(peer, true);
      now += peer === busy ? 250 : 1_000;
      order.over(held, 0);
      now += 1_000;
      return peer;
    });
  expect(asked('nobody')).toEqual(['honest', 'b', 'c', 'honest', 'b', 'c', 'honest', 'b', 'c']);
  expect(asked('honest').filter((peer) => peer === 'honest').length).toBeGreaterThan(3);
});

test('the best is who brought most for its time: who was so and brings nothing any more wastes no more time than others need for what it brought', () => {
  let now = 0;
  const order = new AskOrder(() => now);
  const use = (peer: string, millis: number, won: number) => {
    const held = order.asked(peer);
    now += millis;
    order.over(held, won);
    now += 1_000;
  };
  const peers = ['honest', ...Array.from({ length: 10 }, (_, i) => `liar${i}`)];
  expect(order.best(peers)).toBeUndefined();
  for (const peer of peers) if (peer !== 'honest') use(peer, 50, 1);
  let wasted = 0;
  for (let i = 0; i < 200; i++) {
    const best = order.best(peers) as string;
    if (best === 'honest' || i % 10 === 0) use('honest', 3_000, 1);
    if (best === 'honest') continue;
    use(best, 1_400, 0);
    wasted += 1_400;
  }
  // Up to twice as long counts as the same.
  expect(wasted).toBeLessThan(2 * 10 * 3_000);
  expect(order.best(peers)).toBe('honest');
});

test('blocks that nobody has are given up; those of a peer that sent a wrong one are asked of another', async () => {
  const header = new Uint8Array(312);
  const other = Uint8Array.from(header).fill(1, 304);
  const blocks = [header, other].map((of) => ({ header: of, body: new Uint8Array(3) }));
  const ids = blocks.map((block) => blockId(block.header));
  const blamed: unknown[] = [];
  const fetch = (answers: Readonly<Record<string, () => Promise<Uint8Array>>>) =>
    new BlockFetch(ids, {
      peers: () => Object.keys(answers),
      ask: async (peer) => await (answers[peer] as () => Promise<Uint8Array>)(),
      blame: (error) => blamed.push(error),
      order: new AskOrder(),
      isHere: () => false,
    });
  const all = async () => encodeBlocksAnswer(blocks);
  const nobody = fetch({});
  await expect(nobody.take(ids[0] as Uint8Array)).rejects.toThrow('no peer has the blocks');
  const silent = fetch({
    a: async () => new Uint8Array(1),
    b: async () => encodeBlocksAnswer([undefined, undefined]),
  });
  await expect(silent.take(ids[0] as Uint8Array)).rejects.toThrow('no peer has the blocks');
  expect(blamed).toHaveLength(1);
  const swapped = fetch({ a: async () => encodeBlocksAnswer([...blocks].reverse()), b: all });
  expect(await swapped.take(ids[0] as Uint8Array)).toMatchObject({ from: 'b' });
  expect(await swapped.take(ids[1] as Uint8Array)).toMatchObject({ from: 'b' });
  expect(blamed).toHaveLength(2);
  const distrusted = fetch({ a: all });
  const first = (await distrusted.take(ids[0] as Uint8Array)) as FetchedBlock;
  distrusted.again(first.id, 'a');
  await expect(distrusted.take(ids[1] as Uint8Array)).rejects.toThrow('no peer has the blocks');
});

test('of a peer that is too slow for more a block comes in parts, and is the right one whatever others say of theirs', async () => {
  const block = { header: new Uint8Array(312), body: new Uint8Array(CHUNK_BYTES).fill(7) };
  const id = blockId(block.header);
  const whole = concat(block.header, block.body);
  const part = (from: number, bytes = whole, length = bytes.length) =>
    encodeChunk({ length, bytes: bytes.subarray(from, from + CHUNK_BYTES) });
  const other = whole.slice().fill(1, 300, 304);
  const answers: Readonly<Record<string, (from: number) => Uint8Array>> = {
    lacks: () => encodeChunk(NO_CHUNK),
    endless: (from) => part(from, whole, 0xffff_ffff),
    tiny: () => encodeChunk({ length: 3, bytes: new Uint8Array(3) }),
    stops: (from) => (from === 0 ? part(0) : part(whole.length)),
    grows: (from) => part(from, whole, whole.length + from),
    other: (from) => part(from, other),
    honest: (from) => part(from),
  };
  const order = new AskOrder(() => 0);
  for (const peer of Object.keys(answers)) {
    order.joined(peer);
    order.took(peer, 1 / 64, 'late');
  }
  const [asked, blamed]: [string[], string[]] = [[], []];
  const fetch = new BlockFetch([id], {
    peers: () => Object.keys(answers),
    ask: async (peer, bytes) => {
      const question = decodeSyncQuestion(bytes);
      if (question.type !== 'blockPart') throw new Error('a whole block is asked for');
      asked.push(peer);
      return (answers[peer] as (from: number) => Uint8Array)(question.from);
    },
    blame: (error, peer) => blamed.push(`${peer} ${faultOf(error)}`),
    order,
    isHere: () => false,
  });
  const { header, body, from } = (await fetch.take(id)) as FetchedBlock;
  expect(from).toBe('honest');
  expect(equalBytes(concat(header, body), whole)).toBe(true);
  fetch.close();
  expect(asked.filter((peer) => peer === 'honest')).toHaveLength(2);
  expect(blamed).toEqual([
    'endless malformed',
    'tiny malformed',
    'stops malformed',
    'grows malformed',
    'other bad_block',
  ]);
});

test('who holds a block in parts until another has brought it has used that time', async () => {
  const block = { header: new Uint8Array(312), body: new Uint8Array(CHUNK_BYTES) };
  const id = blockId(block.header);
  let now = 0;
  const order = new AskOrder(() => now);
  const bring = (peer: string) => order.over(order.asked(peer), 1);
  order.joined('holds');
  order.took('holds', 1 / 64, 'late');
  const part = Promise.withResolvers<Uint8Array>();
  const asked: string[] = [];
  const fetch = new BlockFetch([id], {
    peers: () => (asked.length === 0 ? ['holds'] : ['holds', 'honest']),
    ask: async (peer, bytes) => {
      asked.push(`${peer} ${decodeSyncQuestion(bytes).type}`);
      return peer === 'holds' ? await part.promise : encodeBlocksAnswer([block]);
    },
    blame: () => undefined,
    order,
    isHere: () => false,
  });
  bring('honest');
  now += 1_000;
  expect((await fetch.take(id))?.from).toBe('honest');
  part.resolve(
    encodeChunk({ length: 312 + CHUNK_BYTES, bytes: concat(block.header, block.body).subarray(0, CHUNK_BYTES) }),
  );
  now += 2_000;
  await new Promise((resolve) => setImmediate(resolve));
  now += 2_000;
  bring('holds');
  bring('honest');
  expect(asked).toEqual(['holds blockPart', 'honest blocks']);
  expect(order.best(['holds', 'honest'])).toBe('honest');
  fetch.close();
});

test('questions come back as they were', () => {
  const [id, other] = [3, 4].map((byte) => new Uint8Array(48).fill(byte)) as [Uint8Array, Uint8Array];
  for (const question of [
    { type: 'cuts', from: 95, count: 96 },
    { type: 'cuts', from: 95, count: 96, isBrief: true },
    { type: 'headers', to: 9, count: 1_024 },
    { type: 'blocks', ids: [id, other] },
    { type: 'blockPart', id, from: 262_144 },
  ] as const)
    expect(decodeSyncQuestion(encodeSyncQuestion(question))).toEqual(question);
  for (const question of [
    { type: 'transactions', ids: [id] },
    { type: 'carried', block: id, indexes: [0, 65_535] },
    { type: 'block', block: id },
    { type: 'waiting' },
  ] as const)
    expect(decodeRelayQuestion(encodeRelayQuestion(question))).toEqual(question);
  expect(() => decodeSyncQuestion(encodeSyncQuestion({ type: 'cuts', from: 0, count: 97 }))).toThrow(ProtocolError);
  expect(() => decodeBatch(encodeBatch(new Uint8Array(8), []))).toThrow(ProtocolError);
});

test('nothing is asked for twice in one question', () => {
  const id = new Uint8Array(48).fill(3);
  expect(() => decodeSyncQuestion(encodeSyncQuestion({ type: 'blocks', ids: [id, id] }))).toThrow(ProtocolError);
  expect(() => decodeRelayQuestion(encodeRelayQuestion({ type: 'transactions', ids: [id, id] }))).toThrow(
    ProtocolError,
  );
  const twice = { type: 'carried', block: id, indexes: [1, 1] } as const;
  expect(() => decodeRelayQuestion(encodeRelayQuestion(twice))).toThrow(ProtocolError);
});

test('bytes of any kind are a message or a ProtocolError, never anything else', () => {
  const decoders: ((bytes: Uint8Array) => unknown)[] = [
    decodeHello,
    decodeSyncQuestion,
    decodeCutsAnswer,
    decodeBlocksAnswer,
    decodeHeadersAnswer,
    decodeRelayQuestion,
    decodeWaiting,
    decodeShortBlock,
    decodeBatch,
    decodePeers,
    (bytes: Uint8Array) => decodeWires(bytes, 2),
  ];
  const runs = fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(decoders.length - 1), (bytes, which) => {
    try {
      decoders[which]?.(bytes);
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
    }
  });
  fc.assert(runs, { numRuns: count({ quick: 500, full: 3_000, deep: 200_000 }), seed });
});
