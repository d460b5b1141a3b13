/** A member that asks for what it lacks (consensus rule 16) on as many connections as it gets: it is answered as one member. */
import { expect, onTestFinished, test } from 'vitest';
import { ANSWERS_PER_TICK } from '../../node/consensus/engine/anti-entropy.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { haveAt } from '../consensus/have-at.ts';
import { until } from '../until.ts';

test('a member is answered as often on six direct connections as on one, and as often on all its circuits together; neither takes from the other', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  for (let member = 0; member < MEMBERS; member++) await driven.start(`m${member}`, member);
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
  // In one turn of the event loop, so that no tick is between them; the relays first, which may have held them back.
  for (const name of [...circuits, ...direct])
    for (let times = 0; times < 3; times++) network.deliver(name, 'm0', haveAt(1));
  network.deliver('m2', 'm0', haveAt(1));
  const of = (names: readonly string[]) => names.reduce((sum, name) => sum + (answers.get(name) ?? 0), 0);
  await until(() => of(direct) >= ANSWERS_PER_TICK && of(circuits) >= ANSWERS_PER_TICK);
  await driven.stop('m0');
  expect([of(direct), of(circuits)]).toEqual([ANSWERS_PER_TICK, ANSWERS_PER_TICK]);
});
