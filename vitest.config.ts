import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** `quick` leaves out `*.slow.test.ts`; `deep` runs the same files as `full` at the counts of test/level.ts. */
const level = process.env.SVC_TEST_LEVEL ?? 'full';

const ALL = 'test/**/*.test.ts';
const SLOW = 'test/**/*.slow.test.ts';

/** The slow ones first: what is left at the end is short, and the workers end together. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification) => moduleId.endsWith('.slow.test.ts');
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

export default defineConfig({
  test: {
    globalSetup: ['test/builds.ts'],
    setupFiles: ['test/client-faults.ts'],
    pool: 'forks',
    // One more than the smallest machine has cores: slow files wait for cuts, time-outs and other processes half of their time.
    maxWorkers: 3,
    sequence: { sequencer: SlowFirst },
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // No test measures how fast the machine is: what is waited for comes in milliseconds, and on a busy one in minutes.
    expect: { poll: { timeout: 180_000 } },
    reporters: ['default'],
    projects: [
      // A process for every short file, with all its imports, would take longer than the tests in it.
      { extends: true, test: { name: 'short', include: [ALL], exclude: [SLOW], isolate: false } },
      { extends: true, test: { name: 'slow', include: level === 'quick' ? [] : [SLOW] } },
    ],
  },
});
