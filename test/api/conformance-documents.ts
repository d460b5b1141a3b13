/** Rows of the specification's tables: resources, and documents beyond the specification. */
import { expect } from 'vitest';
import { addressOf } from './api-bed.ts';
import { answers, type Row, subject, tested, titled } from './conformance-rows.ts';
import { MODULE_ROWS } from './module-rows.ts';

export const DOCUMENTS_ROWS: readonly Row[] = [
  tested('Resources', 'Address balance document', 'test/api/conformance.test.ts', async () => {
    const { finalized_height: _, ...document } = await answers('addressBalance', { address: addressOf('crowd') });
    expect(document).toEqual({
      api_version: 1,
      address: addressOf('crowd'),
      balance: '1100000',
      utxos: 1_100,
      indexed_height: subject.head,
    });
  }),
  tested('Resources', 'Address history document', 'test/api/conformance.test.ts', async () => {
    const document = await answers('addressHistory');
    expect(document).toMatchObject({
      api_version: 1,
      indexed_height: subject.head,
      next_cursor: expect.any(String),
    });
    const events = document.events as Record<string, unknown>[];
    for (const event of events)
      expect(event).toMatchObject({
        finalized_height: expect.any(Number),
        outpoint: { transaction_id: expect.stringMatching(/^[0-9a-f]{96}$/), output_index: expect.any(Number) },
        amount: expect.stringMatching(/^\d+$/),
        source: expect.any(String),
      });
    expect(events).toContainEqual(expect.objectContaining({ kind: 'spent', source: 'genesis' }));
    expect(events).toContainEqual(expect.objectContaining({ kind: 'received', source: 'regular' }));
  }),
  tested('Resources', 'Transaction status document', 'test/api/conformance.test.ts', async () => {
    expect(await answers('transactionStatus')).toMatchObject({
      transaction_id: subject.transaction,
      lifecycle: 'finalized',
      observed_work: { block_id: subject.block },
      registered_cut: { height: 1 },
      finalized_cut: { height: 1 },
      failure: null,
    });
  }),
  tested('Resources', 'Supply document', 'test/api/conformance.test.ts', async () => {
    const supply = (await answers('supply')) as Record<string, string>;
    const of = (name: string) => BigInt(supply[name] as string);
    const parts = ['circulating_supply', 'bonded', 'unbonding', 'work_reserve', 'stake_reserve'].map(of);
    expect(of('total_supply')).toBe(parts.reduce((sum, part) => sum + part));
    expect(of('total_supply')).toBe(of('minted') - of('burned'));
    expect(of('minted') + of('unscheduled_emission')).toBe(of('max_supply'));
    expect(of('max_supply')).toBe(200_000_000n * 100_000_000n);
  }),
  tested('Resources', 'Node sync document', 'test/api/conformance.test.ts', async () => {
    expect(await answers('nodeSync')).toMatchObject({
      synced: expect.any(Boolean),
      finalized_height: subject.head,
      behind_by: 0,
    });
  }),
  tested('Resources', 'Block document: `reward.state` and the amounts', 'test/api/routes.test.ts', async () => {
    const { reward } = (await answers('block', { id: subject.block })) as { reward: Record<string, string> };
    expect(BigInt(reward.amount as string)).toBe(
      BigInt(reward.work_amount as string) + BigInt(reward.fee_amount as string),
    );
  }),
  tested('Resources', 'Node status: `update_required`, `update_announced`', 'test/api/routes.test.ts', async () => {
    expect(await answers('nodeStatus')).toMatchObject({ update_required: false, update_announced: false });
  }),
  tested('Resources', 'Node sync: null and 0 for a node without peers', 'test/api/conformance.test.ts', async () => {
    expect(await answers('nodeSync')).toMatchObject({ best_peer_height: null, peers: 0 });
  }),
  titled(
    'Resources',
    'Node sync: `best_peer_height`, `behind_by`, `peers` of a node behind its peers',
    'test/network/parts.test.ts',
    'the height that a delivering peer claims is shown to a node that is behind, and to no other',
  ),
  titled(
    'Resources',
    'History `source` of withdrawn stake',
    'test/staking/story.test.ts',
    'genesis, register, delegate, earn with commission, redirect, rotate, miss windows, jailed, heartbeat, exit, withdraw',
  ),
  titled(
    'Validator liveness',
    'live, lapsed, jailed, eligible, exit; heartbeats',
    'test/staking/story.test.ts',
    'miss windows, jailed, heartbeat, exit',
  ),
  tested(
    'Documents beyond the specification',
    '`GET /v1/staking/validators`',
    'test/api/routes.test.ts',
    async () => void (await answers('stakingValidators')),
  ),
  tested(
    'Documents beyond the specification',
    '`GET /v1/staking/validators/{id}`',
    'test/api/routes.test.ts',
    async () => {
      const [first] = (await subject.bed.client.stakingValidators({})).validators;
      await answers('stakingValidator', { id: first?.validator_id });
    },
  ),
  tested(
    'Documents beyond the specification',
    '`GET /v1/cuts/{height}/rewards`',
    'test/api/routes.test.ts',
    async () => void (await answers('cutRewards', { height: 1 })),
  ),
  tested('Documents beyond the specification', '`POST /v1/proofs/staking`', 'test/api/routes.test.ts', async () => {
    const [first] = (await subject.bed.client.stakingValidators({})).validators;
    await answers('stakingProofs', { position_ids: [], validator_ids: [first?.validator_id] });
  }),
  ...MODULE_ROWS.shown.map(([row, file, title]) => titled(MODULE_ROWS.table, row, file, title)),
];
