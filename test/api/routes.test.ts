/** Every route of the table against a real chain: answers fit their schemas and say what the ledger holds. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FullNode } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { positionOfEntry } from '../../node/ledger/staking/position.ts';
import { decodeValidator } from '../../node/ledger/staking/validator.ts';
import { ROUTES, type RouteName } from '../../protocol/api/routes.ts';
import { check } from '../../protocol/api/schema.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { decodeOutputProof, outputSetRoot, verifyOutputProof } from '../../protocol/proofs/output-proof.ts';
import { decodeSetProof, SET_SHAPES, setRoot } from '../../protocol/proofs/set-proof.ts';
import { selfBondId } from '../../protocol/staking/names.ts';
import { verifyPositionProof, verifyValidatorProof } from '../../protocol/staking/proof.ts';
import { ApiBed, addressOf, treasury } from './api-bed.ts';

let bed: ApiBed;
let paid: string;
let waiting: string;
let blockId: string;
const alice = addressOf('alice');
const miner = addressOf('miner');

beforeAll(async () => {
  bed = await ApiBed.open();
  paid = await bed.pay(0, 'alice', 5_000_000_000n);
  blockId = toHex(await bed.bed.mine(developmentKey('miner').address));
  await bed.bed.seal(100);
  for (let i = 1; i <= 5; i++) {
    await bed.pay(i, 'alice', 1_000n + BigInt(i));
    await bed.bed.mine(developmentKey('miner').address);
    await bed.bed.seal();
  }
  waiting = await bed.pay(10, 'alice', 77n);
});
afterAll(() => bed.close());

const node = (): FullNode => bed.bed.node;

test('every answer fits the schema of its route', async () => {
  const { client } = bed;
  const answers: { [N in RouteName]: unknown } = {
    addressBalance: await client.addressBalance({ address: alice }),
    addressUtxos: await client.addressUtxos({ address: alice }),
    addressHistory: await client.addressHistory({ address: alice }),
    cuts: await client.cuts(),
    cutTransactions: await client.cutTransactions({ height: 1 }),
    cutChanges: await client.cutChanges({ height: 1 }),
    cutRewards: await client.cutRewards({ height: 97 }),
    recentTransactions: await client.recentTransactions(),
    recentBlocks: await client.recentBlocks(),
    addressBalances: await client.addressBalances({ addresses: [alice, miner] }),
    addressesUtxos: await client.addressesUtxos({ addresses: [alice, miner] }),
    addressChanges: await client.addressChanges({ addresses: [alice], after_height: 0 }),
    mempoolPending: await client.mempoolPending({ addresses: [alice] }),
    stakingPositions: await client.stakingPositions({ addresses: [addressOf('validator 0')] }),
    registeredKeys: await client.registeredKeys({ addresses: [alice, treasury()] }),
    transactionStatuses: await client.transactionStatuses({ transaction_ids: [paid, '0'.repeat(96)] }),
    utxoProofs: await client.utxoProofs({ outpoints: [{ transaction_id: paid, output_index: 0 }] }),
    stakingProofs: await client.stakingProofs({ position_ids: [paid], validator_ids: [paid] }),
    submitTransaction: await client.submitTransaction(node().mempool.get(fromHex(waiting))?.wire as Uint8Array),
    manifest: await client.manifest(),
    transactionStatus: await client.transactionStatus({ id: paid }),
    block: await client.block({ id: blockId }),
    chainHead: await client.chainHead(),
    chainRates: await client.chainRates(),
    mempool: await client.mempool(),
    nodeIdentity: await client.nodeIdentity(),
    nodeSync: await client.nodeSync(),
    nodeStatus: await client.nodeStatus(),
    supply: await client.supply(),
    emission: await client.emission(),
    stakingEstimate: await client.stakingEstimate({ amount: '100000000' }),
    stakingValidators: await client.stakingValidators({}),
    stakingValidator: await client.stakingValidator({
      id: (await client.stakingValidators({})).validators[0]?.validator_id ?? '',
    }),
  };
  for (const [name, answer] of Object.entries(answers))
    expect(check(ROUTES[name as RouteName].answer, answer), name).toBeUndefined();
});

test('balance, outputs and history of an address agree with each other', async () => {
  const balance = await bed.client.addressBalance({ address: alice });
  expect(balance.balance).toBe((5_000_000_000n + 5_015n).toString());
  expect(balance.utxos).toBe(6);
  expect(balance.indexed_height).toBe(node().chain.head().height);
  const { utxos } = await bed.client.addressUtxos({ address: alice });
  expect(utxos.reduce((sum, { amount }) => sum + BigInt(amount), 0n).toString()).toBe(balance.balance);
  const { events } = await bed.client.addressHistory({ address: alice });
  const amounts = events.map(({ amount }) => BigInt(amount)).sort((a, b) => (a < b ? -1 : 1));
  expect(amounts).toEqual([1001n, 1002n, 1003n, 1004n, 1005n, 5_000_000_000n]);
  const heights = events.map(({ finalized_height }) => finalized_height);
  expect(heights).toEqual([...heights].sort((a, b) => b - a));
  expect(events.every(({ kind, source }) => kind === 'received' && source === 'regular')).toBe(true);
  expect(events[5]?.transaction_id).toBe(paid);
  const spent = await bed.client.addressHistory({ address: treasury(), limit: 256 });
  expect(spent.events.filter(({ kind }) => kind === 'spent')).toHaveLength(6);
});

test('pages follow each other without a gap or a repetition', async () => {
  const all = (await bed.client.addressHistory({ address: treasury(), limit: 256 })).events;
  const paged: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await bed.client.addressHistory({ address: treasury(), limit: 7, cursor });
    paged.push(...page.events);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(paged).toEqual(all);
  const outputs: unknown[] = [];
  do {
    const page = await bed.client.addressUtxos({ address: treasury(), limit: 9, cursor });
    outputs.push(...page.utxos);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(outputs).toEqual((await bed.client.addressUtxos({ address: treasury(), limit: 512 })).utxos);
  const many: unknown[] = [];
  const addresses = [alice, miner, treasury(), addressOf('nobody')];
  do {
    const page = await bed.client.addressesUtxos({ addresses, limit: 11, cursor });
    many.push(...page.utxos);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  const { balances } = await bed.client.addressBalances({ addresses });
  expect(many).toHaveLength(balances.reduce((sum, { utxos }) => sum + utxos, 0));
  expect(new Set(many.map((utxo) => JSON.stringify(utxo))).size).toBe(many.length);
});

test('changes after a height come oldest first, page by page, and end at the indexed height', async () => {
  const addresses = [alice, miner, treasury()];
  const whole = await bed.client.addressChanges({ addresses, after_height: 0, limit: 4096 });
  expect(whole.next_cursor).toBeUndefined();
  expect(whole.indexed_height).toBe(node().chain.head().height);
  const heights = whole.changes.map(({ finalized_height }) => finalized_height);
  expect(heights).toEqual([...heights].sort((a, b) => a - b));
  const paged: unknown[] = [];
  let cursor: string | undefined;
  do {
    const page = await bed.client.addressChanges({ addresses, after_height: 0, limit: 3, cursor });
    paged.push(...page.changes);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(paged).toEqual(whole.changes);
  const later = await bed.client.addressChanges({ addresses, after_height: 101 });
  expect(later.changes).toEqual(whole.changes.filter(({ finalized_height }) => finalized_height > 101));
});

test('a block shows who was paid what, and where', async () => {
  const block = await bed.client.block({ id: blockId });
  expect(block.payout).toBe(miner);
  expect(block.extranonce.startsWith(toHex(encodeExtranonce('', new Uint8Array(0))))).toBe(true);
  expect(block.transactions).toEqual([paid]);
  expect(block.registered_cut?.height).toBe(1);
  expect(block.reward.state).toBe('paid');
  expect(block.reward.paid_height).toBe(96);
  expect(BigInt(block.reward.amount as string)).toBe(
    BigInt(block.reward.work_amount as string) + BigInt(block.reward.fee_amount as string),
  );
  const reward = (await bed.client.addressUtxos({ address: miner })).utxos[0];
  expect(reward?.source).toBe('work_reward');
  expect(reward?.outpoint).toEqual(block.reward.outpoint);
  const newest = (await bed.client.recentBlocks({ limit: 1 })).blocks[0];
  expect(newest?.reward.state).toBe('pending');
});

test('a cut lists its transactions with what they spent and made', async () => {
  const { transactions, cut } = await bed.client.cutTransactions({ height: 1 });
  expect(cut.height).toBe(1);
  const [first] = transactions;
  expect(first?.transaction_id).toBe(paid);
  expect(first?.inputs[0]?.address).toBe(treasury());
  const spent = BigInt(first?.inputs[0]?.amount as string);
  const made = (first?.outputs ?? []).reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  expect(spent - made).toBe(BigInt(first?.fee as string));
  const { changes } = await bed.client.cutChanges({ height: 1 });
  expect(changes.filter(({ kind }) => kind === 'spent')).toHaveLength(1);
  expect(changes.find(({ address }) => address === alice)?.amount).toBe('5000000000');
});

test('a cut names the blocks that it paid, page by page, however old it is', async () => {
  const { reward } = await bed.client.block({ id: blockId });
  expect(reward.state).toBe('paid');
  const paying = { height: reward.paid_height as number };
  const whole = await bed.client.cutRewards(paying);
  expect(whole.rewards).toEqual([
    { block_id: blockId, transaction_id: reward.outpoint?.transaction_id, output_index: 0, amount: reward.amount },
  ]);
  expect(whole.cut.height).toBe(paying.height);
  const others = await bed.client.cutRewards({ height: paying.height - 1 });
  expect([others.rewards, others.next_cursor]).toEqual([[], undefined]);
  await expect(bed.client.cutRewards({ height: 1_000_000 })).rejects.toMatchObject({ code: 'cut_unknown' });
  await expect(bed.client.cutRewards({ ...paying, cursor: 'ab' })).rejects.toMatchObject({ code: 'bad_cursor' });
});

test('the cut list walks down to genesis', async () => {
  const heights: number[] = [];
  let before: number | undefined;
  do {
    const page = await bed.client.cuts({ before, limit: 40 });
    heights.push(...page.cuts.map(({ height }) => height));
    before = page.next_before;
  } while (before !== undefined);
  expect(heights).toEqual(
    Array.from({ length: node().chain.head().height + 1 }, (_, i) => node().chain.head().height - i),
  );
});

test('pending payments, keys and statuses', async () => {
  const { pending } = await bed.client.mempoolPending({ addresses: [alice] });
  expect(pending).toMatchObject([
    { transaction_id: waiting, direction: 'incoming', amount: '77', lifecycle: 'processing' },
  ]);
  const { keys } = await bed.client.registeredKeys({ addresses: [alice, treasury()] });
  expect(keys).toEqual([
    { address: alice, registered: false, registered_height: null },
    { address: treasury(), registered: true, registered_height: 1 },
  ]);
  const answer = await bed.client.transactionStatuses({ transaction_ids: [paid, waiting, 'f'.repeat(96)] });
  expect(answer.statuses.map(({ lifecycle }) => lifecycle)).toEqual(['finalized', 'processing']);
  expect(answer.unknown).toEqual(['f'.repeat(96)]);
  expect(answer.statuses[0]).toEqual(await bed.client.transactionStatus({ id: paid }));
  expect(answer.statuses[0]?.finalized_cut?.height).toBe(1);
  expect(answer.statuses[0]?.observed_work?.block_id).toBe(blockId);
  await expect(bed.client.transactionStatus({ id: 'f'.repeat(96) })).rejects.toMatchObject({
    code: 'transaction_unknown',
    status: 404,
  });
});

test('a refused submission says which rule it broke and what that means', async () => {
  const again = bed.bed.payment([bed.bed.treasury(0)], [{ address: developmentKey('alice').address, amount: 1n }]);
  await expect(bed.client.submitTransaction(again)).rejects.toMatchObject({
    code: 'input_spent',
    detail: { failure: 'conflict' },
  });
});

test.each([
  [true, 'embedded'],
  [false, 'network'],
] as const)(
  'the status of a node that makes cuts itself (%s) says that its validators are %s',
  async (makesCuts, validators) => {
    const own = await ApiBed.forTest({ bed: { options: { makesCuts } } });
    expect((await own.client.nodeStatus()).validators).toBe(validators);
  },
);

test.each([
  ['/v1/address/balances', { addresses: [] as string[] }],
  ['/v1/address/utxos', { addresses: [] as string[] }],
  ['/v1/address/changes', { addresses: [] as string[], after_height: 0 }],
  ['/v1/mempool/pending', { addresses: [] as string[] }],
  ['/v1/staking/positions', { addresses: [] as string[] }],
  ['/v1/keys/registered', { addresses: [] as string[] }],
  ['/v1/transactions/status', { transaction_ids: ['00'.repeat(48)] }],
  ['/v1/proofs/utxos', { outpoints: [{ transaction_id: '00'.repeat(48), output_index: 0 }] }],
])('%s takes its body with and without api_version, and no other version', async (route, fields) => {
  const body = 'addresses' in fields ? { ...fields, addresses: [treasury()] } : fields;
  expect((await bed.post(route, body)).status).toBe(200);
  expect((await bed.post(route, { api_version: 1, ...body })).status).toBe(200);
  expect((await bed.post(route, { api_version: 2, ...body })).status).toBe(400);
});

test('a wrong entry of a batch is named by its place in the request', async () => {
  const answer = await bed.post('/v1/address/balances', { addresses: [alice, alice, miner, 'nobody'] });
  expect([answer.status, JSON.stringify(await answer.json())]).toEqual([400, expect.stringContaining('addresses[3]')]);
});

test('wire_hex is hex of either case', async () => {
  const own = await ApiBed.forTest();
  const wire = toHex(
    own.bed.payment([own.bed.treasury(0)], [{ address: developmentKey('alice').address, amount: 5n }]),
  );
  const answer = await own.post('/v1/transactions', { api_version: 1, wire_hex: wire.toUpperCase() });
  expect([answer.status, (await answer.json()).status]).toEqual([200, 'accepted']);
});

test('positions and validators are proven, and that there is none; nothing else passes for them', async () => {
  const [validator] = (await bed.client.stakingValidators({})).validators;
  const validatorId = validator?.validator_id as string;
  const ownId = toHex(selfBondId(fromHex(validatorId)));
  const answer = await bed.client.stakingProofs({ position_ids: [ownId, paid], validator_ids: [validatorId, paid] });
  const [state, stateRoot] = [fromHex(answer.state_hex), fromHex(answer.cut.state_root)];
  const roots = {
    positions: setRoot(SET_SHAPES.positions, state, stateRoot),
    validators: setRoot(SET_SHAPES.validators, state, stateRoot),
  };
  expect(() => setRoot(SET_SHAPES.positions, state.slice(1), stateRoot)).toThrow(/not the one of the cut/);
  const [own, noPosition] = answer.positions.map(({ position_id, proof_hex }) =>
    verifyPositionProof(
      roots.positions,
      fromHex(position_id),
      decodeSetProof(SET_SHAPES.positions, fromHex(proof_hex)),
    ),
  );
  expect(noPosition).toEqual({ ok: true, entry: undefined });
  expect(answer.positions[1]?.entry_hex).toBeNull();
  expect(own?.ok && own.entry && toHex(own.entry)).toBe(answer.positions[0]?.entry_hex);
  const position = positionOfEntry(fromHex(answer.positions[0]?.entry_hex as string));
  expect([position.principal.toString(), toHex(position.validator)]).toEqual([validator?.self_bond, validatorId]);
  const proof = decodeSetProof(SET_SHAPES.validators, fromHex(answer.validators[0]?.proof_hex as string));
  const record = fromHex(answer.validators[0]?.record_hex as string);
  const holds = (id: string, told: Uint8Array | undefined) =>
    verifyValidatorProof(roots.validators, fromHex(id), told, proof);
  expect(decodeValidator(record).stake.toString()).toBe(validator?.stake);
  expect(holds(validatorId, record)).toBe(true);
  // Another record, none, and a root of another set are not proven by it.
  expect(
    holds(
      validatorId,
      record.map((byte, i) => (i === 200 ? byte ^ 1 : byte)),
    ),
  ).toBe(false);
  expect(holds(validatorId, undefined)).toBe(false);
  expect(holds(paid, record)).toBe(false);
  expect(answer.validators[1]?.record_hex).toBeNull();
  expect(holds(paid, undefined)).toBe(true);
  expect(verifyValidatorProof(roots.positions, fromHex(validatorId), record, proof)).toBe(false);
  const bytes = fromHex(answer.positions[0]?.proof_hex as string);
  for (let at = 2; at < bytes.length; at += 5) {
    const broken = bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
    const ok = () =>
      verifyPositionProof(roots.positions, fromHex(ownId), decodeSetProof(SET_SHAPES.positions, broken)).ok;
    if (broken.length === bytes.length) expect(fails(ok), `byte ${at}`).toBe(true);
  }
});

const fails = (check: () => boolean): boolean => {
  try {
    return !check();
  } catch {
    return true;
  }
};

test('proofs lead from outputs, and from nothing, to the state root of the cut', async () => {
  const outpoints = [
    { transaction_id: paid, output_index: 0 },
    { transaction_id: paid, output_index: 7 },
  ];
  const answer = await bed.client.utxoProofs({ outpoints });
  const root = outputSetRoot(fromHex(answer.state_hex), fromHex(answer.cut.state_root));
  const verdicts = answer.proofs.map(({ outpoint, proof_hex }) =>
    verifyOutputProof(
      root,
      { transactionId: fromHex(outpoint.transaction_id), outputIndex: outpoint.output_index },
      decodeOutputProof(fromHex(proof_hex)),
    ),
  );
  expect(verdicts[0]).toMatchObject({ ok: true, output: { amount: 5_000_000_000n } });
  expect(verdicts[1]).toEqual({ ok: true, output: undefined });
  const bytes = fromHex(answer.proofs[0]?.proof_hex as string);
  for (let at = 2; at < bytes.length; at += 5) {
    const broken = bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
    let ok = false;
    try {
      const verdict = verifyOutputProof(
        root,
        { transactionId: fromHex(paid), outputIndex: 0 },
        decodeOutputProof(broken),
      );
      ok = verdict.ok;
    } catch {
      ok = false;
    }
    expect(ok, `byte ${at}`).toBe(false);
  }
});

test('the supply adds up, and the estimate counts its own weight', async () => {
  const supply = await bed.client.supply();
  const parts = ['circulating_supply', 'bonded', 'unbonding', 'work_reserve', 'stake_reserve'] as const;
  expect(parts.reduce((sum, part) => sum + BigInt(supply[part]), 0n).toString()).toBe(supply.total_supply);
  expect(BigInt(supply.minted) + BigInt(supply.unscheduled_emission)).toBe(BigInt(supply.max_supply));
  const emission = await bed.client.emission();
  expect(BigInt(emission.work_half) + BigInt(emission.stake_half)).toBe(BigInt(emission.subsidy));
  expect(emission.next_reduction_height).toBe(34_560);
  const estimate = await bed.client.stakingEstimate({ amount: '1' });
  expect(BigInt(estimate.reward_per_day)).toBeLessThan(BigInt(estimate.pool_per_day));
  const positions = await bed.client.stakingPositions({ addresses: [addressOf('validator 0')] });
  expect(positions.positions.reduce((sum, { principal }) => sum + BigInt(principal), 0n).toString()).toBe(
    supply.bonded,
  );
});
