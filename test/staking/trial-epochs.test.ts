/** The network to try a validator on (docs/node.md): its epochs are long enough for what its documents tell a validator to do. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { HEIGHT_TICKS, LISTEN_TICKS } from '../../node/consensus/engine/listening.ts';
import { TICKS_OF_A_CUT } from '../../node/consensus/engine/pace.ts';
import { attend, nobodyYet } from '../../node/ledger/staking/attendance.ts';
import { ATTENDANCE_NEEDED } from '../../protocol/staking/limits.ts';

const page = readFileSync(new URL('../../docs/node.md', import.meta.url), 'utf8');
const section = page.slice(page.indexOf('### A network to try a validator on'));
const option = (name: string): number => Number(new RegExp(`--${name} (\\d+)`).exec(section)?.[1]);
const [intervalCuts, cutMillis] = [option('interval-cuts'), option('cut-millis')];

const LISTENING_CUTS = Math.ceil(LISTEN_TICKS / (TICKS_OF_A_CUT - HEIGHT_TICKS));
/** Stopped, started and connected again, on a slow machine. */
const RESTART_CUTS = Math.ceil(20_000 / cutMillis);

/** Of an epoch in which the only member signs nothing in these cuts. */
function windowsWithout(from: number, cuts: number): number {
  let attendance = nobodyYet(1);
  for (let k = 0; k < intervalCuts; k++)
    attendance = attend(attendance, k, k >= from && k < from + cuts ? 0n : 1n, intervalCuts);
  return attendance.windows[0] as number;
}

test('a validator that gets its seat, listens and is restarted in the same epoch is not jailed', () => {
  for (let from = 0; from < intervalCuts; from++)
    expect(windowsWithout(from, LISTENING_CUTS + RESTART_CUTS), `away from cut ${from}`).toBeGreaterThanOrEqual(
      ATTENDANCE_NEEDED,
    );
});

test('a validator that is away for three windows at any time keeps its seat, as the page says', () => {
  expect(page).toContain('for 30 seconds and is not jailed');
  const cuts = 30_000 / cutMillis;
  for (let from = 0; from < intervalCuts; from++)
    expect(windowsWithout(from, cuts)).toBeGreaterThanOrEqual(ATTENDANCE_NEEDED);
});
