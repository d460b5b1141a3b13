/**
 * Stakes are made, unstaked and withdrawn while the daemon is killed (-9) again and again and a client repeats every call that was not
 * answered: each happens once, as the node says, and the coins add up.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { count, seed } from '../../level.ts';
import { randomOf } from '../../random.ts';
import { lasts } from '../../watch/limits.ts';
import { ChainBed, COIN, DaemonProcess } from '../wallet-bed.ts';
import { WalletFiles } from '../wallet-files.ts';
import { INTERVAL, validatorAt } from './staking-bed.ts';

const STAKES = count({ full: 5, deep: 60 });
/** In each of the three phases. */
const KILLS = count({ full: 2, deep: 67 });
const WORKERS = 3;
const OUTPUTS = 64;

type Fields = Record<string, unknown>;

test(
  `${STAKES} stakes made, unstaked and withdrawn, ${3 * KILLS} kills`,
  lasts(600, 'it ends programs many times, and waits for them to come back'),
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-wallet-'));
    const files = new WalletFiles(directory);
    await files.write();
    const chain = await ChainBed.open(
      files.firstAddress,
      { outputs: OUTPUTS, each: 1_000n * COIN },
      { intervalCuts: INTERVAL, validators: 2 },
    );
    const daemon = new DaemonProcess(files.file, chain.base);
    onTestFinished(async () => {
      await daemon.stop('SIGKILL');
      await chain.close();
      rmSync(directory, { recursive: true, force: true });
    });
    await chain.beat();
    await daemon.start();
    const random = randomOf(seed);
    const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));

    /** All calls, each until it is answered, while the daemon is killed at random moments of them. */
    async function phase(method: string, all: readonly Fields[]): Promise<Fields[]> {
      const results: Fields[] = [];
      let [next, inFlight] = [0, 0];
      const worker = async () => {
        for (let i = next++; i < all.length; i = next++)
          for (;;) {
            inFlight++;
            const answer = await daemon.call(method, all[i]).catch(() => undefined);
            inFlight--;
            if (answer !== undefined && !('error' in answer)) {
              results[i] = answer.result as Fields;
              break;
            }
            // The node away, the outcome unknown, the outputs in flight: repeated with the same id. Anything else is a fault.
            if (answer !== undefined && ![-32001, -32002, -32003].includes(answer.error.code))
              throw new Error(JSON.stringify(answer));
            await pause(20);
          }
      };
      const workers = Promise.all(Array.from({ length: WORKERS }, worker));
      for (let kills = 0; kills < KILLS; kills++) {
        while (inFlight === 0 && results.length < all.length) await pause(1);
        await pause(random(60));
        await daemon.crash();
        if (random(4) === 0) await chain.beat();
      }
      // What is needed may be in flight: it comes back with a cut.
      let done = false;
      const beating = (async () => {
        while (!done) {
          await chain.beat();
          await pause(30);
        }
      })();
      await workers.finally(() => {
        done = true;
      });
      await beating;
      await expect
        .poll(async () => {
          await chain.beat();
          return ((await daemon.result('pending')).transactions as unknown[]).length;
        })
        .toBe(0);
      // The answer to a repetition is the first one, however often the daemon died.
      for (const [i, params] of all.entries())
        expect(await daemon.result(method, params)).toMatchObject({
          duplicate: true,
          state: 'finalized',
          transaction: results[i]?.transaction,
          position: results[i]?.position,
        });
      return results;
    }

    const amounts = Array.from({ length: STAKES }, () => 100n * COIN + BigInt(random(800_000_000)));
    const stakes = await phase(
      'stake',
      amounts.map((amount, i) => ({
        validator: validatorAt(i % 2),
        amount: formatCoins(amount),
        request_id: `stake ${i}`,
      })),
    );
    const positionsOf = async () => (await daemon.result('positions')).positions as Fields[];
    const principals = async () => (await positionsOf()).map(({ position, principal }) => `${position} ${principal}`);
    const expected = stakes.map(({ position }, i) => `${position} ${formatCoins(amounts[i] as bigint)}`);
    expect((await principals()).sort()).toEqual([...expected].sort());

    await phase(
      'unstake',
      stakes.map(({ position }, i) => ({ position, request_id: `unstake ${i}` })),
    );
    expect((await principals()).sort()).toEqual([...expected].sort());
    const releases = (await positionsOf()).map(({ release_height: height }) => height as number);
    await chain.api.bed.seal(Math.max(...releases) - chain.api.bed.node.chain.head().height);

    await phase(
      'withdraw',
      stakes.map(({ position }, i) => ({ position, request_id: `withdraw ${i}` })),
    );
    expect(await positionsOf()).toEqual([]);

    // Coins of genesis, less every fee once, and the rewards.
    let balance = BigInt(OUTPUTS) * 1_000n * COIN;
    const lists = await Promise.all(
      ['stake', 'unstake', 'withdraw'].map((prefix) => daemon.result('requests', { prefix, limit: 1000 })),
    );
    const requests = lists.flatMap((list) => list.requests as Fields[]);
    expect(requests).toHaveLength(3 * STAKES);
    for (const { fee } of requests) balance -= parseCoins(fee as string);
    for (let cursor: unknown; ; ) {
      const page = await daemon.result('history', { limit: 1000, ...(cursor === undefined ? {} : { cursor }) });
      for (const { kind, amount } of page.entries as Fields[])
        if (kind === 'reward') balance += parseCoins(amount as string);
      cursor = page.next_cursor;
      if (cursor === undefined) break;
    }
    expect((await daemon.result('balance')).balance).toBe(formatCoins(balance));
    expect(await chain.api.client.supply()).toMatchObject({ unbonding: '0' });
  },
);
