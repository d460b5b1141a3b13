/**
 * Random payments while the daemon is killed (-9) again and again at random moments and a client repeats every call that
 * was not answered: each recipient has exactly what was asked, as the node says.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatCoins } from '../../../protocol/amount.ts';
import { count, seed } from '../../level.ts';
import { randomOf } from '../../random.ts';
import { lasts } from '../../watch/limits.ts';
import { ChainBed, COIN, DaemonProcess } from '../wallet-bed.ts';
import { WalletFiles } from '../wallet-files.ts';

const PAYMENTS = count({ full: 12, deep: 1000 });
const KILLS = count({ full: 3, deep: 200 });
const WORKERS = 4;

test(
  `${PAYMENTS} random payments, ${KILLS} kills`,
  lasts(120, 'it ends programs many times, and waits for them to come back'),
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-wallet-'));
    const files = new WalletFiles(directory);
    await files.write();
    const chain = await ChainBed.open(files.firstAddress, { outputs: 64, each: 1000n * COIN });
    const daemon = new DaemonProcess(files.file, chain.base);
    onTestFinished(async () => {
      await daemon.stop('SIGKILL');
      await chain.close();
      rmSync(directory, { recursive: true, force: true });
    });
    chain.start(40);
    await daemon.start();

    const random = randomOf(seed);
    const strangers = Array.from({ length: 20 }, (_, i) => new WalletFiles(directory, `stranger ${i}`).firstAddress);
    const owed = new Map(strangers.map((address) => [address, 0n]));
    const payments = Array.from({ length: PAYMENTS }, (_, i) => {
      const recipients = Array.from({ length: 1 + random(7) }, () => {
        const to = strangers[random(strangers.length)] as string;
        const amount = BigInt(1 + random(1_000_000_000));
        owed.set(to, (owed.get(to) ?? 0n) + amount);
        return { to, amount: formatCoins(amount) };
      });
      return { recipients, request_id: `payment ${i}` };
    });
    const answers = { unanswered: 0, unknown: 0, away: 0, busy: 0, duplicates: 0 };
    let next = 0;
    let done = 0;
    const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
    const worker = async () => {
      for (let payment = payments[next++]; payment !== undefined; payment = payments[next++]) {
        for (;;) {
          const answer = await daemon.call('send_many', payment).catch(() => undefined);
          if (answer === undefined) answers.unanswered++;
          else if (!('error' in answer)) {
            if ((answer.result as { duplicate: boolean }).duplicate) answers.duplicates++;
            break;
          } else if (answer.error.code === -32001) answers.away++;
          else if (answer.error.code === -32002) answers.unknown++;
          else if (answer.error.code === -32003) answers.busy++;
          else throw new Error(JSON.stringify(answer));
          await pause(20);
        }
        done++;
      }
    };
    const workers = Promise.all(Array.from({ length: WORKERS }, worker));
    let kills = 0;
    for (; kills < KILLS; kills++) {
      // The kills are spread over the payments; each falls at a random moment, sometimes while the daemon starts.
      while (done * KILLS < PAYMENTS * kills && done < PAYMENTS) await pause(5);
      await pause(random(150));
      if (random(8) === 0) {
        await daemon.stop('SIGKILL');
        const starting = daemon.start().catch(() => undefined);
        await pause(random(400));
        await daemon.stop('SIGKILL');
        await starting;
        await daemon.start();
      } else await daemon.crash();
    }
    await workers;
    await expect.poll(async () => ((await daemon.result('pending')).transactions as unknown[]).length).toBe(0);
    for (const payment of payments) {
      const repeated = await daemon.result('send_many', payment);
      expect(repeated).toMatchObject({ duplicate: true, state: 'finalized' });
    }
    const { client } = chain.api;
    for (const [address, amount] of owed)
      expect({ address, balance: (await client.addressBalance({ address })).balance }).toEqual({
        address,
        balance: amount.toString(),
      });
    // What is left is what the node says is left.
    const { outputs } = (await daemon.result('outputs', { limit: 1000 })) as { outputs: { address: string }[] };
    let left = 0n;
    for (const address of new Set(outputs.map((output) => output.address)))
      left += BigInt((await client.addressBalance({ address })).balance);
    expect((await daemon.result('balance')).balance).toBe(formatCoins(left));
    expect(kills).toBe(KILLS);
    expect(answers.unanswered, JSON.stringify(answers)).toBeGreaterThan(0);
  },
);
