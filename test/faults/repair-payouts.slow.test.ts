/** `svc-pool repair-payouts` as the operator runs it, beside PostgreSQL and a wallet daemon: it shows what differs, changes nothing unasked, and puts the books right. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { payoutSeries, requestIdOf } from '../../pool/payout/payout-series.ts';
import { type RepairOptions, repairPayouts } from '../../pool/payout/repair.ts';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { parseAddress } from '../../protocol/address.ts';
import { COIN } from '../wallet/wallet-bed.ts';
import { addressOf, PayoutBed } from './payout-bed.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/svc-pool');

test('payments that the books cannot cover: shown, refused, and booked on a person’s word', async () => {
  const bed = await PayoutBed.open();
  const { firstAddress } = bed.files;
  await bed.sql`insert into settings values ('pool_address', ${firstAddress})`;
  const series = payoutSeries(parseAddress(firstAddress).payload);
  const { payouts: prefix } = series;
  const runOnce = async (...more: string[]) => {
    const words = ['repair-payouts', '--database', bed.server.url, '--wallet', `http://${bed.daemon.rpc}`];
    const token = ['--wallet-token-file', `${bed.files.file}.token`];
    const child = spawn(process.execPath, [PROGRAM, ...words, ...token, ...more]);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (data: Buffer) => {
        output += data.toString();
      });
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, output };
  };
  // Cuts come so quickly here that the wallet is often still reading the newest one.
  const whenRead = async <T extends { output: string }>(attempt: () => Promise<T>): Promise<T> => {
    for (;;) {
      const done = await attempt();
      if (!done.output.includes('still reading the chain')) return done;
    }
  };
  const run = (...more: string[]) => whenRead(() => runOnce(...more));
  const repair = (options: Partial<RepairOptions> = {}) => whenRead(() => repairOnce(options));
  /** The same without a program of its own. */
  const repairOnce = async (options: Partial<RepairOptions>) => {
    const wallet = createWalletClient({ url: `http://${bed.daemon.rpc}`, tokenFile: `${bed.files.file}.token` });
    const parts = { sql: bed.sql, wallet, series };
    const { lines, agree } = await repairPayouts({ apply: false, advance: false, ...options }, parts);
    return { agree, output: lines.join('\n') };
  };
  expect(await repair()).toMatchObject({
    agree: true,
    output: expect.stringMatching(/every payment that the wallet has made/),
  });

  // Paid by a pool whose database is gone: the miner is not even known.
  const recipients = [{ address: addressOf(1), amount: 2n * COIN }];
  await expect.poll(async () => (await bed.wallet().sendMany(requestIdOf(prefix, 1), recipients)).kind).toBe('ok');
  const shown = await run();
  expect(shown).toMatchObject({
    code: 1,
    output: expect.stringMatching(/payment 1 \(200000000 atoms to 1, .*nothing was changed/s),
  });
  expect(await repair({ apply: true })).toMatchObject({ agree: false, output: expect.stringMatching(/--advance/) });
  expect(await bed.sql`select from payouts`).toHaveLength(0);
  expect(await run('--apply', '--advance')).toMatchObject({ code: 0, output: expect.stringMatching(/corrected/) });
  expect(await repair()).toMatchObject({ agree: true });
  const [row] = await bed.sql<{ balance: bigint }[]>`select balance from accounts where address = ${addressOf(1)}`;
  expect(row?.balance).toBe(-2n * COIN);

  // The pool goes on from there: what the miner earns makes up for the advance first.
  bed.income.push({ account: 1, amount: 5n * COIN });
  bed.startIncome();
  bed.startPool();
  await bed.settled();
  await bed.expectPaidOnce();
});
