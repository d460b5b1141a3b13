/**
 * The life of a validator and its delegators, from genesis to the last withdrawal, on epochs of 24 cuts (ledger rules 60 to 69). Every amount is worked
 * out beside the ledger, to the atom.
 */
import { expect, test } from 'vitest';
import type { CutEffects, StakePayout } from '../../node/ledger/effects.ts';
import { asOf, type Validator } from '../../node/ledger/staking/validator.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { splitHalves } from '../../protocol/ledger/emission.ts';
import { delegationId, selfBondId, validatorId, withdrawalOutpoint } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { addressOf, COIN, endpointOf, FEE, genesisOf, keyOf, NO_SIGNATURE, Rig } from './rig.ts';

const INTERVAL = 24;
const ALL = (1n << 64n) - 1n;
const STAKE_OF_FEE = FEE - splitHalves(FEE).work;

const rig = new Rig(genesisOf(INTERVAL, [{ name: 'anna', amount: 1_000_000n * COIN }]));
/** What the pool of each interval collected, counted from the cuts alone. */
const pools = new Map<number, bigint>([[0, rig.ledger.state.stake.pool]]);
const paid: StakePayout[] = [];

function cut(operations: readonly StakingOperation[], signers: bigint): CutEffects {
  const transactions = operations.map((operation) => rig.transaction(operation));
  const effects = rig.next(
    transactions.filter((transaction) => transaction !== undefined),
    signers,
  );
  const interval = Math.floor(rig.height / INTERVAL);
  const fees = BigInt(effects.transactions.filter(({ outcome }) => outcome === 'executed').length) * STAKE_OF_FEE;
  pools.set(interval, (pools.get(interval) ?? 0n) + splitHalves(effects.subsidy).stake + fees);
  paid.push(...effects.stakePayouts);
  if (rig.height % INTERVAL === 0) rest(interval - 1);
  return effects;
}

/** Executes in the next cut; returns the transaction's identifier. */
function does(operation: StakingOperation, signers = ALL): Uint8Array {
  const [transaction] = cut([operation], signers).transactions;
  expect(transaction).toMatchObject({ outcome: 'executed' });
  return transaction?.id as Uint8Array;
}

function isRefused(operation: StakingOperation, detail: string): void {
  expect(cut([operation], ALL).transactions).toMatchObject([{ outcome: 'failed', detail }]);
}

/** Makes cuts until the next one is the first of the epoch. Everybody heartbeats, if they can and should. */
function until(epoch: number, signers: bigint = ALL, heartbeats: readonly Uint8Array[] = []): void {
  while (rig.height + 1 < epoch * INTERVAL) {
    const waiting = heartbeats.filter((id) => validator(id).heartbeatEpoch < rig.epoch);
    cut(
      waiting.map((id) => ({ name: 'heartbeat', validator: id, epoch: rig.epoch })),
      signers,
    );
  }
}

const validator = (id: Uint8Array): Validator =>
  asOf(rig.ledger.staking().validator(id) as Validator, rig.ledger.state.stake.committee.epoch);
const committee = (): string[] =>
  rig.ledger.state.stake.committee.members.map(({ validatorId: id }) =>
    id.every((b, i) => b === anna[i]) ? 'anna' : 'bert',
  );
/** What a position was paid for an interval, and to whom. */
const payment = (position: Uint8Array, interval: number): StakePayout | undefined =>
  paid.find((each) => each.interval === interval && Buffer.compare(each.positionId, position) === 0);
/** Rounding leaves atoms over, which join the pool of the interval in which it was paid. */
function rest(interval: number): void {
  const total = paid.filter((each) => each.interval === interval).reduce((sum, { amount }) => sum + amount, 0n);
  pools.set(interval + 1, (pools.get(interval + 1) ?? 0n) + (pools.get(interval) ?? 0n) - total);
}

const anna = validatorId(keyOf('anna'));
const bert = validatorId(keyOf('bert'));
const bertsBond = selfBondId(bert);

test('genesis, register, delegate, earn with commission, redirect, rotate, miss windows, jailed, heartbeat, exit, withdraw', () => {
  // Epoch 0. Anna is the committee. Bert registers with a commission of 10 %, Dora delegates to him.
  expect(committee()).toEqual(['anna']);
  cut([], ALL);
  does({
    name: 'register',
    consensusKey: keyOf('bert'),
    possession: NO_SIGNATURE,
    owner: addressOf('bert'),
    rewardAddress: addressOf('bert rewards'),
    amount: 500_000n * COIN,
    commission: 1_000,
    endpoint: endpointOf('bert'),
  });
  const dora = delegationId(
    does({
      name: 'bond',
      validator: bert,
      owner: addressOf('dora'),
      rewardAddress: addressOf('dora'),
      amount: 250_000n * COIN + 7n,
    }),
  );
  expect(rig.ledger.state.bonded).toBe(1_750_000n * COIN + 7n);

  // Epoch 1. He sits from the second epoch after his registration; until then Anna earns alone.
  until(1);
  expect(committee()).toEqual(['anna']);
  until(2, ALL, [anna, bert]);
  expect(committee()).toEqual(['anna', 'bert']);
  expect(payment(selfBondId(anna), 0)?.amount).toBe(pools.get(0));
  expect(payment(dora, 0)).toBeUndefined();

  // Epoch 2. Both sign. Dora sends her rewards elsewhere while the interval runs; the address counts when it is paid.
  does({ name: 'reward_address', position: dora, address: addressOf('dora savings') });
  until(3, ALL, [anna, bert]);
  cut([], ALL);
  const total = 1_750_000n * COIN + 7n;
  const second = pools.get(2) as bigint;
  const gross = (second * (250_000n * COIN + 7n)) / total;
  const commission = gross / 10n;
  expect(payment(dora, 2)).toMatchObject({ amount: gross - commission, rewardAddress: addressOf('dora savings') });
  expect(payment(bertsBond, 2)?.amount).toBe((second * 500_000n * COIN) / total + commission);
  expect(payment(selfBondId(anna), 2)?.amount).toBe((second * 1_000_000n * COIN) / total);

  // Epoch 3. Bert rotates his key: the new one signs from epoch 5, and the old one until then. A second change must wait.
  does({
    name: 'rotate',
    validator: bert,
    consensusKey: keyOf('bert two'),
    possession: NO_SIGNATURE,
    endpoint: endpointOf('bert two'),
  });
  isRefused(
    { name: 'endpoint', validator: bert, endpoint: endpointOf('x'), signature: NO_SIGNATURE },
    'change_pending',
  );
  does({ name: 'commission', validator: bert, commission: 500 });
  until(5, ALL, [anna, bert]);
  expect(rig.ledger.state.stake.committee.members[1]?.publicKey).toEqual(keyOf('bert two'));
  expect(keyAddressPayload(validator(bert).key)).toEqual(keyAddressPayload(keyOf('bert two')));

  // Epoch 6. He signs in 8 of the 12 windows: nothing for him and Dora, no seat in epochs 7 and 8, and no stake lost.
  until(6, ALL, []);
  expect(committee()).toEqual(['anna', 'bert']);
  const before = rig.ledger.state.bonded;
  for (let window = 0; window < 12; window++)
    for (let i = 0; i < 2; i++)
      cut(
        window === 0 && i === 0 ? [anna, bert].map((id) => ({ name: 'heartbeat', validator: id, epoch: 6 })) : [],
        window < 8 ? ALL : 1n,
      );
  expect(committee()).toEqual(['anna']);
  expect(validator(bert).jailedUntil).toBe(9);
  expect(rig.ledger.state.bonded).toBe(before);
  until(8, ALL, [anna]);
  expect(payment(dora, 6)).toBeUndefined();
  expect(payment(selfBondId(anna), 6)?.amount).toBe(pools.get(6));
  expect(committee()).toEqual(['anna']);

  // Epoch 9. His term is over, but his last heartbeat is too old: without a new one he stays out.
  until(9, ALL, [anna]);
  expect(committee()).toEqual(['anna']);
  does({ name: 'heartbeat', validator: bert, epoch: 9 });
  isRefused({ name: 'heartbeat', validator: bert, epoch: 9 }, 'heartbeat_repeated');
  until(10, ALL, [anna, bert]);
  expect(committee()).toEqual(['anna', 'bert']);
  expect(validator(bert).commission).toBe(1_000);

  // Epoch 10. He exits: he signs and earns to the epoch's end, and all his positions unbond for 10 epochs.
  const exited = rig.height + 1;
  does({ name: 'exit', validator: bert });
  expect(rig.ledger.state.unbonding).toBe(750_000n * COIN + 7n);
  isRefused({ name: 'unbond', position: dora, amount: 0n }, 'position_unbonding');
  isRefused(
    { name: 'bond', validator: bert, owner: addressOf('dora'), rewardAddress: addressOf('dora'), amount: 100n * COIN },
    'validator_inactive',
  );
  until(11, ALL, [anna]);
  expect(committee()).toEqual(['anna']);
  cut([], ALL);
  expect(payment(dora, 10)?.amount).toBeGreaterThan(0n);
  const release = exited + 10 * INTERVAL;
  while (rig.height + 2 < release) cut([], ALL);
  isRefused({ name: 'withdraw', position: dora }, 'position_locked');

  // In the cut of the release itself both withdraw what they bonded.
  expect(rig.height + 1).toBe(release);
  const effects = cut(
    [
      { name: 'withdraw', position: dora },
      { name: 'withdraw', position: bertsBond },
    ],
    ALL,
  );
  expect(effects.created.filter(({ source }) => source === 'stake_withdrawal')).toEqual([
    {
      outpoint: withdrawalOutpoint(dora, effects.transactions[0]?.id as Uint8Array),
      address: addressOf('dora'),
      amount: 250_000n * COIN + 7n,
      source: 'stake_withdrawal',
    },
    {
      outpoint: withdrawalOutpoint(bertsBond, effects.transactions[1]?.id as Uint8Array),
      address: addressOf('bert'),
      amount: 500_000n * COIN,
      source: 'stake_withdrawal',
    },
  ]);
  expect(rig.ledger.state.unbonding).toBe(0n);
  expect(rig.ledger.state.positions.count).toBe(1);
  isRefused({ name: 'withdraw', position: dora }, 'position_unknown');
  // Anna sent no heartbeat for ten epochs; nobody was eligible, and the committee stayed.
  expect(committee()).toEqual(['anna']);
});
