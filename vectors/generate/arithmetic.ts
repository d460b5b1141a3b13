/** Emission, target and work vectors. */

import { toHex } from '../../protocol/bytes.ts';
import { emissionOfInterval, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { MAX_TARGET, targetOfWork, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';

export function emissionVectors(): unknown {
  return [0, 1, 2, 230, 231, 766, 1532, 2299, 3065, 9999, 12_648, 12_649, 12_650].map((interval) => {
    const { amount, remaining, carry } = emissionOfInterval(interval);
    const cuts = [0, 1, 2, 17_279, 17_280, INTERVAL_CUTS - 1];
    return {
      interval,
      amount: amount.toString(),
      remaining: remaining.toString(),
      carry: carry.toString(),
      subsidies: cuts.map((cut) => ({ cut, subsidy: subsidyOfCut(amount, cut).toString() })),
    };
  });
}

export function targetVectors(): unknown {
  const targets = [0n, 1n, 2n, 255n, 1n << 64n, (1n << 232n) - 1n, (1n << 255n) - 1n, 1n << 255n, MAX_TARGET];
  const works = [1n, 2n, 3n, 1000n, 65_536n, 1_000_003n, 1n << 40n, 123_456_789_012_345n, 1n << 255n, 1n << 256n];
  return {
    work_of_target: targets.map((target) => ({
      target: toHex(targetToBytes(target)),
      work: workOfTarget(target).toString(),
    })),
    target_of_work: works.map((work) => ({
      work: work.toString(),
      target: toHex(targetToBytes(targetOfWork(work))),
    })),
  };
}
