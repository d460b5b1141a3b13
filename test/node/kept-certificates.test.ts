/** Which certificates stay (ledger rule 31): played over many cuts, and compared with the sentence itself. */
import { expect, test } from 'vitest';
import { CERTIFICATES_KEPT, certificatesToDrop } from '../../node/store/kept-certificates.ts';

const isKept = (cut: number, head: number, interval: number): boolean =>
  head - cut < CERTIFICATES_KEPT ||
  (cut + 1) % interval === 0 ||
  ((cut + 1) % 96 === 0 && head - cut < Math.max(CERTIFICATES_KEPT, 10 * interval));

test.each([24, 132, 2_880])('with epochs of %i cuts', (interval) => {
  const kept = new Set<number>();
  const end = 13 * interval + 4_000;
  for (let head = 0; head <= end; head++) {
    kept.add(head);
    for (const cut of certificatesToDrop(head, interval)) kept.delete(cut);
    if (head % 997 !== 0 && head !== end) continue;
    const wanted = Array.from({ length: head + 1 }, (_, cut) => cut).filter((cut) => isKept(cut, head, interval));
    expect([...kept]).toEqual(wanted);
  }
});
