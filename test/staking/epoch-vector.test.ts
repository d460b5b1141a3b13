/** vectors/staking-epoch.json: on the real ledger, root by root, and by the model that was written from the rules alone. */
import { expect, test } from 'vitest';
import type { ReadTransaction } from '../../node/ledger/work-block.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { splitHalves } from '../../protocol/ledger/emission.ts';
import { decodeGenesis } from '../../protocol/ledger/genesis.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { decodeOperation } from '../../protocol/staking/operation.ts';
import vectors from '../../vectors/staking-epoch.json' with { type: 'json' };
import { Model, shortKey } from './model.ts';
import { FEE, Rig } from './rig.ts';

const genesis = decodeGenesis(fromHex(vectors.genesis));
type Cut = (typeof vectors.cuts)[number];
const operationsOf = ({ operations }: Cut) =>
  operations.map(({ transaction_id, type, data, outcome }) => ({
    id: fromHex(transaction_id),
    operation: decodeOperation({ type, data: fromHex(data) }),
    outcome,
  }));

test('the ledger comes to these roots, reserves, payments and committees', () => {
  expect(vectors.fee).toBe(Number(FEE));
  const rig = new Rig(genesis);
  const root = ({ digest, sum, count }: { digest: Uint8Array; sum: bigint; count: number }) => ({
    digest: toHex(digest),
    sum: String(sum),
    count,
  });
  const figures = () => {
    const { stake, bonded, unbonding, burned, validators, positions, usedKeys } = rig.ledger.state;
    return {
      pool: String(stake.pool),
      bonded: String(bonded),
      unbonding: String(unbonding),
      burned: String(burned),
      validators: root(validators),
      positions: root(positions),
      used_keys: root(usedKeys),
    };
  };
  const sets = () => rig.ledger.state.stake.committee;
  expect(figures()).toEqual(vectors.at_genesis);
  const setIds = [toHex(sets().setId)];
  for (const cut of vectors.cuts) {
    const sent = operationsOf(cut);
    const transactions = sent.map(({ id, operation }) => {
      const name = Buffer.from(id).toString('latin1');
      return { ...(rig.transaction(operation) as ReadTransaction), id, name, leaf: id, leafName: name };
    });
    const effects = rig.next(transactions, BigInt(cut.signers));
    const outcomes = sent.map(({ id }) => {
      const effect = effects.transactions.find((each) => Buffer.compare(each.id, id) === 0);
      return effect?.outcome === 'failed' ? effect.detail : effect?.outcome;
    });
    expect(outcomes).toEqual(sent.map(({ outcome }) => outcome));
    const executed = BigInt(outcomes.filter((outcome) => outcome === 'executed').length);
    const earned = splitHalves(effects.subsidy).stake + splitHalves(executed * FEE).stake;
    const payments = effects.stakePayouts.map(({ positionId, interval, rewardAddress, amount }) => ({
      position_id: toHex(positionId),
      interval,
      address: toHex(rewardAddress),
      amount: String(amount),
    }));
    expect({ height: rig.height, earned: String(earned), payments, ...figures() }).toEqual({
      height: cut.height,
      earned: cut.earned,
      payments: cut.payments,
      pool: cut.pool,
      bonded: cut.bonded,
      unbonding: cut.unbonding,
      burned: cut.burned,
      validators: cut.validators,
      positions: cut.positions,
      used_keys: cut.used_keys,
    });
    if (setIds.at(-1) !== toHex(sets().setId)) setIds.push(toHex(sets().setId));
  }
  expect(setIds).toEqual(vectors.committees.map(({ validator_set_id }) => validator_set_id));
});

test('the model, which knows no tries and no cursors, comes to the same amounts', () => {
  const model = new Model(vectors.interval_cuts);
  const noteSelfBond = (validator: Uint8Array) =>
    void model.selfBonds.set(toHex(selfBondId(validator)), `self ${toHex(validator)}`);
  model.genesis(
    genesis.validators.map(({ publicKey, owner, rewardAddress, principal, commission }) => ({
      id: toHex(validatorId(publicKey)),
      key: shortKey(publicKey),
      owner: toHex(owner),
      reward: toHex(rewardAddress),
      amount: principal,
      rate: commission,
    })),
  );
  for (const { publicKey } of genesis.validators) noteSelfBond(validatorId(publicKey));
  model.pool = BigInt(vectors.at_genesis.pool);
  const members = () => model.committee.map(({ validator, weight, rate }) => `${validator} ${weight} ${rate}`);
  const expected = vectors.committees.map((committee) =>
    committee.members.map(({ validator_id, stake, commission }) => `${validator_id} ${stake} ${commission}`),
  );
  expect(members()).toEqual(expected[0]);
  for (const cut of vectors.cuts) {
    model.height = cut.height;
    for (const { id, operation, outcome } of operationsOf(cut)) {
      const made = operation.name === 'register' ? validatorId(operation.consensusKey) : delegationId(id);
      const answer = model.operate(operation, toHex(made));
      expect('refused' in answer ? answer.refused : 'executed').toBe(outcome);
      if (operation.name === 'register') noteSelfBond(made);
    }
    const payments = model.finish(BigInt(cut.earned), BigInt(cut.signers));
    expect(payments).toEqual(
      cut.payments.map(({ position_id, address, amount, interval }) => ({
        position: model.nameOfPosition(position_id),
        address,
        amount: BigInt(amount),
        interval,
      })),
    );
    const { pool, bonded, unbonding, burned, positions, validators, usedKeys } = model;
    expect([pool, bonded, unbonding, burned].map(String)).toEqual([cut.pool, cut.bonded, cut.unbonding, cut.burned]);
    expect([validators.size, positions.size, usedKeys.size]).toEqual(
      [cut.validators, cut.positions, cut.used_keys].map(({ count }) => count),
    );
    if ((cut.height + 1) % vectors.interval_cuts === 0)
      expect(members()).toEqual(expected[(cut.height + 1) / vectors.interval_cuts]);
  }
});
