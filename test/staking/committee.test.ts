/** More validators than seats: the specification's row 'Committee size' (ledger rule 63). */
import { expect, test } from 'vitest';
import { compareBytes, toHex } from '../../protocol/bytes.ts';
import { delegationId, validatorId } from '../../protocol/staking/names.ts';
import { addressOf, COIN, endpointOf, genesisOf, keyOf, NO_SIGNATURE, Rig } from './rig.ts';

const INTERVAL = 24;
const SEATS = 64;
const ALL = (1n << 64n) - 1n;
const idOf = (name: string): Uint8Array<ArrayBuffer> => validatorId(keyOf(name));
const hexOf = (name: string): string => toHex(idOf(name));

/** 60 with more and more stake, and ten that have the same: only four of these can sit. */
const RICH = Array.from({ length: 60 }, (_, i) => ({ name: `rich ${i}`, amount: BigInt(200_000 + i) * COIN }));
const EQUAL = Array.from({ length: 10 }, (_, i) => ({ name: `equal ${i}`, amount: 100_000n * COIN }));

const committee = (rig: Rig): string[] =>
  rig.ledger.state.stake.committee.members.map(({ validatorId: id }) => toHex(id));

/** Every epoch each of them sends its heartbeat. */
function liveThrough(rig: Rig, names: readonly string[]): void {
  const { epoch } = rig;
  const beats = names.map((name) => rig.transaction({ name: 'heartbeat', validator: idOf(name), epoch }));
  while (beats.length > 0)
    rig.next(
      beats.splice(0, 8).filter((beat) => beat !== undefined),
      ALL,
    );
  while (rig.epoch === epoch) rig.next([], ALL);
}

test('Limits: `Committee size`: of 70 validators the 64 with the most stake sit, of equals those with the lower identifier; the others earn nothing', () => {
  const rig = new Rig(genesisOf(INTERVAL, [...RICH, ...EQUAL]));
  const names = [...RICH, ...EQUAL].map(({ name }) => name);
  const equals = EQUAL.map(({ name }) => name).sort((a, b) => compareBytes(idOf(a), idOf(b)));
  const rich = RICH.map(({ name }) => name).reverse();
  expect(committee(rig)).toEqual([...rich, ...equals.slice(0, 4)].map(hexOf));

  // The one behind the last seat is given one coin more than its equals: it sits before them, and the last of them has no seat.
  const [, , , displaced = '', next = ''] = equals;
  const owner = addressOf('delegator');
  const bond = rig.transaction({
    name: 'bond',
    validator: idOf(next),
    owner,
    rewardAddress: owner,
    amount: 100n * COIN,
  });
  expect(rig.next([bond as NonNullable<typeof bond>], ALL).transactions).toMatchObject([{ outcome: 'executed' }]);
  // A newcomer with more than all others waits for the second epoch after its registration.
  const amount = 300_000n * COIN;
  const register = rig.transaction({
    name: 'register',
    consensusKey: keyOf('newcomer'),
    possession: NO_SIGNATURE,
    owner,
    rewardAddress: owner,
    amount,
    commission: 0,
    endpoint: endpointOf('newcomer'),
  });
  expect(rig.next([register as NonNullable<typeof register>], ALL).transactions).toMatchObject([
    { outcome: 'executed' },
  ]);
  liveThrough(rig, []);
  const second = [...rich, next, ...equals.slice(0, 3)];
  expect(committee(rig)).toEqual(second.map(hexOf));
  expect(committee(rig)).not.toContain(hexOf(displaced));

  liveThrough(rig, [...names, 'newcomer']);
  expect(committee(rig)).toEqual(['newcomer', ...second.slice(0, SEATS - 1)].map(hexOf));

  // What the second epoch collected goes to its members and to the delegation, and to nobody else.
  const paid = new Set<string>();
  const delegation = toHex(delegationId((bond as NonNullable<typeof bond>).id));
  for (const { epoch } = rig; rig.epoch === epoch; )
    for (const { validatorId: id, positionId, interval } of rig.next([], ALL).stakePayouts) {
      expect(interval).toBe(1);
      paid.add(toHex(positionId) === delegation ? 'delegation' : toHex(id));
    }
  expect([...paid].sort()).toEqual(['delegation', ...second.map(hexOf)].sort());
});
