/**
 * Events as lines for the terminal: the first of each kind at once, later only important ones. Pure: pool figures in, lines out.
 */

export type PoolFigures = {
  readonly miners: number;
  readonly hashRate: number;
  readonly shares: bigint;
  readonly blocksFound: number;
  readonly blocksPaid: number;
  readonly payoutsFinal: number;
  readonly paidAtoms: bigint;
};

export const NOTHING: PoolFigures = {
  miners: 0,
  hashRate: 0,
  shares: 0n,
  blocksFound: 0,
  blocksPaid: 0,
  payoutsFinal: 0,
  paidAtoms: 0n,
};

const coins = (atoms: bigint): string =>
  `${atoms / 100_000_000n}.${(atoms % 100_000_000n).toString().padStart(8, '0')}`;

export const rate = (perSecond: number): string => {
  const units = ['H/s', 'kH/s', 'MH/s', 'GH/s', 'TH/s'];
  let value = perSecond;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
};

const minersText = (miners: number): string => `${miners} ${miners === 1 ? 'miner' : 'miners'}`;

/** `before` is undefined at the first look of a start that goes on where an earlier one ended: nothing is first then. */
export function newsOf(before: PoolFigures | undefined, now: PoolFigures): string[] {
  if (before === undefined) return [`goes on from an earlier start: ${summary(now)}`];
  const lines: string[] = [];
  if (before.shares === 0n && now.shares > 0n) lines.push('first share accepted');
  if (before.blocksFound === 0 && now.blocksFound > 0) lines.push('first block found');
  if (before.blocksPaid === 0 && now.blocksPaid > 0) lines.push('first reward paid by the chain');
  // The sum is reported when the books have it, shortly after the payout's own state.
  if (before.paidAtoms === 0n && now.paidAtoms > 0n) lines.push(`first payout final, ${coins(now.paidAtoms)} coins`);
  if (now.miners < before.miners) lines.push(`${minersText(now.miners)} connected, ${before.miners} before`);
  return lines;
}

export const summary = (now: PoolFigures): string =>
  `${rate(now.hashRate)}, ${minersText(now.miners)}, ${now.shares} shares, ${now.blocksFound} blocks found, ${now.blocksPaid} paid, ${now.payoutsFinal} payouts, ${coins(now.paidAtoms)} coins`;
