import { defineConfig } from 'vitest/config';

/** `quick` leaves out `*.slow.test.ts`; `deep` runs the same files as `full` at the counts of test/level.ts. */
const level = process.env.SVC_TEST_LEVEL ?? 'full';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: level === 'quick' ? ['test/**/*.slow.test.ts'] : [],
    globalSetup: ['test/builds.ts'],
    setupFiles: ['test/client-faults.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // What is waited for comes in milliseconds; only a busy machine needs longer.
    expect: { poll: { timeout: 20_000 } },
    reporters: ['default'],
  },
});
