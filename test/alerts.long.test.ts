/** The alert rules of deploy/, evaluated by promtool: also with series that are missing because a program is gone. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './guards/project-files.ts';
import { temporaryDirectory } from './temporary.ts';

const RULES = join(ROOT, 'deploy/prometheus/rules.yaml');
const UP = { 'up{job="svc-pool"}': '1+0x105', 'up{job="svcd"}': '1+0x105' };
const FIGURES = {
  svc_pool_books_gap_atoms: '0+0x105',
  svc_pool_accountant: '1+0x105',
  svc_pool_connections: '5+0x105',
  svc_node_finalized_height: '0+96x105',
  svc_pool_wallet_spendable_atoms: '100+0x105',
  svc_pool_owed_atoms: '50+0x105',
  svc_pool_disk_free_bytes: '50000000000+0x105',
  svc_pool_certificate_expires_seconds: '2000000+0x105',
  svc_pool_backup_age_seconds: '3600+0x105',
};
type Series = Readonly<Record<string, string>>;
const without = (series: Series, name: string): Series =>
  Object.fromEntries(Object.entries(series).filter(([key]) => key !== name));

/** [what happens, the series, the alert, whether it fires after seven hours] */
const CASES: readonly [string, Series, string, boolean][] = [
  ...[
    'ProgramDown',
    'PoolMissing',
    'NodeMissing',
    'FiguresMissing',
    'WalletCannotPay',
    'DiskFull',
    'CertificateExpires',
    'BackupOld',
    'NoConnections',
    'NoAccountant',
    'BooksGap',
    'ChainStalled',
  ].map((alert): [string, Series, string, boolean] => ['all is well', { ...UP, ...FIGURES }, alert, false]),
  ['the pool does not answer', { ...UP, 'up{job="svc-pool"}': '0+0x105' }, 'ProgramDown', true],
  ['the pool does not answer', { ...UP, 'up{job="svc-pool"}': '0+0x105' }, 'PoolMissing', true],
  ['nobody scrapes a pool', without(UP, 'up{job="svc-pool"}'), 'PoolMissing', true],
  ['nobody scrapes a node', without(UP, 'up{job="svcd"}'), 'NodeMissing', true],
  ['the pool exports nothing', UP, 'NoConnections', true],
  ['the pool exports nothing', UP, 'NoAccountant', true],
  ['the pool exports nothing', UP, 'FiguresMissing', true],
  ['the node exports nothing', without({ ...UP, ...FIGURES }, 'svc_node_finalized_height'), 'FiguresMissing', true],
  ['no account is named', { ...UP, ...FIGURES, svc_pool_withholding_suspects: '0+0x105' }, 'BlocksWithheld', false],
  [
    'an account is named',
    { ...UP, ...FIGURES, svc_pool_withholding_suspects: '0+0x50 1+0x54' },
    'BlocksWithheld',
    true,
  ],
  [
    'the wallet does not answer',
    without({ ...UP, ...FIGURES }, 'svc_pool_wallet_spendable_atoms'),
    'WalletCannotPay',
    true,
  ],
  [
    'the wallet holds too little',
    { ...UP, ...FIGURES, svc_pool_wallet_spendable_atoms: '49+0x105' },
    'WalletCannotPay',
    true,
  ],
  ['the disk is nearly full', { ...UP, ...FIGURES, svc_pool_disk_free_bytes: '4000000000+0x105' }, 'DiskFull', true],
  [
    'the certificate runs out',
    { ...UP, ...FIGURES, svc_pool_certificate_expires_seconds: '500000+0x105' },
    'CertificateExpires',
    true,
  ],
  ['no certificate and no copy are no alarm', UP, 'CertificateExpires', false],
  ['the newest copy is old', { ...UP, ...FIGURES, svc_pool_backup_age_seconds: '200000+0x105' }, 'BackupOld', true],
];

/** promtool compares whole alerts with their texts; asked for an alert by its series, a sample is enough. */
function evaluated(): { status: number | null; said: string } {
  const directory = temporaryDirectory();
  const series = [...new Set(CASES.map(([, each]) => JSON.stringify(each)))];
  const tests = series.map((input) => ({
    interval: '4m',
    input_series: Object.entries(JSON.parse(input) as Series).map(([key, values]) => ({ series: key, values })),
    promql_expr_test: CASES.filter(([, each]) => JSON.stringify(each) === input).map(([, , alert, fires]) => ({
      expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) > 0 or vector(0)`,
      eval_time: '6h40m',
      exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }],
    })),
  }));
  const file = join(directory, 'tests.json');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '4m', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

test('alerts fire when a program, a series or what it needs is gone, and not while all is well', () => {
  const { status, said } = evaluated();
  expect(status, said).toBe(0);
});
