/**
 * What stake costs a cut: 1,000 payments with 4 validators and no delegation, and with 2,000 validators and 100,000 delegations while the last interval is
 * being paid; and what the change of an epoch adds. In memory: the store's part is that of `npm run bench -- node seal`. Words: `cuts=N`.
 */
import { performance } from 'node:perf_hooks';
import { nobodyYet } from '../../node/ledger/staking/attendance.ts';
import { byStake, type Committee, committeeOf } from '../../node/ledger/staking/committee.ts';
import { advanceStake } from '../../node/ledger/staking/epoch.ts';
import { StakingLayer } from '../../node/ledger/staking/layer.ts';
import { newPosition } from '../../node/ledger/staking/operations.ts';
import { beginWalk } from '../../node/ledger/staking/payment.ts';
import type { Validator } from '../../node/ledger/staking/validator.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { addressOf, COIN, endpointOf, genesisOf, keyOf, Rig } from '../staking/rig.ts';
import { bench } from './harness.ts';

useNativeSha384();

const PAYMENTS = 1_000;
const VALIDATORS = 2_000;
const DELEGATIONS = 100_000;
const MEMBERS = 64;
const ALL = (1n << 64n) - 1n;

const rigOf = (): Rig =>
  new Rig(
    genesisOf(
      INTERVAL_CUTS,
      [0, 1, 2, 3].map((i) => ({ name: `genesis ${i}`, amount: 1_000_000n * COIN })),
      2 * PAYMENTS,
    ),
  );

/** All delegations are to members, so that every cut has 64 payments to make. */
function crowd(rig: Rig): Committee {
  const records: Validator[] = [];
  let committee: Committee | undefined;
  rig.ledger.inject(
    (layer) => {
      for (let i = 0; i < VALIDATORS; i++) {
        const key = keyOf(`validator ${i}`);
        const id = validatorId(key);
        const owner = addressOf(`owner ${i}`);
        const delegated = i < MEMBERS ? Math.floor(DELEGATIONS / MEMBERS) + (i < DELEGATIONS % MEMBERS ? 1 : 0) : 0;
        const self = (100_000n + BigInt(VALIDATORS - i)) * COIN;
        const stake = self + BigInt(delegated) * 100n * COIN;
        const record: Validator = {
          id,
          owner,
          key,
          keyFrom: 0,
          formerKeys: [],
          endpoint: endpointOf(`${i}`),
          commission: 500,
          seatFrom: 0,
          heartbeatEpoch: 0,
          jailedUntil: 0,
          stake,
          exitHeight: 0,
          slashHeight: 0,
        };
        records.push(record);
        layer.putValidator(record);
        layer.useKey(id);
        const bonded = (position: Uint8Array, kind: 'self_bond' | 'delegation', amount: bigint) =>
          layer.putPosition({
            ...newPosition({ id: position, kind, validator: id, owner, rewardAddress: owner }, amount, 0),
            atStart: amount,
          });
        bonded(selfBondId(id), 'self_bond', self);
        for (let k = 0; k < delegated; k++) bonded(delegationId(utf8(`${i} ${k}`)), 'delegation', 100n * COIN);
        layer.bonded += stake;
      }
    },
    (state) => {
      const members = records
        .sort(byStake)
        .slice(0, MEMBERS)
        .map(({ id, key, stake }) => ({
          validatorId: id,
          publicKey: key,
          stake,
          earning: stake,
          commission: 500,
        }));
      committee = committeeOf(0, members);
      const walk = beginWalk(committee, state.stake.pool, () => true);
      return {
        ...state.stake,
        pool: 0n,
        committee,
        previous: committee,
        attendance: nobodyYet(MEMBERS),
        ...(walk && { walk }),
      };
    },
  );
  return committee as Committee;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

export default bench('a cut of 1,000 payments with few and with many stakers; the change of an epoch', async (b) => {
  const cuts = Number(b.words.find((word) => word.startsWith('cuts='))?.slice(5) ?? 15);
  const [few, many] = [rigOf(), rigOf()];
  const committee = crowd(many);
  const took = new Map<Rig, number[]>([
    [few, []],
    [many, []],
  ]);
  let paid = 0;
  // In turns, so that a noisy machine hurts both alike; the first two cuts warm up.
  for (let i = 0; i < cuts + 2; i++)
    for (const rig of [few, many]) {
      const transactions = Array.from({ length: PAYMENTS }, () => rig.transaction()).filter(
        (each) => each !== undefined,
      );
      const start = performance.now();
      const effects = rig.next(transactions, ALL);
      if (i >= 2) took.get(rig)?.push(performance.now() - start);
      if (rig === many) paid += effects.stakePayouts.length;
    }
  const base = median(took.get(few) as number[]);
  const crowded = median(took.get(many) as number[]);
  b.note(
    `${paid} stake payments in ${cuts + 2} cuts; ${DELEGATIONS} delegations to ${MEMBERS} of ${VALIDATORS} validators`,
  );
  b.figure('cut-few-stakers', base, 'ms');
  b.figure('cut-many-stakers', crowded, 'ms', {
    ratio: crowded / base,
    yardstick: 'the same cut with 4 validators and no delegation',
  });
  const changes: number[] = [];
  for (let i = 0; i < 5; i++) {
    // Nobody attended: all 64 are jailed, so this is the change that writes most.
    const layer = new StakingLayer(many.ledger.staking());
    const { stake } = many.ledger.state;
    const start = performance.now();
    advanceStake({ ...stake, committee }, layer, {
      height: INTERVAL_CUTS - 1,
      intervalCuts: INTERVAL_CUTS,
      signers: 0n,
      earned: 0n,
      begun: [],
    });
    layer.validatorChanges();
    changes.push(performance.now() - start);
  }
  b.figure('epoch-change', Math.max(...changes), 'ms');
});
