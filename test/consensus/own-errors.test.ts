/** An error of the reader's own while it takes a message, for example of its store, is no fact about the message: its sender keeps its place. */
import { expect, onTestFinished, test } from 'vitest';
import { encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';
import { DrivenNetwork } from './driven.ts';

const OFFER = encodeBlockMessage({ type: 'offer', ids: [new Uint8Array(48)] });
const NO_MESSAGE = Uint8Array.of(255);
/** What the store throws: an error of the disk, and one of a record whose bytes have changed. */
const THROWN = [new Error('LEVEL_IO_ERROR'), new ProtocolError('truncated', 'a record is too short')];

/** The same, but for some of it. */
const altered = <T extends object>(of: T, parts: Partial<T>): T =>
  new Proxy(of, {
    get: (target, key) => {
      const value: unknown = key in parts ? parts[key as keyof T] : Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

/** The node, whose store throws at every look for a block. */
function broken(node: ConsensusNode): ConsensusNode {
  let times = 0;
  const block = (): never => {
    throw THROWN[times++ % THROWN.length] as Error;
  };
  return altered(node, { chain: altered(node.chain, { block }) });
}

test('nobody is dropped for errors of this node’s store: they are counted, and told once in a while', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const log: Logger = { ...silentLog, error: note, warn: note, child: () => log };
  let [now, lost] = [steadyMillis(), 0];
  const parts = { log, steady: () => now, wall: () => now, onLost: () => void lost++ };
  await driven.start('node', undefined, parts, [], broken);
  for (const name of ['neighbour', 'liar'])
    network.transport(name).start({ joined: () => undefined, left: () => undefined, message: () => undefined });
  for (let i = 0; i < 100; i++) network.deliver('neighbour', 'node', OFFER);
  await until(() => lost + network.dropped.length >= 100);
  expect([lost, network.dropped]).toEqual([100, []]);
  expect(lines).toHaveLength(1);
  now += 10_000;
  network.deliver('neighbour', 'node', OFFER);
  await until(() => lost === 101);
  expect(lines).toHaveLength(2);
  expect(network.dropped).toEqual([]);
  // The control: what no honest node sends costs its sender the place.
  network.deliver('liar', 'node', NO_MESSAGE);
  await until(() => network.dropped.length > 0);
  expect(network.dropped.map(({ peer }) => peer)).toEqual(['liar']);
});
