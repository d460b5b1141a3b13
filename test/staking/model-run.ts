/**
 * The ledger beside the model (model.ts): epochs of 24 cuts with random operations, most of them possible, and random attendance. Stops at the first cut
 * where they differ. Needs nothing but Node, so that a machine with many cores can run many seeds (`npm run bench -- staking-model`).
 */
import { deepStrictEqual, strictEqual } from 'node:assert';
import { releaseOf } from '../../node/ledger/staking/position.ts';
import { asOf, isActive, keyIn } from '../../node/ledger/staking/validator.ts';
import { splitHalves } from '../../protocol/ledger/emission.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
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
export const MOST_VALIDATORS = VALIDATORS.length;

/** `validators` of genesis: 1 to `MOST_VALIDATORS`. */
export type ModelSettings = { readonly seed: number; readonly epochs: number; readonly validators: number };
/** `outcomes`: how often each operation ended how, as `NAME executed` or `NAME CODE`. */
export type ModelFigures = { readonly cuts: number; readonly payments: number; readonly outcomes: Map<string, number> };

function modelOf(validators: typeof VALIDATORS): Model {
  const model = new Model(INTERVAL);
  model.genesis(
    validators.map(({ name, amount, commission }) => ({
      id: hex(validatorId(keyOf(name))),
      key: shortKey(keyOf(name)),
      owner: hex(addressOf(name)),
      reward: hex(addressOf(`${name} rewards`)),
      amount,
      rate: commission,
    })),
  );
  for (const { name } of validators) noteSelfBond(model, validatorId(keyOf(name)));
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
  deepStrictEqual(real, {
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
    if (!same) deepStrictEqual({ position, release }, { position: expected, release: model.release(expected) });
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
    deepStrictEqual(
      {
        key: shortKey(validator.key),
        keyThen: shortKey(keyIn(stored, epoch) as Uint8Array),
        endpoint: hex(validator.endpoint),
        commission: validator.commission,
        heartbeat: validator.heartbeatEpoch,
        active: isActive(validator),
        stake: validator.stake,
        jailed: [1, 2].map((next) => validator.jailedUntil > epoch + next),
      },
      {
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
      },
    );
  }
}

/** Throws at the first difference. */
export function runModel({ seed, epochs, validators }: ModelSettings): ModelFigures {
  const random = randomOf(seed);
  const genesis = VALIDATORS.slice(0, validators);
  const rig = new Rig(genesisOf(INTERVAL, genesis));
  const model = modelOf(genesis);
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
      strictEqual(`${height} ${operation?.name} ${real}`, `${height} ${operation?.name} ${expected}`);
      outcomes.set(`${operation?.name} ${real}`, (outcomes.get(`${operation?.name} ${real}`) ?? 0) + 1);
      if ('refused' in outcome) continue;
      fees += FEE - splitHalves(FEE).work;
      if (outcome.withdrawn !== undefined) withdrawals.push(outcome.withdrawn);
    }
    const payments = model.finish(splitHalves(effects.subsidy).stake + fees, signers);
    deepStrictEqual(
      effects.stakePayouts.map(({ positionId, rewardAddress, amount, interval }) => ({
        position: model.nameOfPosition(hex(positionId)),
        address: hex(rewardAddress),
        amount,
        interval,
      })),
      payments,
    );
    paid += payments.length;
    const withdrawn = effects.created.filter(({ source }) => source === 'stake_withdrawal');
    deepStrictEqual(
      withdrawn.map(({ address, amount }) => ({ to: hex(address), amount })),
      withdrawals,
    );
    const { figures } = effects;
    strictEqual(
      figures.outputs + model.bonded + model.unbonding + figures.workReserve + figures.stakeReserve + model.burned,
      figures.minted,
    );
    compare(rig, model);
    if (height % 7 === 0 || (height + 1) % INTERVAL === 0) compareValidators(rig, model);
  }
  return { cuts: epochs * INTERVAL, payments: paid, outcomes };
}
