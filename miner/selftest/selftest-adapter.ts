/**
 * The adapter of the self-test: the machine's own card or, where there is none, SwiftShader, which comes with Chromium and
 * emulates a card on the processor. It says nothing about a card's driver, but shows that the kernels compute the right hash.
 */
import { existsSync } from 'node:fs';
import { type Gpu, openGpu } from '../../kernels/gpu/device.ts';
import { GpuError } from '../../kernels/gpu/gpu-error.ts';
import { loadSources } from '../../kernels/gpu/sources.ts';
import { nodeGpu } from '../../kernels/gpu/webgpu.ts';

const SWIFTSHADER_FILES = [
  '/usr/lib/chromium',
  '/usr/lib/chromium-browser',
  '/usr/lib64/chromium-browser',
  '/opt/google/chrome',
].map((folder) => `${folder}/vk_swiftshader_icd.json`);
/** A software adapter is slow with a slice that takes a card milliseconds. */
const SOFTWARE_PATIENCE = 120_000;

/** The machine's own card, or nothing. */
export const openCard = async (): Promise<Gpu> => openGpu({}, { entry: await nodeGpu(), sources: await loadSources() });

export async function openSelfTestGpu(): Promise<Gpu> {
  const sources = await loadSources();
  try {
    return await openGpu({}, { entry: await nodeGpu(), sources });
  } catch (error) {
    const file = SWIFTSHADER_FILES.find((path) => existsSync(path));
    const isAbsent = error instanceof GpuError && error.code === 'gpu_no_adapter';
    if (!isAbsent || file === undefined || process.env.VK_ICD_FILENAMES !== undefined) throw error;
    process.env.VK_ICD_FILENAMES = file;
    return openGpu({ patience: SOFTWARE_PATIENCE }, { entry: await nodeGpu({ adapter: 'SwiftShader' }), sources });
  }
}
