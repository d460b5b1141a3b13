/** The adapter that the GPU tests run on: a graphics card where a driver is configured, else SwiftShader. */
import { existsSync, readFileSync } from 'node:fs';
import { type Gpu, type OpenOptions, openGpu } from '../../kernels/gpu/device.ts';
import type { Shape, Variant } from '../../kernels/gpu/search.ts';
import { loadSources } from '../../kernels/gpu/sources.ts';
import { nodeGpu } from '../../kernels/gpu/webgpu.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { buildCache, datasetSeed, powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';

const SWIFTSHADER = '/usr/lib/chromium/vk_swiftshader_icd.json';

export const PARAMETERS = powParameters(NETWORKS.development);
export const EPOCH = 0;
export const cache = buildCache(datasetSeed(PARAMETERS.networkId, EPOCH), PARAMETERS.cacheLog2);

/** SwiftShader on a busy machine takes its time. */
const PATIENCE = 120_000;

export async function openTestGpu(options: OpenOptions = {}): Promise<Gpu> {
  if (process.env.VK_ICD_FILENAMES === undefined && existsSync(SWIFTSHADER)) process.env.VK_ICD_FILENAMES = SWIFTSHADER;
  return openGpu({ patience: PATIENCE, ...options }, { entry: await nodeGpu(), sources: await loadSources() });
}

/** Small shapes: a software adapter takes long over large ones. */
export function smallShape(gpu: Gpu, variant: Variant): Shape {
  const lanes = variant !== 'workgroup' && gpu.subgroupSize < 8 ? 4 : 8;
  return { variant, lanes, flight: 1, workgroup: 32 };
}

export type DevelopmentVector = {
  readonly epoch: number;
  readonly items: readonly { index: number; bytes: Uint8Array<ArrayBuffer> }[];
  readonly hashes: readonly { header: Uint8Array<ArrayBuffer>; pow: Uint8Array<ArrayBuffer> }[];
};

type RawVector = {
  network: string;
  epoch: number;
  items: { index: number; bytes: string }[];
  hashes: { header: string; pow: string }[];
};

export function developmentVectors(): DevelopmentVector[] {
  const file = new URL('../../vectors/pow.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as RawVector[])
    .filter(({ network }) => network === 'development')
    .map(({ epoch, items, hashes }) => ({
      epoch,
      items: items.map(({ index, bytes }) => ({ index, bytes: fromHex(bytes) })),
      hashes: hashes.map(({ header, pow }) => ({ header: fromHex(header), pow: fromHex(pow) })),
    }));
}
