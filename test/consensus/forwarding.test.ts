/** What a neighbour forwards, for whom, and how much of it (consensus rule 25). */
import { expect, onTestFinished, test } from 'vitest';
import { examine } from '../../node/consensus/driver/examine.ts';
import {
  decodeForward,
  encodeForward,
  type Forward,
  Forwarding,
  MOST_OF_AUTHOR,
} from '../../node/consensus/driver/forwarding.ts';
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Message, Peer } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { openState } from '../../node/consensus/engine/recovery.ts';
import { type CutName, NIL, PRECOMMIT, PREVOTE, type VoteKind } from '../../node/consensus/engine/votes.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import { until } from '../until.ts';
import { DrivenNetwork, MEMBERS } from './driven.ts';

const MEBIBYTE = 1024 * 1024;
const HEIGHT = 7;
const keyOf = (member: number) => new Uint8Array(PUBLIC_KEY_BYTES).fill(member + 1);
const committee = new Committee(
  new Uint8Array(48),
  Array.from({ length: 6 }, (_, member) => ({ publicKey: keyOf(member), stake: 1n })),
);
const stateOf = (self: number) => openState(HEIGHT, committee, self, undefined, undefined);
const voteOf = (member: number, round = 0, height = HEIGHT): Message & { type: 'vote' } => ({
  type: 'vote',
  vote: { kind: PREVOTE, height, round, cut: NIL, member, signature: new Uint8Array(SIGNATURE_BYTES) },
});
const forwardOf = (message: Message, members: bigint): Forward =>
  decodeForward(encodeForward(members, encodeMessage(message))) as Forward;

type ForwardingTransport = ConstructorParameters<typeof Forwarding>[0];

const forwardingOver = (transport: Omit<ForwardingTransport, 'accountOf'>) =>
  new Forwarding({ ...transport, accountOf: String }, () => 0);

/** A neighbour for each of these members, by its number; and a stranger that proved nothing. */
function connectedTo(...members: number[]) {
  const sent: Peer[] = [];
  const traffic = { bytes: 0 };
  const clock = { now: 0 };
  const transport: ForwardingTransport = {
    accountOf: String,
    company: () => [{ peers: ['s'], key: undefined }, ...members.map((m) => ({ peers: [`m${m}`], key: keyOf(m) }))],
    proven: (peer) => {
      const member = members.find((each) => `m${each}` === peer);
      return member === undefined ? undefined : { key: keyOf(member), process: new Uint8Array(16) };
    },
    nearest: (peer) => peer,
    send: (peer, bytes) => {
      sent.push(peer);
      traffic.bytes += bytes.length;
    },
  };
  return { forwarding: new Forwarding(transport, (): number => clock.now), sent, traffic, clock };
}

test('an author with a connection to everybody asks nobody; one without asks two members, other ones each time, and names whom it lacks', () => {
  expect(connectedTo(1, 2, 3, 4, 5).forwarding.request(stateOf(0), voteOf(0))).toBeUndefined();
  const { forwarding } = connectedTo(1, 2, 4);
  const asked = Array.from({ length: 3 }, () => forwarding.request(stateOf(0), voteOf(0)));
  expect(asked.map((each) => each?.members)).toEqual(Array(3).fill(0b101000n));
  expect(asked.map((each) => each?.peers.length)).toEqual([2, 2, 2]);
  expect(new Set(asked.flatMap((each) => each?.peers ?? []))).toEqual(new Set(['m1', 'm2', 'm4']));
});

test('a member behind a relay is named to neighbours with a direct connection: the relay may hold back what it carries', () => {
  const forwarding = forwardingOver({
    company: () => [1, 2, 3, 4, 5].map((m) => ({ peers: [`m${m}`], key: keyOf(m), isRelayed: m === 3 })),
    proven: () => undefined,
    nearest: (peer) => peer,
    send: () => undefined,
  });
  const asked = Array.from({ length: 4 }, () => forwarding.request(stateOf(0), voteOf(0)));
  expect(asked.map((each) => each?.members)).toEqual(Array(4).fill(0b1000n));
  expect(new Set(asked.flatMap((each) => each?.peers ?? []))).toEqual(new Set(['m1', 'm2', 'm4', 'm5']));
});

test('only what is its own does an author want forwarded: votes of others and messages without a signature are sent as they are', () => {
  const { forwarding } = connectedTo(1, 2);
  expect(forwarding.request(stateOf(0), voteOf(1))).toBeUndefined();
  expect(forwarding.request(stateOf(-1), voteOf(0))).toBeUndefined();
});

test('a message goes to the named members that are connected, and not back to its author', () => {
  const { forwarding, sent } = connectedTo(0, 1, 3, 4);
  forwarding.forward(stateOf(2), 'm0', forwardOf(voteOf(0), 0b101011n), true);
  expect(sent).toEqual(['m1', 'm3']);
});

test('nobody has messages of others forwarded, and none without a proven key or of a distant height', () => {
  const { forwarding, sent } = connectedTo(0, 1, 3);
  for (const [from, message] of [
    ['m1', voteOf(0)],
    ['s', voteOf(0)],
    ['m0', voteOf(0, 0, HEIGHT + 2)],
    ['m0', voteOf(0, 0, HEIGHT - 1)],
    ['m0', voteOf(60)],
  ] as const)
    forwarding.forward(stateOf(2), from, forwardOf(message, 0b111111n), true);
  expect(sent).toEqual([]);
});

test('of one author some messages a height are forwarded, and others are not held up by it', () => {
  const { forwarding, sent } = connectedTo(0, 1, 3);
  const state = stateOf(2);
  for (state.round = 0; state.round < 2 * MOST_OF_AUTHOR; state.round++)
    forwarding.forward(state, 'm0', forwardOf(voteOf(0, state.round), 0b1000n), true);
  expect(sent).toHaveLength(MOST_OF_AUTHOR);
  forwarding.forward(state, 'm1', forwardOf(voteOf(1, state.round), 0b1000n), true);
  expect(sent).toHaveLength(MOST_OF_AUTHOR + 1);
  forwarding.forward(state, 'm0', forwardOf(voteOf(0, 0, HEIGHT + 1), 0b1000n), true);
  expect(sent).toHaveLength(MOST_OF_AUTHOR + 2);
});

test('only what lies near the own height and round is forwarded: members that work are no further apart', () => {
  const { forwarding, sent } = connectedTo(0, 1, 3);
  const state = stateOf(2);
  const forwarded = (message: Message): boolean => {
    const before = sent.length;
    forwarding.forward(state, 'm0', forwardOf(message, 0b1000n), true);
    return sent.length > before;
  };
  state.round = 5;
  const rounds = [...Array(12).keys()];
  expect(rounds.filter((round) => forwarded(voteOf(0, round)))).toEqual([4, 5, 6]);
  expect(rounds.filter((round) => forwarded(voteOf(0, round, HEIGHT + 1)))).toEqual([0]);
  // Of the cut before, others lack precommits at most, and those of the rounds that are kept.
  state.last = { height: HEIGHT - 1, committee, rounds: new Map([[2, new Map()]]) } as unknown as typeof state.last;
  const ofKind = (kind: VoteKind) => (round: number) => {
    const message = voteOf(0, round, HEIGHT - 1);
    return forwarded({ ...message, vote: { ...message.vote, kind } } as Message);
  };
  expect([rounds.filter(ofKind(PREVOTE)), rounds.filter(ofKind(PRECOMMIT))]).toEqual([[], [2]]);
});

test('a member that has all it may vote forwarded to everybody costs a neighbour four messages a height for each of them, and once each', () => {
  const SEATS = 64;
  const many = new Committee(
    new Uint8Array(48),
    Array.from({ length: SEATS }, (_, member) => ({ publicKey: keyOf(member), stake: 1n })),
  );
  const { forwarding, traffic } = connectedTo(...[...Array(SEATS).keys()].filter((member) => member !== 2));
  const state = openState(HEIGHT, many, 2, undefined, undefined);
  const check = { vote: () => true, blocks: () => true, proposal: () => true };
  const signature = new Uint8Array(SIGNATURE_BYTES);
  const final = 'a'.repeat(48);
  const heights = 8;
  for (let height = HEIGHT; height < HEIGHT + heights; height++) {
    for (let tick = 0; tick < 5; tick++) {
      for (const [at, round, kind, cut] of everyVote(height, final)) {
        const message = { type: 'vote', vote: { kind, height: at, round, cut, member: 0, signature } } as const;
        const worth = examine(
          state,
          message,
          check,
          () => true,
          () => true,
        );
        forwarding.forward(state, 'm0', forwardOf(message, 2n ** 64n - 1n), worth === 'take');
        if (worth === 'take') step(state, message);
      }
      step(state, { type: 'tick' });
    }
    forwarding.nextHeight(height + 1);
    const votes = [...Array(50).keys()].map((i) => i + 10);
    const proof = { kind: PRECOMMIT, height, round: 0, cut: final } as const;
    const last = {
      proof: { ...proof, votes: votes.map((member) => ({ ...proof, member, signature })) },
      committee: many,
    };
    step(state, { type: 'height', height: height + 1, committee: many, self: 2, last });
  }
  const vote = encodeMessage(voteOf(0)).length;
  // And the second vote of a round that contradicts the first: it is evidence.
  expect(traffic.bytes).toBeLessThanOrEqual((heights + 1) * 5 * vote * (SEATS - 2));
});

test('what most members have forwarded to everybody takes a bounded part of a neighbour’s line, and what another one asks for goes out', () => {
  const SEATS = 64;
  const many = new Committee(
    new Uint8Array(48),
    Array.from({ length: SEATS }, (_, member) => ({ publicKey: keyOf(member), stake: member > 61 ? 100n : 1n })),
  );
  const [self, other] = [62, 63];
  const { forwarding, sent, traffic, clock } = connectedTo(...[...Array(SEATS).keys()].filter((m) => m !== self));
  const state = openState(HEIGHT, many, self, undefined, undefined);
  const flood = (height: number) => {
    state.height = height;
    for (let round = 0; round < 2; round++)
      for (let liar = 0; liar < 62; liar++)
        for (const kind of [PREVOTE, PRECOMMIT] as const) {
          const { vote } = voteOf(liar, round, height);
          const asked = forwardOf({ type: 'vote', vote: { ...vote, kind } }, 2n ** 64n - 1n);
          forwarding.forward(state, `m${liar}`, asked, true);
        }
    return traffic.bytes;
  };
  const first = flood(HEIGHT);
  expect(first).toBeLessThan(13 * MEBIBYTE);
  clock.now = 2_500;
  expect(flood(HEIGHT + 1) - first).toBeLessThan(12 * MEBIBYTE);
  const before = sent.length;
  forwarding.forward(state, `m${other}`, forwardOf(voteOf(other, 0, HEIGHT + 1), 2n ** 12n - 1n), true);
  expect(sent.length - before).toBe(12);
});

function* everyVote(height: number, final: CutName): Generator<[number, number, VoteKind, CutName]> {
  for (const at of [height - 1, height, height + 1])
    for (let round = 0; round < 40; round++)
      for (const kind of [PREVOTE, PRECOMMIT] as const) for (const cut of [final, NIL]) yield [at, round, kind, cut];
}

test('that members voted twice is told of a few in a second, however many do so at every height, and of another one at once', () => {
  const { forwarding, clock } = connectedTo(1);
  const flood = () => [...Array(62).keys()].filter((liar) => forwarding.mayTellOf(liar)).length;
  const [first, again] = [flood(), flood()];
  expect(first).toBeGreaterThan(8);
  expect(first + again).toBeLessThanOrEqual(16);
  clock.now = 2_500;
  expect(flood()).toBeLessThanOrEqual(11);
  clock.now = 5_000;
  expect(forwarding.mayTellOf(63)).toBe(true);
});

test('what is forwarded goes over a direct connection where there is one, and so does the question to forward', () => {
  const sent: Peer[] = [];
  const circuits = new Map<Peer, Peer>([['circuit of m1', 'm1']]);
  const forwarding = forwardingOver({
    company: () => [
      { peers: ['m0'], key: keyOf(0) },
      { peers: ['m1', 'circuit of m1'], key: keyOf(1), isRelayed: false },
      { peers: ['circuit of m3'], key: keyOf(3), isRelayed: true },
    ],
    proven: (peer) => (peer === 'm0' ? { key: keyOf(0), process: new Uint8Array(16) } : undefined),
    nearest: (peer) => circuits.get(peer) ?? peer,
    send: (peer) => void sent.push(peer),
  });
  forwarding.forward(stateOf(2), 'm0', forwardOf(voteOf(0), 0b1010n), true);
  expect(sent).toEqual(['m1', 'circuit of m3']);
  expect(forwarding.request(stateOf(2), voteOf(2))?.peers).toEqual(expect.arrayContaining(['m0', 'm1']));
});

test('a message that others handed on before its author is forwarded all the same, once, and only as it is here', () => {
  const { forwarding, sent } = connectedTo(0, 1, 3);
  const state = stateOf(2);
  const [message, forward] = [voteOf(0), forwardOf(voteOf(0), 0b1000n)];
  forwarding.forward(state, 'm0', forward, false);
  expect(sent).toEqual([]);
  if (message.type === 'vote') step(state, { type: 'vote', vote: message.vote });
  const altered = Uint8Array.from(forward.bytes).fill(9, -1);
  forwarding.forward(state, 'm0', { ...forward, bytes: altered }, false);
  expect(sent).toEqual([]);
  for (let times = 0; times < 3; times++) forwarding.forward(state, 'm0', forward, false);
  expect(sent).toEqual(['m3']);
});

test('two members without a connection decide by what a third forwards, whoever hands it their messages first', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  network.strangers.add('stranger');
  const apart = ['m0', 'm3'];
  network.links = (one, other) => one === other || !(apart.includes(String(one)) && apart.includes(String(other)));
  let isAttacked = false;
  network.carries = (from, to, bytes) => {
    if (!isAttacked) return true;
    const isSigned = bytes[0] === MESSAGE_TYPES.vote || bytes[0] === MESSAGE_TYPES.proposal;
    if (isSigned && to === 'm1' && apart.includes(String(from)))
      network.deliver('stranger', 'm1', Uint8Array.from(bytes));
    // The fourth member is down, and nothing is recovered by questions.
    return from !== 'm2' && bytes[0] !== MESSAGE_TYPES.have;
  };
  for (let member = 0; member < MEMBERS; member++) await driven.start(`m${member}`, member);
  const height = () =>
    Math.min(...['m0', 'm1', 'm3'].map((name) => driven.running.get(name)?.node.chain.head().height ?? 0));
  await until(() => height() >= 2);
  isAttacked = true;
  const from = height();
  await until(() => height() >= from + 2);
  // Nothing depends on this any more: what a slow machine loses comes by questions.
  isAttacked = false;
});
