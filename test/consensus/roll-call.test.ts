/** The roll call (consensus rule 23): a key that runs in two processes is found out by the neighbours that both are connected to, also where not one vote of the first reaches the second. */
import { afterEach, expect, test } from 'vitest';
import { decodeMessage } from '../../node/consensus/driver/messages.ts';
import type { Message, Peer } from '../../node/consensus/engine/effects.ts';
import { listenFirst } from '../../node/consensus/engine/listening.ts';
import { createState } from '../../node/consensus/engine/state.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { RollCall } from '../../node/consensus/one-signer/roll-call.ts';
import {
  decodeRollCall,
  encodeRollCall,
  hereMessage,
  type RollCallMessage,
} from '../../node/consensus/one-signer/roll-call-messages.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { silentLog } from '../node/bed.ts';
import { fuzzDecoder } from '../protocol/fuzz.ts';
import { until } from '../until.ts';
import { committeeOf } from './bench-member.ts';
import { DrivenNetwork } from './driven.ts';
import { MemoryNetwork } from './memory-network.ts';

const CHAIN = new Uint8Array(48).fill(3);
const KEY = developmentKey(validatorName(0));
const committee = committeeOf(4);

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A node that does nothing else; with a key, a member that signs, or that listens first. */
function node(network: MemoryNetwork, name: string, key?: typeof KEY, listens = true) {
  const transport = network.transport(name);
  const state = createState(7, committee, key === undefined ? -1 : 0);
  if (key !== undefined) network.keys.set(name, key.publicKey);
  if (listens) listenFirst(state, -1);
  const found: true[] = [];
  /** The newest call of another process that came. */
  const calls: Bytes[] = [];
  const at = new Map<Peer, number>();
  const roll = new RollCall({
    transport,
    chainId: CHAIN,
    signer: key,
    state,
    log: silentLog,
    isAt: (peer, height) => void at.set(peer, height),
    found: () => void found.push(true),
  });
  transport.start({
    joined: (peer) => roll.joined(peer),
    left: (peer) => roll.left(peer),
    message: (peer, bytes) => {
      const message = decodeRollCall(bytes);
      if (message?.type === 'call') calls.push(message.call);
      roll.take(peer, message as NonNullable<typeof message>, bytes);
    },
  });
  closing.push(() => transport.close());
  return { name, transport, state, roll, found, at, calls };
}

/** The two processes of the key are not connected to each other. */
function bed() {
  const network = new MemoryNetwork();
  network.carries = (from, to) => !(String(from).startsWith('own') && String(to).startsWith('own'));
  return network;
}

/** Ticks of all, with time for the messages of each. */
async function ticks(count: number, nodes: readonly { roll: RollCall }[]): Promise<void> {
  for (let tick = 0; tick < count; tick++) {
    for (const { roll } of nodes) roll.tick();
    for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

test('the neighbour of a process that signs and of one that listens tells the second so, and brings it the signature of the first', async () => {
  const network = bed();
  const [neighbour, first] = [node(network, 'neighbour'), node(network, 'own 1', KEY, false)];
  const second = node(network, 'own 2', KEY);
  const all = [neighbour, first, second];
  await ticks(1, all);
  expect([second.roll.answerOf('neighbour'), second.at.get('neighbour')]).toEqual(['taken', 7]);
  await until(() => second.found.length > 0);
  expect(first.found).toEqual([]);
  // The first ends: the second one’s time goes on.
  await first.transport.close();
  await ticks(2, [neighbour, second]);
  expect(second.roll.answerOf('neighbour')).toBe('clear');
  // An answer does not count for ever.
  await neighbour.transport.close();
  await ticks(8, [second]);
  expect(second.roll.answerOf('neighbour')).toBe(undefined);
});

test('a neighbour that joins is asked at once, and answers', async () => {
  const network = bed();
  const own = node(network, 'own 1', KEY);
  const late = node(network, 'late');
  await ticks(1, []);
  expect([late.calls.length, own.roll.answerOf('late')]).toEqual([1, 'clear']);
});

test('of two processes that listen the one that started first goes on, whoever connected first; one that has stopped is in nobody’s way', async () => {
  const network = bed();
  const names = ['own 1', 'own 2'] as const;
  const neighbour = node(network, 'neighbour');
  const [earlier, later] = names.map((name) => node(network, name, KEY)) as [typeof neighbour, typeof neighbour];
  const all = [neighbour, later, earlier];
  await ticks(3, all);
  expect([earlier.roll.answerOf('neighbour'), later.roll.answerOf('neighbour')]).toEqual(['clear', 'taken']);
  expect([...earlier.found, ...later.found]).toEqual([]);
  earlier.state.stopped = true;
  await ticks(2, all);
  expect(later.roll.answerOf('neighbour')).toBe('clear');
});

test('answers that were kept back say nothing: a *clear* of before, and the signature of a process that has ended since', async () => {
  const network = bed();
  const kept: Bytes[] = [];
  let keeps: number | undefined = 11;
  network.carries = (from, to, bytes) => {
    if (from === 'neighbour' && to === 'own 2' && bytes[0] === keeps) kept.push(bytes);
    return (
      !(from === 'neighbour' && to === 'own 2' && bytes[0] === keeps) &&
      !(/^own/.test(String(from)) && /^own/.test(String(to)))
    );
  };
  const [neighbour, first] = [node(network, 'neighbour'), node(network, 'own 1', KEY, false)];
  const second = node(network, 'own 2', KEY);
  await ticks(1, [neighbour, first, second]);
  await until(() => kept.length > 0);
  await first.transport.close();
  await ticks(130, [neighbour, second]);
  const [here] = kept.splice(0);
  keeps = 10;
  await ticks(1, [neighbour, second]);
  const [clear] = kept;
  await ticks(8, [second]);
  for (const late of [here, clear]) network.deliver('neighbour', 'own 2', late as Bytes);
  for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect([second.found, second.roll.answerOf('neighbour')]).toEqual([[], undefined]);
});

test('one that listened and signs now is known to at once: a process that started before it is told so', async () => {
  const network = bed();
  const neighbour = node(network, 'neighbour');
  const [earlier, later] = [node(network, 'own 1', KEY), node(network, 'own 2', KEY)];
  await ticks(3, [neighbour, earlier, later]);
  expect(earlier.roll.answerOf('neighbour')).toBe('clear');
  later.state.listening = undefined;
  await ticks(2, [neighbour, later, earlier]);
  expect(earlier.roll.answerOf('neighbour')).toBe('taken');
});

test('of two processes that end their listening within one pause, or at one tick, one is found out at once', async () => {
  for (const endsTogether of [false, true]) {
    const network = bed();
    const neighbour = node(network, 'neighbour');
    const [earlier, later] = [node(network, 'own 1', KEY), node(network, 'own 2', KEY)];
    const all = [neighbour, later, earlier];
    // The later one’s call was handed on while the earlier one listened, and is not again for a while.
    await ticks(2, all);
    earlier.state.listening = undefined;
    if (endsTogether) later.state.listening = undefined;
    await ticks(2, all);
    await until(() => later.found.length > 0);
  }
});

test('the signatures of two that end together cross within one tick: each is read', async () => {
  const network = bed();
  const neighbour = node(network, 'neighbour');
  const [earlier, later] = [node(network, 'own 1', KEY), node(network, 'own 2', KEY)];
  const all = [neighbour, later, earlier];
  await ticks(2, all);
  for (const { state } of [earlier, later]) state.listening = undefined;
  await ticks(1, all);
  await until(() => earlier.found.length > 0 && later.found.length > 0);
});

test('a member that is in the committee with its own key alone hears that it is clear; nobody can make up the other process', async () => {
  const network = bed();
  const [liar, own] = [node(network, 'liar', developmentKey(validatorName(1)), false), node(network, 'own 1', KEY)];
  await ticks(1, [liar, own]);
  expect(own.roll.answerOf('liar')).toBe('clear');
  const by = new Uint8Array(16).fill(9);
  const call = liar.calls.at(-1) as Bytes;
  const say = async (process: Bytes, signer: Bytes, signature: Bytes, of = call) => {
    liar.transport.send('own 1', encodeRollCall({ type: 'here', process, call: of, by: signer, signature }));
    await ticks(1, [own]);
  };
  const { process } = own.transport;
  const sign = (key: typeof KEY, ...said: Parameters<typeof hereMessage>) =>
    signMessage(key.privateKey, hereMessage(...said));
  // Of another key, of another start, of another chain, its own, of a call that was never made, or of another one.
  const never = new Uint8Array(8);
  await say(process, by, sign(developmentKey(validatorName(1)), CHAIN, process, call, by));
  await say(process, by, sign(KEY, CHAIN, by, call, by));
  await say(process, by, sign(KEY, new Uint8Array(48), process, call, by));
  await say(process, process, sign(KEY, CHAIN, process, call, process));
  await say(process, by, sign(KEY, CHAIN, process, never, by), never);
  await say(process, by, sign(KEY, CHAIN, process, never, by));
  expect(own.found).toEqual([]);
  await say(process, by, sign(KEY, CHAIN, process, call, by));
  expect(own.found).toEqual([true]);
});

test('messages of the roll call are read as they were written, or refused', () => {
  const [process, by, call] = [new Uint8Array(16).fill(1), new Uint8Array(16).fill(2), new Uint8Array(8).fill(3)];
  const messages: RollCallMessage[] = [
    ...(['listens', 'stopped', 'signs'] as const).map((caller) => ({ type: 'call', process, call, caller }) as const),
    { type: 'answer', process, call, isTaken: true, height: 12 },
    { type: 'here', process, call, by, signature: new Uint8Array(3_309).fill(5) },
  ];
  for (const message of messages) expect(decodeRollCall(encodeRollCall(message))).toEqual(message);
  const decode = (bytes: Bytes) => {
    const message = decodeRollCall(bytes);
    if (message === undefined) throw new ProtocolError('unsupported_kind', 'another message');
    return message;
  };
  fuzzDecoder({ name: 'roll call', decode, encode: encodeRollCall, samples: messages.map(encodeRollCall) });
});

test('a key in two processes, and none of the first one’s votes reaches the second: it signs nothing and stops; the first goes on', async () => {
  const driven = new DrivenNetwork();
  closing.push(() => driven.close());
  const { network } = driven;
  const votes: Message[] = [];
  let own = -1;
  network.carries = (from, to, bytes) => {
    const isMessage = (bytes[0] as number) <= MESSAGE_TYPES.finalized;
    const message = isMessage ? decodeMessage(bytes) : undefined;
    if (from === 'twin' && message?.type === 'vote' && message.vote.member === own) votes.push(message);
    if (to !== 'twin' && from !== 'twin') return true;
    if (from === 'm3' || to === 'm3') return false;
    if (message?.type === 'vote') return message.vote.member !== own;
    const proof =
      message?.type === 'proof' ? message.proof : message?.type === 'finalized' ? message.finalized.proof : undefined;
    return proof?.votes.every(({ member }) => member !== own) ?? true;
  };
  const members = await Promise.all([0, 1, 2, 3].map((member) => driven.start(`m${member}`, member)));
  const first = (members[3] as (typeof members)[number]).driver;
  own = first.state.self;
  const twin = (await driven.start('twin', 3)).driver;
  await until(() => twin.state.stopped);
  const { height } = first.state;
  await until(() => first.state.height > height + 2);
  expect([first.state.stopped, first.state.listening, votes]).toEqual([false, undefined, []]);
});
