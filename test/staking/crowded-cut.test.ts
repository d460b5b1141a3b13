/** One cut with 1,000 operations while the last interval is being paid, 64 positions a cut: the value equation holds, and executing it again gives the same state. */
import { expect, test } from 'vitest';
import { nobodyYet } from '../../node/ledger/staking/attendance.ts';
import { committeeOf } from '../../node/ledger/staking/committee.ts';
import { newPosition } from '../../node/ledger/staking/operations.ts';
import { beginWalk } from '../../node/ledger/staking/payment.ts';
import type { Validator } from '../../node/ledger/staking/validator.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { delegationId, validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { addressOf, COIN, endpointOf, genesisOf, keyOf, NO_SIGNATURE, Rig } from './rig.ts';

const ALL = (1n << 64n) - 1n;
const DELEGATIONS = 300;
const anna = validatorId(keyOf('anna'));
const positions = Array.from({ length: DELEGATIONS }, (_, i) => delegationId(utf8(`crowd ${i}`)));
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Anna and 300 delegations to her, of which interval 0 is due. */
function crowded(): Rig {
  const rig = new Rig(genesisOf(INTERVAL_CUTS, [{ name: 'anna', amount: 1_000_000n * COIN, commission: 500 }], 1_300));
  const amount = 250n * COIN;
  const stake = 1_000_000n * COIN + BigInt(DELEGATIONS) * amount;
  rig.ledger.inject(
    (layer) => {
      layer.putValidator({ ...(layer.validator(anna) as Validator), stake });
      for (const [i, id] of positions.entries()) {
        const owner = addressOf(`owner ${i}`);
        const who = { id, kind: 'delegation' as const, validator: anna, owner, rewardAddress: owner };
        layer.putPosition({ ...newPosition(who, amount, 0), atStart: amount });
        layer.bonded += amount;
      }
    },
    ({ stake: before }) => {
      const member = { validatorId: anna, publicKey: keyOf('anna'), stake, earning: stake, commission: 500 };
      const committee = committeeOf(0, [member]);
      const walk = beginWalk(committee, before.pool, () => true);
      return { ...before, pool: 0n, committee, previous: committee, attendance: nobodyYet(1), ...(walk && { walk }) };
    },
  );
  return rig;
}

const times = (count: number, of: (i: number) => StakingOperation): StakingOperation[] =>
  Array.from({ length: count }, (_, i) => of(i));
const bond = (validator: Uint8Array): StakingOperation => ({
  name: 'bond',
  validator,
  owner: addressOf('x'),
  rewardAddress: addressOf('x'),
  amount: 100n * COIN,
});
const at = (i: number): Uint8Array => positions[i] as Uint8Array;
const POSSIBLE: readonly StakingOperation[] = [
  ...times(20, (i) => ({
    name: 'register',
    consensusKey: keyOf(`new ${i}`),
    possession: NO_SIGNATURE,
    owner: addressOf(`new ${i}`),
    rewardAddress: addressOf('x'),
    amount: 100_000n * COIN,
    commission: 0,
    endpoint: endpointOf(`new ${i}`),
  })),
  ...times(400, (i) => bond(validatorId(keyOf(`new ${i % 20}`)))),
  ...times(200, (i) => ({ name: 'reward_address', position: at(i), address: addressOf('moved') })),
  ...times(100, (i) => ({ name: 'unbond', position: at(200 + i), amount: 0n })),
  { name: 'commission', validator: anna, commission: 0 },
  ...times(2, (i) => ({ name: 'exit', validator: validatorId(keyOf(`new ${i}`)) })),
];
const REFUSED: readonly StakingOperation[] = [
  ...times(177, (i) => ({ name: 'withdraw', position: at(i) })),
  ...times(50, (i) => bond(delegationId(utf8(`nobody ${i}`)))),
  ...times(50, () => ({ name: 'heartbeat', validator: anna, epoch: 0 })),
];

test('1,000 operations and 64 payments in one cut, executed twice with one result', () => {
  const [rig, again] = [crowded(), crowded()];
  const transactions = [...POSSIBLE, ...REFUSED].map((operation) => {
    const transaction = rig.transaction(operation);
    if (transaction === undefined) throw new Error('the purse is empty');
    return transaction;
  });
  expect(transactions.length).toBe(1_000);
  const seen = new Set<string>();
  for (let cut = 0; cut < 5; cut++) {
    const carried = cut === 0 ? transactions : [];
    const effects = rig.next(carried, ALL);
    const { outputs, bonded, unbonding, workReserve, stakeReserve, burned, minted } = effects.figures;
    expect(outputs + bonded + unbonding + workReserve + stakeReserve + burned).toBe(minted);
    expect(again.next(carried, ALL).cutId).toEqual(effects.cutId);
    expect(again.ledger.state).toEqual(rig.ledger.state);
    // 300 delegations and the self-bond; what unbonds meanwhile is paid like all others, and to the address of the moment.
    expect(effects.stakePayouts.length).toBe(cut < 4 ? 64 : 45);
    for (const { positionId, rewardAddress } of effects.stakePayouts) {
      seen.add(hex(positionId));
      const i = positions.findIndex((each) => hex(each) === hex(positionId));
      if (i >= 0) expect(rewardAddress).toEqual(addressOf(i < 200 ? 'moved' : `owner ${i}`));
    }
    if (cut > 0) continue;
    const executed = effects.transactions.filter(({ outcome }) => outcome === 'executed');
    expect([executed.length, effects.transactions.length]).toEqual([POSSIBLE.length, 1_000]);
    // 20 self-bonds and 400 delegations came; two validators with 21 positions each and 100 of Anna's delegations unbond.
    expect(effects.figures.unbonding).toBe(2n * 102_000n * COIN + 100n * 250n * COIN);
    expect(effects.figures.bonded).toBe(1_075_000n * COIN + 2_040_000n * COIN - effects.figures.unbonding);
  }
  expect(seen.size).toBe(DELEGATIONS + 1);
  expect(rig.ledger.state.stake.walk).toBeUndefined();
});
