/** Opens a listed device as a backend: the processor in this process, a graphics card in a separate one. */
import type { Backend, BackendEvents } from '../../kernels/backend.ts';
import { createWasmBackend } from '../../kernels/cpu/wasm-backend.ts';
import { DatasetFiles } from '../../kernels/dataset-file.ts';
import { NETWORKS, type NetworkName } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { forkDevice } from '../work/device-process.ts';
import type { GpuSettings } from '../work/gpu-settings.ts';
import { openRemoteBackend } from '../work/remote-backend.ts';
import type { ListedDevice } from './device-list.ts';
import type { TuningFile } from './tuning-file.ts';

export type OpenSettings = {
  readonly network: NetworkName;
  readonly light: boolean;
  readonly unsafeGpu: boolean;
  readonly dataDir: string;
  readonly timed?: boolean;
};

export type OpenDependencies = { readonly log: Logger; readonly tunings: TuningFile };

export async function openDevice(
  device: ListedDevice,
  { network, light, unsafeGpu, dataDir, timed }: OpenSettings,
  { log, tunings }: OpenDependencies,
  events: BackendEvents,
): Promise<Backend> {
  if (device.kind === 'wasm') {
    const store = new DatasetFiles({ directory: dataDir }, { log: (message, fields) => log.warn(message, fields) });
    const options = { network: NETWORKS[network], mode: light ? 'light' : 'full', threads: device.threads } as const;
    return createWasmBackend(options, { ...events, store, availableMemory: () => process.availableMemory() });
  }
  const settings: GpuSettings = {
    network,
    adapter: device.adapter,
    unsafe: unsafeGpu,
    autoTune: !device.software,
    tuning: tunings.of(device.name),
    timed: timed ?? false,
  };
  const port = forkDevice<GpuSettings>(new URL('../work/gpu-process.ts', import.meta.url));
  return await openRemoteBackend({ kind: 'webgpu', settings }, port, {
    ...events,
    onTuned: (tuning) => {
      log.info('graphics card tuned', { device: device.name, tuning });
      void tunings.remember(device.name, tuning).catch((error) => log.warn('the tuning cannot be saved', { error }));
    },
  });
}
