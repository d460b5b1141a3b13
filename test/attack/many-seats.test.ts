/**
 * A seat costs little where few validators have much stake: liars with less than a third of it may have 63 of 64 seats. What all members together cost an
 * honest one is bounded, and each of them has a fair part, so one that takes little finds what it needs.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { expect, onTestFinished, test } from 'vitest';
import { BlockExchange, decodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import type { CutDesk } from '../../node/consensus/driver/cut-desk.ts';
import { listenFirst } from '../../node/consensus/engine/listening.ts';
import { createState } from '../../node/consensus/engine/state.ts';
import { SharedReading } from '../../node/consensus/link/allowance.ts';
import { MAX_FRAME_BYTES } from '../../node/consensus/link/frames.ts';
import type { OverlayLink } from '../../node/consensus/link/overlay-link.ts';
import { RollCall } from '../../node/consensus/one-signer/roll-call.ts';
import { CALL_BYTES, decodeRollCall } from '../../node/consensus/one-signer/roll-call-messages.ts';
import { type Link, OverlayLinks } from '../../node/consensus/reach/overlay-links.ts';
import { encodeCircuitMessage } from '../../node/consensus/relays/circuit-messages.ts';
import { signRecord } from '../../node/consensus/relays/relay-record.ts';
import { Relaying } from '../../node/consensus/relays/relaying.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { committeeOf } from '../consensus/bench-member.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const LIARS = Array.from({ length: 62 }, (_, i) => `liar ${i}`);
const MEBIBYTE = 1024 * 1024;
const NEIGHBOURS = [...LIARS, 'honest'];

type Parts = {
  readonly stored?: Bytes;
  readonly submit?: (header: Bytes) => Promise<object>;
  readonly connections?: readonly string[];
};

function bed(parts: Parts = {}) {
  const { connections = NEIGHBOURS } = parts;
  const counts = { looked: 0, read: 0, ways: 0, submitted: [] as Bytes[] };
  const sent = new Map<unknown, number>();
  const clock = { now: 0 };
  const accepted = async (header: Bytes) => ({ status: 'accepted', id: blockId(header) });
  const exchange = new BlockExchange({
    node: {
      chain: {
        block: () => {
          counts.looked++;
          return parts.stored && { header: new Uint8Array(HEADER_BYTES) };
        },
        blockBody: () => {
          counts.read++;
          return parts.stored;
        },
        waitingBlocks: () => [],
      },
      submitBlock: (header: Bytes) => {
        counts.submitted.push(header);
        return (parts.submit ?? accepted)(header);
      },
      on: () => () => undefined,
    } as never,
    transport: {
      start: () => undefined,
      process: new Uint8Array(16),
      proven: () => undefined,
      company: () => [],
      limitKey: String,
      accountOf: (peer) => String(peer).split(' on ')[0] as string,
      accountByWay: String,
      nearest: (peer) => {
        counts.ways++;
        return peer;
      },
      known: () => connections,
      isKnown: (peer) => connections.includes(peer as string),
      peers: () => connections,
      send: (to, bytes) => void (decodeBlockMessage(bytes)?.type === 'block' && sent.set(to, (sent.get(to) ?? 0) + 1)),
      drop: () => undefined,
      close: async () => undefined,
    },
    desk: { names: () => false } as unknown as CutDesk,
    askAgainMillis: 500,
    log: silentLog,
    steady: () => clock.now,
  });
  return { exchange, counts, sent, clock };
}

let made = 0;
const ids = (count: number): Bytes[] =>
  Array.from({ length: count }, () => {
    const id = new Uint8Array(48);
    new DataView(id.buffer).setUint32(0, ++made);
    return id;
  });

test('blocks that there are not, offered by most members without end, cost a bounded number of reads; another member is heard', () => {
  const { exchange, counts, clock } = bed();
  const named = ids(64);
  const flood = () => {
    for (const liar of LIARS) for (let i = 0; i < 32; i++) exchange.take(liar, { type: 'offer', ids: named });
  };
  for (let times = 0; times < 8; times++) flood();
  const before = counts.looked;
  clock.now = 1_000;
  flood();
  expect(counts.looked - before).toBeLessThan(16_000);
  const heard = counts.looked;
  exchange.take('honest', { type: 'offer', ids: ids(64) });
  expect(counts.looked - heard).toBe(64);
});

test('what one member has offered already costs little when all others offer it too: its way is looked for once until it has had its time', () => {
  const { exchange, counts, clock } = bed();
  const named = ids(64);
  for (const liar of LIARS) exchange.take(liar, { type: 'offer', ids: named });
  expect(counts.ways).toBe(64);
  clock.now = 500;
  exchange.tick();
  expect(counts.ways).toBe(2 * 64);
});

test('bodies that most members ask for without end are read at a bounded rate; another member has its part', () => {
  const { exchange, counts, sent, clock } = bed({ stored: new Uint8Array(MAX_BODY_BYTES) });
  const flood = () => {
    for (const liar of LIARS.slice(0, 20)) exchange.take(liar, { type: 'want', ids: ids(64) });
  };
  flood();
  const before = counts.read;
  clock.now = 1_000;
  flood();
  expect(counts.read - before).toBeLessThan(50);
  exchange.take('honest', { type: 'want', ids: ids(1) });
  expect(sent.get('honest')).toBe(1);
});

test('bodies of most members that wait while a hash takes minutes hold a bounded amount of memory, on however many connections one after the other; another member’s are looked at', async () => {
  const hashed = Promise.withResolvers<undefined>();
  const submit = async (header: Bytes) => {
    await hashed.promise;
    return { status: 'accepted', id: blockId(header) };
  };
  const ways = Array.from({ length: 8 }, (_, i) => i);
  const connections = NEIGHBOURS.flatMap((name) => ways.map((way) => `${name} on ${way}`));
  const { exchange, counts } = bed({ submit, connections });
  const body = new Uint8Array(MAX_BODY_BYTES);
  const send = (peer: string) => {
    const header = new Uint8Array(HEADER_BYTES);
    new DataView(header.buffer).setUint32(0, ++made);
    exchange.take(peer, { type: 'offer', ids: [blockId(header)] });
    exchange.take(peer, { type: 'block', header, body });
    return header;
  };
  for (let times = 0; times < 2; times++) for (const way of ways) for (const liar of LIARS) send(`${liar} on ${way}`);
  const honest = [send('honest on 0'), send('honest on 0'), send('honest on 1')];
  hashed.resolve(undefined);
  await new Promise((resolve) => setImmediate(resolve));
  expect(honest.filter((header) => counts.submitted.includes(header))).toHaveLength(honest.length);
  expect(counts.submitted.length * MAX_BODY_BYTES).toBeLessThan(300 * MEBIBYTE);
});

test('messages that most members send without end are read at a bounded rate, on all their connections; who sends little never waits', () => {
  const reading = new SharedReading({ perSecond: 2 ** 24, burst: 2 ** 26 }, { perSecond: 1_000, burst: 4_000 }, 0);
  const ready = new Map(LIARS.map((liar) => [liar, 0]));
  let [read, waited] = [0, 0];
  for (let now = 0; now < 20_000; now += 100) {
    if (now === 10_000) read = 0;
    for (const liar of LIARS) {
      if ((ready.get(liar) as number) > now) continue;
      // As a connection looks at them: 16, then those are counted.
      for (let millis = 0; millis === 0; ) {
        read += 16;
        millis = reading.of(liar, now).spend(1_024, 16, now);
        ready.set(liar, now + millis);
      }
    }
    waited += reading.of('honest', now).spend(3_400, 1, now);
  }
  expect(read / 10).toBeLessThan(10_000);
  expect(waited).toBe(0);
});

test('what waits for most members, which read nothing, is bounded together; for another one there is room, and votes are sent', () => {
  const links = new OverlayLinks();
  const add = (name: string) => {
    const link = { waiting: 0 };
    const known: Link = {
      link: link as OverlayLink,
      address: '192.0.2.1',
      isInbound: true,
      isReady: true,
      standing: 'member',
      key: new TextEncoder().encode(name),
    };
    links.set(links.size, known);
    return { link, known };
  };
  const fill = ({ link, known }: ReturnType<typeof add>, most: number, size: number) => {
    while (link.waiting + size <= most && links.mayWait(known, size)) link.waiting += size;
    return link.waiting;
  };
  const honest = add('honest');
  expect(fill(honest, 8 * MEBIBYTE, MAX_BODY_BYTES)).toBe(8 * MEBIBYTE);
  const connections = LIARS.flatMap((liar) => [1, 2, 3].map(() => add(liar)));
  for (const size of [MAX_BODY_BYTES, 3_400])
    for (const each of connections) {
      fill(each, 8 * MEBIBYTE, size);
      honest.link.waiting = 0;
      expect(fill(honest, 8 * MEBIBYTE, MAX_FRAME_BYTES)).toBeGreaterThanOrEqual(MAX_FRAME_BYTES);
    }
  honest.link.waiting = 0;
  expect(fill(honest, 60_000, 3_400)).toBeGreaterThan(50_000);
  const sum = connections.reduce((all, { link }) => all + link.waiting, 0) / MEBIBYTE;
  expect(sum).toBeGreaterThan(128);
  expect(sum).toBeLessThan(300);
});

test('false relay records that most members send without end cost a bounded number of checks; another one’s is looked at', () => {
  const { verify } = crypto;
  let checks = 0;
  // They are false: what counts is how many there are.
  crypto.verify = () => {
    checks++;
    return false;
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    crypto.verify = verify;
    syncBuiltinESMExports();
  });
  const clock = { now: 0 };
  const [own, chainId] = [new Uint8Array(48), new Uint8Array(48)];
  const relaying = new Relaying({
    chainId,
    log: silentLog,
    steady: () => clock.now,
    now: () => 0,
    links: () => [],
    link: (peer) => ({ peer, key: new TextEncoder().encode(String(peer)), isMember: true }),
    send: () => undefined,
    connected: () => undefined,
  });
  onTestFinished(() => relaying.close());
  const validator = new Uint8Array(48).fill(1);
  relaying.know({
    own: { id: own, routes: [] },
    validators: [{ id: validator, publicKey: validator, routes: [], overlayKey: new Uint8Array(32) }],
  });
  const record = { chainId, validator, sequence: 1n, expiry: 1n, relays: [own] };
  const { bytes } = signRecord(record, () => new Uint8Array(64));
  const message = encodeCircuitMessage({ type: 'record', bytes });
  const flood = () => {
    for (const liar of LIARS) for (let i = 0; i < 256; i++) relaying.take(liar, message);
  };
  flood();
  const before = checks;
  expect(before).toBeGreaterThan(0);
  clock.now = 1_000;
  flood();
  expect(checks - before).toBeLessThan(600);
  const heard = checks;
  relaying.take('honest', message);
  expect(checks - heard).toBe(1);
});

test('false messages of the roll call, and calls of processes that there are not, that most members send on all their connections cost a bounded number of signatures; another one is heard', async () => {
  const { sign, verify } = crypto;
  const counts = { made: 0, checked: 0 };
  const isTrue = Uint8Array.of(1);
  crypto.verify = (...[, , , signature]: unknown[]) => {
    counts.checked++;
    return (signature as Bytes)[0] === isTrue[0];
  };
  crypto.sign = ((...[, , , done]: [unknown, unknown, unknown, (error: null, signature: Buffer) => void]) => {
    counts.made++;
    done(null, Buffer.alloc(3_309));
  }) as never;
  syncBuiltinESMExports();
  onTestFinished(() => {
    Object.assign(crypto, { sign, verify });
    syncBuiltinESMExports();
  });
  const ways = [0, 1, 2, 3];
  const connections = ['honest', ...ways.flatMap((way) => LIARS.map((liar) => `${liar} on ${way}`))];
  const own = new Uint8Array(16);
  let [found, told] = [0, 0];
  let call: Bytes = own;
  const state = createState(7, committeeOf(4), 0);
  listenFirst(state, -1);
  const roll = new RollCall({
    transport: {
      process: own,
      proven: () => undefined,
      peers: () => connections,
      known: () => connections,
      isKnown: () => true,
      accountOf: (peer) => String(peer).split(' on ')[0] as string,
      send: (to, bytes) => {
        const message = decodeRollCall(bytes);
        if (message?.type === 'call') call = message.call;
        if (to === 'honest' && message?.type === 'here') told++;
      },
    },
    chainId: new Uint8Array(48),
    signer: developmentKey(validatorName(0)),
    state,
    log: silentLog,
    isAt: () => undefined,
    found: () => void found++,
  });
  const by = new Uint8Array(16).fill(9);
  const here = (peer: string, signature: Bytes) =>
    roll.take(peer, { type: 'here', process: own, call, by, signature }, own);
  const ask = (peer: string, of: Bytes) =>
    roll.take(peer, { type: 'call', process: by, call: of, caller: 'listens' }, own);
  for (let tick = 0; tick < 32; tick++) {
    roll.tick();
    if (tick === 16) counts.checked = 0;
    for (const peer of connections.slice(1)) here(peer, new Uint8Array(1));
  }
  // Four a tick of all, and two of each.
  expect(counts.checked).toBeGreaterThan(0);
  expect(counts.checked).toBeLessThan(300);
  here('honest', isTrue);
  expect(found).toBe(1);
  state.listening = undefined;
  for (let tick = 0; tick < 32; tick++) {
    roll.tick();
    if (tick === 16) counts.made = 0;
    for (const peer of connections.slice(1)) ask(peer, (ids(1)[0] as Bytes).slice(0, CALL_BYTES));
  }
  expect(counts.made).toBeGreaterThan(0);
  expect(counts.made).toBeLessThan(300);
  ask('honest', (ids(1)[0] as Bytes).slice(0, CALL_BYTES));
  await until(() => told === 1);
});
