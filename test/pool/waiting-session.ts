/** A session as it waits to be resumed. */
import type { SessionRecord } from '../../bridge/session/session-record.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

export const waiting = (id: string): SessionRecord => ({
  id,
  bootId: pattern('boot', 8),
  service: 'pplns',
  owner: pattern('owner', 13),
  prefix: 3,
  tag: 'tag',
  account: pattern('account', 49),
  worker: '<w>',
  vardiff: {
    work: 1n << 40n,
    atMillis: 12.5,
    long: { work: 1e12, shares: 3, seconds: 0.25 },
    short: { work: 0, shares: 0, seconds: 0 },
    phase: 'placed',
  },
  accepted: 5,
  stale: 0,
  rejected: { stale: 1 },
  work: 1n << 100n,
  score: { points: 12.5, atMillis: 3.25 },
  bannedUntilMillis: 0,
  jobs: {
    log: {
      lastJobId: 65,
      terms: [
        {
          generation: 1,
          shareWork: 1n << 40n,
          isSpent: true,
          seen: [[65, Float64Array.of(1, 2 ** 47)]],
          owner: new Uint8Array(13).fill(7),
          farm: null,
        },
        {
          generation: 5,
          shareWork: 1n << 41n,
          isSpent: false,
          seen: [],
          owner: null,
          farm: {
            highest: 9,
            room: 16,
            spent: Float64Array.of(9),
            seen: Float64Array.of(9, 65 * 65_536 + 7, 3),
          },
        },
      ],
      runs: [{ generation: 1, revision: 1, from: 1, to: 1 }],
    },
    payout: pattern('account', 49),
    current: 1,
    spare: null,
  },
});
