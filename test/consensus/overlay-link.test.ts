/** What one connection of the overlay may cost, and how long it waits for that. */
import { connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Allowance, ReadingAllowance } from '../../node/consensus/link/allowance.ts';
import type { Role } from '../../node/consensus/link/channel.ts';
import { CHALLENGE_BYTES, MAX_FRAME_BYTES, NO_VALIDATOR } from '../../node/consensus/link/frames.ts';
import { FRAMES_AT_ONCE, LEAST_READ_BYTES, LINK_LIMITS, OverlayLink } from '../../node/consensus/link/overlay-link.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { until } from '../until.ts';

/** Both ends of a connection, once each is known to the other. */
async function ends(mayWait?: (bytes: number) => boolean) {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const dialling = connect((server.address() as { port: number }).port, '127.0.0.1');
  const heard: number[] = [];
  let ready = 0;
  const end = (role: Role, socket: Socket, process: number) =>
    new OverlayLink(
      socket,
      {
        own: {
          chainId: new Uint8Array(48),
          process: new Uint8Array(16).fill(process),
          challenge: new Uint8Array(CHALLENGE_BYTES).fill(process),
          validator: NO_VALIDATOR,
        },
        role,
        limits: LINK_LIMITS,
        identify: async () => undefined,
        mayWait,
      },
      { ready: () => void ready++, message: (bytes) => void heard.push(bytes[0] as number), ended: () => undefined },
      steadyMillis,
    );
  const socket = await accepted;
  const links = [end('dialler', dialling, 1), end('dialled', socket, 2)] as const;
  onTestFinished(() => {
    for (const link of links) link.end();
    server.close();
  });
  await until(() => ready === 2);
  return { dialler: links[0], dialled: links[1], heard, dialling, accepted: socket };
}

test('one that has proven itself is read at once, however long it had to wait as a stranger', async () => {
  const { dialler, dialled, heard } = await ends();
  const minutes = { perSecond: 1 / 1_000, burst: 0 };
  dialled.restrict({
    reading: [new ReadingAllowance(minutes, minutes, steadyMillis())],
    queuedBytes: 1,
    maySend: () => true,
  });
  dialler.send(Uint8Array.of(101));
  await until(() => heard.length === 1);
  dialled.release();
  dialler.send(Uint8Array.of(102));
  await until(() => heard.length === 2);
  expect(heard).toEqual([101, 102]);
});

test('of frames that come at once no more are looked at than the allowance has; the others wait, and none is lost', async () => {
  const { dialler, dialled, heard, dialling, accepted } = await ends();
  const [plenty, few] = [
    { perSecond: 1e9, burst: 1e9 },
    { perSecond: 1 / 3_600, burst: 100 },
  ];
  const reading = [new ReadingAllowance(plenty, few, steadyMillis())];
  dialled.restrict({ reading, queuedBytes: 1, maySend: () => true });
  dialling.cork();
  for (let i = 0; i < 1_000; i++) dialler.send(Uint8Array.of(100 + (i % 100)));
  dialling.uncork();
  await until(() => accepted.isPaused());
  expect(heard.length).toBeGreaterThanOrEqual(few.burst);
  expect(heard.length).toBeLessThan(few.burst + 2 * FRAMES_AT_ONCE);
  // One that comes when others have used up what they share waits before its first message.
  const { dialled: second, accepted: its } = await ends();
  second.restrict({ reading, queuedBytes: 1, maySend: () => true });
  expect(its.isPaused()).toBe(true);
  dialled.release();
  await until(() => heard.length === 1_000);
  expect(heard).toEqual(Array.from({ length: 1_000 }, (_, i) => 100 + (i % 100)));
});

test('bytes that come one by one count for what it costs to read them', async () => {
  const { dialled, dialling, accepted } = await ends();
  const [few, plenty] = [
    { perSecond: 0.1, burst: 50 * LEAST_READ_BYTES },
    { perSecond: 1_000, burst: 1_000 },
  ];
  dialled.restrict({
    reading: [new ReadingAllowance(few, plenty, steadyMillis())],
    queuedBytes: 1,
    maySend: () => true,
  });
  // Of a frame that never ends: its length first.
  const began = accepted.bytesRead;
  for (const [i, byte] of [0, 0, 1, ...new Array<number>(60).fill(0)].entries()) {
    dialling.write(Uint8Array.of(byte));
    await until(() => accepted.isPaused() || accepted.bytesRead === began + i + 1);
  }
  expect(accepted.isPaused()).toBe(true);
});

test('a message that no neighbour reads is not sent, and the next one is read all the same', async () => {
  const { dialler, heard } = await ends();
  expect(() => dialler.send(new Uint8Array(MAX_FRAME_BYTES + 1))).toThrow();
  dialler.send(Uint8Array.of(103));
  await until(() => heard.length === 1);
});

test.each(['is ended', 'ends itself'])(
  'what a neighbour does not read is gone with its connection that %s, and does not stay in the kernel',
  async (how) => {
    const { dialled, dialling, accepted } = await ends();
    dialling.pause();
    while (accepted.writableLength === 0) dialled.send(new Uint8Array(MAX_FRAME_BYTES).fill(104));
    const over = new Promise((resolve) => {
      dialling.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
      dialling.once('end', () => resolve('read to its end'));
    });
    if (how === 'is ended') dialled.end('it does not read');
    else dialling.end();
    await until(() => accepted.readableEnded || accepted.destroyed);
    dialling.resume();
    expect(await over).toBe('ECONNRESET');
  },
);

test('what several share makes nobody wait longer than its bound; what one sent itself does', () => {
  const rate = { perSecond: 10, burst: 10 };
  const [own, common] = [new Allowance(rate, 0), new Allowance(rate, 0, 1_000)];
  expect([own.spend(1_010, 0), common.spend(1_010, 0)]).toEqual([100_000, 1_000]);
  expect(common.spend(10, 1_000)).toBe(1_000);
});

test('a message for which there is no room beside what waits for others is not sent, and the next one is', async () => {
  let isRoom = true;
  const { dialler, heard } = await ends(() => isRoom);
  isRoom = false;
  dialler.send(Uint8Array.of(104));
  isRoom = true;
  dialler.send(Uint8Array.of(105));
  await until(() => heard.length > 0);
  expect(heard).toEqual([105]);
});
