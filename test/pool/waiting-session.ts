/** A session as it waits to be resumed. */
import type { SessionRecord } from '../../bridge/hub.ts';
import { pattern } from '../../vectors/generate/pattern.ts';

export const waiting = (id: string): SessionRecord => ({
  id,
  bootId: pattern('boot', 8),
  service: 'pplns',
  owner: pattern('owner', 13),
  prefix: 3,
  tag: 'tag',
  generation: 1,
  spare: null,
  account: pattern('account', 49),
  worker: '<w>',
  vardiff: {
    work: 1n << 40n,
    atMillis: 12.5,
    long: { work: 1e12, shares: 3, seconds: 0.25 },
    short: { work: 0, shares: 0, seconds: 0 },
    phase: 'placed',
  },
  log: { terms: [{ fromJobId: 64, generation: 1, shareWork: 1n << 40n }], seen: [[65, [1, 2 ** 47]]] },
  accepted: 5,
  stale: 0,
  rejected: { stale: 1 },
  work: 1n << 100n,
  lastJobId: 7,
});
