/** A member that asks for what it lacks (consensus rule 16) on as many connections as it gets: it is answered as one member. */
import { expect, onTestFinished, test } from 'vitest';
import { ANSWERS_PER_TICK } from '../../node/consensus/engine/anti-entropy.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { haveAt } from '../consensus/have-at.ts';
import { until } from '../until.ts';

test('a member is answered as often on six direct connections as on one, and as often on all its circuits together; neither takes from the other', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  let atTick: (() => void) | undefined;
  await driven.start('m0', 0, { watch: ({ type }) => type === 'tick' && atTick?.() });
  for (let member = 1; member < MEMBERS; member++) await driven.start(`m${member}`, member);
  const direct = Array.from({ length: 6 }, (_, i) => `direct ${i}`);
  const circuits = Array.from({ length: 4 }, (_, i) => `circuit ${i}`);
  const answers = new Map<string, number>();
  for (const name of [...direct, ...circuits]) {
    network.keys.set(name, network.keys.get('m1') as Bytes);
    if (circuits.includes(name)) network.relayed.add(name);
    const count = () => void answers.set(name, (answers.get(name) ?? 0) + 1);
    network.transport(name).start({
      joined: () => undefined,
      left: () => undefined,
      message: (from, bytes) => from === 'm0' && bytes[0] === MESSAGE_TYPES.finalized && count(),
    });
  }
  await until(() => [...driven.running.values()].every(({ node }) => node.chain.head().height >= 2));
  // Its own questions would count with these, also those of the same tick.
  await driven.stop('m1');
  // In one turn of the event loop, so that no tick is between them; the relays first, which may have held them back.
  atTick = () => {
    atTick = undefined;
    for (const name of [...circuits, ...direct])
      for (let times = 0; times < 3; times++) network.deliver(name, 'm0', haveAt(1));
    network.deliver('m2', 'm0', haveAt(1));
  };
  const of = (names: readonly string[]) => names.reduce((sum, name) => sum + (answers.get(name) ?? 0), 0);
  await until(() => of(direct) >= ANSWERS_PER_TICK && of(circuits) >= ANSWERS_PER_TICK);
  await driven.stop('m0');
  expect([of(direct), of(circuits)]).toEqual([ANSWERS_PER_TICK, ANSWERS_PER_TICK]);
});

test('most members that ask at every tick are answered as far as what all share goes, and one that asks now and then has its part', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  const liars = Array.from({ length: 60 }, (_, i) => `liar ${i}`);
  let [still, ticks, toLiars, toHonest] = [undefined as number | undefined, 0, 0, 0];
  const ask = () => {
    if (still !== undefined && ++ticks <= 10) for (const liar of liars) network.deliver(liar, 'm0', haveAt(1));
  };
  await driven.start('m0', 0, {
    steady: () => still ?? steadyMillis(),
    watch: ({ type }) => type === 'tick' && ask(),
  });
  for (let member = 1; member < MEMBERS; member++) await driven.start(`m${member}`, member);
  for (const [i, name] of [...liars, 'honest'].entries()) {
    network.keys.set(name, new Uint8Array(1_952).fill(i));
    const message = (from: unknown, bytes: Bytes) => {
      if (from !== 'm0' || bytes[0] !== MESSAGE_TYPES.finalized) return;
      if (name === 'honest') toHonest++;
      else toLiars++;
    };
    network.transport(name).start({ joined: () => undefined, left: () => undefined, message });
  }
  await until(() => driven.running.get('m0')?.node.chain.head().height === 2);
  // Nothing is regained from now on.
  still = steadyMillis();
  await until(() => ticks > 10);
  network.deliver('honest', 'm0', haveAt(1));
  await until(() => toHonest === 1);
  expect(toLiars).toBeGreaterThan(0);
  expect(toLiars).toBeLessThan(64 + 3 * liars.length);
});
