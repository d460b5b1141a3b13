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
  'pool/fleet',
  'dashboard/played-pages',
  'stack/start',
  'stack/whole-path',
  'pool/crash',
  'attack/after-attacks',
  'network/processes',
  'dashboard/pages-in-process',
  'bridge/processes',
  'miner/svc-miner',
  'pool/audit',
  'units',
  'attack/lying-pool',
  'pool/month',
  'pool/one-dataset',
  'miner/page-miner',
  'scripts/npm-package',
].map((name) => `/test/${name}.slow.test.ts`);

/** The long ones first, then the other slow ones: what is left at the end is short, and the workers end together. Files of a kind stand together, as only then one process runs several. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      if (project.name === 'alone') return -1;
      const long = LONGEST.findIndex((name) => moduleId.endsWith(name));
      if (long >= 0) return long;
      return LONGEST.length + (moduleId.endsWith('.slow.test.ts') ? 0 : 1);
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Needs a process of its own, through Vite: imports JSX, replaces a module, loads a driver for graphics cards, or measures the memory of its own process. */
const ALONE = [
  'test/dashboard/share-check.long.test.ts',
  'test/guards/documented-commands.slow.test.ts',
  'test/kernels/*.slow.test.ts',
  'test/miner/selftest*.slow.test.ts',
  'test/attack/hostile-peers.slow.test.ts',
  'test/attack/overlay-messages.slow.test.ts',
  'test/bridge/reconnect-storm.slow.test.ts',
  'test/bridge/session-machine.slow.test.ts',
  'test/bridge/template-memory.slow.test.ts',
  'test/pool/database.slow.test.ts',
];

/** What a level leaves out. */
const LEFT_OUT = { quick: [SLOW, LONG], full: [DEEP], deep: [] }[level] ?? [];

export default defineConfig({
  test: {
    globalSetup: ['test/builds.ts', 'test/shared-databases.ts'],
    setupFiles: ['test/every-file.ts'],
    pool: 'forks',
    // Twice as many as the smallest machine has cores: slow files wait for cuts, time-outs and other processes half of their time. Quick ones wait for nothing, and each worker loads all modules once.
    maxWorkers: level === 'quick' ? 3 : 4,
    sequence: { sequencer: SlowFirst },
    // Times on the clock say how busy the machine is. The watch counts another time, and what moves.
    runner: 'test/watch/runner.ts',
    testTimeout: 0,
    hookTimeout: 0,
    reporters: ['default'],
    projects: [
      // A process for every file, with all its imports, would take longer than most tests (docs/lab/tests.md). Node loads the modules itself, as in the programs:
      // that takes a quarter less processor time than through Vite, and a module cannot be replaced by `vi.mock`.
      {
        extends: true,
        test: {
          name: 'shared',
          include: [ALL],
          exclude: [...LEFT_OUT, ...ALONE],
          isolate: false,
          // test/every-file.ts, test/pool/ready-cluster.ts
          env: { SVC_TEST_WORKER: 'shared' },
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, exclude: LEFT_OUT } },
    ],
  },
});
