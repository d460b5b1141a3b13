/** svcd, svc-bridge and svc-miner as separate processes: what is found is paid to the miner's own address, to the atom. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { TEST_CERTIFICATE, TEST_FINGERPRINT } from '../miner/certificate.ts';
import { oneValidator } from '../one-validator.ts';
import { Program } from './program.ts';
import { addressOf } from './stratum-client.ts';

type Stats = {
  shares: { accepted: number; stale: number; rejected: Record<string, number> };
  found: { block_id: string; address: string; worker: string; state: string; amount?: string }[];
  blocks: { paid_atoms: string };
  connections: { mining: number };
  anchors: { newest: number; older: number; mean_age: number };
};

const json = async <T>(url: string): Promise<T> => (await (await fetch(url)).json()) as T;
const sleep = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-bridge-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const node = (directory: string) =>
  new Program('svcd', [
    'run',
    '--data-dir',
    directory,
    '--cut-millis',
    '100',
    '--pow-mode',
    'light',
    '--signature-threads',
    '1',
    ...oneValidator(join(directory, 'genesis'), { initialWork: 3_000, minimumWork: 500 }),
    '--api-bind',
    '127.0.0.1:0',
    '--mining-bind',
    '127.0.0.1:0',
  ]);

const quietPorts = ['--listen', '127.0.0.1:0', '--listen-ws', '127.0.0.1:0', '--stats-bind', '127.0.0.1:0'];
const bridge = (directory: string, ...words: string[]) =>
  new Program('svc-bridge', [
    ...quietPorts,
    '--metrics-bind',
    'off',
    '--data-dir',
    directory,
    '--threads',
    '1',
    '--verify-threads',
    '1',
    '--pow-mode',
    'light',
    '--start-work',
    '500',
    ...words,
  ]);

const miner = (url: string, account: number, worker: string, ...words: string[]) =>
  new Program('svc-miner', [
    '-o',
    url,
    '-u',
    `${addressOf(account)}.${worker}`,
    '--no-gpu',
    '--light',
    '--cpu-threads',
    '1',
    // The chain follows its miners: with more of the processor they would find as many blocks at more work.
    '--throttle',
    '5',
    '--api-bind',
    'off',
    '--metrics-bind',
    'off',
    ...words,
  ]);

async function untilSettled(stats: string, atLeast: number): Promise<Stats> {
  for (;;) {
    const document = await json<Stats>(stats);
    const done = document.found.filter(({ state }) => state === 'paid' || state === 'expired');
    if (done.length >= atLeast && done.length === document.found.length) return document;
    await sleep(300);
  }
}

/** The statistics list the newest blocks only: on a busy machine the miners find more before they are stopped. */
const LISTED = 100;

async function expectPaid(stats: Stats, api: string, accounts: readonly number[]): Promise<void> {
  let balances = 0n;
  for (const account of accounts) {
    const paid = stats.found.filter(({ address, state }) => address === addressOf(account) && state === 'paid');
    const sum = paid.reduce((total, { amount }) => total + BigInt(amount ?? 0), 0n);
    const { balance } = await json<{ balance: string }>(`${api}/v1/address/${addressOf(account)}/balance`);
    expect(BigInt(balance)).toBeGreaterThan(0n);
    if (stats.found.length < LISTED) expect(BigInt(balance)).toBe(sum);
    balances += BigInt(balance);
  }
  expect(balances).toBe(BigInt(stats.blocks.paid_atoms));
}

test('blocks found through a bridge are registered and paid to the miner’s own address, also those on anchors that were drawn', async () => {
  const svcd = node(folder());
  const api = `http://127.0.0.1:${await svcd.until(/public API address=127.0.0.1:(\d+)/)}`;
  const mining = `http://127.0.0.1:${await svcd.until(/mining listener address=127.0.0.1:(\d+)/)}`;
  const certificates = folder();
  const [cert, key] = [join(certificates, 'cert.pem'), join(certificates, 'key.pem')];
  writeFileSync(cert, TEST_CERTIFICATE.cert);
  writeFileSync(key, TEST_CERTIFICATE.key, { mode: 0o600 });
  const svcBridge = bridge(folder(), '--node', mining, '--tls-cert', cert, '--tls-key', key);
  const tcp = await svcBridge.until(/kind=tcp host=127.0.0.1 port=(\d+)/);
  const ws = await svcBridge.until(/kind=ws host=127.0.0.1 port=(\d+)/);
  const stats = `http://127.0.0.1:${await svcBridge.until(/statistics address=127.0.0.1:(\d+)/)}/v1/stats`;
  // Another one at the same node, which draws anchors.
  const drawing = bridge(folder(), '--node', mining, '--anchors', 'best');
  const drawingTcp = await drawing.until(/kind=tcp host=127.0.0.1 port=(\d+)/);
  const drawingStats = `http://127.0.0.1:${await drawing.until(/statistics address=127.0.0.1:(\d+)/)}/v1/stats`;
  await svcBridge.until(/(ready) healthy=true/);
  await drawing.until(/(ready) healthy=true/);
  const rig = miner(`stratum2+tcp://127.0.0.1:${drawingTcp}`, 4, 'rig');
  const miners = [
    miner(`stratum+tcp://127.0.0.1:${tcp}`, 1, 'v1'),
    miner(`ws://127.0.0.1:${ws}`, 2, 'page'),
    miner(`stratum2+tls://127.0.0.1:${tcp}`, 3, 'v2', '--tls-pin', TEST_FINGERPRINT),
  ];
  for (;;) {
    const { found } = await json<Stats>(stats);
    if ([1, 2, 3].every((account) => found.some(({ address }) => address === addressOf(account)))) break;
    await sleep(300);
  }
  for (;;) {
    const { found, anchors } = await json<Stats>(drawingStats);
    if (found.length >= 5 && anchors.older >= 40) break;
    await sleep(200);
  }
  for (const each of [...miners, rig]) expect(await each.stop()).toBe(0);
  const settled = await untilSettled(stats, 3);
  const drawn = await untilSettled(drawingStats, 5);
  for (const { shares } of [settled, drawn]) {
    expect(shares.accepted).toBeGreaterThan(0);
    expect(shares.rejected).not.toHaveProperty('above_target');
    expect(shares.rejected).not.toHaveProperty('duplicate');
  }
  expect(drawn.anchors.older).toBeGreaterThan(drawn.anchors.newest);
  await expectPaid(settled, api, [1, 2, 3]);
  await expectPaid(drawn, api, [4]);
  const found = [...settled.found, ...drawn.found];
  expect(new Set(found.map(({ block_id }) => block_id)).size).toBe(found.length);
  for (const each of [svcBridge, drawing]) expect(await each.stop()).toBe(0);
  expect(await svcd.stop()).toBe(0);
});
