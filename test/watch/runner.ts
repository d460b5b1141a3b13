/** Runs every test and hook under the watch, which takes the place of vitest's own limits. */
import { type RunnerTestCase, type RunnerTestSuite, TestRunner } from 'vitest';
import { limitsOf } from './limits.ts';
import { watch } from './watch.ts';

type Act = (...words: never[]) => unknown;

function guarded<F extends Act>(title: string, file: string, act: F): F {
  const run = (...words: Parameters<F>) => watch.guard(title, limitsOf(file), () => act(...words));
  return Object.assign(run, act) as unknown as F;
}

export default class WatchedRunner extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    const { filepath } = test.file;
    if (test.timeout > 0)
      throw new Error(
        'name the limit of a long test by lasts() of test/watch/limits.ts: a time on the clock says how busy the machine is',
      );
    const limits = limitsOf(filepath, test.meta.limitSeconds);
    await watch.guard(`'${test.name}' in ${test.file.name}`, limits, () => TestRunner.getTestFn(test)());
  }

  override async onBeforeRunSuite(suite: RunnerTestSuite): Promise<void> {
    const hooks = TestRunner.getSuiteHooks(suite) as unknown as Record<string, Act[] | undefined>;
    for (const name of ['beforeAll', 'afterAll', 'beforeEach', 'afterEach'])
      hooks[name] = hooks[name]?.map((act) => guarded(`${name} of ${suite.file.name}`, suite.file.filepath, act)) ?? [];
    await super.onBeforeRunSuite(suite);
  }

  onTaskFinished(test: RunnerTestCase): void {
    const hooks = test as unknown as Record<string, Act[] | undefined>;
    const title = `the end of '${test.name}' in ${test.file.name}`;
    for (const name of ['onFinished', 'onFailed'])
      hooks[name] = hooks[name]?.map((act) => guarded(title, test.file.filepath, act));
  }
}
