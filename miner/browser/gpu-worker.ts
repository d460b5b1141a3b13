/** The Web Worker of the graphics card in a page (../work/remote-backend.ts): the WebGPU backend, away from the page's own thread. */
import { GpuBackend } from '../../kernels/gpu/backend.ts';
import { cacheFromSeed } from '../../kernels/gpu/cache.ts';
import { openGpu } from '../../kernels/gpu/device.ts';
import { GpuError } from '../../kernels/gpu/gpu-error.ts';
import { loadSources } from '../../kernels/gpu/sources.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import type { GpuSettings } from '../work/gpu-settings.ts';
import { serveBackend, type ToDevice } from '../work/remote-backend.ts';

const serve = serveBackend<GpuSettings>(
  (message) => self.postMessage(message),
  async ({ network, autoTune, tuning }, events, onTuned) => {
    const entry = (navigator as Navigator & { gpu?: GPU }).gpu;
    if (entry === undefined) throw new GpuError('gpu_no_adapter', 'this browser has no WebGPU');
    const gpu = await openGpu({}, { entry, sources: await loadSources() });
    const parameters = powParameters(NETWORKS[network]);
    return new GpuBackend(
      { parameters, autoTune, ...(tuning === undefined ? {} : { tuning }) },
      { gpu, events, buildCache: (seed) => cacheFromSeed(parameters, seed), onTuned },
    );
  },
);

self.onmessage = (event: MessageEvent<ToDevice<GpuSettings>>) => void serve(event.data);
