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

/**
 * Slow files wait for cuts, time limits and other processes most of their time, and the others compute: a slow one, those that take longest first, then two others, and so on, so that
 * the cores have work at any time. What is left at the end is short, and the workers end together. Files of a kind stand together, as only then one process runs several.
 */
class SlowAmongOthers extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const among = (word: string) => sorted.filter(({ moduleId }) => moduleId.endsWith(word));
    const alone = sorted.filter(({ project }) => project.name === 'alone');
    const slow = [...new Set([...LONGEST.flatMap(among), ...among('.slow.test.ts')])].filter(
      (file) => !alone.includes(file),
    );
    const others = [...new Set([...among('.long.test.ts'), ...sorted])].filter(
      (file) => !alone.includes(file) && !slow.includes(file),
    );
    const mixed = slow.flatMap((file, i) => [file, ...others.slice(2 * i, 2 * i + 2)]);
    return [...alone, ...mixed, ...others.slice(2 * slow.length)];
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
    // More than twice as many as the smallest machine has cores: with four, two cores were idle for a quarter of the time. Quick files wait for nothing, and each worker loads all modules once.
    maxWorkers: level === 'quick' ? 3 : 5,
    sequence: { sequencer: SlowAmongOthers },
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
