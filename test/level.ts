/**
 * How much a test does. Long tests (fuzz, faults, soaks, simulated months) name their count for each level; the level
 * comes from SVC_TEST_LEVEL, which `npm run test:quick`, `npm test` and `npm run test:deep` set.
 */
export type Level = 'quick' | 'full' | 'deep';

const named = process.env.SVC_TEST_LEVEL ?? 'full';
if (named !== 'quick' && named !== 'full' && named !== 'deep')
  throw new Error(`SVC_TEST_LEVEL is '${named}'; use quick, full or deep`);

export const level: Level = named;

export const count = (counts: { quick?: number; full: number; deep: number }): number =>
  level === 'quick' ? (counts.quick ?? counts.full) : counts[level];

/** Seeds are fixed unless SVC_TEST_SEED names another, so that every run can be repeated. */
export const seed = Number(process.env.SVC_TEST_SEED ?? 20_260_101);

/** Repetitions of a long test: SVC_TEST_REPEATS, where the time is short or long, instead of the level's count. */
export const repeats = (counts: { quick?: number; full: number; deep: number }): number =>
  Number(process.env.SVC_TEST_REPEATS ?? count(counts));
