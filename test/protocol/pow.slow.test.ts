import { test } from 'vitest';
import { count } from '../level.ts';
import { checkReference } from './pow-reference.ts';
import { MAINNET, vectorsOf } from './pow-vectors.ts';

/** Half a minute of plain TypeScript each: the cache of mainnet is 4 million dependent hashes. */
test.each(vectorsOf('mainnet').slice(0, count({ full: 1, deep: 2 })))(
  'the reference reproduces mainnet epoch $epoch',
  { timeout: 600_000 },
  (vector) => checkReference(MAINNET, vector),
);
