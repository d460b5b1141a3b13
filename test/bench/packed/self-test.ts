/** self-test.mjs of the packed folder: the graphics kernels against the vectors beside it. Words: names of networks. */
import { readFileSync } from 'node:fs';
import { cacheFromSeed } from '../../../kernels/gpu/cache.ts';
import { readPowVectors } from '../../../miner/selftest/pow-vectors.ts';
import { selfTest } from '../../../miner/selftest/selftest.ts';
import { openSelfTestGpu } from '../../../miner/selftest/selftest-adapter.ts';
import { gpuBackends } from '../../../miner/selftest/selftest-gpu.ts';

const wanted = process.argv.slice(2);
const vectors = readPowVectors(readFileSync(new URL('./pow.json', import.meta.url), 'utf8')).filter(
  ({ network }) => wanted.length === 0 || wanted.includes(network.name),
);
const backends = gpuBackends({ open: openSelfTestGpu, buildCache: cacheFromSeed });
const same = await selfTest(backends, vectors, (line) => process.stdout.write(`${line}\n`));
process.exit(same ? 0 : 1);
