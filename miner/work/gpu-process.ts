/** The process of one graphics card (remote-backend.ts): the WebGPU backend on Dawn, steered by the miner over its IPC channel. */
import { GpuBackend } from '../../kernels/gpu/backend.ts';
import { cacheFromSeed } from '../../kernels/gpu/cache.ts';
import { openGpu } from '../../kernels/gpu/device.ts';
import { loadSources } from '../../kernels/gpu/sources.ts';
import { nodeGpu } from '../../kernels/gpu/webgpu.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { GpuSettings } from './gpu-settings.ts';
import { serveBackend, type ToDevice } from './remote-backend.ts';

const serve = serveBackend<GpuSettings>(
  (message) => void process.send?.(message),
  async ({ network, adapter, unsafe, autoTune, tuning, timed }, events, onTuned) => {
    const entry = await nodeGpu({ unsafe, ...(adapter === undefined ? {} : { adapter }) });
    const gpu = await openGpu({ timed }, { entry, sources: await loadSources() });
    const parameters = powParameters(NETWORKS[network]);
    return new GpuBackend(
      { parameters, autoTune, ...(tuning === undefined ? {} : { tuning }) },
      { gpu, events, buildCache: (seed) => cacheFromSeed(parameters, seed), onTuned },
    );
  },
);

process.on('message', (message) => void serve(message as ToDevice<GpuSettings>));
// Ends with the miner. An interrupt of the terminal reaches this process too, but only the miner acts on it.
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
