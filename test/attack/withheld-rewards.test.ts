/**
 * A pool that never credits its miners with what it was paid, and has a reason each time: it holds every reward, or names a list that is still to come. That can
 * be so for an hour. When it lasts, the audit says it under a name of its own.
 */
import { expect, test } from 'vitest';
import { Findings } from '../../pool/audit/findings.ts';
import { auditRewards, CreditedBlocks } from '../../pool/audit/public-rewards.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { toHex } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

const WITHHELD = 5_760;
const ids = [0, 1, 2].map((i) => toHex(pattern(`withheld ${i}`, 48)));
/** Of anchors 0, 1 and 2. */
const rewards = ids.map((id, i) => ({ transaction: rewardTransaction(id), height: 96 + i, amount: 100n }));

/** `now`: of the node, when the blocks are read. */
async function auditAt(height: number, list: number | null, now = height, lengths = [240, 240], others = 0) {
  const findings = new Findings();
  const newest = Math.floor(height / 240) - 1;
  const records = ['pplns', 'solo'].map((service) => [
    service,
    [0, newest]
      .map((slice, i) => ({ service, slice, slice_cuts: lengths[i], total_work: '1' }))
      .filter(({ slice_cuts: cuts }) => cuts !== undefined),
  ]);
  const open = await auditRewards(
    { rewards },
    {
      pool: async (path) => ({
        blocks: path.includes('pplns')
          ? ids.map((block_id) => ({ block_id, state: list === null ? 'held' : 'paid', credited_with: list }))
          : Array.from({ length: others }, () => ({ block_id: ids[0], state: 'paid', credited_with: 0 })),
      }),
      opening: { from_slice: 0, slice_cuts: 1_000_000 },
      records: new Map(records as never),
      credited: new CreditedBlocks(findings),
      height,
      now: async () => now,
    },
    findings,
  );
  return { findings: findings.list, withheld: open.withheld, notChecked: open.notChecked };
}

test('all rewards held, or put off to the list of the slice that is open whenever somebody looks', async () => {
  const openAt = (height: number) => Math.floor(height / 240);
  for (const listAt of [() => null, openAt]) {
    const early = 96 + WITHHELD - 1;
    expect(await auditAt(early, listAt(early))).toMatchObject({ findings: [], withheld: { rewards: 0, amount: '0' } });
    const late = 98 + WITHHELD;
    expect(await auditAt(late, listAt(late))).toMatchObject({ findings: [], withheld: { rewards: 3, amount: '300' } });
    expect((await auditAt(late, listAt(late))).notChecked).toHaveLength(1);
  }
});

test('a block that comes to light while a long audit runs is in the list of a slice that opened meanwhile: that is not held against the pool', async () => {
  const [began, now] = [1_000, 20_000];
  expect(await auditAt(began, Math.floor(now / 240), now)).toMatchObject({ findings: [] });
  const [finding] = (await auditAt(began, Math.floor(now / 240) + 1, now)).findings;
  expect(finding?.computed).toMatch(/not open yet/);
});

test('slices as long as the chain is old put nothing off: rewards are withheld after the same time', async () => {
  const late = 98 + WITHHELD;
  // All slices are so long, or one later one is, or none is closed yet.
  for (const lengths of [[1_000_000, 1_000_000], [240, 1_000_000], []])
    expect((await auditAt(late, null, late, lengths)).withheld, String(lengths)).toEqual({ rewards: 3, amount: '300' });
});

test('a slice with more blocks than are read is not checked, and nothing of it is false', async () => {
  const height = 3_000;
  const { notChecked, findings } = await auditAt(height, null, height, [240, 240], 20_001);
  expect(findings).toEqual([]);
  expect(notChecked).toEqual(['3 rewards that are in no list: the pool does not answer where they are']);
});
