/** Rows of the specification's tables: resources, and documents beyond the specification. */
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { answers, type Row, subject, tested, titled, unchecked } from './conformance-rows.ts';
import { MODULE_ROWS } from './module-rows.ts';

export const DOCUMENTS_ROWS: readonly Row[] = [
  ...(
    [
      ['Address balance document', 'addressBalance'],
      ['Address history document', 'addressHistory'],
      ['Transaction status document', 'transactionStatus'],
      ['Supply document', 'supply'],
      ['Node sync document', 'nodeSync'],
    ] as const
  ).map(([row, name]) => tested('Resources', row, 'test/api/routes.test.ts', async () => void (await answers(name)))),
  tested('Resources', 'Block document: `reward.state` and the amounts', 'test/api/routes.test.ts', async () => {
    const { reward } = (await answers('block', { id: subject.block })) as { reward: Record<string, string> };
    expect(BigInt(reward.amount as string)).toBe(
      BigInt(reward.work_amount as string) + BigInt(reward.fee_amount as string),
    );
  }),
  tested('Resources', 'Node status: `update_required`, `update_announced`', 'test/api/routes.test.ts', async () => {
    expect(await answers('nodeStatus')).toMatchObject({ update_required: false, update_announced: false });
  }),
  tested(
    'Resources',
    'Node sync: `best_peer_height`, `behind_by`, `peers`',
    'test/network/sync.test.ts; null and 0 for a node without peers',
    async () => {
      expect(existsSync(new URL('../network/sync.test.ts', import.meta.url))).toBe(true);
      expect(await answers('nodeSync')).toMatchObject({ best_peer_height: null, peers: 0 });
    },
  ),
  unchecked(
    'Resources',
    'History `source` of withdrawn stake; positions of kind `delegation`; state `unbonding`',
    'test/staking/node.test.ts',
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
