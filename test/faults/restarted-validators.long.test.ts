/**
 * Validators that start again with less than they had: with a new disk and a clock that is behind, from an old copy of the whole data directory, or all at once after a power cut, with what their disks had. Real ledgers, stores, logs and signatures over a
 * network in memory; the power cut also in the simulator, where time can be told.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { NIL, PREVOTE, type Vote } from '../../node/consensus/engine/votes.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { CUT_MILLIS, DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { scenarioOf } from '../consensus/scenario.ts';
import { simulate } from '../consensus/simulation.ts';
import { evenLoss } from '../consensus/world.ts';
import { copyOpenStore } from '../open-store.ts';
import { until } from '../until.ts';

const VICTIM = 'm1';
let network: DrivenNetwork;
/** By member, height, round and kind: what was voted for. */
let cuts: Map<string, Set<string>>;
/** Final cuts are sent to the victim. */
let isServed: boolean;
/** Votes that the victim sent. */
let sent: Vote[];

beforeEach(() => {
  network = new DrivenNetwork();
  cuts = new Map();
  sent = [];
  isServed = true;
  network.network.carries = (from, to, bytes) => {
    if (bytes[0] !== MESSAGE_TYPES.vote) return isServed || to !== VICTIM || bytes[0] !== MESSAGE_TYPES.finalized;
    const { vote } = decodeMessage(bytes) as Message & { type: 'vote' };
    const key = `${vote.member}/${vote.height}/${vote.round}/${vote.kind}`;
    cuts.set(key, (cuts.get(key) ?? new Set()).add(vote.cut));
    if (from === VICTIM && vote.member === network.running.get(VICTIM)?.driver.state.self) sent.push(vote);
    return true;
  };
});
afterEach(async () => {
  await network.close();
});

const startAll = async () => {
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
};
const heightOf = (name: string): number => network.running.get(name)?.node.chain.head().height ?? 0;
const twice = () => [...cuts].filter(([, voted]) => voted.size > 1);

test('a new disk and a clock ten minutes behind: sent its own old votes by a stranger, a validator does not stop, and signs again after them', async () => {
  await startAll();
  await until(() => heightOf(VICTIM) >= 10);
  await network.stop(VICTIM);
  rmSync(join(network.directory, VICTIM), { recursive: true });
  const old = [...sent];
  sent.length = 0;
  const stranger = network.network.transport('stranger');
  stranger.start({ joined: () => undefined, left: () => undefined, message: () => undefined });
  const { driver } = await network.start(VICTIM, 1, { now: () => steadyMillis() - 600_000 });
  const again = setInterval(() => {
    for (const vote of old) network.network.deliver('stranger', VICTIM, encodeMessage({ type: 'vote', vote }));
  }, CUT_MILLIS / 30);
  try {
    await until(() => driver.state.stopped || sent.length > 8);
  } finally {
    clearInterval(again);
    await stranger.close();
  }
  expect(driver.state.stopped).toBe(false);
  expect(Math.min(...sent.map(({ height }) => height))).toBeGreaterThan(Math.max(...old.map(({ height }) => height)));
  expect(twice()).toEqual([]);
});

test('an old copy of the whole data directory: nothing is signed where the key voted before, neither alone nor when the others come, nor while they do not keep what it lacks', async () => {
  await startAll();
  await until(() => heightOf(VICTIM) >= 3);
  await network.stop(VICTIM);
  const [directory, copy] = [join(network.directory, VICTIM), join(network.directory, 'copy')];
  cpSync(directory, copy, { recursive: true });
  await network.start(VICTIM, 1);
  await until(() => sent.some(({ height }) => height >= 10));
  for (const name of [...network.running.keys()]) await network.stop(name);
  rmSync(directory, { recursive: true });
  cpSync(copy, directory, { recursive: true });

  const signed: number[] = [];
  const { driver } = await network.start(VICTIM, 1, {
    watch: (_, effects, { height }) => {
      for (const effect of effects) if (effect.do === 'sign') signed.push(height);
    },
  });
  // Much longer than a round.
  await sleep(10 * CUT_MILLIS);
  expect([signed, driver.state.stopped]).toEqual([[], false]);
  isServed = false;
  const before = driver.state.height;
  for (let member = 0; member < MEMBERS; member++) if (member !== 1) await network.start(`m${member}`, member);
  const reached = heightOf('m0') + 10;
  await until(() => heightOf('m0') >= reached);
  expect([signed, driver.state.height]).toEqual([[], before]);
  isServed = true;
  await until(() => driver.state.height > reached);
  expect(twice()).toEqual([]);
});

test('a power cut of all while they are locked on a cut: its blocks are on the disk as its lock is, and the chain goes on with it', async () => {
  let carried: 'all' | 'no proposals' | 'few precommits for a cut' = 'all';
  network.network.carries = (_from, to, bytes) => {
    if (bytes[0] === MESSAGE_TYPES.proposal) return carried !== 'no proposals';
    if (bytes[0] !== MESSAGE_TYPES.vote || carried !== 'few precommits for a cut') return true;
    const { vote } = decodeMessage(bytes) as Message & { type: 'vote' };
    // With its own these are two of four, so no cut is final. With none, a round in which one member was too late to lock would not end: nobody would have three.
    const heard = ((network.running.get(String(to))?.driver.state.self ?? 0) + 1) % MEMBERS;
    return vote.kind === PREVOTE || vote.cut === NIL || vote.member === heard;
  };
  await startAll();
  // The store as it was when it last waited for the disk: what comes after is lost where the power is.
  const directoryOf = (name: string, what: string) => join(network.directory, name, what);
  for (const [name, { node }] of network.running) {
    const synced = async (done: Promise<void>) => {
      await done;
      rmSync(directoryOf(name, 'synced'), { recursive: true, force: true });
      copyOpenStore(directoryOf(name, 'store'), directoryOf(name, 'synced'));
    };
    const { commit, sync } = node.ledger;
    Object.assign(node.ledger, {
      commit: (...cut: Parameters<typeof commit>) => synced(commit(...cut)),
      sync: () => synced(sync()),
    });
  }
  const names = [...network.running.keys()];
  const states = () => [...network.running.values()].map(({ driver }) => driver.state);
  const top = Math.max(...names.map(heightOf)) + 2;
  await until(() => names.every((name) => heightOf(name) >= top));
  carried = 'no proposals';
  await until(() => states().every(({ round }) => round > 0));
  const id = await mineOn(network.running.get(VICTIM)?.node as ConsensusNode, developmentKey('alice').address);
  await until(() => [...network.running.values()].every(({ node }) => node.chain.block(id) !== undefined));
  const height = heightOf(VICTIM);
  // Proposals that were made before the block came are over.
  const begun = Math.max(...states().map(({ round }) => round));
  await until(() => states().every(({ round }) => round > begun));
  carried = 'few precommits for a cut';
  await until(() => states().filter(({ lockedRound }) => lockedRound >= 0).length === MEMBERS);
  for (const name of names) {
    await network.stop(name);
    rmSync(directoryOf(name, 'store'), { recursive: true });
    cpSync(directoryOf(name, 'synced'), directoryOf(name, 'store'), { recursive: true });
  }
  carried = 'all';
  await startAll();
  await until(() => names.every((name) => heightOf(name) > height + 1));
  const registered = network.running.get(VICTIM)?.node.chain.block(id)?.registeredHeight;
  expect(registered).toBeGreaterThan(height);
});

test('after a power cut all start again within a few seconds, and the chain goes on a few seconds later', () => {
  const LONGEST_START = 3_000;
  let slowest = 0;
  for (let seed = 0; seed < 60; seed++) {
    const calm = { loss: evenLoss(0), twice: 0, slowest: 60, stray: 0 };
    const fair = { partitions: false, ambushes: false, plots: false, sides: undefined, crashes: 0, cutsAfter: 1 };
    const clocks = new Array<number>(10).fill(0);
    const liars = new Map<number, never>();
    // One committee: a member that gets its seat in those seconds listens first, and others wait for its proposals in vain.
    const { naps: _, ...awake } = scenarioOf(seed);
    const lasting = { epochCuts: 1_000_000, executionMillis: 5, powerCut: true };
    const scenario = { ...awake, ...fair, ...lasting, weather: calm, clocks, liars };
    const { failure, recoveryMillis, restarts } = simulate(seed, { scenario });
    expect([failure, restarts]).toEqual([undefined, scenario.nodes]);
    slowest = Math.max(slowest, recoveryMillis);
  }
  expect(slowest).toBeLessThan(LONGEST_START + 5_000);
});
