/** Opens a listed device as a backend: the processor in this process, a graphics card in a separate one. */
import { fork } from 'node:child_process';
import type { Backend, BackendEvents } from '../../kernels/backend.ts';
import { createWasmBackend } from '../../kernels/cpu/wasm-backend.ts';
import { DatasetFiles } from '../../kernels/dataset-file.ts';
import { NETWORKS, type NetworkName } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { GpuSettings } from '../work/gpu-settings.ts';
import { type DevicePort, type FromDevice, openRemoteBackend } from '../work/remote-backend.ts';
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

/** A device's own process in Node, as a port for remote-backend.ts. */
function forkDevice<S>(program: URL): DevicePort<S> {
  const child = fork(program, {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // The miner's own flags (an inspector's port) are not for its devices.
    execArgv: [],
  });
  let last = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    last = (last + chunk.toString('utf8')).slice(-2_000);
  });
  let ended = false;
  return {
    post(message) {
      // A child that just died is reported by its exit.
      if (child.connected) child.send(message, () => undefined);
    },
    listen(onMessage, onGone) {
      child.on('message', (message) => onMessage(message as FromDevice));
      child.on('error', (error) => onGone(error.message));
      child.on('exit', (code, signal) => {
        if (ended) return;
        ended = true;
        const said = last.trim().split('\n').at(-1) ?? '';
        onGone(`${signal ?? `exit ${code}`}${said === '' ? '' : `: ${said}`}`);
      });
    },
    kill() {
      ended = true;
      child.kill('SIGKILL');
    },
  };
}

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
