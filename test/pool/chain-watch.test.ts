/** The highest cut that a node may claim, whatever the clock said when the pool was first started or says now. */
import { expect, test } from 'vitest';
import { Accountant } from '../../pool/accountant/accountant.ts';
import { ChainWatch } from '../../pool/accountant/chain-watch.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { INTERVAL_CUTS, NETWORKS } from '../../protocol/network.ts';
import { quietLog } from '../quiet-log.ts';

const DAY = 86_400_000;
const CUTS_A_DAY = DAY / 2_500;
const NOW = 1_800_000_000_000;

/** The table of settings. */
function settings(): { readonly sql: Sql; readonly rows: Map<string, string> } {
  const rows = new Map<string, string>();
  const sql = async ([text]: TemplateStringsArray, ...values: string[]) => {
    if (text?.startsWith('select')) {
      const value = rows.get(values[0] as string);
      return value === undefined ? [] : [{ value }];
    }
    if (!rows.has('chain_start')) rows.set('chain_start', values[0] as string);
    return [];
  };
  return { sql: sql as unknown as Sql, rows };
}

/** A pool that is started anew each half day of the chain, by the clock of `aheadDays` for each start. */
async function runs(aheadDays: readonly number[]): Promise<void> {
  const { sql, rows } = settings();
  const from = 1_000_000;
  for (const [start, ahead] of aheadDays.entries()) {
    let now = 0;
    const watch = new ChainWatch('mainnet', { sql, chain: {} as never, now: () => now });
    for (let part = 0; part <= 10; part++) {
      const days = (start + part / 10) / 2;
      now = NOW + (days + ahead) * DAY;
      const height = from + Math.floor(days * CUTS_A_DAY);
      await watch.checkHeight(height);
      rows.set('chain_height', String(height));
    }
  }
}

test.each([
  ['days ahead at its first start, and right after it', [3, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
  ['a year ahead for days, and right after them', [365, 365, 365, 365, 365, 365, 0, 0]],
  ['years behind for a time', [0, 0, 0, -20_000, -20_000, -20_000, -20_000, 0]],
  ['a day ahead and back again at each start', [0, 1, 0, 1, 0, 1, 0, 1]],
])('books of an honest node go on with a clock that is %s', async (_, aheadDays) => {
  await runs(aheadDays);
});

test('a node that claims more cuts than there can be is refused, also when the books are read again', async () => {
  const { sql, rows } = settings();
  const watch = (now: number) => new ChainWatch('mainnet', { sql, chain: {} as never, now: () => now });
  await watch(NOW).checkHeight(1_000);
  rows.set('chain_height', '1000');
  for (const now of [NOW, NOW + DAY, NOW - 20_000 * DAY])
    await expect(watch(now).checkHeight(1_000 + 3 * INTERVAL_CUTS + 1)).rejects.toThrow('there can be');
});

test('books that hold a clock that stood still take the heights that the system’s clock allows', async () => {
  const { sql, rows } = settings();
  const began = Date.now() - 10 * DAY;
  rows.set('chain_start', `1000 ${began}`);
  rows.set('chain_height', '1000');
  const begin = async () => {
    throw new Error('the height was taken');
  };
  const dependencies = {
    sql: Object.assign(sql, { begin }),
    chain: { headHeight: async () => 1_000 + 9 * CUTS_A_DAY },
    log: quietLog,
    now: () => began,
  };
  const accountant = new Accountant(
    { network: NETWORKS.mainnet, sliceCuts: 24, term: 1n } as never,
    dependencies as never,
  );
  await expect(accountant.start()).rejects.toThrow('the height was taken');
});
