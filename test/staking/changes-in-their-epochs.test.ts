/** When a change of a validator counts (specification: States and transitions, rules 1 to 3; Limits), on epochs of 24 cuts, epoch by epoch. */
import { expect, test } from 'vitest';
import type { StakePayout } from '../../node/ledger/effects.ts';
import { asOf, type Validator } from '../../node/ledger/staking/validator.ts';
import { delegationId, validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { addressOf, COIN, endpointOf, genesisOf, keyOf, NO_SIGNATURE, Rig } from './rig.ts';

const INTERVAL = 24;
const ALL = (1n << 64n) - 1n;
const bert = validatorId(keyOf('bert'));
const anna = validatorId(keyOf('anna'));

/** Two validators of genesis, Bert with 10 %, and a delegation to him as large as his own bond. */
class Story {
  readonly rig = new Rig(
    genesisOf(INTERVAL, [
      { name: 'anna', amount: 1_000_000n * COIN },
      { name: 'bert', amount: 500_000n * COIN, commission: 1_000 },
    ]),
  );
  readonly dora: Uint8Array;
  readonly #paid: StakePayout[] = [];

  constructor() {
    const bonded = this.does({
      name: 'bond',
      validator: bert,
      owner: addressOf('dora'),
      rewardAddress: addressOf('dora'),
      amount: 500_000n * COIN,
    });
    this.dora = delegationId(bonded.id);
  }

  does(operation: StakingOperation): { readonly id: Uint8Array; readonly outcome: string; readonly detail?: string } {
    const [transaction] = this.cut([operation]).transactions;
    return transaction as NonNullable<typeof transaction>;
  }

  cut(operations: readonly StakingOperation[] = []) {
    const transactions = operations.map((operation) => this.rig.transaction(operation));
    const effects = this.rig.next(
      transactions.filter((transaction) => transaction !== undefined),
      ALL,
    );
    this.#paid.push(...effects.stakePayouts);
    return effects;
  }

  /** To the first cut of the epoch; everybody says once an epoch that it is there. */
  to(epoch: number): void {
    while (this.rig.ledger.state.stake.committee.epoch < epoch) {
      const waiting = [anna, bert].filter((id) => this.validator(id).heartbeatEpoch < this.rig.epoch);
      this.cut(waiting.map((validator) => ({ name: 'heartbeat', validator, epoch: this.rig.epoch })));
    }
  }

  validator(id: Uint8Array): Validator {
    return asOf(this.rig.ledger.staking().validator(id) as Validator, this.rig.ledger.state.stake.committee.epoch);
  }

  /** The rate that an interval was paid with, in basis points: Dora and Bert have the same principal. */
  rateOf(interval: number): number {
    const of = (position: Uint8Array | undefined) =>
      this.#paid.find(
        (each) =>
          each.interval === interval && position !== undefined && Buffer.compare(each.positionId, position) === 0,
      )?.amount ?? 0n;
    const dora = of(this.dora);
    const both = this.#paid.filter((each) => each.interval === interval).reduce((sum, each) => sum + each.amount, 0n);
    // Half of all stake is Anna's, a quarter each Bert's and Dora's.
    return Math.round(Number(10_000n - (dora * 10_000n * 4n) / both) / 10) * 10;
  }

  key(): Uint8Array | undefined {
    return this.rig.ledger.state.stake.committee.members.find(({ validatorId: id }) => Buffer.compare(id, bert) === 0)
      ?.publicKey;
  }
}

test('a new commission is charged from the 14th epoch after its announcement on, for whole intervals; a second one waits until then', () => {
  const story = new Story();
  story.to(3);
  expect(story.does({ name: 'commission', validator: bert, commission: 500 })).toMatchObject({ outcome: 'executed' });
  const again: StakingOperation = { name: 'commission', validator: bert, commission: 700 };
  expect(story.does(again)).toMatchObject({ outcome: 'failed', detail: 'change_pending' });
  story.to(16);
  expect(story.does(again)).toMatchObject({ outcome: 'failed', detail: 'change_pending' });
  story.to(17);
  expect(story.does(again)).toMatchObject({ outcome: 'executed' });
  story.to(19);
  story.cut();
  expect([3, 10, 15, 16, 17, 18].map((interval) => story.rateOf(interval))).toEqual([
    1_000, 1_000, 1_000, 1_000, 500, 500,
  ]);
});

test('a new endpoint counts from the second epoch after that of its transaction on', () => {
  const story = new Story();
  story.to(3);
  const endpoint = endpointOf('bert elsewhere');
  expect(story.does({ name: 'endpoint', validator: bert, endpoint, signature: NO_SIGNATURE })).toMatchObject({
    outcome: 'executed',
  });
  story.to(4);
  expect(story.validator(bert).endpoint).toEqual(endpointOf('bert'));
  story.to(5);
  expect(story.validator(bert).endpoint).toEqual(endpoint);
});

test('a new key signs from the second epoch after that of the rotation on, and the old one until then', () => {
  const story = new Story();
  story.to(3);
  expect(
    story.does({
      name: 'rotate',
      validator: bert,
      consensusKey: keyOf('bert two'),
      possession: NO_SIGNATURE,
      endpoint: endpointOf('bert two'),
    }),
  ).toMatchObject({ outcome: 'executed' });
  const keys: [number, Uint8Array | undefined][] = [];
  for (const epoch of [3, 4, 5]) {
    story.to(epoch);
    keys.push([epoch, story.key()]);
  }
  expect(keys).toEqual([
    [3, keyOf('bert')],
    [4, keyOf('bert')],
    [5, keyOf('bert two')],
  ]);
});
