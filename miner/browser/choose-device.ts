/**
 * Chooses the device for mining in a page: a suitable graphics card, otherwise the processor. A browser may have WebGPU
 * without an adapter, with one that is too small, or with a software adapter, which is slower than the processor
 * itself.
 */
import { isSoftwareAdapter } from '../../kernels/gpu/device.ts';
import { layoutsFor } from '../../kernels/gpu/layout.ts';

/** Why the browser's graphics card is not used; undefined when it is. */
export async function whyNoCard(entry: GPU | undefined, pagesLog2: number): Promise<string | undefined> {
  if (entry === undefined) return 'this browser has no WebGPU';
  let adapter: GPUAdapter | null;
  try {
    adapter = await entry.requestAdapter({ powerPreference: 'high-performance' });
  } catch (error) {
    return `the graphics driver fails: ${(error as Error).message}`;
  }
  if (adapter === null) return 'there is no usable graphics adapter';
  if (isSoftwareAdapter(adapter.info)) return 'the graphics adapter is emulated on the processor';
  if (layoutsFor(pagesLog2, adapter.limits).length === 0) return 'the graphics adapter is too small for the dataset';
  return undefined;
}
