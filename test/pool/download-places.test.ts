/** Whose download ends when all places are taken. */
import { expect, test } from 'vitest';
import { DOWNLOADS_OF_CLIENT, DownloadPlaces } from '../../pool/api/public/download-places.ts';

test('where all places are taken, clients with four downloads give them up, the oldest first, and not who has one', () => {
  const places = new DownloadPlaces<string>();
  expect(places.take('one', 'client')).toBeUndefined();
  const ended: (string | undefined)[] = [];
  for (let i = 0; i < 64; i++)
    for (let j = 0; j < DOWNLOADS_OF_CLIENT; j++) {
      expect(places.hasRoom(`stranger ${i}`)).toBe(true);
      ended.push(places.take(`${i} ${j}`, `stranger ${i}`));
    }
  expect(places.hasRoom('stranger 5')).toBe(false);
  expect(ended.filter((each) => each !== undefined)).toEqual(['0 0']);
  places.giveBack('7 1');
  expect(places.hasRoom('stranger 7')).toBe(true);
  expect(places.take('two', 'other')).toBeUndefined();
  expect(places.take('three', 'another')).toBe('1 0');
});
