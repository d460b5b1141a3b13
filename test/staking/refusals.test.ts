/**
 * Every refusal of every operation (ledger rules 62 to 69), on validators in every state. What is refused changes nothing, so one cut holds them all;
 * a new refusal is reported as missing here.
 */
import { expect, test } from 'vitest';
import { OPERATION_REFUSAL_CODES, prepare } from '../../node/ledger/staking/operations.ts';
import { MAX_SUPPLY } from '../../protocol/amount.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { addressOf, COIN, endpointOf, genesisOf, keyOf, NO_SIGNATURE, PURSE, Rig } from './rig.ts';

const INTERVAL = 24;
const ALL = (1n << 64n) - 1n;
const NOWHERE = id('TEST_NOTHING', utf8(''));
const DORA = addressOf('dora');
const [anna, carl, jane, sam, paul, rosa] = ['anna', 'carl', 'jane', 'sam', 'paul', 'rosa'].map((name) =>
  validatorId(keyOf(name)),
) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array];

const bond = (validator: Uint8Array, amount = 1_000n * COIN): StakingOperation => ({
  name: 'bond',
  validator,
  owner: DORA,
  rewardAddress: DORA,
  amount,
});
const register = (name: string, key = name): StakingOperation => ({
  name: 'register',
  consensusKey: keyOf(key),
  possession: NO_SIGNATURE,
  owner: addressOf(name),
  rewardAddress: DORA,
  amount: 100_000n * COIN,
  commission: 10,
  endpoint: endpointOf(name),
});
const rotate = (validator: Uint8Array, key: string): StakingOperation => ({
  name: 'rotate',
  validator,
  consensusKey: keyOf(key),
  possession: NO_SIGNATURE,
  endpoint: endpointOf(key),
});
const endpoint = (validator: Uint8Array): StakingOperation => ({
  name: 'endpoint',
  validator,
  endpoint: endpointOf('moved'),
  signature: NO_SIGNATURE,
});
const commission = (validator: Uint8Array): StakingOperation => ({ name: 'commission', validator, commission: 500 });
const exit = (validator: Uint8Array): StakingOperation => ({ name: 'exit', validator });
const heartbeat = (validator: Uint8Array, epoch: number): StakingOperation => ({ name: 'heartbeat', validator, epoch });
const unbond = (position: Uint8Array, amount = 0n): StakingOperation => ({ name: 'unbond', position, amount });
const withdraw = (position: Uint8Array): StakingOperation => ({ name: 'withdraw', position });
const redirect = (position: Uint8Array): StakingOperation => ({
  name: 'reward_address',
  position,
  address: addressOf('elsewhere'),
});
const evidence = (validator: Uint8Array, height: number): StakingOperation => {
  const vote = (first: number) => ({
    vote: { kind: 'precommit' as const, height, round: 0, cutId: new Uint8Array(48).fill(first) },
    signature: NO_SIGNATURE,
  });
  return { name: 'evidence', validator, votes: [vote(1), vote(2)] };
};

type Refusal = readonly ['invalid' | 'no_effect', string];
type Case = readonly [string, StakingOperation, ...Refusal];

/** One cut of these; says of each `executed`, or why not. */
function outcomes(rig: Rig, operations: readonly StakingOperation[], signers = ALL): string[] {
  const transactions = operations.map((operation) => {
    const transaction = rig.transaction(operation);
    if (transaction === undefined) throw new Error('the purse is empty');
    return transaction;
  });
  const { transactions: effects } = rig.next(transactions, signers);
  return transactions.map(({ id }) => {
    const effect = effects.find((each) => Buffer.compare(each.id, id) === 0);
    return effect?.outcome === 'failed' ? `${effect.reason} ${effect.detail}` : String(effect?.outcome);
  });
}
function does(rig: Rig, ...operations: StakingOperation[]): Uint8Array[] {
  const transactions = operations.map((operation) => rig.transaction(operation) as { id: Uint8Array });
  const effects = rig.next(transactions as never, ALL);
  expect(effects.transactions.map(({ outcome }) => outcome)).toEqual(operations.map(() => 'executed'));
  return transactions.map(({ id }) => id);
}
const until = (rig: Rig, height: number, signers = ALL): void => {
  while (rig.height + 1 < height) rig.next([], signers);
};

/** In epoch 1: Anna is active, Carl exits, Jane is jailed, Sam is slashed, Paul has changes pending, Rosa has just registered. */
function world() {
  const rig = new Rig(
    genesisOf(
      INTERVAL,
      [
        { name: 'anna', amount: 1_000_000n * COIN },
        { name: 'carl', amount: 300_000n * COIN },
        { name: 'jane', amount: 200_000n * COIN },
        { name: 'sam', amount: 150_000n * COIN },
        { name: 'paul', amount: 120_000n * COIN },
      ],
      200,
    ),
  );
  const made = does(rig, ...[anna, carl, jane, sam, anna].map((validator) => bond(validator)));
  const [atAnna, atCarl, atJane, atSam, leaving] = made.map(delegationId) as Uint8Array[] & { length: 5 };
  // Jane, third by stake, signs nothing.
  until(rig, INTERVAL, ALL & ~4n);
  // Sam's interval 0 is paid in this cut: until then his empty self-bond is there.
  const first = [evidence(sam, 5), withdraw(selfBondId(sam)), exit(carl), unbond(leaving as Uint8Array)];
  expect(outcomes(rig, first)).toEqual(['executed', 'invalid position_empty', 'executed', 'executed']);
  does(rig, rotate(paul, 'paul two'), commission(paul), endpoint(jane), register('rosa'), heartbeat(anna, 1));
  const staking = rig.ledger.staking();
  expect(staking.validator(jane)?.jailedUntil).toBe(3);
  expect([carl, sam].map((each) => staking.validator(each)?.stake)).toEqual([0n, 0n]);
  return { rig, positions: { atAnna, atCarl, atJane, atSam, leaving } as Record<string, Uint8Array> };
}

const INACTIVE = ['invalid', 'validator_inactive'] as const;
const UNKNOWN = ['no_effect', 'validator_unknown'] as const;
/** The one refusal that the table below cannot hold: `world` meets it in the cut of the evidence. */
const MET = 'position_empty';

function table(rig: Rig, at: Record<string, Uint8Array>): Case[] {
  const [height, epoch] = [rig.height + 1, rig.epoch];
  const position = (name: string) => at[name] as Uint8Array;
  const about = (name: string, of: (validator: Uint8Array) => StakingOperation): Case[] => [
    [`${name}: nobody`, of(NOWHERE), ...UNKNOWN],
    [`${name}: exiting`, of(carl), ...INACTIVE],
    [`${name}: slashed`, of(sam), ...INACTIVE],
  ];
  const refused = (name: string, why: Refusal, ...operations: StakingOperation[]): Case[] =>
    operations.map((operation, i) => [`${name} ${i}`, operation, ...why]);
  return [
    ...about('bond', bond),
    ...about('heartbeat', (validator) => heartbeat(validator, epoch)),
    ...about('rotate', (validator) => rotate(validator, 'fresh')),
    ...about('endpoint', endpoint),
    ...about('commission', commission),
    ...about('exit', exit),
    ['evidence: nobody', evidence(NOWHERE, 5), ...UNKNOWN],
    ['evidence: slashed', evidence(sam, 6), 'invalid', 'validator_slashed'],
    ...refused('evidence: early', ['no_effect', 'evidence_early'], evidence(anna, height + 1), evidence(anna, 2 ** 52)),
    ['evidence: before its key', evidence(rosa, 5), 'invalid', 'evidence_key_unknown'],
    ...refused(
      'register: a key of genesis, of the slashed, of one that will follow, of one that just came',
      ['invalid', 'consensus_key_used'],
      ...['anna', 'sam', 'paul two', 'rosa'].map((key) => register('new', key)),
    ),
    ...refused(
      'rotate: its own key, that of another, one that will follow',
      ['invalid', 'consensus_key_used'],
      ...['anna', 'carl', 'paul two'].map((key) => rotate(anna, key)),
    ),
    ...refused('pending', ['no_effect', 'change_pending'], rotate(paul, 'fresh')),
    ...refused('pending', ['no_effect', 'change_pending'], endpoint(paul), endpoint(jane), commission(paul)),
    ...refused('heartbeat: later', ['no_effect', 'heartbeat_epoch'], heartbeat(jane, epoch + 1)),
    ...refused('heartbeat: later', ['no_effect', 'heartbeat_epoch'], heartbeat(jane, Number.MAX_SAFE_INTEGER)),
    ...refused('heartbeat: past', ['invalid', 'heartbeat_epoch'], heartbeat(jane, epoch - 1)),
    // Registration counts as one.
    ...refused('heartbeat: again', ['invalid', 'heartbeat_repeated'], heartbeat(anna, epoch), heartbeat(rosa, epoch)),
    ...refused('no position', ['no_effect', 'position_unknown'], unbond(NOWHERE), withdraw(NOWHERE), redirect(NOWHERE)),
    // It left its trie when it was paid.
    ...refused('burned', ['no_effect', 'position_unknown'], withdraw(selfBondId(sam)), unbond(selfBondId(sam))),
    ...refused(
      'self-bonds',
      ['invalid', 'position_self_bond'],
      ...[anna, carl, jane].flatMap((each) => [unbond(selfBondId(each)), unbond(selfBondId(each), 100n * COIN)]),
    ),
    ...refused(
      'unbond: unbonding',
      ['invalid', 'position_unbonding'],
      ...['atCarl', 'atSam', 'leaving'].flatMap((name) => [
        unbond(position(name)),
        unbond(position(name), 100n * COIN),
      ]),
    ),
    ...refused(
      'unbond: what stays is too little, or would be less than nothing',
      ['invalid', 'unbond_amount'],
      ...[900n * COIN + 1n, 1_000n * COIN, 1_000n * COIN + 1n, MAX_SUPPLY].map((amount) =>
        unbond(position('atAnna'), amount),
      ),
    ),
    ...refused(
      'withdraw: bonded',
      ['no_effect', 'position_bonded'],
      ...[position('atAnna'), position('atJane'), selfBondId(anna), selfBondId(jane)].map(withdraw),
    ),
    ...refused(
      'withdraw: early',
      ['no_effect', 'position_locked'],
      ...[position('atCarl'), position('atSam'), position('leaving'), selfBondId(carl)].map(withdraw),
    ),
  ];
}

test('every refusal, on validators in every state; nothing of what is refused is done', () => {
  const { rig, positions } = world();
  const cases = table(rig, positions);
  const sets = () => {
    const { validators, positions, usedKeys, bonded, unbonding, burned } = rig.ledger.state;
    return { validators, positions, usedKeys, bonded, unbonding, burned };
  };
  const before = sets();
  const real = outcomes(
    rig,
    cases.map(([, operation]) => operation),
  );
  expect(cases.map(([name], i) => `${name}: ${real[i]}`)).toEqual(
    cases.map(([name, , reason, detail]) => `${name}: ${reason} ${detail}`),
  );
  expect(sets()).toEqual(before);
  // `evidence_expired` needs a chain of ten epochs: it has its test below.
  const met = new Set([...cases.map(([, , , detail]) => detail), MET, 'evidence_expired']);
  expect([...met].sort()).toEqual([...OPERATION_REFUSAL_CODES].sort());
});

test('what a jailed, exiting or slashed validator and its delegators can still do', () => {
  const { rig, positions } = world();
  const { atCarl, atJane, atSam, leaving } = positions as Record<string, Uint8Array>;
  const redirects = [atCarl, atJane, atSam, leaving, selfBondId(carl)].map((each) => redirect(each as Uint8Array));
  const jailed = [heartbeat(jane, 1), bond(jane), commission(jane), unbond(atJane as Uint8Array, 900n * COIN)];
  const now = rig.height + 1;
  const operations = [...redirects, ...jailed, evidence(carl, 5), exit(jane), evidence(jane, now)];
  expect(outcomes(rig, operations)).toEqual(operations.map(() => 'executed'));
});

test('twice in one cut: the second finds what the first has left', () => {
  const { rig, positions } = world();
  const atAnna = positions.atAnna as Uint8Array;
  const pairs: [StakingOperation, StakingOperation, string][] = [
    [register('new'), register('other', 'new'), 'invalid consensus_key_used'],
    [register('tess'), bond(validatorId(keyOf('tess'))), 'executed'],
    [register('vera'), heartbeat(validatorId(keyOf('vera')), 1), 'invalid heartbeat_repeated'],
    [register('walt'), evidence(validatorId(keyOf('walt')), rig.height + 1), 'executed'],
    [bond(anna), bond(anna), 'executed'],
    [redirect(atAnna), redirect(atAnna), 'executed'],
    [unbond(atAnna, 500n * COIN), unbond(atAnna, 450n * COIN), 'invalid unbond_amount'],
    [unbond(atAnna), unbond(atAnna), 'invalid position_unbonding'],
    [heartbeat(jane, 1), heartbeat(jane, 1), 'invalid heartbeat_repeated'],
    [rotate(anna, 'anna two'), rotate(anna, 'anna three'), 'no_effect change_pending'],
    [commission(anna), commission(anna), 'no_effect change_pending'],
    [endpoint(rosa), endpoint(rosa), 'no_effect change_pending'],
    // A leaked key cannot wait for an announced endpoint.
    [rotate(rosa, 'rosa two'), rotate(rosa, 'rosa three'), 'no_effect change_pending'],
    [exit(paul), bond(paul), 'invalid validator_inactive'],
    [exit(rosa), exit(rosa), 'invalid validator_inactive'],
    [evidence(jane, 5), evidence(jane, 6), 'invalid validator_slashed'],
  ];
  const operations = pairs.flatMap((pair) => pair.slice(0, 2) as StakingOperation[]);
  expect(outcomes(rig, operations)).toEqual(pairs.flatMap(([, , second]) => ['executed', second]));
});

test('amounts at the bounds: a bond of everything there can be fails with its transaction', () => {
  const { rig } = world();
  const { bonded } = rig.ledger.state;
  const transactions = [bond(anna, MAX_SUPPLY), { ...register('rich'), amount: MAX_SUPPLY } as StakingOperation].map(
    (operation) => ({ ...(rig.transaction() as NonNullable<ReturnType<Rig['transaction']>>), operation }),
  );
  expect(rig.next(transactions, ALL).transactions).toMatchObject(
    transactions.map(() => ({ outcome: 'failed', reason: 'invalid', detail: 'amounts_exceed_inputs' })),
  );
  expect(rig.ledger.state.bonded).toBe(bonded);
});

test('in the cut where it becomes possible, and in the one before', () => {
  const { rig, positions } = world();
  const atSam = positions.atSam as Uint8Array;
  const at = (height: number, operation: StakingOperation | StakingOperation[], ...expected: string[]): void => {
    until(rig, height);
    expect([height, ...outcomes(rig, [operation].flat())]).toEqual([height, ...expected]);
  };
  at(2 * INTERVAL - 1, heartbeat(anna, 2), 'no_effect heartbeat_epoch');
  at(2 * INTERVAL, heartbeat(anna, 2), 'executed');
  // Changes of epoch 1 are in force from epoch 3 on, a commission from epoch 15 on.
  const pending = 'no_effect change_pending';
  at(3 * INTERVAL - 1, [endpoint(paul), rotate(paul, 'paul three')], pending, pending);
  at(3 * INTERVAL, [endpoint(paul), rotate(paul, 'paul three')], 'executed', 'executed');
  // Evidence is good for ten epochs after its votes, and a validator is slashed once.
  at(10 * INTERVAL + 6, evidence(anna, 5), 'invalid evidence_expired');
  at(10 * INTERVAL + 7, evidence(anna, 7), 'executed');
  at(11 * INTERVAL - 1, withdraw(atSam), 'no_effect position_locked');
  at(11 * INTERVAL, [withdraw(atSam), withdraw(atSam)], 'executed', 'no_effect position_unknown');
  at(11 * INTERVAL + 1, withdraw(atSam), 'no_effect position_unknown');
  at(15 * INTERVAL - 1, commission(paul), 'no_effect change_pending');
  at(15 * INTERVAL, commission(paul), 'executed');
});

test('a delegation that is released in the cut of the evidence: withdrawn before it, locked behind it, and not burned', () => {
  const { rig, positions } = world();
  const [leaving, atAnna] = [positions.leaving as Uint8Array, positions.atAnna as Uint8Array];
  const [release, again] = [11 * INTERVAL, withdraw(leaving)];
  until(rig, release - 1);
  expect(outcomes(rig, [again])).toEqual(['no_effect position_locked']);
  const cut = [evidence(anna, release - 2), again, withdraw(atAnna), unbond(atAnna), bond(anna)];
  const [locked, inactive] = ['no_effect position_locked', 'invalid validator_inactive'];
  expect(outcomes(rig, cut)).toEqual(['executed', locked, locked, 'invalid position_unbonding', inactive]);
  expect(rig.ledger.staking().position(leaving)?.principal).toBe(1_000n * COIN);
  expect(rig.ledger.staking().position(atAnna)?.principal).toBe(900n * COIN);
  expect(outcomes(rig, [again])).toEqual(['executed']);
  const before = world();
  until(before.rig, release);
  const first = [withdraw(before.positions.leaving as Uint8Array), evidence(anna, release - 2)];
  expect(outcomes(before.rig, first)).toEqual(['executed', 'executed']);
});

test('a position that slashing has not reached cannot be withdrawn', () => {
  const { rig, positions } = world();
  const atSam = positions.atSam as Uint8Array;
  const asked = (reached: Uint8Array | undefined) =>
    prepare(withdraw(atSam), {
      staking: rig.ledger.staking(),
      height: 99 * INTERVAL,
      intervalCuts: INTERVAL,
      payer: PURSE,
      chainId: rig.ledger.state.chainId,
      transactionId: NOWHERE,
      isPaymentDue: () => false,
      sweeps: [{ validator: sam, height: INTERVAL, reached }],
    });
  const before = Uint8Array.from(atSam, (byte, i) => (i === 0 ? byte - 1 : byte));
  const locked = { reason: 'no_effect', detail: 'position_locked' };
  expect(asked(undefined)).toMatchObject(locked);
  if ((atSam[0] as number) > 0) expect(asked(before)).toMatchObject(locked);
  expect(asked(atSam)).toMatchObject({ withdrawal: { amount: 900n * COIN } });
});

test.each([
  ['exits', exit(anna)],
  ['is slashed', evidence(anna, 1)],
])(
  'a committee of one that %s: nobody is eligible, it stays, earns nothing, and the next one gets the pool',
  (_, end) => {
    const rig = new Rig(genesisOf(INTERVAL, [{ name: 'anna', amount: 1_000_000n * COIN }]));
    const members = () => rig.ledger.state.stake.committee.members.map(({ validatorId }) => validatorId);
    until(rig, INTERVAL + 1);
    does(rig, end);
    until(rig, 2 * INTERVAL);
    expect(members()).toEqual([anna]);
    does(rig, register('rosa'));
    let payouts = 0;
    for (; rig.height + 1 < 4 * INTERVAL; ) payouts += rig.next([], ALL).stakePayouts.length;
    // Her last interval was paid in the first cut of epoch 2, if she was not slashed; after that there is nobody to pay.
    expect(payouts).toBe(0);
    expect(members()).toEqual([rosa]);
    until(rig, 5 * INTERVAL);
    const pool = rig.ledger.state.stake.walk?.pool as bigint;
    expect(rig.next([], ALL).stakePayouts).toMatchObject([{ positionId: selfBondId(rosa), amount: pool }]);
  },
);
