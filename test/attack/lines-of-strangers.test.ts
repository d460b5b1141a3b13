/** What strangers at the overlay do wrong is no line of the log: they come from ever new addresses, and would fill it. What a known neighbour does wrong is one. */
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { FrameReader } from '../../node/consensus/link/frames.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import type { OverlayAddress } from '../../node/consensus/reach/overlay-listeners.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { DrivenNetwork } from '../consensus/driven.ts';
import { RawEnd } from '../consensus/raw-end.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const CHAIN = new Uint8Array(48).fill(7);
const NO_MESSAGE = Uint8Array.of(255);

/** Lines that an operator sees by default. */
function noted(): { lines: string[]; log: Logger } {
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const log: Logger = { ...silentLog, error: note, warn: note, info: note, child: () => log };
  return { lines, log };
}

test('a malformed message is a line where a known neighbour sent it, not where a stranger did', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  const { lines, log } = noted();
  await driven.start('node', undefined, { log });
  network.strangers.add('stranger');
  for (const name of ['stranger', 'neighbour']) {
    network.transport(name).start({ joined: () => undefined, left: () => undefined, message: () => undefined });
    network.deliver(name, 'node', NO_MESSAGE);
    await until(() => network.dropped.some(({ peer }) => peer === name));
    expect(lines).toEqual(name === 'stranger' ? [] : ['a neighbour is dropped']);
  }
});

test('the end of a stranger’s connection is no line, whatever it did', async () => {
  const { lines, log } = noted();
  const transport = new Overlay(
    { chainId: CHAIN, binds: [{ host: '127.0.0.1', port: 0 }], neighbours: [] },
    { log, steady: steadyMillis },
  );
  onTestFinished(() => transport.close());
  const [{ port }] = (await transport.listen()) as [OverlayAddress];
  let left = 0;
  transport.start({
    joined: (peer) => transport.drop(peer, 'as who sent something false'),
    left: () => void left++,
    message: () => undefined,
  });
  const [socket, end, reader] = [connect({ host: '127.0.0.1', port }), new RawEnd(CHAIN), new FrameReader()];
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  socket.write(end.greeting);
  socket.on('data', (piece) => {
    for (const frame of reader.push(piece)) if (!end.isMet) socket.write(end.open(frame));
  });
  await until(() => left === 1);
  expect(lines).toEqual([]);
});
