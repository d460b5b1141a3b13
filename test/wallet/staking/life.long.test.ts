/** A stake from its first to its last atom, by commands alone: staked, paid for a day, unstaked, withdrawn. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { splitHalves } from '../../../protocol/ledger/emission.ts';
import { runCommand } from '../commands.ts';
import { ChainBed, COIN } from '../wallet-bed.ts';
import { WalletFiles } from '../wallet-files.ts';
import { INTERVAL, validatorAt } from './staking-bed.ts';

const FUNDS = { outputs: 4, each: 1_000n * COIN };
/** Bond of a validator of the development genesis. */
const BOND = async (chain: ChainBed) =>
  BigInt((await chain.api.client.stakingValidator({ id: validatorAt(0) })).validator.self_bond);

test('stake, earn, unstake and withdraw to the atom', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-wallet-'));
  const files = new WalletFiles(directory);
  await files.write();
  const chain = await ChainBed.open(files.firstAddress, FUNDS, { intervalCuts: INTERVAL, validators: 2 });
  onTestFinished(async () => {
    await chain.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const { bed } = chain.api;
  const sealTo = (height: number) => bed.seal(height - bed.node.chain.head().height);
  const session = ['--file', files.file, '--service', chain.base];
  const run = async (...words: string[]) => {
    const { status, stdout, stderr } = await runCommand([...words, ...session]);
    expect({ words, status, stderr: status === 0 ? '' : stderr }).toEqual({ words, status: 0, stderr: '' });
    return stdout;
  };
  const json = async (...words: string[]) => JSON.parse(await run(...words, '--json')) as Record<string, string>;
  const bond = await BOND(chain);
  await chain.beat();

  expect(await run('validators')).toMatch(
    /^epoch 0\nvalidator +state.*\n[0-9a-f]{96} {2}committee +\d+\.0{8} .* 0\.0 %\n/,
  );
  const wish = ['stake', '--validator', validatorAt(0), '--amount', '1234.56789012'];
  const principal = parseCoins('1234.56789012');
  // Nothing moves without a yes.
  expect(await runCommand([...wish, ...session])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[confirmation_missing]'),
  });
  const staked = await json(...wish, '--yes', '--request-id', 'first');
  await chain.beat();

  // Counted from the second day on, paid during the third; the pool is that of the cuts, the share by principal.
  const rewardOf = async (epoch: number): Promise<bigint> => {
    await sealTo((epoch + 1) * INTERVAL - 2);
    const before = bed.node.chain.staking().stake.pool;
    const pool = before + splitHalves((await bed.seal()).subsidy).stake;
    return (pool * principal) / (2n * bond + principal);
  };
  const reward = await rewardOf(1);
  await sealTo(2 * INTERVAL);

  const position = staked.position as string;
  expect(await run('positions')).toMatch(new RegExp(`\\n${position}  delegation  1234\\.56789012  bonded\\n`));
  const unstaked = await json('unstake', '--position', position, '--yes');
  await chain.beat();
  const release = bed.node.chain.head().height + 10 * INTERVAL;
  // It stood at the start of this day, so the day is paid whole; it is the last one.
  const lastReward = await rewardOf(2);
  await sealTo(release - 1);
  expect(await run('withdraw', '--position', position, '--yes', '--request-id', 'back')).toMatch(
    new RegExp(
      `^withdraw 1234\\.56789012, fee 0\\.\\d{8}, pending\\nvalidator ${validatorAt(0)}\\nposition ${position}\\n`,
    ),
  );
  await chain.beat();
  const withdrawn = await json('withdraw', '--position', position, '--yes', '--request-id', 'back');
  expect(withdrawn).toMatchObject({ duplicate: true, state: 'finalized', amount: '1234.56789012' });

  // All that was there, less three fees, and the rewards as the history tells them.
  const { entries } = (await json('history')) as unknown as { entries: { kind: string; amount: string }[] };
  const rewards = entries.filter(({ kind }) => kind === 'reward').map(({ amount }) => parseCoins(amount));
  expect(rewards).toEqual([lastReward, reward]);
  let expected = 4_000n * COIN + reward + lastReward;
  for (const { fee } of [staked, unstaked, withdrawn]) expected -= parseCoins(fee as string);
  expect((await json('balance')).balance).toBe(formatCoins(expected));
  expect(entries.map(({ kind }) => kind).filter((kind) => kind !== 'moved')).toEqual([
    'withdrawn',
    'reward',
    'reward',
    'staked',
    'genesis',
    'genesis',
    'genesis',
    'genesis',
  ]);
  const supply = await chain.api.client.supply();
  expect(supply).toMatchObject({ bonded: (2n * bond).toString(), unbonding: '0' });
});
