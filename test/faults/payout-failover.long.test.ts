/**
 * PostgreSQL fails over to a copy a few seconds older while payouts are made. The wallet is the witness: what it paid and the books forgot is booked again
 * from its record, and nobody is paid twice. Where it cannot be booked, because what was earned is not known, nobody is paid at all.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { payoutsHeld } from '../../pool/payout/payout-hold.ts';
import { packBucket } from '../../pool/stats/packed-work.ts';
import { repeats, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { until } from '../until.ts';
import { COIN } from '../wallet/wallet-bed.ts';
import { lasts } from '../watch/limits.ts';
import { removeCopy, swapIn, takeBaseBackup } from './database-swap.ts';
import { PayoutBed } from './payout-bed.ts';

const FAILOVERS = repeats({ full: 1, deep: 50 });

test(
  `${FAILOVERS} failovers at random instants: everybody is paid once (seed ${seed})`,
  lasts(120, 'a database server ends, many times at the deep level'),
  async () => {
    const bed = await PayoutBed.open();
    const random = randomOf(seed);
    /** Connections of before a failover may fail once. */
    const newest = async (which: string) => {
      const [row] = await until(() =>
        bed.sql<{ number: string }[]>`select coalesce(max(number), 0)::text as number from payouts
          where ${bed.sql.unsafe(which)}`.catch(() => undefined),
      );
      return Number(row?.number);
    };
    bed.startIncome();
    bed.startPool();
    for (let i = 0; i < FAILOVERS; i++) {
      const earn = async (millis: number) => {
        for (const end = Date.now() + millis; Date.now() < end; await sleep(20 + random(60)))
          bed.income.push({ account: random(12), amount: BigInt(1 + random(Number(COIN))) });
      };
      await earn(300 + random(1000));
      const copy = await takeBaseBackup(bed.server);
      // The last one surely loses payouts: the wallet has made some that the copy cannot have, not even as reserved.
      const before = await newest('true');
      await earn(200 + random(2500));
      while (i === FAILOVERS - 1 && (await newest("state in ('submitted', 'finalized')")) < before + 2) await earn(100);
      await swapIn(bed.server, copy);
      removeCopy(copy);
      console.log(`failover ${i + 1} of ${FAILOVERS}`);
    }
    await bed.settled();
    await bed.expectPaidOnce();
    const [log] = await bed.sql<
      { n: number }[]
    >`select count(*)::int as n from operator_log where action = 'payouts_repaired'`;
    expect(log?.n).toBeGreaterThan(0);
  },
);

test(
  'where the books cannot know what was earned, payouts are held with the reason, and go on when the journals come',
  lasts(120, 'a database server ends, and payouts are held for a while'),
  async () => {
    const bed = await PayoutBed.open();
    const shares = packBucket(new Map([[1, { shares: 2, work: 512n }]]));
    await bed.sql`insert into stats_recent (tier, bucket, version, packed) values (3600,
      ${Math.floor(Date.now() / 3_600_000)}, nextval('stats_versions'), ${Buffer.from(shares)})`;
    bed.startIncome();
    bed.startPool();
    const copy = await takeBaseBackup(bed.server);
    bed.income.push({ account: 1, amount: 3n * COIN }, { account: 2, amount: 2n * COIN });
    await bed.settled();
    const made = await bed.paymentsMade();
    // The journals are away with their machine, and the database falls back to before what they told.
    const journals = bed.income.splice(0);
    await swapIn(bed.server, copy);
    const held = () => payoutsHeld(bed.sql).catch(() => null);
    const reason = /has lost \d+ payouts that the wallet has made \(numbers .*more than the books have credited/;
    await expect.poll(held).toMatch(reason);
    // Nobody is paid meanwhile, not even who earns now.
    bed.income.push({ account: 3, amount: COIN });
    const earned = () => bed.sql`select from accounts where balance = ${COIN}`.catch(() => []);
    await expect.poll(earned).toHaveLength(1);
    await sleep(2_000);
    expect(await bed.paymentsMade()).toBe(made);
    await expect.poll(held).toMatch(reason);

    bed.income.push(...journals);
    await bed.settled();
    await bed.expectPaidOnce();
    await expect.poll(held).toBeNull();
    // Beside all this the accountant has kept its statistics.
    const typical = () => bed.sql`select value from settings where name = 'typical_share_work'`;
    await expect.poll(typical).toEqual([{ value: '256' }]);
  },
);
