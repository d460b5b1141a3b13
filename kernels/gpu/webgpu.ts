/**
 * WebGPU in Node, by the package `webgpu` (Dawn). The object of create() must live as long as anything that came from it, or
 * Node crashes at random: it is kept in a global. One process or worker a card.
 */
import { GpuError } from './gpu-error.ts';

export type NodeGpuOptions = {
  /** Part of the adapter's name, where there are several. */
  readonly adapter?: string;
  /** Leaves out Dawn's bounds checks and validation: one percent faster, and a defect may crash the driver. */
  readonly unsafe?: boolean;
};

const kept = globalThis as typeof globalThis & { svcGpuEntries?: Map<string, GPU> };

export async function nodeGpu(options: NodeGpuOptions = {}): Promise<GPU> {
  const flags = [
    ...(options.adapter === undefined ? [] : [`adapter=${options.adapter}`]),
    ...(options.unsafe ? ['enable-dawn-features=disable_robustness,skip_validation'] : []),
  ];
  kept.svcGpuEntries ??= new Map();
  const key = flags.join(' ');
  const known = kept.svcGpuEntries.get(key);
  if (known !== undefined) return known;
  try {
    const { create } = await import('webgpu');
    const entry = create(flags);
    kept.svcGpuEntries.set(key, entry);
    return entry;
  } catch (error) {
    throw new GpuError('gpu_module_missing', 'the package "webgpu" cannot be loaded', {
      detail: error instanceof Error ? error.message : String(error),
    });
  }
}
