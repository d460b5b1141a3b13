/** Asks for the graphics cards of this machine, in a process of its own (device-list.ts), and answers over its IPC channel. */
import { nodeGpu } from '../../kernels/gpu/webgpu.ts';
import { type FoundGpu, NOBODY, readAdapters } from './gpu-names.ts';

async function probe(): Promise<{ gpus: FoundGpu[]; why: string | undefined }> {
  let refusal = '';
  try {
    await (await nodeGpu({ adapter: NOBODY })).requestAdapter();
  } catch (error) {
    refusal = (error as Error).message;
  }
  const gpus = readAdapters(refusal);
  return { gpus, why: gpus.length > 0 ? undefined : 'no driver, or none that WebGPU accepts' };
}

process.send?.(await probe());
