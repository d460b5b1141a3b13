/** Certificates with false votes, each from a stranger at an address of its own: how many signatures of them are checked does not grow with their number, and a member is heard all the same. */
import { expect, onTestFinished, test } from 'vitest';
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { PRECOMMIT } from '../../node/consensus/engine/votes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { until } from '../until.ts';

const STRANGERS = 500;
/** Signatures that are checked at once, of all strangers together. */
const CHECKED = 512;
const MEMBER = 'a member';

const place = { kind: PRECOMMIT, height: 1, round: 0, cut: 'x'.repeat(48) } as const;
const votes = Array.from({ length: MEMBERS }, (_, member) => ({ ...place, member, signature: new Uint8Array(3_309) }));
const certificate = encodeMessage({ type: 'proof', proof: { ...place, votes } });

test('ever new strangers with false certificates use up what strangers share, and no more; a member is not delayed', async () => {
  const driven = new DrivenNetwork();
  onTestFinished(() => driven.close());
  const { network } = driven;
  const now: number = steadyMillis();
  // Time that stands still brings nothing back.
  await driven.start('node', undefined, { steady: () => now, wall: () => now });
  network.transport(MEMBER).start({ joined: () => undefined, left: () => undefined, message: () => undefined });
  for (let i = 0; i < STRANGERS; i++) network.deliver(`stranger ${i}`, 'node', certificate);
  network.deliver(MEMBER, 'node', certificate);
  await until(() => network.dropped.some(({ peer }) => peer === MEMBER));
  // Who sent one that was checked lost its place; the others were not even read to the end.
  expect(network.dropped).toHaveLength(CHECKED / MEMBERS + 1);
});
