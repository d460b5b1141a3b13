/** Accounts that are honest, and that keep a part of their blocks back, against the pool's test (pool/luck/withholding.ts). */
import { type Evidence, LOG_LINE, logEvidence, NO_EVIDENCE, weigh } from '../../pool/luck/withholding.ts';
import { fractionsOf } from '../random.ts';

/** Blocks found where `mean` are expected, by Knuth's way; the means here are small. */
function drawn(mean: number, random: () => number): number {
  const limit = Math.exp(-mean);
  let n = 0;
  for (let product = random(); product > limit; product *= random()) n++;
  return n;
}

/** How many honest accounts ever reach the line, when they are looked at after every step: at first small ones, then of a twentieth of their lives. */
export function namedAccounts(world: {
  readonly accounts: number;
  readonly blocks: number;
  readonly random: () => number;
}): number {
  const { accounts, blocks, random } = world;
  let named = 0;
  for (let account = 0; account < accounts; account++) {
    let evidence = NO_EVIDENCE;
    while (evidence.expected < blocks) {
      const step = Math.max(0.5, evidence.expected / 20);
      evidence = weigh(evidence, { expected: step, found: drawn(step, random) });
      if (logEvidence(evidence) < LOG_LINE) continue;
      named++;
      break;
    }
  }
  return named;
}

export type Withholder = {
  /** The part of its blocks that it keeps back. */
  readonly withheld: number;
  /** Expected blocks of honest work before that. */
  readonly honest: number;
  /** The part of what is expected that surely is (pool/luck/luck-round.ts); 1 where no doubt is left to the account. */
  readonly sure?: number;
  readonly step: number;
  readonly runs: number;
  readonly seed: number;
};

/** Beyond this many expected blocks it is not followed. */
const MOST_BLOCKS = 20_000;

/** Expected blocks from its first withheld one until it is named: the median, and what nine of ten do not exceed. */
export function seenAfter({ withheld, honest, sure = 1, step, runs, seed }: Withholder): {
  median: number;
  most: number;
} {
  const random = fractionsOf(seed);
  const after: number[] = [];
  for (let run = 0; run < runs; run++) {
    let evidence: Evidence = NO_EVIDENCE;
    for (let at = 0; at < honest; at += step)
      evidence = weigh(evidence, { expected: sure * step, found: drawn(step, random) });
    let at = 0;
    while (logEvidence(evidence) < LOG_LINE && at < MOST_BLOCKS) {
      // A hundredth of what it took so far is fine enough.
      const next = Math.max(step, at / 100);
      evidence = weigh(evidence, { expected: sure * next, found: drawn(next * (1 - withheld), random) });
      at += next;
    }
    after.push(at);
  }
  after.sort((a, b) => a - b);
  return { median: after[runs >> 1] as number, most: after[Math.floor(runs * 0.9)] as number };
}
