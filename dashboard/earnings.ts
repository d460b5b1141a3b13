/**
 * What a hash rate earns at the present pace of the network: its part of the work half of every cut, less the pool's fee. Amounts are
 * atoms. Luck moves a day's income around this; difficulty moves it for good.
 */
export type Pace = {
  /** Hashes per second of the whole network. */
  readonly networkRate: number;
  /** Atoms that a cut pays for work. */
  readonly workHalf: bigint;
  readonly cutMillis: number;
};

const DAY_MILLIS = 86_400_000n;
const PPM = 1_000_000n;

const whole = (value: number): bigint => BigInt(Math.max(0, Math.round(value)));

/** Undefined as long as the network has no pace. */
export function earnedPerDay(hashRate: number, feePpm: number, pace: Pace): bigint | undefined {
  const [rate, network, cutMillis] = [whole(hashRate), whole(pace.networkRate), whole(pace.cutMillis)];
  if (cutMillis === 0n) return undefined;
  if (rate === 0n) return 0n;
  // Nobody gets more than all there is, also where the network is slower than this rate, or idle.
  const all = rate > network ? rate : network;
  return (pace.workHalf * DAY_MILLIS * rate * (PPM - BigInt(feePpm))) / (cutMillis * all * PPM);
}

/** Parts of a hundred of the way to the next payout, at most 100. */
export const payoutProgress = (balance: bigint, minimum: bigint): number =>
  minimum <= 0n || balance >= minimum ? 100 : Number((balance * 100n) / minimum);

/** Seconds until a balance reaches the payout minimum; undefined when it never does at this pace. */
export function secondsToPayout(balance: bigint, minimum: bigint, perDay: bigint | undefined): number | undefined {
  if (balance >= minimum) return 0;
  if (perDay === undefined || perDay <= 0n) return undefined;
  return Number(((minimum - balance) * 86_400n) / perDay);
}

/** States of a block whose reward is still to come. */
const OPEN_STATES = ['found', 'accepted', 'registered'];

/** Seconds until a block's reward, as the pool's blocks before it took; undefined where it has one, or gets none. */
export function secondsUntilPaid(
  block: { readonly state: string; readonly anchor_height: number },
  chain: { readonly height: number; readonly cutsUntilPaid: number | null; readonly cutMillis: number },
): number | undefined {
  if (chain.cutsUntilPaid === null || !OPEN_STATES.includes(block.state)) return undefined;
  return (Math.max(0, block.anchor_height + chain.cutsUntilPaid - chain.height) * chain.cutMillis) / 1000;
}

export const RATE_UNITS = { 'kH/s': 1e3, 'MH/s': 1e6, 'GH/s': 1e9 } as const;
export type RateUnit = keyof typeof RATE_UNITS;
