/**
 * Four validators with real ledgers over real sockets, and strangers at all of them that send whatever hurts: garbage, frames of the largest size, votes of far heights and of nobody, invalid signatures, questions and
 * offers without end; some never read, some come again and again. The chain goes on, every member stays joined to every other, all have the same cuts, and when the strangers are gone so is what they sent.
 */
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test } from 'vitest';
import { encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { FrameReader, MAX_FRAME_BYTES } from '../../node/consensus/link/frames.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessageAside } from '../../node/ml-dsa.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { type Driven, DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { haveAt } from '../consensus/have-at.ts';
import { RawEnd } from '../consensus/raw-end.ts';
import { silentLog } from '../node/bed.ts';
import { randomOf } from '../random.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
/** What is held after a collection, in MiB. */
const held = (): number => {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 2 ** 20;
};
/** Half of what is held where each of a dozen strangers leaves one frame of the largest size behind. */
const KEPT_MIB = 6;

const random = randomOf(4);
const sockets = new Set<Socket>();
const transports: Overlay[] = [];
let network: DrivenNetwork | undefined;
let isOver = false;
afterEach(async () => {
  isOver = true;
  for (const socket of sockets) socket.destroy();
  await network?.close();
});

async function startMembers(): Promise<{ members: Driven[]; ports: number[] }> {
  network = new DrivenNetwork();
  const ports = await freePorts(MEMBERS);
  const at = (port: number) => ({ host: '127.0.0.1', port });
  const members: Driven[] = [];
  for (const [member, port] of ports.entries()) {
    const { publicKey, privateKey } = developmentKey(validatorName(member));
    const transport = new Overlay(
      { chainId: network.chainId, binds: [at(port)], neighbours: ports.slice(member + 1).map(at) },
      {
        log: silentLog,
        steady: steadyMillis,
        signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
        members: () => Array.from({ length: MEMBERS }, (_, i) => developmentKey(validatorName(i))),
      },
    );
    await transport.listen();
    transports.push(transport);
    members.push(await network.start(`${member}`, member, { transport }));
  }
  return { members, ports };
}

/** `frame`: as it is sent on the connection. */
type Stroke = (height: number, frame: (bytes: Bytes) => Bytes) => Bytes;

const vote = (height: number, member: number, round = 0): Bytes =>
  encodeMessage({
    type: 'vote',
    vote: {
      kind: random(2) === 0 ? PREVOTE : PRECOMMIT,
      height,
      round,
      member,
      cut: random(2) === 0 ? NIL : randomBytes(48).toString('latin1'),
      signature: new Uint8Array(randomBytes(3_309)),
    },
  });

const ids = () => Array.from({ length: 64 }, () => new Uint8Array(randomBytes(48)));

const STROKES: Readonly<Record<string, Stroke>> = {
  garbage: (_, frame) => frame(new Uint8Array(randomBytes(1 + random(2_000)))),
  // As large as a frame may be: a proposal, a proof, a final cut, a block of nothing but junk.
  junk: (_, frame) =>
    frame(concat(Uint8Array.of(1 + random(8)), new Uint8Array(MAX_FRAME_BYTES - 1).fill(random(256)))),
  // 64 MiB are announced: the length alone ends it.
  huge: () => concat(Uint8Array.of(0, 0, 0, 4), new Uint8Array(100_000)),
  'half a frame': (_, frame) => frame(new Uint8Array(50_000)).subarray(0, 20_000),
  'far heights': (height, frame) => concat(...[2, 50, 1e9].map((far) => frame(vote(height + far, random(4))))),
  'past heights': (height, frame) =>
    concat(...[1, 5, 20].map((past) => frame(vote(Math.max(1, height - past), random(4))))),
  nobody: (height, frame) => frame(vote(height, 4 + random(250))),
  'invalid signatures': (height, frame) => frame(vote(height, random(4), random(3))),
  'far rounds': (height, frame) => frame(vote(height, random(4), 1_000_000 + random(1_000))),
  questions: (_, frame) => concat(...Array.from({ length: 20 }, (_, i) => frame(haveAt(1 + i)))),
  offers: (_, frame) => frame(encodeBlockMessage({ type: 'offer', ids: ids() })),
  wants: (_, frame) => frame(encodeBlockMessage({ type: 'want', ids: ids() })),
  types: (_, frame) => concat(...[0, 9, 200, 255].map((type) => frame(Uint8Array.of(type, MESSAGE_TYPES.vote, 0)))),
};

/** Comes, hits until it is thrown out, and comes again. */
function stranger(port: number, stroke: Stroke, height: () => number, chainId: Bytes): void {
  if (isOver) return;
  const socket = connect({ host: '127.0.0.1', port });
  sockets.add(socket);
  socket.on('error', () => undefined);
  const [end, reader, reads] = [new RawEnd(chainId), new FrameReader(), random(2) === 0];
  socket.on('connect', () => void socket.write(end.greeting));
  socket.on('data', (piece) => {
    if (end.isMet) return;
    for (const frame of reader.push(piece)) {
      socket.write(end.open(frame));
      if (!reads) socket.pause();
      return;
    }
  });
  const hits = setInterval(() => {
    if (end.isMet && socket.writableLength < 4_000_000) socket.write(stroke(height(), (bytes) => end.frame(bytes)));
  }, 50);
  socket.on('close', () => {
    sockets.delete(socket);
    clearInterval(hits);
    setTimeout(() => stranger(port, stroke, height, chainId), 20);
  });
}

test('the chain goes on under every stroke at once, and members stay joined', async () => {
  const { members, ports } = await startMembers();
  const [first] = members as [Driven];
  const height = () => first.node.chain.head().height;
  const joined = () => transports.map((transport) => transport.known().length);
  while (height() < 2 || joined().some((count) => count < MEMBERS - 1)) await sleep(20);
  const before = held();
  for (const [i, stroke] of Object.values(STROKES).entries())
    stranger(ports[i % MEMBERS] as number, stroke, height, first.node.chain.chainId);
  const from = height();
  while (members.some(({ node }) => node.chain.head().height < from + 6)) await sleep(20);
  await expect.poll(joined).toEqual(Array.from({ length: MEMBERS }, () => MEMBERS - 1));
  const lowest = Math.min(...members.map(({ node }) => node.chain.head().height));
  for (let at = 1; at <= lowest; at++)
    expect(new Set(members.map(({ node }) => toHex(node.chain.cut(at)?.cutId as Bytes))).size).toBe(1);
  // Nobody was taken for one that voted twice, and no key stopped.
  for (const { driver } of members) expect(driver.state.stopped ?? false).toBe(false);
  isOver = true;
  for (const socket of sockets) socket.destroy();
  while (transports.some((transport) => transport.peers().length > MEMBERS - 1)) await sleep(20);
  await expect.poll(() => held() - before, { interval: 500 }).toBeLessThan(KEPT_MIB);
});
