/**
 * `npm run bench -- pow-gpu [mainnet|development] [seconds] [CUDA_PROGRAM]`: the graphics card, with Dawn's checks and
 * without. With the compiled yardstick (nvcc -O3 -arch=sm_90 -o pow-cuda test/bench/pow.cu) every rate comes with its ratio.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheFromSeed } from '../../kernels/gpu/cache.ts';
import { datasetSeed, powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { type Bench, bench } from './harness.ts';
import { measureGpu, runCuda } from './pow-gpu.ts';

const JOB_SECONDS = 2.5;
const mega = (perSecond: number): number => perSecond / 1e6;

async function yardstick(b: Bench, program: string | undefined, cache: Uint8Array): Promise<number | undefined> {
  if (program === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'pow-gpu-'));
  try {
    writeFileSync(join(folder, 'cache'), cache);
    return runCuda(program, join(folder, 'cache'), 2, (line) => b.note(line));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export default bench('search and dataset build on the graphics card, against CUDA', async (b) => {
  const [network = 'mainnet', seconds = '10', program] = b.words;
  if (network !== 'mainnet' && network !== 'development')
    throw new Error(`'${network}' is neither mainnet nor development`);
  const parameters = powParameters(NETWORKS[network]);
  const started = performance.now();
  const cache = await cacheFromSeed(parameters, datasetSeed(parameters.networkId, 0));
  b.figure('cache', performance.now() - started, 'ms');
  const cuda = await yardstick(b, program, cache);
  if (cuda !== undefined) b.figure('cuda', mega(cuda), 'MH/s');
  const against = (rate: number) => (cuda === undefined ? undefined : { ratio: rate / cuda, yardstick: 'CUDA' });
  for (const unsafe of [false, true]) {
    const name = unsafe ? 'unsafe' : 'robust';
    const figures = await measureGpu({ parameters, unsafe, seconds: Number(seconds), jobSeconds: JOB_SECONDS, cache });
    if (!unsafe) b.note(`device ${figures.device}`);
    for (const { shape, hashesPerSecond } of figures.trials)
      b.note(`${name} trial ${JSON.stringify(shape)} ${mega(hashesPerSecond).toFixed(1)} MH/s`);
    b.note(`${name} tuned to ${JSON.stringify(figures.tuning.shape)}`);
    b.figure(`${name} dataset`, figures.datasetMillis, 'ms');
    b.figure(`${name} search`, mega(figures.hashesPerSecond), 'MH/s', against(figures.hashesPerSecond));
    b.figure(`${name} search, jobs every ${JOB_SECONDS} s`, mega(figures.changingPerSecond), 'MH/s', {
      ratio: figures.changingPerSecond / figures.hashesPerSecond,
      yardstick: `${name} search`,
    });
    if (figures.idlePart !== undefined) b.figure(`${name} idle`, 100 * figures.idlePart, '%');
    b.figure(`${name} processor load`, figures.processorLoad, 'cores');
  }
});
