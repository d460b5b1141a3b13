/** The program `svc-wallet`. */
import { runProgram } from '../runtime/program.ts';
import { walletProgram } from './program.ts';

await runProgram(walletProgram);
