/** svc-pool (docs/pool.md). */
import { runProgram } from '../runtime/program.ts';
import { poolCommand } from './pool-command.ts';

await runProgram(poolCommand);
