/** Two whole intervals of cuts: emission, attendance and the payment of the stake pools (ledger rules 6, 64 and 66). */
import { expect, test } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import { emissionOfInterval, GENESIS_SUPPLY, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { INTERVAL_CUTS as WHOLE_INTERVAL } from '../../protocol/network.ts';
import { count } from '../level.ts';
import { START_MILLIS } from './bed.ts';
import { MemoryLedger } from './memory-ledger.ts';

/** At the deep level those of a day. The amounts of an interval are the same, and divided among its cuts. */
const INTERVAL_CUTS = count({ full: WHOLE_INTERVAL / 12, deep: WHOLE_INTERVAL });

test('the stake half of an interval is paid after it, to members that were there, and leaves nothing behind', () => {
  const ledger = new MemoryLedger(
    developmentGenesis({ timestampMillis: START_MILLIS, validators: 3, intervalCuts: INTERVAL_CUTS }),
  );
  const { amount } = emissionOfInterval(0);
  let stakeOfFirst = 0n;
  for (let k = 0; k < INTERVAL_CUTS; k++) stakeOfFirst += splitHalves(subsidyOfCut(amount, k, INTERVAL_CUTS)).stake;
  const window = INTERVAL_CUTS / 12;
  const payouts: { height: number; interval: number; members: bigint[] }[] = [];
  for (let height = 1; height <= 2 * INTERVAL_CUTS; height++) {
    const k = height % INTERVAL_CUTS;
    // Member 0 signs always, member 1 in 9 windows of the first interval, member 2 in 8: it has no seat in the second.
    const inWindow = Math.floor(k / window);
    const first = height < INTERVAL_CUTS;
    const signers = 1n | (first && inWindow >= 9 ? 0n : 2n) | (first && inWindow >= 8 ? 0n : 4n);
    const { stakePayouts, figures } = ledger.next({ signers });
    if (stakePayouts.length > 0)
      payouts.push({
        height,
        interval: stakePayouts[0]?.interval ?? -1,
        members: stakePayouts.map((payout) => payout.amount),
      });
    if (height % (INTERVAL_CUTS / 8) === 0)
      expect(figures.minted + figures.unscheduled).toBe(200_000_000n * 100_000_000n);
  }
  expect(payouts.map(({ height, interval }) => [height, interval])).toEqual([
    [INTERVAL_CUTS, 0],
    [2 * INTERVAL_CUTS, 1],
  ]);
  // Two equal bonds share the first pool; an odd atom stays for the next interval.
  expect(payouts[0]?.members).toEqual([stakeOfFirst / 2n, stakeOfFirst / 2n]);
  let stakeOfSecond = stakeOfFirst % 2n;
  for (let k = 0; k < INTERVAL_CUTS; k++)
    stakeOfSecond += splitHalves(subsidyOfCut(emissionOfInterval(1).amount, k, INTERVAL_CUTS)).stake;
  expect(payouts[1]?.members).toEqual([stakeOfSecond / 2n, stakeOfSecond / 2n]);
  expect(ledger.state.minted).toBe(
    GENESIS_SUPPLY +
      amount +
      emissionOfInterval(1).amount +
      subsidyOfCut(emissionOfInterval(2).amount, 0, INTERVAL_CUTS),
  );
  // No block in two days: every work half still waits for the next anchor that has work.
  expect(ledger.state.workReserve).toBe(
    ledger.state.workCarry + ledger.state.windows.reduce((sum, open) => sum + open.workHalf, 0n),
  );
});
