/**
 * Graphics cards in processes of their own: svc-miner with WebGPU (SwiftShader where there is no card), and what happens
 * when the process of a card dies, stops answering, or finds no driver.
 */
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { type FixtureOptions, MINER_ADDRESS, PoolFixture } from './pool-fixture.ts';
import { RunningMiner } from './running-miner.ts';

const SWIFTSHADER = '/usr/lib/chromium/vk_swiftshader_icd.json';
const env = { VK_ICD_FILENAMES: SWIFTSHADER };

async function fixture(options: FixtureOptions = {}): Promise<PoolFixture> {
  const pool = await new PoolFixture({ shareWork: 10_000n, ...options }).listen();
  onTestFinished(() => pool.close());
  return pool;
}

function words(pool: PoolFixture, directory: string): string[] {
  return [
    '-o',
    pool.url,
    '-u',
    `${MINER_ADDRESS}.card`,
    '--devices',
    '1',
    '--api-bind',
    'off',
    '--metrics-bind',
    'off',
    '--data-dir',
    directory,
  ];
}

/** Processes that the miner started. */
function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

test(
  'mines with a card; its process dies and is opened again, stops answering and is noticed by the watchdog',
  lasts(600, 'a GPU that the processor stands in for is slow'),
  async () => {
    const pool = await fixture();
    const miner = new RunningMiner([...words(pool, temporaryDirectory()), '--watchdog', '4s'], { env });
    await until(() => pool.accepted >= 1, { why: () => miner.err });
    const [card] = childrenOf(miner.child.pid as number);
    process.kill(card as number, 'SIGKILL');
    await miner.says(/device is restarted .*code=device_lost/);
    const afterDeath = pool.accepted;
    await until(() => pool.accepted > afterDeath, { why: () => miner.err });
    // What was accepted may have been on its way when the first one died.
    const next = await until(() => childrenOf(miner.child.pid as number).find((pid) => pid !== card));
    // A dispatch that never returns looks like this from outside: the process is there and says nothing.
    process.kill(next, 'SIGSTOP');
    await miner.says(/device is restarted .*code=device_silent/);
    const afterSilence = pool.accepted;
    await until(() => pool.accepted > afterSilence, { why: () => miner.err });
    await until(() => !childrenOf(miner.child.pid as number).includes(next));
    expect(pool.judged.every(({ code }) => code === 0)).toBe(true);
    expect(miner.exit).toBeUndefined();
  },
);

test(
  'no driver: said in words, and the processor is used',
  lasts(600, 'a GPU that the processor stands in for is slow'),
  async () => {
    const pool = await fixture();
    const none = { VK_ICD_FILENAMES: '/nonexistent.json' };
    const listed = new RunningMiner(['--list-devices'], { env: none });
    expect(await listed.ended()).toBe(0);
    expect(listed.out).toMatch(/^no graphics card: no driver/m);
    const miner = new RunningMiner(
      ['-o', pool.url, '-u', MINER_ADDRESS, '--cpu-threads', '1', '--api-bind', 'off', '--metrics-bind', 'off'],
      { env: none },
    );
    await until(() => pool.accepted >= 1, { why: () => miner.err });
    expect(miner.err).toContain('no graphics card');
  },
);
