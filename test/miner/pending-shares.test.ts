/** Answers to shares, matched with what was sent. */
import { expect, test } from 'vitest';
import { PendingShares } from '../../miner/client/pending-shares.ts';

const pending = (work: bigint) => ({
  share: { session: 's', jobId: 1, nonce: new Uint8Array(8), work, device: 0 },
  again: false,
});

function sent(...works: bigint[]): PendingShares {
  const shares = new PendingShares();
  for (const work of works) shares.add(pending(work));
  return shares;
}

test('a later share that is accepted before an earlier one is counted once, and nothing is missing', () => {
  const first = sent(8n, 8n, 8n, 8n);
  // The third was judged, and the second was not.
  expect(first.acknowledged(1, 2, 116n)?.short).toBeUndefined();
  expect(first.acknowledged(3, 1, 124n)?.short).toBeUndefined();
  expect(first.acknowledged(4, 1, 132n)?.short).toBeUndefined();
  const later = sent(8n, 8n, 4n, 4n);
  expect(later.acknowledged(1, 1, 108n)?.short).toBeUndefined();
  expect(later.acknowledged(2, 2, 120n)?.short).toBeUndefined();
  expect(later.acknowledged(4, 1, 124n)?.short).toBeUndefined();
});

test('work that was not credited shows in the first answer that lacks it, and once', () => {
  const shares = sent(8n, 8n, 8n, 8n);
  expect(shares.acknowledged(1, 1, 108n)?.short).toBeUndefined();
  expect(shares.acknowledged(2, 0, 108n)?.short).toEqual({ credited: 0n, earned: 8n });
  expect(shares.acknowledged(3, 1, 112n)?.short).toEqual({ credited: 4n, earned: 8n });
  expect(shares.acknowledged(4, 1, 120n)?.short).toBeUndefined();
});
