/**
 * When a validator that has just started may sign (consensus rule 21), and what others can do about it: make it believe that it is where the chain is, keep it listening for ever, count more than once. The engine by hand,
 * and for connections real sockets.
 */
import { afterEach, expect, test } from 'vitest';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { servedOf } from '../../node/consensus/driver/catch-up.ts';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import { Receivers } from '../../node/consensus/driver/receivers.ts';
import { haveOf } from '../../node/consensus/engine/anti-entropy.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Company, Event, Peer } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { lastCutOf } from '../../node/consensus/engine/last-cut.ts';
import {
  COVERED_TICKS,
  HEIGHT_TICKS,
  LISTEN_TICKS,
  listenFirst,
  SLOW_TICKS,
  waitsFor,
} from '../../node/consensus/engine/listening.ts';
import { openState } from '../../node/consensus/engine/recovery.ts';
import { createState } from '../../node/consensus/engine/state.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { SigningLog } from '../../node/consensus/one-signer/signing-log.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessageAside } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { committeeOf } from '../consensus/bench-member.ts';
import { silentLog } from '../node/bed.ts';
import { type Random, randomOf } from '../random.ts';
import { until } from '../until.ts';
import {
  ALL,
  committee,
  cutOf,
  LEAST_TICKS_A_CUT,
  NO_SIGNATURE,
  ONE,
  OTHERS,
  proposalOf,
  SELF,
  Started,
  TICKS_A_CUT,
  voteOf,
} from './started-validator.ts';

test.each(['store', 'votes'] as const)(
  'a validator that is behind hears its own old votes at every height, sent by anybody, and heights reach it as from a %s: it never stops and never signs',
  (from) => {
    const lost = new Started(-1);
    for (let height = 5; height < 500; height++) {
      lost.feed({ type: 'vote', vote: voteOf(height, PREVOTE, SELF) });
      lost.goesOn(from);
      if (height % 2 === 0) lost.feed({ type: 'tick', company: ALL });
    }
    expect([lost.state.stopped, lost.did.includes('sign'), lost.listens]).toEqual([false, false, true]);
    // At the tip it listens, and signs.
    lost.ticks(ALL);
    lost.feed({ type: 'timeout', kind: 'propose', height: lost.state.height, round: lost.state.round });
    expect(lost.state.stopped).toBe(false);
    expect(lost.did.includes('sign') || lost.did.includes('build')).toBe(true);
  },
);

test('execution of a final cut that takes long is no time at the tip', () => {
  const slow = new Started(-1);
  const votes = OTHERS.map((member) => voteOf(5, PRECOMMIT, member));
  for (const vote of votes) step(slow.state, { type: 'vote', vote });
  step(slow.state, { type: 'proposal', proposal: proposalOf(5), timely: true });
  expect(slow.ticks(ALL, 1_000)).toBe(1_000);
});

test('a key that runs in a second process is noticed once this one is at the tip, before it has signed', () => {
  const twin = new Started(-1);
  let heights = 0;
  for (; !twin.state.stopped && heights < 100; heights++) {
    twin.feed({ type: 'vote', vote: voteOf(twin.state.height, PREVOTE, SELF) });
    for (let tick = 0; tick < TICKS_A_CUT; tick++) twin.feed({ type: 'tick', company: ALL });
    twin.goesOn('votes');
  }
  expect(heights).toBeLessThanOrEqual(8);
  expect(twin.did.includes('sign')).toBe(false);
});

test.each([
  ['prevotes', PREVOTE],
  ['precommits', PRECOMMIT],
] as const)(
  'a key that runs in a second, slow process, whose %s always come after the decision, is noticed before this one has signed',
  (_, kind) => {
    const twin = new Started(-1);
    let heights = 0;
    for (; !twin.state.stopped && heights < 100; heights++) {
      twin.feed({ type: 'vote', vote: voteOf(twin.state.height - 1, kind, SELF) });
      for (let tick = 0; tick < TICKS_A_CUT; tick++) twin.feed({ type: 'tick', company: ALL });
      twin.goesOn('votes');
    }
    expect([twin.state.stopped, twin.did.includes('sign') || twin.did.includes('build')]).toEqual([true, false]);
  },
);

test.each([
  [ALL, 1, TICKS_A_CUT],
  [ALL, 1, LEAST_TICKS_A_CUT],
  [ONE, SLOW_TICKS, TICKS_A_CUT],
])('at the tip the end of listening comes, though every cut comes from a store: %j', (company, times, ticksACut) => {
  const served = new Started(-1);
  let ticks = 0;
  for (let cuts = 1; served.listens && cuts < 1_000; cuts++) {
    for (; ticks < cuts * ticksACut && served.listens; ticks++) served.feed({ type: 'tick', company });
    if (served.listens) served.goesOn('store');
  }
  expect(ticks).toBeGreaterThanOrEqual(LISTEN_TICKS * times);
  expect(ticks).toBeLessThanOrEqual(5 * LISTEN_TICKS * times);
});

test('old signatures of others, handed over by one liar, do not make it company', () => {
  const alone = new Started(-1);
  alone.goesOn('store');
  expect(alone.ticks(ONE)).toBe(LISTEN_TICKS * SLOW_TICKS);
  // Nor is what a liar alone keeps from it a reason to stop.
  alone.feed({ type: 'vote', vote: voteOf(alone.state.height + 1, PREVOTE, SELF) });
  expect(alone.state.stopped).toBe(false);
});

test('store and log of one old copy: it signs nothing while nobody is there, and what others have beyond it makes it listen as without a log', () => {
  const copy = new Started(4);
  for (let tick = 0; tick < 1_000; tick++) copy.feed({ type: 'tick', company: { members: [], named: 0 } });
  copy.feed({ type: 'timeout', kind: 'propose', height: 5, round: 0 });
  expect([copy.did.includes('sign'), copy.did.includes('build'), copy.listens]).toEqual([false, false, true]);
  for (let height = 5; height < 8; height++) copy.goesOn('store');
  expect(copy.ticks(ALL)).toBe(LISTEN_TICKS);
  // The chain stood still meanwhile: a log that covers the height is enough, once others are there.
  expect(new Started(4).ticks(ALL)).toBe(COVERED_TICKS);
});

test('its own precommit for the cut before comes back to a validator that starts again: its log has it, though the certificate in its store was complete without it', () => {
  const others = OTHERS.map((member) => voteOf(4, PRECOMMIT, member));
  const last = lastCutOf({ kind: PRECOMMIT, height: 4, round: 0, cut: cutOf(4), votes: others }, committee);
  // The store at the height of the log, and one height behind it.
  for (const [height, recovered] of [
    [5, undefined],
    [4, { height: 4, messages: [voteOf(4, PREVOTE, SELF), voteOf(4, PRECOMMIT, SELF)] }],
  ] as const) {
    const started = new Started(4, height, height === 5 ? last : undefined, recovered);
    if (height === 4) started.goesOn('store');
    started.feed({ type: 'vote', vote: voteOf(4, PRECOMMIT, SELF) });
    expect([started.state.height, started.listens, started.state.stopped]).toEqual([5, true, false]);
    // It counts for the next header.
    expect(started.state.last?.rounds.get(0)?.has(SELF)).toBe(true);
  }
});

test('a key that gets a seat: it listens then, whatever it heard before, since nobody could say until then whether it runs in another process too', () => {
  const state = openState(5, committeeOf(3), -1, undefined, undefined);
  listenFirst(state, -1);
  for (let tick = 0; tick < 100; tick++) step(state, { type: 'tick', company: { members: [0, 1, 2], named: 0 } });
  const did = (event: Event) => step(state, event).map((effect) => effect.do);
  const enter = (height: number, seats: Committee, self: number) => [
    ...did({ type: 'height', height, committee: seats, self }),
    ...did({ type: 'begin' }),
  ];
  expect(enter(6, committee, SELF)).toEqual([]);
  for (let tick = 1; tick < COVERED_TICKS; tick++) expect(did({ type: 'tick', company: ALL })).not.toContain('timer');
  expect(waitsFor(state, { members: [], named: 0, taken: ALL })).toBe('taken');
  expect(did({ type: 'tick', company: ALL })).toContain('timer');
  // Not while it keeps its seat, and again when it comes back.
  expect(enter(7, committeeOf(4), SELF)).toContain('timer');
  enter(8, committeeOf(3), -1);
  expect(enter(9, committee, SELF)).toEqual([]);
});

test('others say that they are further, and do not keep what would show it: more than a third of the stake is believed, a liar alone is not', () => {
  const nobody = { members: [], named: 0 };
  for (const logHeight of [-1, 4]) {
    expect(new Started(logHeight).ticks({ ...nobody, ahead: ALL }, 1_000)).toBe(1_000);
    const full = logHeight < 0 ? LISTEN_TICKS : COVERED_TICKS;
    expect(new Started(logHeight).ticks({ members: [0, 2], named: 0, ahead: ONE })).toBe(full);
    expect(new Started(logHeight).ticks({ ...nobody, ahead: ONE })).toBe(full * SLOW_TICKS);
  }
});

test('members say that another process of its key is connected: more than a third of the stake is believed, and few that all say so; a liar whom anybody contradicts makes it slow', () => {
  const nobody = { members: [], named: 0 };
  for (const logHeight of [-1, 4]) {
    const full = logHeight < 0 ? LISTEN_TICKS : COVERED_TICKS;
    expect(new Started(logHeight).ticks({ ...nobody, taken: ALL }, 1_000)).toBe(1_000);
    expect(new Started(logHeight).ticks({ ...ONE, taken: { members: [0, 2], named: 0 } }, 1_000)).toBe(1_000);
    expect(new Started(logHeight).ticks({ ...nobody, taken: ONE }, 1_000)).toBe(1_000);
    expect(new Started(logHeight).ticks({ members: [0, 2], named: 0, taken: ONE })).toBe(full * SLOW_TICKS);
    // A liar, and only one other that is heard: the liar is the relay of the others, or this member has much stake.
    expect(new Started(logHeight).ticks({ members: [0], named: 0, taken: ONE })).toBe(full * SLOW_TICKS ** 2);
    // Whoever does not answer is not there.
    expect(new Started(logHeight).ticks({ ...nobody, silent: ALL }, 1_000)).toBe(1_000);
    expect(new Started(logHeight).ticks({ ...ONE, silent: { members: [0, 2], named: 0 } })).toBe(full * SLOW_TICKS);
  }
});

/** What one liar of less than a third can make of a tick, while the others say that nothing is in the way. */
const LIED: readonly Company[] = [
  ALL,
  { members: [0, 2], named: 0, taken: ONE },
  { members: [0, 2], named: 0, ahead: ONE },
];
/** By tick of the height, the last one before it ends apart. */
const ANSWERS: readonly ((isLast: boolean, random: Random) => Company)[] = [
  (isLast) => LIED[isLast ? 0 : 1] as Company,
  (isLast) => LIED[isLast ? 1 : 0] as Company,
  ...Array.from({ length: 10 }, () => (_: boolean, random: Random) => LIED[random(LIED.length)] as Company),
];

test('a liar that answers one thing now and another then, in step with the heights: at the tip listening ends within a bound, and behind it never does', () => {
  ANSWERS.forEach((answer, seed) => {
    const random = randomOf(seed);
    const tip = new Started(-1);
    let cuts = 0;
    for (; tip.listens && cuts < 1_000; cuts++) {
      for (let tick = 1; tick <= TICKS_A_CUT; tick++)
        tip.feed({ type: 'tick', company: answer(tick === TICKS_A_CUT, random) });
      if (tip.listens) tip.goesOn('store');
    }
    // Of five ticks of a cut two are taken back; the others count for an eighth at least.
    expect(cuts).toBeLessThanOrEqual((LISTEN_TICKS * SLOW_TICKS) / (TICKS_A_CUT - HEIGHT_TICKS));
    const behind = new Started(-1);
    for (let height = 0; height < 100; height++) {
      const ticks = 1 + random(HEIGHT_TICKS);
      for (let tick = 1; tick <= ticks; tick++) behind.feed({ type: 'tick', company: answer(tick === ticks, random) });
      behind.goesOn('store');
    }
    expect(behind.listens).toBe(true);
  });
});

test('a member that proved its key, and has not said on this connection where it is, does not count', async () => {
  const keys = keysOf(4);
  const seats = seatsOf(keys, [10n, 10n, 10n, 10n]);
  const mute = await open('127.0.0.31', [], seats, { key: keys[0] as Key, says: undefined });
  const victim = await open('127.0.0.32', [mute.address], seats, { key: keys[SELF] as Key });
  await until(() => victim.transport.company().some(({ key }) => key !== undefined));
  expect(victim.company()).toMatchObject({ members: [], ahead: { members: [] }, silent: { members: [0] } });
});

test('the round of the cut before, which a final cut does not prove, is not taken from whoever hands it over', () => {
  const { state, feed } = { state: createState(5, committee, SELF), feed: step };
  const votes = OTHERS.map((member) => voteOf(5, PRECOMMIT, member));
  const proof = { kind: PRECOMMIT, height: 5, round: 0, cut: cutOf(5), votes } as const;
  const proposal = { ...proposalOf(5, NO_SIGNATURE), lastRound: 77 };
  feed(state, { type: 'finalized', finalized: { proof, proposal } });
  expect(state.values.get(cutOf(5))?.proposal.lastRound).toBe(0);
});

type Key = ReturnType<typeof developmentKey>;
const opened: Overlay[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** Nodes that prove their keys and say what height they are at, each at an address of its own. */
const CHAIN = new Uint8Array(48).fill(1);
async function open(
  host: string,
  neighbours: ListenAddress[],
  seats: Committee,
  { key, ...said }: { says?: number | undefined; key?: ReturnType<typeof developmentKey> } = {},
) {
  const says = 'says' in said ? said.says : 5;
  const signer = key && {
    publicKey: key.publicKey,
    sign: (message: Bytes) => signMessageAside(key.privateKey, message),
  };
  const transport = new Overlay(
    { chainId: CHAIN, binds: [{ host, port: 0 }], neighbours },
    { log: silentLog, steady: steadyMillis, isNear: () => false, members: () => seats.members, signer },
  );
  const [address] = await transport.listen();
  opened.push(transport);
  const receivers = new Receivers(transport);
  const heard = new Set<Peer>();
  transport.start({
    joined: (peer) => {
      if (says === undefined) return;
      transport.send(peer, encodeMessage({ type: 'have', have: haveOf(createState(says, seats, -1)) }));
    },
    left: (peer) => receivers.left(peer),
    message: (peer, bytes) => {
      const message = decodeMessage(bytes);
      if (message.type !== 'have') return;
      receivers.isAt(peer, message.have.height);
      heard.add(peer);
    },
  });
  return { transport, address: address as ListenAddress, company: () => receivers.company(seats, 5), heard };
}

const keysOf = (count: number) => Array.from({ length: count }, (_, member) => developmentKey(validatorName(member)));
const seatsOf = (keys: readonly ReturnType<typeof developmentKey>[], stakes: readonly bigint[]) =>
  new Committee(
    new Uint8Array(48),
    keys.map(({ publicKey }, member) => ({ publicKey, stake: stakes[member] as bigint })),
  );

test('a neighbour that the operator named and that proves nothing has no stake, however often it connects', async () => {
  const named = await open('127.0.0.1', [], committee);
  const victim = await open('127.0.0.1', [named.address], committee);
  const again = Array.from({ length: 3 }, () => open('127.0.0.1', [victim.address], committee));
  await Promise.all(again);
  // Each says where it is some time after it is known.
  await until(() => victim.transport.known().length === 4 && victim.heard.size === 4);
  expect(victim.company()).toMatchObject({ members: [], named: 1, ahead: { members: [], named: 0 } });
});

test('both ends of one connection know whom they speak to, and whoever is dialled and dials counts once', async () => {
  const keys = keysOf(4);
  const seats = seatsOf(keys, [10n, 10n, 10n, 10n]);
  const [first, second] = [await open('127.0.0.11', [], seats, { key: keys[0] as Key }), { key: keys[1] as Key }];
  const dialler = await open('127.0.0.12', [first.address], seats, second);
  await until(() => first.company().members.length === 1 && dialler.company().members.length === 1);
  expect([first.company().members, dialler.company().members]).toEqual([[1], [0]]);
  // The same member, at another address and in the other direction, says something else: it counts once, as it says it is further.
  await open('127.0.0.13', [dialler.address], seats, { key: keys[0] as Key, says: 1_000 });
  await until(() => dialler.company().ahead.members.length === 1);
  expect(dialler.company()).toMatchObject({ members: [], named: 0, ahead: { members: [0], named: 0 } });
});

test('many seats with little stake, all of them dialled, say that they are further: they delay the start of a validator no more than their stake does', async () => {
  const keys = keysOf(9);
  const seats = seatsOf(keys, [1_000n, 1_000n, 1_000n, 1n, 1n, 1n, 1n, 1n, 1n]);
  const others = await Promise.all(
    [0, 2, 3, 4, 5, 6, 7, 8].map((member) =>
      open(`127.0.0.${20 + member}`, [], seats, { key: keys[member] as Key, says: member > 2 ? 1_000 : 5 }),
    ),
  );
  const victim = await open(
    '127.0.0.10',
    others.map(({ address }) => address),
    seats,
    { key: keys[SELF] as Key },
  );
  const isThere = ({ members, named, ahead }: ReturnType<typeof victim.company>) =>
    members.length + named === 2 && ahead.members.length + ahead.named === 6;
  await until(() => isThere(victim.company()));
  expect(new Started(4, 5, undefined, undefined, seats).ticks(victim.company(), 1_000)).toBe(COVERED_TICKS);
});

test('more than a third of the stake is further, and each of it keeps saying so: a neighbour that caught up is known to have', async () => {
  const state = createState(9, committee, 0);
  const told = step(state, { type: 'have', have: haveOf(createState(5, committee, SELF)), from: 'behind' });
  expect(told).toMatchObject([{ do: 'serve', to: 'behind', height: 5 }]);
  // Nothing of that height is kept: the own height goes instead.
  const nothing = { cut: () => undefined, certificate: () => undefined } as unknown as CutLedger;
  expect(servedOf(nothing, 5, state)).toMatchObject({ type: 'have', have: { height: 9 } });
});

test('what a validator waits for is in its log, with a remedy: nobody there, few, others further, a store that is behind the log of a committee of one', () => {
  const lines: { message: string; fields: Record<string, unknown> }[] = [];
  const warn = (message: string, fields: Record<string, unknown>) => void lines.push({ message, fields });
  const nobody = { members: [], named: 0 };
  const said = (state: ReturnType<typeof createState>, company: Company) => {
    lines.length = 0;
    const log = new SigningLog({ ...silentLog, warn } as typeof silentLog);
    for (let tick = 0; tick < 120; tick++) log.tick(state, { ...company });
    expect(lines.every(({ fields }) => String(fields.advice).length > 20)).toBe(true);
    return lines.map(({ message }) => message.replace(/.*: /, ''));
  };
  const { state } = new Started(-1);
  expect(said(state, nobody)[1]).toMatch(/^no member/);
  expect(said(state, ONE)[1]).toMatch(/third of the stake or less/);
  expect(said(state, { ...ONE, ahead: { members: [0, 2], named: 0 } })[1]).toMatch(/further, and do not send/);
  expect(said(state, { ...nobody, taken: ALL })[1]).toMatch(/^another process with its key/);
  expect(said(state, ALL)).toEqual([]);
  const one = committeeOf(1);
  const old = { lockedRound: -1, locked: NIL, validRound: -1, valid: NIL, polkas: [], proposals: [] };
  const alone = openState(5, one, 0, undefined, { ...old, height: 9, messages: [] });
  listenFirst(alone, 9);
  expect(said(alone, nobody)).toHaveLength(2);
  expect(lines[0]).toMatchObject({ fields: { height: 5, log_height: 9 } });
  // And one whose log covers the height listens too: its key may run elsewhere.
  const covered = openState(5, one, 0, undefined, undefined);
  listenFirst(covered, 4);
  step(covered, { type: 'begin' });
  for (let tick = 1; tick < COVERED_TICKS; tick++) step(covered, { type: 'tick', company: nobody });
  expect(covered.step).toBe('new');
  step(covered, { type: 'tick', company: nobody });
  expect(covered.step).toBe('propose');
});
