/**
 * Opens an adapter and its device with all the limits it offers, and guards everything that is awaited from it: a lost
 * device and a dispatch that never returns become typed errors. Loads in browsers; where the `GPU` object comes from is the
 * caller's business (navigator.gpu in a page, webgpu.ts in Node).
 */
import { type MonotonicClock, monotonicMillis } from '../../runtime/clock/clock.ts';
import type { Sources } from './assemble.ts';
import { GpuError } from './gpu-error.ts';
import type { BindingLimits } from './layout.ts';

/** WebGPU's flag values, which Node does not have as globals. */
export const BUFFER = {
  mapRead: 0x1,
  copySource: 0x4,
  copyTarget: 0x8,
  uniform: 0x40,
  storage: 0x80,
  queryResolve: 0x200,
} as const;
export const MAP_READ = 0x1;

export type Clock = {
  readonly now: MonotonicClock;
  /** Calls `fire` after so many milliseconds, unless the returned function is called before. */
  after(millis: number, fire: () => void): () => void;
};

export const systemClock: Clock = {
  now: monotonicMillis,
  after: (millis, fire) => {
    const timer = setTimeout(fire, millis);
    return () => clearTimeout(timer);
  },
};

export type DeviceLimits = BindingLimits & {
  readonly maxComputeWorkgroupsPerDimension: number;
  readonly maxComputeWorkgroupStorageSize: number;
  readonly maxComputeInvocationsPerWorkgroup: number;
  readonly maxComputeWorkgroupSizeX: number;
};

export type Gpu = {
  readonly device: GPUDevice;
  readonly name: string;
  readonly limits: DeviceLimits;
  /** The smallest subgroup the adapter may run; 0 where it has none. */
  readonly subgroupSize: number;
  /** A software adapter instead of a graphics card: compiled for short compilation instead of speed. */
  readonly software: boolean;
  /** Opened without the compiler's bounds checks: the kernels bring their own. */
  readonly unsafe: boolean;
  /** Passes are timed by the device's own clock. */
  readonly timed: boolean;
  readonly sources: Sources;
  readonly clock: Clock;
  /** Milliseconds after which a dispatch counts as hung. */
  readonly patience: number;
  readonly loss: Loss;
};

/**
 * The end of a device, lost or closed: reported once, to current listeners. A promise would retain every past waiter.
 */
export class Loss {
  readonly #listeners = new Set<(error: GpuError) => void>();
  #error: GpuError | undefined;

  get listeners(): number {
    return this.#listeners.size;
  }

  tell(error: GpuError): void {
    this.#error = error;
    for (const listener of this.#listeners) listener(error);
    this.#listeners.clear();
  }

  /** Returns a function that unsubscribes. Late listeners are called asynchronously. */
  listen(listener: (error: GpuError) => void): () => void {
    const error = this.#error;
    if (error !== undefined) queueMicrotask(() => listener(error));
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export type OpenOptions = {
  readonly powerPreference?: GPUPowerPreference;
  readonly patience?: number;
  /** Whether the entry was made with Dawn's checks off (webgpu.ts). */
  readonly unsafe?: boolean;
  /** Times the passes, where the adapter can: for measurements. */
  readonly timed?: boolean;
};
export type OpenDependencies = { readonly entry: GPU; readonly sources: Sources; readonly clock?: Clock };

const LIMITS = [
  'maxStorageBufferBindingSize',
  'maxBufferSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupsPerDimension',
] as const;

export const DEFAULT_PATIENCE = 10_000;

/** Names of software adapters. */
export const SOFTWARE_NAMES = /swiftshader|llvmpipe|lavapipe|software|basic render/i;

export const isSoftwareAdapter = ({ isFallbackAdapter, device, description }: GPUAdapterInfo): boolean =>
  isFallbackAdapter || SOFTWARE_NAMES.test(`${device} ${description}`);

export async function openGpu(options: OpenOptions, dependencies: OpenDependencies): Promise<Gpu> {
  const clock = dependencies.clock ?? systemClock;
  const adapter = await dependencies.entry.requestAdapter({
    powerPreference: options.powerPreference ?? 'high-performance',
  });
  if (adapter === null)
    throw new GpuError('gpu_no_adapter', 'no usable graphics adapter: no driver, or none that WebGPU accepts');
  const { info } = adapter;
  const subgroups = adapter.features.has('subgroups');
  const timed = options.timed === true && adapter.features.has('timestamp-query');
  const device = await adapter.requestDevice({
    label: 'svc pow',
    requiredFeatures: [
      ...(subgroups ? (['subgroups'] as const) : []),
      ...(timed ? (['timestamp-query'] as const) : []),
    ],
    requiredLimits: Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]])),
  });
  const loss = new Loss();
  device.lost.then(({ reason, message }) =>
    loss.tell(new GpuError('gpu_device_lost', 'the device was lost', { reason, detail: message })),
  );
  return {
    device,
    name: info.description || info.device || info.architecture || info.vendor || 'unnamed adapter',
    limits: device.limits,
    subgroupSize: subgroups ? info.subgroupMinSize : 0,
    software: isSoftwareAdapter(info),
    unsafe: options.unsafe ?? false,
    timed,
    sources: dependencies.sources,
    clock,
    patience: options.patience ?? DEFAULT_PATIENCE,
    loss,
  };
}

/** Waits for something from the device: its loss or its silence for longer than the gpu's patience rejects. */
export function guarded<T>(gpu: Gpu, awaited: Promise<T>, what: string): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const settle = (act: () => void): void => {
      cancel();
      ignoreLoss();
      act();
    };
    const cancel = gpu.clock.after(gpu.patience, () =>
      settle(() =>
        reject(new GpuError('gpu_hung', `${what} did not return`, { device: gpu.name, after_millis: gpu.patience })),
      ),
    );
    const ignoreLoss = gpu.loss.listen((loss) => settle(() => reject(loss)));
    awaited.then(
      (value) => settle(() => resolve(value)),
      // A mapping fails when the device is lost; the loss, reported a moment later, is the better error.
      (error: unknown) => void gpu.clock.after(100, () => settle(() => reject(error))),
    );
  });
}

/** Runs `act` and turns errors of the device meanwhile into an error with that code. */
export async function scoped<T>(
  gpu: Gpu,
  filter: GPUErrorFilter,
  code: 'gpu_memory' | 'gpu_compile',
  act: () => T | Promise<T>,
): Promise<T> {
  gpu.device.pushErrorScope(filter);
  let result: T | undefined;
  let thrown: unknown;
  try {
    result = await act();
  } catch (error) {
    thrown = error;
  }
  const complaint = await gpu.device.popErrorScope();
  const text = complaint?.message ?? (thrown instanceof Error ? thrown.message : undefined);
  if (text !== undefined) throw new GpuError(code, text.split('\n')[0] ?? text, { device: gpu.name });
  return result as T;
}
