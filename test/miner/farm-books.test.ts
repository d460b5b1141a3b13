/**
 * The watch of svc-proxy over the books of a pool: it compares the work of all its rigs, against pools that are played. An honest one is never accused, whatever
 * becomes of names, proxies and front ends; one that drops a twentieth of the farm's work, or of one rig's, is.
 */
import { expect, test } from 'vitest';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { ALL, Played, PlayedPool, SLICE_MILLIS } from './played-pool.ts';

const farmAt = (pool: PlayedPool): Played => new Played(pool, null, 'farm');

test('an honest pool is never accused by a farm whose rigs come, go and are folded, while proxy and pool are killed', async () => {
  for (let run = 0; run < count({ quick: 2, full: 4, deep: 60 }); run++) {
    const random = randomOf(seed + run);
    // Most names have no receipts of their own.
    const played = farmAt(new PlayedPool({ ownReceipts: 1 + random(6) }));
    let saved: unknown = played.watch.save();
    let names = 0;
    for (let step = 0; step < 300; step++) {
      played.now += random(60_000);
      const act = random(100);
      if (act < 60) played.share(BigInt(1 + random(1_000)), random(20) > 0, `rig-${names + random(10)}`);
      else if (act < 75) await played.watch.check();
      else if (act < 78) played.pool.restart(1 + random(1_000_000));
      else if (act < 81) played.restart(saved);
      // Names are gone with their work still open, and others come.
      else if (act < 84) names += random(10);
      else if (act < 88) saved = played.watch.save();
      else await played.slice((_, waiting) => random(waiting + 1), random(2) > 0, random(20_000));
    }
    for (let i = 0; i < 3; i++) {
      played.now += SLICE_MILLIS;
      await played.slice(ALL);
    }
    expect(played.kinds(), `run ${run}`).toEqual([]);
    expect(played.watch.newest).toBe(played.pool.answers.at(-1)?.slice ?? -1);
  }
});

/** Slices of ten minutes in which each of ten rigs has shares, until there is an alarm. */
async function untilAlarm(played: Played, most: number): Promise<number> {
  await played.watch.check();
  for (let slice = 1; slice <= most; slice++) {
    for (let minute = 0; minute < SLICE_MILLIS / 60_000; minute++) {
      played.now += 60_000;
      for (let rig = 0; rig < 10; rig++) played.share(1_000n, true, `rig-${rig}`);
      await played.watch.check();
    }
    await played.slice(ALL);
    if (played.alarms.length > 0) return slice;
  }
  return Number.POSITIVE_INFINITY;
}

/** Every twentieth share of some rigs. */
function aTwentieth(isOf: (worker: string) => boolean) {
  let shares = 0;
  return { drops: (worker: string): boolean => isOf(worker) && ++shares % 20 === 0 };
}

test('a pool that drops a twentieth of the farm’s work, or of one rig’s, is noticed', async () => {
  const robbed = farmAt(new PlayedPool(aTwentieth(() => true)));
  expect(await untilAlarm(robbed, 8)).toBeLessThanOrEqual(8);
  expect(robbed.alarms[0]).toMatchObject({ kind: 'receipts_less' });
  // It is less of the whole, so it takes longer to be more than what may be on its way.
  const one = farmAt(new PlayedPool(aTwentieth((worker) => worker === 'rig-3')));
  expect(await untilAlarm(one, 40)).toBeLessThanOrEqual(40);
  expect(one.alarms[0]).toMatchObject({ kind: 'receipts_less' });
  const honest = farmAt(new PlayedPool({ ownReceipts: 3 }));
  expect(await untilAlarm(honest, count({ quick: 12, full: 60, deep: 60 }))).toBe(Number.POSITIVE_INFINITY);
});

test('books that hold less of a farm than its receipts say convict the pool in the first slice, and work that only waits is late', async () => {
  const played = farmAt(new PlayedPool({ booksPart: 95n }));
  expect(await untilAlarm(played, 1)).toBe(1);
  expect(played.alarms).toMatchObject([
    { kind: 'books_less', fields: { slice: 11, signed: 100_000n, booked: 95_000n } },
  ]);
  expect(played.alarms[0]?.evidence).toMatchObject({ receipts: [{ slice: 11, account_work: '100000' }] });
  const waiting = farmAt(new PlayedPool());
  await waiting.watch.check();
  for (let i = 0; i < 41; i++) {
    waiting.now += SLICE_MILLIS;
    if (i < 2) waiting.share(1_000n, true, `rig-${i}`);
    await waiting.watch.check();
    await waiting.slice(() => 0);
  }
  expect(new Set(waiting.kinds())).toEqual(new Set(['late']));
});

test('a pool that does not say what a farm has open is not accused: its receipts count as not checked', async () => {
  const pool = new PlayedPool();
  const { read } = pool;
  const earlier = async (url: string): Promise<unknown> => {
    if (url.includes('of=account')) throw new Error('status 400');
    return read(url);
  };
  Object.assign(pool, { read: earlier });
  const played = farmAt(pool);
  for (let i = 0; i < 50; i++) {
    played.now += SLICE_MILLIS;
    played.share(1_000n, true, 'rig-1');
    await played.slice(ALL).catch(() => undefined);
  }
  expect(played.kinds()).toEqual([]);
  expect(played.warnings.join()).toContain('CANNOT BE CHECKED receipts');
});
