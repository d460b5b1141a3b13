/** A process that did not run for a while (consensus rule 21) listens before it signs; and what was signed does not leave once it must not (rules 13 and 21). */
import { afterEach, expect, test } from 'vitest';
import { EffectQueue, MAX_WAITING_EFFECTS } from '../../node/consensus/driver/effect-queue.ts';
import { decodeMessage } from '../../node/consensus/driver/messages.ts';
import { haveOf } from '../../node/consensus/engine/anti-entropy.ts';
import type { Effect, Message } from '../../node/consensus/engine/effects.ts';
import { lastCutOf } from '../../node/consensus/engine/last-cut.ts';
import { isListening } from '../../node/consensus/engine/listening.ts';
import { PRECOMMIT, PREVOTE, type Proof } from '../../node/consensus/engine/votes.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { mayLeave } from '../../node/consensus/one-signer/own-messages.ts';
import { AWAY_MILLIS, wasAway } from '../../node/consensus/one-signer/presence.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { until } from '../until.ts';
import { BenchMember, cutNamed, HEIGHT, proposal, vote } from './bench-member.ts';
import { DrivenNetwork, MEMBERS } from './driven.ts';
import { scenarioOf } from './scenario.ts';
import { simulate } from './simulation.ts';

const CUT = cutNamed('a cut');
const TICK = { type: 'tick' } as const;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function network(): DrivenNetwork {
  const driven = new DrivenNetwork();
  closing.push(() => driven.close());
  return driven;
}

test.each([
  ['a tick on time', 500, 500, false],
  ['a busy machine', 8_000, 8_000, false],
  ['a process that was stopped', AWAY_MILLIS + 501, AWAY_MILLIS + 501, true],
  ['a machine that slept: only the clock of the system went on', 60_000, 500, true],
  ['a clock that was set back', -60_000, 500, true],
  ['a clock that is corrected', 2_500, 500, false],
])('%s', (_, wall, steady, expected) => {
  expect(wasAway({ wall: 7, steady: 11 }, { wall: 7 + wall, steady: 11 + steady }, 500)).toBe(expected);
});

test('it signs nothing until it has listened, and then goes on in the step where it was, with new time-outs', () => {
  const member = new BenchMember(1, 4, undefined, HEIGHT);
  for (let tick = 0; tick < 6; tick++) member.feed(TICK);
  member.proposes(0, CUT);
  expect(member.signed).toEqual([[0, PREVOTE, CUT]]);
  member.votes(PREVOTE, 0, cutNamed('another'), 0);
  member.votes(PREVOTE, 0, CUT, 2);
  const timers = () => member.effect('timer').filter(({ kind }) => kind === 'prevote').length;
  expect(timers()).toBe(1);
  member.feed({ type: 'away' });
  // The time-out of before, and what would make it lock.
  member.timeout('prevote', 0);
  member.votes(PREVOTE, 0, CUT, 3);
  for (let tick = 0; tick < 11; tick++) member.feed(TICK);
  expect([member.signed.length, isListening(member.state)]).toEqual([1, true]);
  member.feed(TICK);
  expect([member.signed.slice(1), isListening(member.state)]).toEqual([[[0, PRECOMMIT, CUT]], false]);
});

test('one that waits for others waits with a time-out again', () => {
  const member = new BenchMember(1, 4, undefined, HEIGHT);
  for (let tick = 0; tick < 6; tick++) member.feed(TICK);
  member.proposes(0, CUT);
  member.votes(PREVOTE, 0, cutNamed('another'), 0);
  member.votes(PREVOTE, 0, CUT, 2);
  const timers = () => member.effect('timer').filter(({ kind }) => kind === 'prevote').length;
  member.feed({ type: 'away' });
  member.timeout('prevote', 0);
  expect(timers()).toBe(1);
  for (let tick = 0; tick < 12; tick++) member.feed(TICK);
  expect([timers(), member.signed.length]).toEqual([2, 1]);
  member.timeout('prevote', 0);
  expect(member.signed.length).toBe(2);
});

test('votes of its key from after the copy of its memory do not stop it; it signs nothing at their height', () => {
  const member = new BenchMember(1, 4, undefined, HEIGHT);
  for (let tick = 0; tick < 6; tick++) member.feed(TICK);
  member.feed({ type: 'away' });
  member.feed({ type: 'vote', vote: vote(PREVOTE, 3, 1, CUT) });
  expect([member.state.stopped, member.state.ownKey.barred]).toEqual([false, HEIGHT]);
});

test('while it listens it asks for votes of its own key, so that neighbours send one that it did not make', () => {
  const [self, other] = [1, 2];
  const member = new BenchMember(self, 4, undefined, HEIGHT);
  for (let tick = 0; tick < 6; tick++) member.feed(TICK);
  member.proposes(0, CUT);
  const own = 1n << BigInt(self);
  expect(haveOf(member.state).prevotes & own).toBe(own);
  member.feed({ type: 'away' });
  const have = haveOf(member.state);
  expect(have.prevotes & own).toBe(0n);
  const neighbour = new BenchMember(other);
  neighbour.votes(PREVOTE, 0, cutNamed('another'), self);
  const sent = neighbour.feed({ type: 'have', have, from: 'away' });
  const contrary = {
    do: 'send',
    to: { peer: 'away' },
    message: { type: 'vote', vote: vote(PREVOTE, 0, self, cutNamed('another')) },
  };
  expect(sent).toContainEqual(contrary);
  member.votes(PREVOTE, 0, cutNamed('another'), self);
  expect(member.state.ownKey.barred).toBe(HEIGHT);
});

test('its own votes of the height before, sent again by anybody, do not make it listen longer', () => {
  const before = new BenchMember(1);
  before.proposes(0, CUT);
  for (const kind of [PREVOTE, PRECOMMIT] as const) before.votes(kind, 0, CUT, 0, 2);
  const { rounds, accused, self, committee } = before.state;
  const votes = [0, 1, 2].map((member) => vote(PRECOMMIT, 0, member, CUT, HEIGHT - 1));
  const last = lastCutOf({ kind: PRECOMMIT, height: HEIGHT - 1, round: 0, cut: CUT, votes }, committee, {
    rounds,
    accused,
    self,
  });
  const member = new BenchMember(1, 4, last, HEIGHT);
  for (let tick = 0; tick < 6; tick++) member.feed(TICK);
  member.feed({ type: 'away' });
  for (let tick = 0; tick < 11; tick++) member.feed(TICK);
  for (const kind of [PREVOTE, PRECOMMIT] as const)
    member.feed({ type: 'vote', vote: vote(kind, 0, 1, CUT, HEIGHT - 1) });
  member.feed(TICK);
  expect(isListening(member.state)).toBe(false);
});

test('members that all slept together, in whatever step, go on together', () => {
  for (let seed = 0; seed < 12; seed++)
    expect(simulate(seed, { scenario: { ...scenarioOf(seed), naps: 'all' } }).failure).toBe(undefined);
});

test.each(['steady', 'wall'] as const)('a member whose %s clock jumps listens, and signs again', async (clock) => {
  const driven = network();
  let jumped = 0;
  const [seen, signedWhileListening]: [boolean[], Effect[]] = [[], []];
  for (let member = 0; member < MEMBERS; member++)
    await driven.start(`m${member}`, member, {
      ...(member === 3 && {
        [clock]: () => steadyMillis() + jumped,
        watch: (event, effects, state) => {
          if (event.type === 'away') seen.push(isListening(state));
          else if (seen.length > 0 && isListening(state))
            signedWhileListening.push(...effects.filter((effect) => effect.do === 'sign'));
        },
      }),
    });
  const { state } = (driven.running.get('m3') as { driver: { state: BenchMember['state'] } }).driver;
  const signs = () => !isListening(state) && state.own.size > 0;
  await until(signs);
  jumped = AWAY_MILLIS + 1_000;
  await until(() => seen.length > 0);
  expect(seen).toEqual([true]);
  await until(signs);
  expect(signedWhileListening).toEqual([]);
});

test('what waits for the disk when its process must not sign any more does not leave', async () => {
  const driven = network();
  const { publicKey, privateKey } = developmentKey(validatorName(3));
  let [isFull, waits] = [false, 0];
  const free: (() => void)[] = [];
  const append = async () => {
    if (!isFull) return;
    waits++;
    await new Promise<void>((resolve) => free.push(resolve));
  };
  const log = { append, close: async () => undefined } as never;
  for (let member = 0; member < 3; member++) await driven.start(`m${member}`, member);
  const { driver } = await driven.start('m3', 3, {
    signer: { publicKey, privateKey, log, recovered: undefined, coversTo: -1 },
  });
  const left: Message[] = [];
  const isOwn = (message: Message): boolean => {
    const { committee, self } = driver.state;
    if (message.type === 'vote') return message.vote.member === self;
    if (message.type !== 'proposal') return false;
    return committee.proposer(message.proposal.height, message.proposal.round) === self;
  };
  driven.network.carries = (from, _, bytes: Bytes) => {
    const message = (bytes[0] as number) <= MESSAGE_TYPES.finalized ? decodeMessage(bytes) : undefined;
    if (from === 'm3' && driver.state.stopped && message !== undefined && isOwn(message)) left.push(message);
    return true;
  };
  await until(() => !isListening(driver.state) && driver.state.own.size > 0);
  isFull = true;
  await until(() => waits > 0);
  driver.state.stopped = true;
  const { height } = driver.state;
  isFull = false;
  for (const go of free) go();
  await until(() => driver.state.height > height + 1);
  expect(left).toEqual([]);
});

test('messages of others leave all the same', () => {
  const { state } = new BenchMember(1);
  const own = { type: 'vote', vote: vote(PREVOTE, 0, 1, CUT) } as const;
  const other = { type: 'vote', vote: vote(PREVOTE, 0, 2, CUT) } as const;
  const proof: Proof = { kind: PREVOTE, height: HEIGHT, round: 0, cut: CUT, votes: [other.vote, own.vote] };
  const proposed = {
    type: 'proposal',
    proposal: proposal(state.committee.proposer(HEIGHT, 0) === 1 ? 0 : 1, CUT),
  } as const;
  const messages = [own, other, { type: 'proof', proof } as const, proposed];
  const isOwnTurn = state.committee.proposer(HEIGHT, proposed.proposal.round) === 1;
  expect(messages.map((message) => mayLeave(state, message))).toEqual([true, true, true, true]);
  state.stopped = true;
  expect(messages.map((message) => mayLeave(state, message))).toEqual([false, true, false, !isOwnTurn]);
  Object.assign(state, { stopped: false, ownKey: { ...state.ownKey, barred: HEIGHT } });
  expect(messages.map((message) => mayLeave(state, message))).toEqual([false, true, false, !isOwnTurn]);
});

test('effects that wait for a full disk are bounded: answers are lost, and nothing else', () => {
  const queue = new EffectQueue();
  const lost: Effect = { do: 'serve', to: 1, height: 1 };
  queue.push(Array.from({ length: MAX_WAITING_EFFECTS + 5 }, () => lost));
  expect(queue.length).toBe(MAX_WAITING_EFFECTS);
  const answer: Effect = { do: 'send', to: { peer: 1 }, message: { type: 'vote', vote: vote(PREVOTE, 0, 1, CUT) } };
  queue.push([{ do: 'bar', vote: vote(PREVOTE, 0, 1, CUT) }, { ...answer, to: 'all' }, answer, lost]);
  expect(queue.length).toBe(MAX_WAITING_EFFECTS + 2);
});
