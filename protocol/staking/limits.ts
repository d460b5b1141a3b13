/** The numbers of staking (ledger rules 60 to 79). An epoch is an interval. */
import { ATOMS_PER_COIN } from '../amount.ts';

export const MIN_SELF_BOND = 100_000n * ATOMS_PER_COIN;
/** A smaller position would cheaply cause an output a day for ever; and an interval can pay at most 2,000,000 positions. */
export const MIN_DELEGATION = 100n * ATOMS_PER_COIN;
/** Basis points. */
export const MAX_COMMISSION = 1_000;
export const COMMISSION_STEP = 10;
/** Where the operator names none. */
export const DEFAULT_COMMISSION = 500;
export const WHOLE_COMMISSION = 10_000n;

export const COMMISSION_DELAY_EPOCHS = 14;
/** Of an endpoint and of a consensus key: in force from the second epoch after the one that finalized it. */
export const CHANGE_DELAY_EPOCHS = 2;
export const UNBONDING_EPOCHS = 10;
/** Evidence is good for this long after the height of the votes; former keys are kept as long. */
export const EVIDENCE_EPOCHS = 10;
/** Epochs without a seat after one with too few windows attended. */
export const JAIL_EPOCHS = 2;

export const ATTENDANCE_WINDOWS = 12;
export const ATTENDANCE_NEEDED = 9;

/** Positions that the payment of an interval visits in a cut, on intervals of full length. */
export const PAYMENT_VISITS = 64;
/** Positions that an interval must be able to visit: 64 in each of 34,560 cuts. */
const VISITS_OF_INTERVAL = 2_211_840;
/** Positions that slashing visits in a cut. */
export const SLASHING_VISITS = 1_024;
/** What a delegation loses when its validator is slashed. */
export const SLASHED_PART = 10n;

export const paymentVisits = (intervalCuts: number): number =>
  Math.max(PAYMENT_VISITS, Math.ceil(VISITS_OF_INTERVAL / intervalCuts));

export const unbondingCuts = (intervalCuts: number): number => UNBONDING_EPOCHS * intervalCuts;
export const epochOf = (height: number, intervalCuts: number): number => Math.floor(height / intervalCuts);
