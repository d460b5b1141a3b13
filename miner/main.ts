/** svc-miner: mines, unless its first word is `self-test` or `doctor`. */
import { fileURLToPath } from 'node:url';
import { cacheFromSeed } from '../kernels/gpu/cache.ts';
import { NETWORK_NAMES } from '../protocol/network.ts';
import { steadyMillis } from '../runtime/clock/clock.ts';
import { choice, flag, path, repeated } from '../runtime/command-line/command-line.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { command, runProgram, withCommands } from '../runtime/program.ts';
import { minerDoctor } from './devices/doctor.ts';
import { mineCommand } from './mine.ts';
import { MinerError } from './miner-error.ts';
import { minerOptions } from './options.ts';
import { readPowVectors } from './selftest/pow-vectors.ts';
import { referenceBackend, type SelfTestBackend, selfTest } from './selftest/selftest.ts';
import { openCard, openSelfTestGpu } from './selftest/selftest-adapter.ts';
import { gpuBackends } from './selftest/selftest-gpu.ts';
import { wasmBackends } from './selftest/selftest-wasm.ts';

/** Packed with the miner. */
const OWN_VECTORS = fileURLToPath(new URL('../vectors/pow.json', import.meta.url));

const cards = (open: typeof openCard) => gpuBackends({ open, buildCache: cacheFromSeed });
const BACKENDS: readonly SelfTestBackend[] = [referenceBackend, ...wasmBackends, ...cards(openSelfTestGpu)];
/** One form of the graphics kernels, on a real card: a driver that computes wrongly shows in any. */
const QUICK_BACKENDS: readonly SelfTestBackend[] = [referenceBackend, ...wasmBackends, ...cards(openCard).slice(0, 1)];

const selfTestCommand = command(
  {
    name: 'svc-miner self-test',
    summary: 'Checks every backend of this machine against known hashes; exits with 1 at the first difference.',
    options: {
      vectors: path({ help: 'file of known hashes; without one those that come with the miner', placeholder: 'FILE' }),
      quick: flag({
        help: 'one epoch of the development network and one form of the graphics kernels: seconds instead of minutes',
      }),
      network: repeated(choice({ help: 'check only this network; mainnet takes minutes' }, NETWORK_NAMES)),
    },
    examples: [
      { line: 'svc-miner self-test', says: 'everything, in some minutes' },
      { line: 'svc-miner self-test --quick', says: 'in seconds' },
    ],
  },
  async ({ vectors = OWN_VECTORS, network, quick }, _operands, terminal) => {
    try {
      const all = readPowVectors(readVectorFile(vectors, terminal.readText));
      const names = quick ? ['development'] : network;
      const named = all.filter((vector) => names.length === 0 || names.includes(vector.network.name));
      const chosen = quick ? named.slice(0, 1) : named;
      if (chosen.length === 0) throw new MinerError('vectors_invalid', `${vectors} has nothing to check`);
      const isSame = await selfTest(
        quick ? QUICK_BACKENDS : BACKENDS,
        chosen,
        (line) => terminal.out(`${line}\n`),
        (line) => terminal.err(`${line}\n`),
      );
      return isSame ? 0 : 1;
    } catch (error) {
      if (!(error instanceof MinerError)) throw error;
      terminal.err(`svc-miner self-test: ${error.message} [${error.code}]\n`);
      return 1;
    }
  },
);

function readVectorFile(file: string, readText: (path: string) => string): string {
  try {
    return readText(file);
  } catch (error) {
    throw new MinerError('vectors_unreadable', `cannot read ${file}: ${(error as Error).message}`);
  }
}

const mining = mineCommand({
  input: process.stdin,
  isTerminal: process.stdout.isTTY === true,
  logsToTerminal: process.stderr.isTTY === true,
  columns: () => process.stdout.columns ?? 80,
});

const doctor = doctorCommand('svc-miner', minerOptions, (values) => minerDoctor(values, steadyMillis));

await runProgram(withCommands(mining, [selfTestCommand, doctor]));
