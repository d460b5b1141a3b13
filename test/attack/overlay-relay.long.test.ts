/**
 * A man in the middle between two validators (consensus rule 22), over real sockets: A dials him, he dials B, and he wants to sit at B in the name of A, or at A in the name of B. He can hand bytes on, like every wire. He can
 * say nothing of his own, neither with what he heard nor with what he gets somebody to sign for him.
 */
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { Channel, type Ends, identityMessage, newConnectionKey } from '../../node/consensus/link/channel.ts';
import {
  decodeIdentity,
  encodeHello,
  encodeIdentity,
  FrameReader,
  frameBytes,
  type Identity,
  MAX_FRAME_BYTES,
  readHello,
  TAG_BYTES,
} from '../../node/consensus/link/frames.ts';
import { LinkEcho } from '../../node/consensus/link/link-echo.ts';
import { LINK_LIMITS, type LinkLimits } from '../../node/consensus/link/overlay-link.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import type { OverlayAddress } from '../../node/consensus/reach/overlay-listeners.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessage, signMessageAside } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { RawEnd } from '../consensus/raw-end.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const CHAIN = new Uint8Array(48).fill(7);
const members = [0, 1].map((member) => developmentKey(validatorName(member)));
const [keyA, keyB] = members as [(typeof members)[number], (typeof members)[number]];

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function open(key: typeof keyA, neighbours: readonly ListenAddress[] = [], limits = LINK_LIMITS as LinkLimits) {
  const [heard, joined, left]: [Bytes[], Peer[], Peer[]] = [[], [], []];
  const { publicKey, privateKey } = key;
  const transport = new Overlay(
    { chainId: CHAIN, binds: [{ host: '127.0.0.1', port: 0 }], neighbours, limits },
    {
      log: silentLog,
      steady: steadyMillis,
      members: () => members,
      signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
    },
  );
  const [address] = (await transport.listen()) as [OverlayAddress];
  transport.start({
    joined: (peer) => void joined.push(peer),
    left: (peer) => void left.push(peer),
    message: (_, bytes) => void heard.push(bytes),
  });
  closing.push(() => transport.close());
  return { transport, address, heard, joined, left };
}

/** Hands bytes on between whoever dials him and the node at `port`; and once one of them ends, ends the other, unless he `keeps` it. */
async function middleman(port: number, keeps = false) {
  const pairs: { near: Socket; far: Socket }[] = [];
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => undefined);
      if (!keeps) from.on('close', () => to.destroy());
      from.on('data', (piece) => to.write(piece));
    }
    pairs.push({ near, far });
    for (const socket of [near, far]) closing.push(() => void socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  closing.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { pairs, address: { host: '127.0.0.1', port: (server.address() as { port: number }).port } };
}

const INJECTED = Uint8Array.of(20, 0, 0, 0, ...new Uint8Array(20).fill(99));

test('a man in the middle hands the whole handshake on: what he then says himself is not heard in the name of either', async () => {
  const b = await open(keyB);
  const middle = await middleman(b.address.port);
  const a = await open(keyA, [middle.address]);
  await until(() => a.joined.length === 1 && b.transport.known().length === 1);
  // A wire, so far.
  a.transport.send(a.joined[0] as Peer, Uint8Array.of(1));
  b.transport.send(b.joined[0] as Peer, Uint8Array.of(2));
  await until(() => a.heard.length === 1 && b.heard.length === 1);
  middle.pairs[0]?.far.write(INJECTED);
  await until(() => b.left.length === 1 || b.heard.length > 1);
  expect(b.heard).toEqual([Uint8Array.of(1)]);
  await until(() => middle.pairs.length === 2 && a.joined.length === 2);
  middle.pairs[1]?.near.write(INJECTED);
  await until(() => a.left.length === 2 || a.heard.length > 1);
  expect(a.heard).toEqual([Uint8Array.of(2)]);
});

test('a process that has ended, kept alive by the middleman with a byte now and then of a frame that never ends: the other end finds out', async () => {
  const b = await open(keyB, [], { ...LINK_LIMITS, echoMillis: 100, silentMillis: 2_000 });
  const middle = await middleman(b.address.port, true);
  const a = await open(keyA, [middle.address]);
  await until(() => a.joined.length === 1 && b.transport.known().length === 1);
  const [ghost] = middle.pairs;
  await a.transport.close();
  const { far } = ghost as { far: Socket };
  far.write(Uint8Array.of(0, 0, 1, 0));
  const drip = setInterval(() => far.write(Uint8Array.of(1)), 50);
  closing.push(() => clearInterval(drip));
  await until(() => b.left.length > 0);
  expect(b.transport.known()).toEqual([]);
});

test('a neighbour that says nothing and runs keeps its connection', async () => {
  let now = 0;
  const echo = new LinkEcho(now);
  const other = new LinkEcho(now);
  const stolen = echo.question(now);
  for (; now <= 100_000; now += 10_000) echo.take(other.take(echo.question(now)) as Bytes);
  expect(echo.silentFor(now)).toBe(10_000);
  // An answer to a question of before, or to none, says nothing.
  for (const late of [other.take(stolen) as Bytes, Uint8Array.of(13, 1, 2, 3, 4, 5, 6, 7, 8)]) echo.take(late);
  expect(echo.silentFor(now + 1)).toBe(10_001);
  expect(() => echo.take(Uint8Array.of(13, 1))).toThrow(ProtocolError);
});

/** A listener of the middleman's own. `answers` has each frame that comes, the first one the dialler's hello. */
async function listener(answers: (frame: Bytes, number: number, socket: Socket) => void) {
  const closed: Socket[] = [];
  const server = createServer((socket) => {
    const reader = new FrameReader();
    reader.limit = MAX_FRAME_BYTES;
    let number = 0;
    socket.on('error', () => undefined).on('close', () => closed.push(socket));
    socket.on('data', (piece) => {
      for (const frame of reader.push(piece)) answers(frame, number++, socket);
    });
    closing.push(() => void socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  closing.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return { closed, address: { host: '127.0.0.1', port: (server.address() as { port: number }).port } };
}

/** The end of the dialled, moved by hand: what A signed for it comes out. */
const identityFrom = (frame: Bytes): Identity => decodeIdentity(frame.slice(0, -TAG_BYTES)) as Identity;

test('a challenge handed on in the middleman’s own hello: what A signs for him proves nothing to B', async () => {
  const b = await open(keyB);
  const end = new RawEnd(CHAIN, keyA.publicKey);
  const far = connect({ host: '127.0.0.1', port: b.address.port });
  closing.push(() => void far.destroy());
  const ended = new Promise((resolve) => far.on('error', () => undefined).once('close', resolve));
  const reader = new FrameReader();
  far.write(end.greeting);
  const theirs = new Promise<Bytes>((resolve) =>
    far.on('data', (piece) => {
      for (const frame of end.isMet ? [] : reader.push(piece)) resolve(frame);
    }),
  );
  const helloOfB = readHello(await theirs, end.hello);
  // To A he is B in everything but the key of the channel, which must be his own for him to be heard there.
  const own = new RawEnd(CHAIN, keyB.publicKey);
  let signed: (identity: Identity) => void = () => undefined;
  const identity = new Promise<Identity>((resolve) => {
    signed = resolve;
  });
  const { address } = await listener((frame, number, socket) => {
    if (number === 0) socket.write(frameBytes(encodeHello({ ...helloOfB, channelKey: own.hello.channelKey })));
    else signed(identityFrom(frame));
  });
  await open(keyA, [address]);
  far.write(end.open(await theirs, await identity));
  await ended;
  expect(b.joined).toEqual([]);
  expect(b.transport.known()).toEqual([]);
});

test('one’s own identity sent back, in one’s own hello or in another, is no identity of the other end', async () => {
  const keys = newConnectionKey();
  let reflected = 0;
  for (const channelKey of ['own', 'other'] as const) {
    let ends: Ends | undefined;
    const { address, closed } = await listener((frame, number, socket) => {
      if (number === 0) {
        const dialler = readHello(frame, { ...new RawEnd(CHAIN).hello });
        const process = Uint8Array.from(dialler.process, (byte) => byte ^ 1);
        const dialled = { ...dialler, process, ...(channelKey === 'other' && { channelKey: keys.channelKey }) };
        ends = { dialler, dialled };
        socket.write(frameBytes(encodeHello(dialled)));
        return;
      }
      // The signature of the dialler, in a frame that the dialled may send.
      reflected++;
      const identity = encodeIdentity(identityFrom(frame));
      socket.write(frameBytes(new Channel('dialled', keys.secret, ends as Ends).seal(identity)));
    });
    const a = await open(keyA, [address]);
    await until(() => closed.length > 0);
    expect([a.joined, a.transport.company()]).toEqual([[], []]);
  }
  // With its own channel key in it the hello was refused at once; the other time the signature was looked at.
  expect(reflected).toBe(1);
});

test('a listener that claims a key in its hello and proves another, or none, is not taken for it', async () => {
  const signed = (ends: Ends, { publicKey, privateKey }: typeof keyB): Identity => ({
    publicKey,
    signature: signMessage(privateKey, identityMessage('dialled', ends)),
  });
  for (const [claims, proves, outcome] of [
    [keyB, keyB, 'member'],
    [keyB, keyA, 'refused'],
    [keyB, undefined, 'neighbour'],
  ] as const) {
    const keys = newConnectionKey();
    let channel: Channel | undefined;
    let ends: Ends | undefined;
    const { address, closed } = await listener((frame, number, socket) => {
      if (number === 0) {
        const end = new RawEnd(CHAIN, claims.publicKey);
        const dialled = { ...end.hello, channelKey: keys.channelKey };
        ends = { dialler: readHello(frame, dialled), dialled };
        channel = new Channel('dialled', keys.secret, ends);
        socket.write(frameBytes(encodeHello(dialled)));
      } else if (number === 1)
        socket.write(frameBytes((channel as Channel).seal(encodeIdentity(proves && signed(ends as Ends, proves)))));
    });
    const a = await open(keyA, [address]);
    await until(() => a.joined.length + closed.length > 0);
    const known = a.transport.company().map(({ key }) => key?.length ?? 0);
    expect(known).toEqual({ member: [keyB.publicKey.length], refused: [], neighbour: [0] }[outcome]);
  }
});
