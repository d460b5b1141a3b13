/**
 * Does an account keep blocks back? A sequential test over the blocks that its credited shares should have been and the blocks that it sent
 * (docs/statistics.md, luck and withholding).
 *
 * A credited share of work s is a block of work b with chance s / b, whatever its finder does. Somebody who keeps a part w of its blocks back sends N blocks
 * where E were expected with a likelihood of (1 - w)^N e^(wE) times that of an honest account. The evidence is the mean of this ratio over ten parts w and over the
 * times at which it may have begun: half of the weight is on the very beginning, the rest is spread over an account's life, so that years of honesty buy no room for
 * withholding. Of an honest account the mean of the evidence is never above 1, at no time. So the chance that it *ever* reaches the line is at most 1 / LINE
 * (Ville's inequality), however often one looks: the rate of false alarms is one of whole lives of accounts.
 *
 * These are statistics, and nobody's money depends on them: floats, in logarithms.
 */

/** The parts of its blocks that somebody may keep back. The last stands for all: one block in a thousand slips through. */
export const FRACTIONS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999] as const;
/** At most one honest account in this many is ever named. */
export const LINE = 10_000;
/** Half of the later beginnings are taken to lie within this many expected blocks. */
const BEGINNINGS = 100;

export type Evidence = {
  /** Logarithm of the likelihood ratio of each fraction, over all beginnings so far, with their weights. */
  readonly logs: readonly number[];
  /** Blocks that were expected so far. */
  readonly expected: number;
  /** Beginnings up to this many expected blocks are in `logs`. */
  readonly begun: number;
};

export const NO_EVIDENCE: Evidence = { logs: FRACTIONS.map(() => Math.log(0.5)), expected: 0, begun: 0 };

/** Weight of the beginnings after this many expected blocks. */
const later = (expected: number): number => 0.5 / (1 + expected / BEGINNINGS);

/** Logarithm of the sum of two numbers that are given by theirs; that of 0 is minus infinity. */
function added(a: number, b: number): number {
  const [more, less] = a > b ? [a, b] : [b, a];
  return less === Number.NEGATIVE_INFINITY ? more : more + Math.log1p(Math.exp(less - more));
}

export type Step = { readonly expected: number; readonly found: number };

/**
 * Evidence after a stretch of work. Beginnings are added up to where the stretch began: weights that depended on what is found in it would spoil the bound.
 */
export function weigh(evidence: Evidence, { expected, found }: Step): Evidence {
  const begins = Math.log(later(evidence.begun) - later(evidence.expected));
  return {
    logs: evidence.logs.map((log, i) => {
      const fraction = FRACTIONS[i] as number;
      return added(log, begins) + found * Math.log1p(-fraction) + fraction * expected;
    }),
    expected: evidence.expected + expected,
    begun: evidence.expected,
  };
}

/** Natural logarithm of the evidence. */
export const logEvidence = ({ logs, begun }: Evidence): number =>
  added(logs.reduce(added) - Math.log(logs.length), Math.log(later(begun)));

/** An account at or above this is named. */
export const LOG_LINE = Math.log(LINE);

/**
 * Of the blocks expected in a slice, those that the account surely could have sent. A block ends the job it was found with; until the miner has the next,
 * another one on it is only a share. That takes less than a cut, so each block found takes one of the account's cuts out.
 */
export const sureBlocks = (expected: number, found: number, cuts: number): number =>
  expected * Math.max(0, 1 - found / Math.max(1, cuts));
