/** How likely an account's luck is: tails of the Poisson distribution. For display, so floats. */

/** Logarithm of n!, by Stirling's series where it is exact to 12 digits. */
function logFactorial(n: number): number {
  if (n < 16) {
    let product = 1;
    for (let i = 2; i <= n; i++) product *= i;
    return Math.log(product);
  }
  return n * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI * n) + 1 / (12 * n) - 1 / (360 * n ** 3);
}

/** Terms below this part of the sum are left out. */
const NEGLIGIBLE = 1e-16;

/**
 * The chance that luck alone is as far from what is expected as this, on the same side, doubled: two-sided, at most 1. Terms are added away from the
 * mean, where each is smaller than the one before.
 */
export function chanceOf(expected: number, found: number): number {
  if (expected <= 0) return 1;
  const isFew = found < expected;
  const first = Math.exp(found * Math.log(expected) - expected - logFactorial(found));
  let tail = first;
  for (let term = first, k = found; term > tail * NEGLIGIBLE; tail += term) {
    term *= isFew ? k / expected : expected / (k + 1);
    k += isFew ? -1 : 1;
  }
  return Math.min(1, 2 * tail);
}
