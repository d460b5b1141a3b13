/** svc-miner: mines, unless its first word is `self-test`. */
import { cacheFromSeed } from '../kernels/gpu/cache.ts';
import { NETWORK_NAMES } from '../protocol/network.ts';
import { choice, path, repeated } from '../runtime/command-line/command-line.ts';
import { command, runProgram } from '../runtime/program.ts';
import { mineCommand } from './mine.ts';
import { MinerError } from './miner-error.ts';
import { readPowVectors } from './pow-vectors.ts';
import { referenceBackend, type SelfTestBackend, selfTest } from './selftest.ts';
import { openSelfTestGpu } from './selftest-adapter.ts';
import { gpuBackends } from './selftest-gpu.ts';
import { wasmBackends } from './selftest-wasm.ts';

const BACKENDS: readonly SelfTestBackend[] = [
  referenceBackend,
  ...wasmBackends,
  ...gpuBackends({ open: openSelfTestGpu, buildCache: cacheFromSeed }),
];

const selfTestCommand = command(
  {
    name: 'svc-miner self-test',
    summary: 'Checks every backend of this machine against known hashes; exits with 1 at the first difference.',
    options: {
      vectors: path({ help: 'file of known hashes', placeholder: 'FILE', required: true }),
      network: repeated(choice({ help: 'check only this network; mainnet takes minutes' }, NETWORK_NAMES)),
    },
    examples: [
      { line: 'svc-miner self-test --vectors vectors/pow.json', says: 'everything' },
      { line: 'svc-miner self-test --vectors vectors/pow.json --network development', says: 'in a moment' },
    ],
  },
  async ({ vectors, network }, _operands, terminal) => {
    try {
      const all = readPowVectors(readVectorFile(vectors, terminal.readText));
      const chosen = all.filter((vector) => network.length === 0 || network.includes(vector.network.name));
      if (chosen.length === 0) throw new MinerError('vectors_invalid', `${vectors} has nothing to check`);
      return (await selfTest(BACKENDS, chosen, (line) => terminal.out(`${line}\n`))) ? 0 : 1;
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
  columns: () => process.stdout.columns ?? 80,
});

await runProgram({
  spec: mining.spec,
  start: ([word, ...rest], terminal) =>
    word === 'self-test'
      ? selfTestCommand.start(rest, terminal)
      : mining.start(word === undefined ? [] : [word, ...rest], terminal),
});
