/** A pool whose pages have no end and come one by one just within the time of an answer: a round ends all the same, and the miner says that the books are not checked. */
import { expect, test } from 'vitest';
import { BooksWatch } from '../../miner/books/books-watch.ts';
import { SLICE } from '../protocol/books-liar.ts';
import { ADDRESS, DUE_HEIGHT, truth } from './watched-lists.ts';

const ANSWER_MILLIS = 14_000;

function slowAnswer(path: string): unknown {
  if (path === 'terms') return { ...truth.evidence.terms, height: DUE_HEIGHT };
  if (path.startsWith('proofs/')) return truth.proof;
  if (/^slices\/\w+\?limit=50$/.test(path)) return { slices: [{ slice: SLICE, credits: { root: 'ab' } }] };
  if (path.includes('cursor=')) return { slices: [{ slice: SLICE, total_work: '0' }], next_cursor: `${SLICE + 1}-0` };
  return { blocks: [] };
}

test('slow pages without end', async () => {
  const clock = { now: 1_000_000 };
  const warned: unknown[] = [];
  const watch = new BooksWatch(
    { address: ADDRESS, worker: 'rig', api: 'http://pool.example', expectedKey: undefined },
    {
      read: async (url) => {
        clock.now += ANSWER_MILLIS;
        return slowAnswer(url.slice('http://pool.example/api/v1/'.length));
      },
      alarm: () => undefined,
      note: () => undefined,
      warn: (message, { why }) => void warned.push(`${message} ${why ?? ''}`),
      wallMillis: () => clock.now,
      nowMillis: () => clock.now,
    },
  );
  watch.offered(null);
  for (let round = 0; round < 10; round++) {
    const began = clock.now;
    await watch.check();
    expect(clock.now - began).toBeLessThan(11 * 60_000);
    clock.now += 60_000;
  }
  expect(warned).toContain('THE POOL’S BOOKS CANNOT BE CHECKED the pool answers too slowly');
});
