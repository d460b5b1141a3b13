/** Around every test file. One file, as vitest resolves and loads each of its set-up files again for every test file. */
import { expectNoClientFaults } from './client-faults.ts';
import { expectNothingLeft } from './left-behind.ts';
import { countProcessorTime } from './processor-time.ts';
import { watchPolls } from './watch/polls.ts';

// What is set up first ends last.
countProcessorTime();
expectNoClientFaults();
watchPolls();
if (process.env.SVC_TEST_WORKER === 'shared') expectNothingLeft();
