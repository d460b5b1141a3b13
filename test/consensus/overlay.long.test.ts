/** The network of separate validators over real sockets: frames of any splitting, the hello, and bounds that no neighbour can exceed. */
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import {
  circuitOpening,
  encodeHello,
  FrameReader,
  frameBytes,
  HELLO_BYTES,
  MAX_FRAME_BYTES,
  OVERLAY_VERSION,
  readHello,
  TAG_BYTES,
  TOKEN_BYTES,
} from '../../node/consensus/link/frames.ts';
import { LINK_LIMITS, type LinkLimits } from '../../node/consensus/link/overlay-link.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { silentLog } from '../node/bed.ts';
import { randomOf } from '../random.ts';
import { until } from '../until.ts';
import { RawEnd } from './raw-end.ts';

const CHAIN = new Uint8Array(48).fill(7);
const { hello } = new RawEnd(CHAIN);

class End {
  readonly heard: Bytes[] = [];
  readonly joined: Peer[] = [];
  readonly left: Peer[] = [];
  readonly transport: Overlay;
  address: ListenAddress = { host: '127.0.0.1', port: 0 };

  constructor(neighbours: readonly ListenAddress[], limits: LinkLimits = LINK_LIMITS, chainId = CHAIN, port = 0) {
    const binds = [{ host: '127.0.0.1', port }];
    this.transport = new Overlay({ chainId, binds, neighbours, limits }, { log: silentLog, steady: steadyMillis });
  }

  async open(): Promise<this> {
    this.address = (await this.transport.listen())[0] as ListenAddress;
    this.transport.start({
      joined: (peer) => this.joined.push(peer),
      left: (peer) => this.left.push(peer),
      message: (_, bytes) => this.heard.push(bytes),
    });
    opened.push(this);
    return this;
  }
}

const opened: End[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(opened.splice(0).map(({ transport }) => transport.close()));
});

/** A program that speaks to the listener by itself. */
function stranger({ port }: ListenAddress): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

/** The same without a key, once it has been let in. */
async function guest(address: ListenAddress): Promise<{ socket: Socket; end: RawEnd }> {
  const [socket, end, reader] = [stranger(address), new RawEnd(CHAIN), new FrameReader()];
  socket.write(end.greeting);
  await new Promise<void>((resolve) => {
    socket.on('data', (piece) => {
      if (end.isMet) return;
      for (const frame of reader.push(piece)) {
        socket.write(end.open(frame));
        resolve();
        return;
      }
    });
  });
  return { socket, end };
}

test('frames come out as they went in, however they are split; a frame that is too long is refused by its length alone', () => {
  const random = randomOf(5);
  const frames = Array.from({ length: 60 }, (_, i) => new Uint8Array(random(i % 10 === 0 ? 50_000 : 60)).fill(i));
  const stream = concat(...frames.map(frameBytes));
  for (const largest of [1, 3, 100, 70_000]) {
    const reader = new FrameReader();
    reader.limit = MAX_FRAME_BYTES;
    const out: Bytes[] = [];
    for (let at = 0; at < stream.length; ) {
      const size = 1 + random(largest);
      out.push(...reader.push(stream.subarray(at, at + size)));
      at += size;
      if (largest === 1 && at > 3_000) break;
    }
    expect(out).toEqual(largest === 1 ? frames.slice(0, out.length) : frames);
  }
  expect(() => [...new FrameReader().push(Uint8Array.of(HELLO_BYTES + 1, 0, 0, 0))]).toThrow(ProtocolError);
  const open = new FrameReader();
  open.limit = MAX_FRAME_BYTES;
  expect(() => [...open.push(Uint8Array.of(0, 0, 0, 4))]).toThrow(ProtocolError);
});

test('a frame that comes byte by byte is put together, however many pieces it has', () => {
  const frame = new Uint8Array(300_000).fill(7);
  const reader = new FrameReader();
  reader.limit = MAX_FRAME_BYTES;
  const out: Bytes[] = [];
  const stream = concat(frameBytes(frame), frameBytes(frame).subarray(0, 3));
  for (let at = 0; at < stream.length; at++) out.push(...reader.push(stream.subarray(at, at + 1)));
  expect(out).toEqual([frame]);
  expect([...reader.push(frameBytes(frame).subarray(3))]).toEqual([frame]);
});

test('the hello: another chain, version or program, and this process itself, are refused', () => {
  const other = { ...hello, process: new Uint8Array(16).fill(2) };
  expect(() => readHello(encodeHello(other), hello)).not.toThrow();
  expect(() => readHello(encodeHello(hello), hello)).toThrow('this node itself');
  expect(() => readHello(encodeHello({ ...other, chainId: new Uint8Array(48) }), hello)).toThrow('another chain');
  const later = encodeHello(other);
  later[4] = OVERLAY_VERSION + 1;
  expect(() => readHello(later, hello)).toThrow(`version ${OVERLAY_VERSION + 1}`);
  // What an older version says.
  expect(() => readHello(Uint8Array.from([...later.subarray(0, 4), 1, 0, ...CHAIN]), hello)).toThrow('version 1');
  for (const bytes of [new Uint8Array(0), encodeHello(other).subarray(1), concat(encodeHello(other), CHAIN)])
    expect(() => readHello(bytes, hello)).toThrow(ProtocolError);
});

test('two nodes hear each other, part when one goes, and meet again when it is back', async () => {
  const a = await new End([]).open();
  const b = await new End([a.address]).open();
  await until(() => a.joined.length === 1 && b.joined.length === 1);
  const large = new Uint8Array(MAX_FRAME_BYTES).fill(9);
  b.transport.send(b.joined[0] as Peer, Uint8Array.of(1, 2, 3));
  b.transport.send(b.joined[0] as Peer, large);
  a.transport.send(a.joined[0] as Peer, Uint8Array.of(4));
  await until(() => a.heard.length === 2 && b.heard.length === 1);
  expect(a.heard).toEqual([Uint8Array.of(1, 2, 3), large]);
  await a.transport.close();
  await until(() => b.left.length === 1);
  expect(b.transport.peers()).toEqual([]);
  const again = await new End([], LINK_LIMITS, CHAIN, a.address.port).open();
  await until(() => again.joined.length === 1 && b.joined.length === 2);
  // One that broke a rule leaves, and as a neighbour that was named it is tried again.
  b.transport.drop(b.joined[1] as Peer, 'invalid signature');
  await until(() => b.left.length === 2 && b.joined.length === 3);
});

test('a node of another chain and a node that dials itself are no neighbours', async () => {
  const a = await new End([]).open();
  const other = await new End([a.address], LINK_LIMITS, new Uint8Array(48)).open();
  const b = await new End([a.address]).open();
  await until(() => b.joined.length === 1);
  expect(other.joined).toEqual([]);
  expect(a.transport.peers().length).toBe(1);
});

test('nothing is made for a connection before its first frame is right, and nothing said; another version or chain is told why', async () => {
  const a = await new End([]).open();
  const first = async (bytes: Bytes) => {
    const socket = stranger(a.address);
    const heard: Buffer[] = [];
    socket.on('data', (piece) => void heard.push(piece));
    socket.write(bytes);
    await new Promise((resolve) => socket.once('close', resolve));
    return Buffer.concat(heard);
  };
  const token = circuitOpening(new Uint8Array(TOKEN_BYTES).fill(1));
  const broken = encodeHello(hello);
  broken[0] = 1;
  for (const bytes of [
    token,
    frameBytes(new Uint8Array(0)),
    frameBytes(broken),
    frameBytes(encodeHello(hello).slice(1)),
  ])
    expect((await first(bytes)).length).toBe(0);
  const later = encodeHello(hello);
  later[4] = OVERLAY_VERSION + 1;
  for (const other of [later, encodeHello({ ...hello, chainId: new Uint8Array(48) })]) {
    const told = readHello(new Uint8Array((await first(frameBytes(other))).subarray(4)), hello);
    // No key was made for it.
    expect([told.chainId, told.channelKey]).toEqual([CHAIN, new Uint8Array(32)]);
  }
  expect(a.joined).toEqual([]);
});

test('whoever says no hello, or a long one, is let go; so is a frame that is too long', async () => {
  const a = await new End([], { ...LINK_LIMITS, helloMillis: 50 }).open();
  const closed: string[] = [];
  const watch = (name: string, bytes: Bytes) => {
    const socket = stranger(a.address);
    socket.on('close', () => closed.push(name)).resume();
    socket.on('connect', () => socket.write(bytes));
  };
  watch('silent', new Uint8Array(0));
  watch('long hello', Uint8Array.of(255, 255, 0, 0));
  watch('junk', new Uint8Array(5_000).fill(65));
  watch('no identity', frameBytes(encodeHello(hello)));
  watch('half an identity', concat(frameBytes(encodeHello(hello)), frameBytes(new Uint8Array(5_000))));
  watch('no tag', concat(frameBytes(encodeHello(hello)), frameBytes(new Uint8Array(TAG_BYTES))));
  // A busy machine takes longer than those 50 ms for a whole handshake.
  const b = await new End([]).open();
  const { socket } = await guest(b.address);
  socket.on('close', () => closed.push('long frame')).write(Uint8Array.of(255, 255, 255, 255));
  await until(() => closed.length === 7);
  for (const { heard, transport } of [a, b]) expect([heard, transport.peers()]).toEqual([[], []]);
});

test('a flood is read no faster than the neighbour’s allowance', async () => {
  const a = await new End([], { ...LINK_LIMITS, messages: { perSecond: 1, burst: 100 } }).open();
  const { socket, end } = await guest(a.address);
  // Making the flood takes this process long: the node must have read the handshake before.
  await until(() => a.joined.length === 1);
  for (let i = 0; i < 200; i++)
    socket.write(concat(...Array.from({ length: 64 }, () => end.frame(new Uint8Array(1_000).fill(1)))));
  await until(() => a.heard.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  // 12,800 were sent. What is read besides the allowance is what one reading of the socket brings.
  expect(a.heard.length).toBeLessThan(1_000);
});

test('a neighbour that does not read costs a bounded queue, and is dropped', async () => {
  const limits = { ...LINK_LIMITS, queuedBytes: 1_000_000, stalledMillis: 100, echoMillis: 50 };
  const a = await new End([], limits).open();
  const { socket } = await guest(a.address);
  socket.pause();
  await until(() => a.joined.length === 1);
  const before = process.memoryUsage().external;
  const message = new Uint8Array(100_000);
  for (let i = 0; i < 2_000; i++) a.transport.send(a.joined[0] as Peer, message);
  expect(process.memoryUsage().external - before).toBeLessThan(50_000_000);
  await until(() => a.left.length === 1);
});
