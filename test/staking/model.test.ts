/**
 * The ledger against the model (model.ts): epochs of 24 cuts with random operations, most of them possible, and random attendance. At every cut both
 * agree on each operation's outcome, committee, payments, burns, every position and every validator; the value equation holds at each.
 */
import { expect, test } from 'vitest';
import { releaseOf } from '../../node/ledger/staking/position.ts';
import { asOf, isActive, keyIn } from '../../node/ledger/staking/validator.ts';
import { splitHalves } from '../../protocol/emission.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { Model, shortKey } from './model.ts';
import { randomOperation } from './random-operations.ts';
import { addressOf, COIN, FEE, genesisOf, keyOf, Rig } from './rig.ts';

const INTERVAL = 24;
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const VALIDATORS = [
  { name: 'alpha', amount: 300_000n * COIN, commission: 500 },
  { name: 'beta', amount: 200_000n * COIN, commission: 0 },
  { name: 'gamma', amount: 200_000n * COIN, commission: 1_000 },
];

function modelOf(): Model {
  const model = new Model(INTERVAL);
  model.genesis(
    VALIDATORS.map(({ name, amount, commission }) => ({
      id: hex(validatorId(keyOf(name))),
      key: shortKey(keyOf(name)),
      owner: hex(addressOf(name)),
      reward: hex(addressOf(`${name} rewards`)),
      amount,
      rate: commission,
    })),
  );
  for (const { name } of VALIDATORS) noteSelfBond(model, validatorId(keyOf(name)));
  return model;
}

const noteSelfBond = (model: Model, validator: Uint8Array): void =>
  void model.selfBonds.set(hex(selfBondId(validator)), `self ${hex(validator)}`);

/** What the operation makes: a validator or a position. */
const madeBy = (operation: StakingOperation, transactionId: Uint8Array): Uint8Array =>
  operation.name === 'register' ? validatorId(operation.consensusKey) : delegationId(transactionId);

function compare(rig: Rig, model: Model): void {
  const { state } = rig.ledger;
  const staking = rig.ledger.staking();
  const real = {
    bonded: state.bonded,
    unbonding: state.unbonding,
    burned: state.burned,
    pool: state.stake.pool,
    positions: state.positions.count,
    validators: state.validators.count,
    keys: state.usedKeys.count,
    committee: state.stake.committee.members.map((member) => [
      hex(member.validatorId),
      member.stake,
      member.earning,
      member.commission,
      shortKey(member.publicKey),
    ]),
  };
  expect(real).toEqual({
    bonded: model.bonded,
    unbonding: model.unbonding,
    burned: model.burned,
    pool: model.pool,
    positions: model.positions.size,
    validators: model.validators.size,
    keys: model.usedKeys.size,
    committee: model.committee.map((member) => [
      member.validator,
      member.weight,
      member.earning,
      member.rate,
      member.key,
    ]),
  });
  for (const expected of model.positions.values()) {
    const real =
      expected.kind === 'self_bond'
        ? selfBondId(Buffer.from(expected.validator, 'hex'))
        : Buffer.from(expected.id, 'hex');
    const position = staking.position(real);
    const validator = staking.validator(Buffer.from(expected.validator, 'hex'));
    if (position === undefined || validator === undefined) throw new Error(`position ${expected.id} is missing`);
    const release = releaseOf(position, validator, INTERVAL) ?? Number.POSITIVE_INFINITY;
    const same =
      position.principal === expected.principal &&
      hex(position.owner) === expected.owner &&
      hex(position.rewardAddress) === expected.reward &&
      release === model.release(expected);
    if (!same) expect({ position, release }).toEqual({ position: expected, release: model.release(expected) });
  }
}

function compareValidators(rig: Rig, model: Model): void {
  const staking = rig.ledger.staking();
  const { epoch } = rig.ledger.state.stake.committee;
  for (const expected of model.validators.values()) {
    const stored = staking.validator(Buffer.from(expected.id, 'hex'));
    if (stored === undefined) throw new Error('a validator is missing');
    const validator = asOf(stored, epoch);
    const at = <T extends { from: number }>(list: T[]): T => list.filter(({ from }) => from <= epoch).at(-1) as T;
    expect({
      key: shortKey(validator.key),
      keyThen: shortKey(keyIn(stored, epoch) as Uint8Array),
      endpoint: hex(validator.endpoint),
      commission: validator.commission,
      heartbeat: validator.heartbeatEpoch,
      active: isActive(validator),
      stake: validator.stake,
      jailed: [1, 2].map((next) => validator.jailedUntil > epoch + next),
    }).toEqual({
      key: at(expected.keys).key,
      keyThen: at(expected.keys).key,
      endpoint:
        expected.endpoints[0]?.endpoint === 'genesis' && at(expected.endpoints) === expected.endpoints[0]
          ? hex(validator.endpoint)
          : at(expected.endpoints).endpoint,
      commission: at(expected.commissions).rate,
      heartbeat: expected.heartbeat,
      active: model.isActive(expected),
      stake: model.isActive(expected) ? model.stakeOf(expected.id) : 0n,
      jailed: [1, 2].map((next) => expected.noSeat.has(epoch + next)),
    });
  }
}

test('thousands of epochs agree with the rules, operation by operation and to the atom', () => {
  const epochs = count({ quick: 8, full: 60, deep: 3_000 });
  const random = randomOf(seed);
  const rig = new Rig(genesisOf(INTERVAL, VALIDATORS));
  const model = modelOf();
  model.pool = rig.ledger.state.stake.pool;
  const outcomes = new Map<string, number>();
  let paid = 0;
  for (let height = 1; height < epochs * INTERVAL; height++) {
    const transactions = Array.from({ length: random(4) + random(2) }, () =>
      rig.transaction(randomOperation(model, height, { random, intervalCuts: INTERVAL })),
    ).filter((transaction) => transaction !== undefined);
    // Now and then a member stays away for a while; now and then nobody is there.
    const away = random(60) === 0 ? ~0n : BigInt(random(16) * random(2)) << BigInt(random(8));
    const signers = ((1n << 64n) - 1n) & ~(Math.floor(height / 30) % 7 === 0 ? away | 1n : away);
    const effects = rig.next(transactions, signers);
    model.height = height;
    let fees = 0n;
    const withdrawals: { to: string; amount: bigint }[] = [];
    for (const transaction of effects.transactions) {
      const { operation, id } = transactions.find(({ id }) => id === transaction.id) as (typeof transactions)[number];
      const made = madeBy(operation as StakingOperation, id);
      const outcome = model.operate(operation as StakingOperation, hex(made));
      if (operation?.name === 'register') noteSelfBond(model, made);
      const expected = 'refused' in outcome ? outcome.refused : 'executed';
      const real = transaction.outcome === 'failed' ? transaction.detail : transaction.outcome;
      expect(`${height} ${operation?.name} ${real}`).toBe(`${height} ${operation?.name} ${expected}`);
      outcomes.set(`${operation?.name} ${real}`, (outcomes.get(`${operation?.name} ${real}`) ?? 0) + 1);
      if ('refused' in outcome) continue;
      fees += FEE - splitHalves(FEE).work;
      if (outcome.withdrawn !== undefined) withdrawals.push(outcome.withdrawn);
    }
    const payments = model.finish(splitHalves(effects.subsidy).stake + fees, signers);
    expect(
      effects.stakePayouts.map(({ positionId, rewardAddress, amount, interval }) => ({
        position: model.nameOfPosition(hex(positionId)),
        address: hex(rewardAddress),
        amount,
        interval,
      })),
    ).toEqual(payments);
    paid += payments.length;
    const withdrawn = effects.created.filter(({ source }) => source === 'stake_withdrawal');
    expect(withdrawn.map(({ address, amount }) => ({ to: hex(address), amount }))).toEqual(withdrawals);
    const { figures } = effects;
    expect(
      figures.outputs + model.bonded + model.unbonding + figures.workReserve + figures.stakeReserve + model.burned,
    ).toBe(figures.minted);
    compare(rig, model);
    if (height % 7 === 0 || (height + 1) % INTERVAL === 0) compareValidators(rig, model);
  }
  expect(paid).toBeGreaterThan(epochs);
  if (epochs < 60) return;
  // The random operations met everything that can happen to them.
  const met = [...outcomes.keys()];
  for (const name of [
    'register',
    'bond',
    'unbond',
    'withdraw',
    'reward_address',
    'heartbeat',
    'rotate',
    'endpoint',
    'commission',
    'exit',
    'evidence',
  ])
    expect(met).toContain(`${name} executed`);
});
