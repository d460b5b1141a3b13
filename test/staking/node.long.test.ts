/**
 * Staking through the doors of a real node and its store, signed with real keys (ledger rules 55 and 60 to 69): what is refused and why, who may sign
 * what, what waits beside what, and that a node opened again goes on from the same state.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Submission, UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import { splitHalves } from '../../protocol/ledger/emission.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import { decodeTransaction, encodeTransaction } from '../../protocol/transactions/transaction.ts';
import { Bed } from '../node/bed.ts';
import {
  anEndpoint,
  evidenceOf,
  newEndpoint,
  operationTransaction,
  registration,
  rotation,
  type Signing,
} from './signed.ts';

const COIN = 100_000_000n;
const INTERVAL = 24;
const treasury = developmentKey(TREASURY);
const miner = developmentKey('miner').address;
const zero = developmentKey(validatorName(0));
const bert = developmentKey('bert');
const bertsKey = developmentKey('bert consensus');
const dora = developmentKey('dora');
const mallory = developmentKey('mallory');
const zeroId = validatorId(zero.publicKey);
const bertId = validatorId(bertsKey.publicKey);

let bed: Bed;
let spent: number;
beforeEach(async () => {
  bed = await Bed.open({ genesis: { validators: 2, intervalCuts: INTERVAL } });
  spent = 0;
});
afterEach(async () => {
  await bed.close();
});

const next = (): UnspentOutput => bed.treasury(spent++);
const wire = (operation: StakingOperation, signing: Signing): Uint8Array =>
  operationTransaction(bed.node.chain, { key: treasury, spend: next() }, operation, signing);
const send = (operation: StakingOperation, signing: Signing): Promise<Submission> =>
  bed.node.submitTransaction(wire(operation, signing));
const codeOf = (submission: Submission): string =>
  submission.status === 'refused' ? submission.error.code : submission.status;
async function mined(): Promise<CutEffects> {
  await bed.mine(miner);
  return await bed.seal();
}
async function does(operation: StakingOperation, signer = bert): Promise<CutEffects> {
  expect(codeOf(await send(operation, { signer }))).toBe('accepted');
  const effects = await mined();
  expect(effects.transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  return effects;
}
const register = () => registration(bed.node.chain, bertsKey, bert, 100_000n * COIN);
const bond = (amount = 1_000n * COIN): StakingOperation => ({
  name: 'bond',
  validator: bertId,
  owner: dora.address,
  rewardAddress: dora.address,
  amount,
});
const positionOf = (effects: CutEffects) => delegationId(effects.transactions[0]?.id as Uint8Array);
const epochNow = () => bed.node.chain.staking().epoch;

test('who signs what: every operation from the wrong signer is refused at the door', async () => {
  await does(register());
  const position = positionOf(await does(bond(), dora));
  const own = selfBondId(bertId);
  await bed.seal(INTERVAL - bed.node.chain.head().height - 1);
  const heartbeat = { name: 'heartbeat' as const, validator: bertId, epoch: epochNow() };
  const cases: [StakingOperation, string][] = [
    [registration(bed.node.chain, developmentKey('x'), dora, 100_000n * COIN), 'witness_key_mismatch'],
    [{ ...bond(), name: 'bond' } as StakingOperation, 'witness_key_mismatch'],
    [{ name: 'unbond', position, amount: 0n }, 'witness_key_mismatch'],
    [{ name: 'reward_address', position, address: mallory.address }, 'witness_key_mismatch'],
    [{ name: 'reward_address', position: own, address: mallory.address }, 'witness_key_mismatch'],
    [heartbeat, 'witness_key_mismatch'],
    [rotation(bed.node.chain, bertId, developmentKey('y'), bert), 'witness_key_mismatch'],
    [newEndpoint(bed.node.chain, bertId, anEndpoint(9), bertsKey), 'witness_key_mismatch'],
    [{ name: 'commission', validator: bertId, commission: 10 }, 'witness_key_mismatch'],
    [{ name: 'exit', validator: bertId }, 'witness_key_mismatch'],
    // Evidence is signed by the validator that pays for it.
    [evidenceOf(bed.node.chain, zeroId, zero, { kind: 'prevote', height: 1, round: 0 }), 'witness_key_mismatch'],
    // The owner of a validator does not send its heartbeat, and its key does not let it exit.
  ];
  for (const [operation, code] of cases)
    expect([operation.name, codeOf(await send(operation, { signer: mallory }))]).toEqual([operation.name, code]);
  expect(codeOf(await send(heartbeat, { signer: bert }))).toBe('witness_key_mismatch');
  expect(codeOf(await send({ name: 'exit', validator: bertId }, { signer: bertsKey }))).toBe('witness_key_mismatch');
  // The right ones, a heartbeat without its key: the ledger knows it.
  expect(codeOf(await send(heartbeat, { signer: bertsKey, profile: 'referenced' }))).toBe('accepted');
  expect(codeOf(await send({ name: 'exit', validator: bertId }, { signer: bert }))).toBe('accepted');
});

test('a signature inside an operation must be the right key over the right thing', async () => {
  const good = register();
  const chain = { chainId: new Uint8Array(48) };
  const wrong: [StakingOperation, string][] = [
    [
      { ...good, possession: registration(bed.node.chain, mallory, bert, COIN).possession },
      'possession of another key',
    ],
    [{ ...good, owner: dora.address }, 'possession for another owner'],
    [registration(chain, bertsKey, bert, 100_000n * COIN), 'possession for a genesis'],
  ];
  for (const [operation, why] of wrong) {
    const signer = operation.name === 'register' && operation.owner === dora.address ? dora : bert;
    expect([why, codeOf(await send(operation, { signer }))]).toEqual([why, 'operation_proof_invalid']);
  }
  await does(good);
  const endpoint = newEndpoint(bed.node.chain, bertId, anEndpoint(3), mallory);
  expect(codeOf(await send(endpoint, { signer: bert }))).toBe('operation_proof_invalid');
  const moved = { ...newEndpoint(bed.node.chain, bertId, anEndpoint(3), bertsKey), endpoint: anEndpoint(4) };
  expect(codeOf(await send(moved, { signer: bert }))).toBe('operation_proof_invalid');
  const forged = evidenceOf(bed.node.chain, zeroId, mallory, { kind: 'prevote', height: 1, round: 0 });
  expect(codeOf(await send(forged, { signer: treasury }))).toBe('operation_proof_invalid');
  // In a block it fails for good, and nothing of it is done.
  const { bonded } = bed.node.chain.supply();
  expect(bed.node.chain.supply().burned).toBe(0n);
  expect((await bed.node.chain.validators({ limit: 64 })).length).toBe(3);
  expect(bonded).toBe(2_100_000n * COIN);
});

test('what is bonded counts as paid: amounts and fees are checked with it', async () => {
  const operation = register();
  const spend = next();
  const send = (more: Partial<Signing>) =>
    bed.node.submitTransaction(
      operationTransaction(bed.node.chain, { key: treasury, spend }, operation, { signer: bert, ...more }),
    );
  expect(codeOf(await send({ fee: 10n }))).toBe('fee_below_minimum');
  const decoded = decodeTransaction(
    operationTransaction(bed.node.chain, { key: treasury, spend }, operation, { signer: bert }),
  );
  const [output] = decoded.body.outputs as [(typeof decoded.body.outputs)[number]];
  const body = { ...decoded.body, outputs: [{ ...output, amount: spend.amount - operation.amount + 1n }] };
  expect(codeOf(await bed.node.submitTransaction(encodeTransaction({ ...decoded, body })))).toBe(
    'amounts_exceed_inputs',
  );
  expect(codeOf(await send({}))).toBe('accepted');
});

test('slots: one of a kind waits, a stranger blocks nobody, and a cut clears what it made impossible', async () => {
  await does(register());
  const position = positionOf(await does(bond(), dora));
  await bed.seal(INTERVAL - bed.node.chain.head().height - 1);
  const heartbeat = { name: 'heartbeat' as const, validator: bertId, epoch: epochNow() };
  for (let i = 0; i < 3; i++)
    expect(codeOf(await send({ ...bond(), owner: mallory.address } as StakingOperation, { signer: mallory }))).toBe(
      'accepted',
    );
  expect(codeOf(await send(heartbeat, { signer: bertsKey }))).toBe('accepted');
  expect(await send(heartbeat, { signer: bertsKey })).toMatchObject({
    error: { code: 'operation_conflict', message: expect.stringContaining('already sent this epoch') },
  });
  expect(codeOf(await send({ name: 'unbond', position, amount: 0n }, { signer: dora }))).toBe('accepted');
  const redirect = { name: 'reward_address' as const, position, address: mallory.address };
  expect(codeOf(await send(redirect, { signer: dora }))).toBe('operation_conflict');
  expect(codeOf(await send({ name: 'commission', validator: bertId, commission: 0 }, { signer: bert }))).toBe(
    'accepted',
  );
  expect(codeOf(await send({ name: 'exit', validator: bertId }, { signer: bert }))).toBe('accepted');
  expect(codeOf(await send({ name: 'exit', validator: bertId }, { signer: bert }))).toBe('operation_conflict');
  const other = developmentKey('other');
  expect(codeOf(await send(registration(bed.node.chain, other, bert, 100_000n * COIN), { signer: bert }))).toBe(
    'accepted',
  );
  expect(codeOf(await send(registration(bed.node.chain, other, dora, 100_000n * COIN), { signer: dora }))).toBe(
    'operation_conflict',
  );
  // The heartbeat is first in a template that has room for one.
  const template = bed.node.template({ payout: miner, maxTransactions: 1 });
  expect(decodeTransaction(template.transactions[0] as Uint8Array).body.operation?.type).toBe(6);
  // The exit executes; what waits for this validator and cannot follow it leaves.
  const exit = [...bed.node.mempool.list()].find(({ body }) => body.operation?.type === 10);
  expect(exit).toBeDefined();
  const effects = await mined();
  expect(effects.transactions.some(({ outcome }) => outcome === 'executed')).toBe(true);
  const left = [...bed.node.mempool.list()].map(({ body }) => body.operation?.type);
  expect(left.filter((type) => type === 2 || type === 6 || type === 10)).toEqual([]);
});

test('what waits leaves with the cut that made it impossible, and a heartbeat with its epoch', async () => {
  await does(register());
  const position = positionOf(await does(bond(), dora));
  await bed.seal(INTERVAL - bed.node.chain.head().height - 1);
  const epoch = epochNow();
  expect(codeOf(await send({ name: 'exit', validator: bertId }, { signer: bert }))).toBe('accepted');
  await bed.mine(miner);
  // The exit is in a block; these come after it and are in none.
  const late: [StakingOperation, Signing['signer']][] = [
    [bond(), dora],
    [{ name: 'unbond', position, amount: 0n }, dora],
    [{ name: 'reward_address', position: selfBondId(bertId), address: dora.address }, bert],
    [{ name: 'heartbeat', validator: bertId, epoch }, bertsKey],
    [rotation(bed.node.chain, bertId, developmentKey('bert two'), bert), bert],
    [newEndpoint(bed.node.chain, bertId, anEndpoint(9), bertsKey), bert],
    [{ name: 'commission', validator: bertId, commission: 10 }, bert],
    [{ name: 'heartbeat', validator: zeroId, epoch }, zero],
  ];
  for (const [operation, signer] of late)
    expect([operation.name, codeOf(await send(operation, { signer }))]).toEqual([operation.name, 'accepted']);
  const waiting = () => [...bed.node.mempool.list()].map(({ body }) => body.operation?.type).sort();
  expect((await bed.seal()).transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  // An address can be changed at any time, and the other validator is not concerned.
  expect(waiting()).toEqual([5, 6]);
  await bed.seal((epoch + 1) * INTERVAL - 2 - bed.node.chain.head().height);
  expect(waiting()).toEqual([5, 6]);
  await bed.seal();
  expect([epochNow(), waiting()]).toEqual([epoch + 1, [5]]);
});

test('equivocation: the self-bond and a tenth of each delegation burn, and nothing else is touched', async () => {
  await does(register());
  const delegations = [
    positionOf(await does(bond(1_000n * COIN + 9n), dora)),
    positionOf(await does(bond(200n * COIN), dora)),
  ];
  await does({ name: 'unbond', position: delegations[1] as Uint8Array, amount: 0n }, dora);
  const before = bed.node.chain.supply();
  const evidence = evidenceOf(bed.node.chain, bertId, bertsKey, { kind: 'precommit', height: 3, round: 1 });
  const effects = await does(evidence, treasury);
  const after = bed.node.chain.supply();
  const burned = 100_000n * COIN + (1_000n * COIN + 9n) / 10n + 20n * COIN;
  expect(after.burned - before.burned).toBe(burned);
  expect(before.bonded - after.bonded).toBe(101_000n * COIN + 9n);
  expect(after.unbonding).toBe(1_200n * COIN + 9n - (1_000n * COIN + 9n) / 10n - 20n * COIN);
  expect(effects.figures.outputs - before.outputs).toBe(
    -splitHalves(effects.fees).work - splitHalves(effects.fees).stake,
  );
  const [own, ...rest] = [selfBondId(bertId), ...delegations].map((id) => bed.node.chain.staking().position(id));
  expect(own).toBeUndefined();
  expect(rest.map((position) => position?.principal)).toEqual([900n * COIN + 9n, 180n * COIN]);
  expect((await bed.node.chain.positionsOf(zero.address))[0]?.principal).toBe(1_000_000n * COIN);
  const votes = evidenceOf(bed.node.chain, bertId, bertsKey, { kind: 'precommit', height: 4, round: 1 });
  expect(codeOf(await send(votes, { signer: treasury }))).toBe('validator_slashed');
  for (const operation of [
    bond(),
    { name: 'exit', validator: bertId } as const,
    { name: 'commission', validator: bertId, commission: 10 } as const,
  ])
    expect(codeOf(await send(operation, { signer: operation.name === 'bond' ? dora : bert }))).toBe(
      'validator_inactive',
    );
  // What is left comes back after its release.
  await bed.seal(10 * INTERVAL);
  const withdrawn = await does({ name: 'withdraw', position: delegations[0] as Uint8Array }, dora);
  expect(withdrawn.created.find(({ source }) => source === 'stake_withdrawal')).toMatchObject({
    address: dora.address,
    amount: 900n * COIN + 9n,
  });
});

test('two of a kind in one cut: the second finds what the first has left', async () => {
  await does(register());
  const exits = [0, 1].map(() => wire({ name: 'exit', validator: bertId }, { signer: bert }));
  // The door lets one wait; the other comes with a block of another node.
  expect(codeOf(await bed.node.submitTransaction(exits[0] as Uint8Array))).toBe('accepted');
  await bed.mine(miner);
  expect(codeOf(await bed.node.submitTransaction(exits[1] as Uint8Array))).toBe('operation_conflict');
  expect((await bed.seal()).transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  expect(codeOf(await bed.node.submitTransaction(exits[1] as Uint8Array))).toBe('validator_inactive');
});

test('a node opened again at every cut around an epoch change goes on from the same state', async () => {
  await does(register());
  await does(bond(), dora);
  while (bed.node.chain.head().height < 2 * INTERVAL + 1) {
    const wanted = bed.node.chain.head();
    const staking = bed.node.chain.staking();
    await bed.reopen();
    expect(bed.node.chain.head()).toEqual(wanted);
    expect(bed.node.chain.staking().stake).toEqual(staking.stake);
    await bed.seal();
  }
  expect(bed.node.chain.staking().stake.committee.members.length).toBe(3);
  expect(bed.node.chain.staking().delegationCount(bertId)).toBe(1);
});
