/**
 * PostgreSQL fails over to a copy a few seconds older while payouts are made. The wallet is the witness: what it paid and the books forgot is booked again
 * from its record, and nobody is paid twice.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { count, seed } from '../level.ts';
import { randomOf } from '../node/bed.ts';
import { COIN } from '../wallet/wallet-bed.ts';
import { swapIn, takeBaseBackup } from './database-swap.ts';
import { PayoutBed } from './payout-bed.ts';

const FAILOVERS = count({ full: 2, deep: 50 });

test(`${FAILOVERS} failovers at random instants: everybody is paid once (seed ${seed})`, {
  timeout: count({ full: 120_000, deep: 1_800_000 }),
}, async () => {
  const bed = await PayoutBed.open();
  const random = randomOf(seed);
  bed.startIncome();
  bed.startPool();
  for (let i = 0; i < FAILOVERS; i++) {
    const earn = async (millis: number) => {
      for (const end = Date.now() + millis; Date.now() < end; await sleep(20 + random(60)))
        bed.income.push({ account: random(12), amount: BigInt(1 + random(Number(COIN))) });
    };
    await earn(300 + random(1000));
    const copy = await takeBaseBackup(bed.server);
    // The last one surely loses payouts: the wallet has made some that the copy cannot have.
    const before = await bed.paymentsMade();
    await earn(200 + random(2500));
    while (i === FAILOVERS - 1 && (await bed.paymentsMade()) < before + 2) await earn(100);
    await swapIn(bed.server, copy);
  }
  await bed.settled(60_000);
  await bed.expectPaidOnce();
  const [log] = await bed.sql<
    { n: number }[]
  >`select count(*)::int as n from operator_log where action = 'payouts_repaired'`;
  expect(log?.n).toBeGreaterThan(0);
});
