/** An error of the reader's own while it takes a message, for example of its store, is no fact about the message: its sender keeps its place. */
import { expect, onTestFinished, test } from 'vitest';
import { encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { CutDesk } from '../../node/consensus/driver/cut-desk.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { UnreadRecordError } from '../../node/ledger/unread-record.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';
import { CUT_MILLIS, DrivenNetwork, mineOn } from './driven.ts';
import { haveAt } from './have-at.ts';

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
  let [now, lost]: [number, number] = [steadyMillis(), 0];
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

/** Another neighbour, and how often it was sent a message of this type. */
function listener({ network }: DrivenNetwork, name: string, type: number): () => number {
  let heard = 0;
  const message = (_: unknown, bytes: Uint8Array) => {
    if (bytes[0] === type) heard++;
  };
  network.transport(name).start({ joined: () => undefined, left: () => undefined, message });
  return () => heard;
}

test('a record that cannot be read ends no node, whoever asks for it', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  let [isBroken, lost, faults] = [false, 0, 0];
  const { node } = await driven.start('node', undefined, { onLost: () => void lost++ }, [], (real) => {
    const cut = (height: number) => {
      if (isBroken) throw new Error(`the record of cut ${height} cannot be read`);
      return real.ledger.cut(height);
    };
    return altered(real, { ledger: altered(real.ledger, { cut }) });
  });
  node.on('fault', () => void faults++);
  isBroken = true;
  const answers = listener(driven, 'stranger', MESSAGE_TYPES.have);
  driven.network.deliver('stranger', 'node', haveAt(0));
  await until(() => lost + faults > 0);
  // It goes on: who is ahead of it is told where it is.
  const before = answers();
  driven.network.deliver('stranger', 'node', haveAt(5));
  await until(() => answers() > before || faults > 0);
  expect([lost, faults]).toEqual([1, 0]);
});

test('an error of this node at a tick costs that tick, and not those after it', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  let [errors, lost] = [3, 0];
  const real = driven.network.transport('node');
  const company = () => {
    if (errors-- > 0) throw new Error('LEVEL_IO_ERROR');
    return real.company();
  };
  await driven.start('node', undefined, { transport: altered(real, { company }), onLost: () => void lost++ });
  const questions = listener(driven, 'neighbour', MESSAGE_TYPES.have);
  // One at the start; it has nobody to make progress with, so each later tick brings another.
  await until(() => questions() >= 3);
  expect(lost).toBe(3);
});

test.each(['settled', 'isHere', 'cut'] as const)(
  'a proposed cut that cannot be judged by an error of this node’s ledger (%s) is judged at a later tick',
  async (part) => {
    const driven = new DrivenNetwork();
    onTestFinished(() => driven.close());
    const { node } = await driven.start('node');
    await mineOn(node, developmentKey('alice').address);
    let errors = 2;
    const failing = (...of: never[]) => {
      if (errors-- > 0) throw new Error('LEVEL_IO_ERROR');
      return (node.ledger[part] as (...of: never[]) => unknown)(...of);
    };
    const verdicts: boolean[] = [];
    let lost = 0;
    const deskOn = (ledger: typeof node.ledger) =>
      new CutDesk({
        ledger,
        cutMillis: CUT_MILLIS,
        verdict: (_, __, valid) => void verdicts.push(valid),
        want: () => undefined,
        blame: () => undefined,
        lost: () => void lost++,
      });
    const proposal = await deskOn(node.ledger).build(1, 0, undefined, () => steadyMillis() + CUT_MILLIS);
    const desk = deskOn(altered(node.ledger, { [part]: failing }));
    desk.check(proposal);
    for (let times = 1; times <= 2; times++) {
      await until(() => lost === times);
      expect(verdicts).toEqual([]);
      desk.tick();
    }
    await until(() => verdicts.length > 0);
    expect(verdicts).toEqual([true]);
  },
);

test('a store that cannot be read for a while, before a cut of peers is taken or once it is final, stops no node: the next height waits for it', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  let [errors, faults] = [0, 0];
  const { node, driver } = await driven.start('node', undefined, {}, [], (real) => {
    const cut = (height: number) => {
      if (errors-- > 0) throw new UnreadRecordError('LEVEL_IO_ERROR');
      return real.ledger.cut(height);
    };
    return altered(real, { ledger: altered(real.ledger, { cut }) });
  });
  node.on('fault', () => void faults++);
  const desk = new CutDesk({
    ledger: node.ledger,
    cutMillis: CUT_MILLIS,
    verdict: () => undefined,
    want: () => undefined,
    blame: () => undefined,
    lost: () => undefined,
  });
  const { content } = await desk.build(1, 0, undefined, () => steadyMillis() + CUT_MILLIS);
  const adopt = () => driver.adopt(decodeProposedCut(content), { round: 0, signatures: [] });
  errors = 3;
  expect(await adopt()).toBe('final');
  expect([node.ledger.head().height, driver.state.height, faults]).toEqual([1, 2, 0]);
  // Whether it is final already cannot be told now.
  errors = 1;
  expect(await adopt()).toBe('later');
  expect(await adopt()).toBe('final');
  expect(faults).toBe(0);
});
