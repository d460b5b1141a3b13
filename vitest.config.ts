import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** `quick` leaves out `*.slow.test.ts` (real programs) and `*.long.test.ts` (takes seconds: real sockets, threads, databases, many random cases); `deep` runs the files of `full` at the counts of test/level.ts, and `*.deep.slow.test.ts`. */
const level = process.env.SVC_TEST_LEVEL ?? 'full';

const ALL = 'test/**/*.test.ts';
const SLOW = 'test/**/*.slow.test.ts';
const LONG = 'test/**/*.long.test.ts';
/** Takes a minute or, when asked, an hour of the whole machine. */
const DEEP = 'test/**/*.deep.slow.test.ts';

/** The longest, as `npm test` names them at its end; a fresh checkout knows no times, and would begin some of these last. */
const LONGEST = [
  'dashboard/pages',
  'stack/whole-path',
  'pool/crash',
  'stack/start',
  'attack/stolen-address',
  'dashboard/mining',
  'documented/money',
  'miner/selftest',
  'faults/lying-node',
  'wallet/end-to-end',
  'attack/after-attacks',
  'kernels/gpu-vectors',
  'miner/page-miner',
  'faults/rollback',
  'attack/lying-pool',
  'miner/svc-miner',
  'miner/gpu-process',
  'pool/books',
  'pool/fleet',
  'pool/month',
  'dashboard/lists',
  'faults/payout-failover',
  'faults/clock-jumps',
].map((name) => `/test/${name}.slow.test.ts`);

/** The long ones first, then the other slow ones: what is left at the end is short, and the workers end together. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const long = LONGEST.findIndex((name) => moduleId.endsWith(name));
      if (long >= 0) return long;
      return LONGEST.length + (moduleId.endsWith('.slow.test.ts') ? 0 : 1);
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Imports JSX, which Node does not read: Vite rewrites what this file imports. */
const JSX = 'test/dashboard/share-check.test.ts';

export default defineConfig({
  test: {
    globalSetup: ['test/builds.ts'],
    setupFiles: ['test/processor-time.ts', 'test/client-faults.ts', 'test/watch/polls.ts'],
    pool: 'forks',
    // Twice as many as the smallest machine has cores: slow files wait for cuts, time-outs and other processes half of their time.
    maxWorkers: 4,
    sequence: { sequencer: SlowFirst },
    // Times on the clock say how busy the machine is. The watch counts another time, and what moves.
    runner: 'test/watch/runner.ts',
    testTimeout: 0,
    hookTimeout: 0,
    reporters: ['default'],
    projects: [
      // A process for every short file, with all its imports, would take longer than the tests in it. Node loads the modules itself, as in the
      // programs: that takes a quarter less processor time than through Vite (docs/lab/tests.md), and a module cannot be replaced by `vi.mock`.
      {
        extends: true,
        test: {
          name: 'short',
          include: [ALL],
          exclude: level === 'quick' ? [SLOW, LONG, JSX] : [SLOW, JSX],
          isolate: false,
          setupFiles: ['test/left-behind.ts'],
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
      { extends: true, test: { name: 'jsx', include: [JSX] } },
      {
        extends: true,
        test: { name: 'slow', include: level === 'quick' ? [] : [SLOW], exclude: level === 'deep' ? [] : [DEEP] },
      },
    ],
  },
});
