/** Payments and slashing in small steps (ledger rules 66 and 68): whatever the number of visits in a cut, and whatever happens in between, the sums are those of one step. */
import { expect, test } from 'vitest';
import { committeeOf } from '../../node/ledger/staking/committee.ts';
import { StakingLayer, type StakingReads } from '../../node/ledger/staking/layer.ts';
import { newPosition } from '../../node/ledger/staking/operations.ts';
import { beginWalk, isPaymentDue, payVisits } from '../../node/ledger/staking/payment.ts';
import { type Position, rolled } from '../../node/ledger/staking/position.ts';
import { type Sweep, slash, sweep, sweepReached } from '../../node/ledger/staking/slashing.ts';
import type { Validator } from '../../node/ledger/staking/validator.ts';
import { PositionIndex } from '../../node/store/staking-sets.ts';
import { compareBytes, utf8 } from '../../protocol/bytes.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { addressOf, COIN, endpointOf, keyOf } from './rig.ts';

const INTERVAL = 24;
const PLACE = { height: 5 * INTERVAL + 3, intervalCuts: INTERVAL };

const record = (name: string, stake: bigint): Validator => ({
  id: validatorId(keyOf(name)),
  owner: addressOf(name),
  key: keyOf(name),
  keyFrom: 0,
  formerKeys: [],
  endpoint: endpointOf(name),
  commission: 250,
  seatFrom: 0,
  heartbeatEpoch: 4,
  jailedUntil: 0,
  stake,
  exitHeight: 0,
  slashHeight: 0,
});

const NOTHING: StakingReads = {
  validator: () => undefined,
  position: () => undefined,
  isKeyUsed: () => false,
  activeValidators: () => [],
  delegations: () => [],
};

test('delegations as a cut sees them are those of the set before it, less what it removed, with what it added', () => {
  const random = randomOf(seed);
  const validator = validatorId(keyOf('v'));
  const owner = addressOf('v');
  const positionOf = (i: number): Position => {
    const named = {
      id: delegationId(utf8(`${i}`)),
      kind: 'delegation' as const,
      validator,
      owner,
      rewardAddress: owner,
    };
    return newPosition(named, 100n * COIN, 2);
  };
  const all = Array.from({ length: 40 }, (_, i) => positionOf(i)).sort((a, b) => compareBytes(a.id, b.id));
  for (let round = 0; round < 50; round++) {
    const before = all.filter(() => random(2) === 0);
    const layer = new StakingLayer({
      ...NOTHING,
      position: (id) => before.find((position) => compareBytes(position.id, id) === 0),
      delegations: (_, after, limit) =>
        before
          .map(({ id }) => id)
          .filter((id) => after === undefined || compareBytes(id, after) > 0)
          .slice(0, limit),
    });
    const now = new Set(before);
    for (const position of all.filter(() => random(3) === 0))
      if (now.delete(position)) layer.removePosition(position);
      else {
        now.add(position);
        layer.putPosition(position);
      }
    const ids = all.filter((position) => now.has(position)).map(({ id }) => id);
    for (const limit of [1, 3, 10, 100])
      for (const after of [undefined, all[random(40)]?.id])
        expect(layer.delegations(validator, after, limit)).toEqual(
          ids.filter((id) => after === undefined || compareBytes(id, after) > 0).slice(0, limit),
        );
  }
});

/** Three validators with 40, 0 and 25 delegations of different sizes, all bonded before epoch 4. */
function world(random: (limit: number) => number) {
  const layer = new StakingLayer(NOTHING);
  const members = [40, 0, 25].map((delegations, v) => {
    const validator = validatorId(keyOf(`v${v}`));
    const owner = addressOf(`v${v}`);
    let stake = 200_000n * COIN;
    const bonded = (id: Uint8Array, kind: Position['kind'], amount: bigint) =>
      layer.putPosition(newPosition({ id, kind, validator, owner, rewardAddress: owner }, amount, 2));
    bonded(selfBondId(validator), 'self_bond', stake);
    for (let i = 0; i < delegations; i++) {
      const amount = BigInt(100 + random(5_000)) * COIN + BigInt(random(999));
      bonded(delegationId(utf8(`${v} ${i}`)), 'delegation', amount);
      stake += amount;
    }
    layer.putValidator(record(`v${v}`, stake));
    return { validatorId: validator, publicKey: keyOf(`v${v}`), stake, earning: stake, commission: 250 };
  });
  return { layer, committee: committeeOf(4, members) };
}

const POOL = 123_456_789_012_345n;

test.each([1, 2, 3, 7, 41, 42, 64])(
  '%i visits a cut pay what one step pays, whatever happens to the positions meanwhile',
  (visits) => {
    const random = randomOf(seed);
    const whole = world(randomOf(seed));
    const all = payVisits(beginWalk(whole.committee, POOL, () => true)!, whole.committee, whole.layer, 1_000);
    expect(all.done).toBe(true);
    expect(all.payouts.length).toBe(68);
    const { layer, committee } = world(randomOf(seed));
    let walk = beginWalk(committee, POOL, () => true)!;
    const paid = new Map<string, bigint>();
    const order: string[] = [];
    for (let cuts = 0, done = false; !done; cuts++) {
      const step = payVisits(walk, committee, layer, visits);
      expect(step.payouts.length).toBeLessThanOrEqual(visits);
      for (const { positionId, amount } of step.payouts) {
        order.push(Buffer.from(positionId).toString('hex'));
        paid.set(Buffer.from(positionId).toString('hex'), amount);
      }
      ({ walk, done } = step);
      // Somebody bonds, somebody unbonds, in the epoch that pays.
      const { validatorId: validator } = committee.members[random(3)]!;
      const owner = addressOf('late');
      layer.putPosition(
        newPosition(
          { id: delegationId(utf8(`late ${cuts}`)), kind: 'delegation', validator, owner, rewardAddress: owner },
          500n * COIN,
          5,
        ),
      );
      const [some] = layer.delegations(committee.members[0]!.validatorId, undefined, 40).slice(random(40));
      const position = some && layer.position(some);
      if (position)
        layer.putPosition({ ...rolled(position, 5), principal: position.principal / 2n, releaseHeight: 999 });
      expect(cuts).toBeLessThan(400);
    }
    expect(order.sort()).toEqual(all.payouts.map(({ positionId }) => Buffer.from(positionId).toString('hex')).sort());
    for (const { positionId, amount } of all.payouts)
      expect(paid.get(Buffer.from(positionId).toString('hex'))).toBe(amount);
    expect(walk.paid).toBe(all.walk.paid);
    expect(walk.paid).toBeLessThanOrEqual(POOL);
    expect(POOL - walk.paid).toBeLessThan(100n);
  },
);

test('an empty self-bond stays until it was paid what it earned', () => {
  const { layer, committee } = world(randomOf(seed));
  const walk = beginWalk(committee, POOL, () => true)!;
  const { validatorId: id } = committee.members[2]!;
  expect(isPaymentDue(walk, committee, id)).toBe(true);
  slash(layer, layer.validator(id)!, { ...PLACE, isPaymentDue: (each) => isPaymentDue(walk, committee, each) });
  expect(layer.position(selfBondId(id))).toMatchObject({ principal: 0n, atPrevious: 200_000n * COIN });
  const { payouts } = payVisits(walk, committee, layer, 1_000);
  const own = payouts.find(({ positionId }) => Buffer.compare(positionId, selfBondId(id)) === 0);
  expect(own?.amount).toBeGreaterThan((POOL * 200_000n * COIN) / walk.total);
  expect(layer.position(selfBondId(id))).toBeUndefined();
  expect(isPaymentDue(undefined, committee, id)).toBe(false);
});

test.each([1, 3, 39, 40, 41])('slashing in steps of %i burns the same, and locks what it has not reached', (visits) => {
  const { layer, committee } = world(randomOf(seed));
  const { validatorId: id, stake } = committee.members[0]!;
  const before = layer.delegations(id, undefined, 100).map((each) => layer.position(each)!);
  layer.bonded = stake;
  slash(layer, layer.validator(id)!, { ...PLACE, isPaymentDue: () => false });
  let sweeps: readonly Sweep[] = [{ validator: id, height: PLACE.height, reached: undefined }];
  let cuts = 0;
  while (sweeps.length > 0) {
    const reached = before.filter((position) => sweepReached(sweeps, position)).length;
    expect(reached).toBe(Math.min(before.length, cuts * visits));
    sweeps = sweep(layer, sweeps, visits, { ...PLACE, height: PLACE.height + cuts++ });
    expect(cuts).toBeLessThan(100);
  }
  let burned = 200_000n * COIN;
  for (const position of before) {
    expect(layer.position(position.id)?.principal).toBe(position.principal - position.principal / 10n);
    burned += position.principal / 10n;
  }
  expect(layer.burned).toBe(burned);
  expect([layer.bonded, layer.unbonding]).toEqual([0n, stake - burned]);
});

test('the index of delegations gives pages in order, with and without the cut that is being made', () => {
  const random = randomOf(seed);
  const index = new PositionIndex();
  const validator = validatorId(keyOf('v'));
  const names = new Set<string>();
  for (let i = 0; i < 500; i++) {
    const id = delegationId(utf8(`${random(200)}`));
    const name = Buffer.from(id).toString('hex');
    if (names.has(name)) index.delete(validator, id);
    else index.add(validator, id);
    if (!names.delete(name)) names.add(name);
  }
  const sorted = [...names].sort();
  expect(index.count(validator)).toBe(sorted.length);
  const reads: StakingReads = {
    ...NOTHING,
    position: (id) => (names.has(Buffer.from(id).toString('hex')) ? at(id) : undefined),
    delegations: (_, after, limit) => index.after(validator, after, limit),
  };
  const at = (id: Uint8Array): Position =>
    newPosition({ id, kind: 'delegation', validator, owner: addressOf('o'), rewardAddress: addressOf('o') }, COIN, 0);
  const layer = new StakingLayer(reads);
  const expected = new Set(sorted);
  for (let i = 0; i < 60; i++) {
    const id = delegationId(utf8(`${random(260)}`));
    const position = layer.position(id);
    if (position === undefined) layer.putPosition(at(id));
    else layer.removePosition(position);
    const name = Buffer.from(id).toString('hex');
    if (!expected.delete(name)) expected.add(name);
  }
  for (const page of [1, 2, 5, 50]) {
    const seen: string[] = [];
    for (let after: Uint8Array | undefined; ; ) {
      const ids = layer.delegations(validator, after, page);
      seen.push(...ids.map((id) => Buffer.from(id).toString('hex')));
      after = ids.at(-1);
      if (ids.length < page) break;
    }
    expect(seen).toEqual([...expected].sort());
  }
});
