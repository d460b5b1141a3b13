/**
 * Builds a dataset on the device from a cache made on the processor (docs: pow.md, "Dataset"), in slices short enough for any
 * driver, and checks a sample of it against the reference. Loads in browsers.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { datasetItem, type PowParameters } from '../../protocol/crypto/pow.ts';
import { assemble } from './assemble.ts';
import { BUFFER, type Gpu, guarded, MAP_READ, scoped } from './device.ts';
import { GpuError } from './gpu-error.ts';
import { type Layout, PAGE_BYTES } from './layout.ts';
import { BUILD_BAND, grid, steer } from './steer.ts';

const ITEM_BYTES = 64;
const ROW_BYTES = 16;
const WORKGROUP = 64;
const FIRST_SLICE = 2 ** 14;
const SAMPLES = 8;

export type GpuDataset = {
  readonly layout: Layout;
  readonly shards: readonly GPUBuffer[];
  readonly buildMillis: number;
  destroy(): void;
};

export type BuildProgress = (done: number, total: number) => void;

const WORDS = ['a', 'b', 'c', 'd'].flatMap((row) => ['x', 'y', 'z', 'w'].map((word) => `${row}.${word}`));

/** Compiled once a device: the next epoch uses it again. */
const compiled = new WeakMap<GPUDevice, Map<string, GPUComputePipeline>>();

async function datasetPipeline(gpu: Gpu, cacheLog2: number): Promise<GPUComputePipeline> {
  const code = assemble('dataset', { WORD: WORDS }, gpu.sources);
  const pipelines = compiled.get(gpu.device) ?? new Map<string, GPUComputePipeline>();
  compiled.set(gpu.device, pipelines);
  const key = `${cacheLog2} ${code}`;
  const known = pipelines.get(key);
  if (known !== undefined) return known;
  const pipeline = await scoped(gpu, 'validation', 'gpu_compile', () =>
    gpu.device.createComputePipelineAsync({
      label: 'dataset',
      layout: 'auto',
      compute: {
        module: gpu.device.createShaderModule({ label: 'dataset', code }),
        entryPoint: 'build',
        constants: { WORKGROUP, CACHE_SHIFT: 32 - cacheLog2 },
      },
    }),
  );
  pipelines.set(key, pipeline);
  return pipeline;
}

function allocate(gpu: Gpu, layout: Layout): Promise<GPUBuffer[]> {
  return scoped(gpu, 'out-of-memory', 'gpu_memory', () =>
    layout.shards.map(({ pages }, k) =>
      gpu.device.createBuffer({
        label: `dataset shard ${k}`,
        size: pages * PAGE_BYTES,
        usage: BUFFER.storage | BUFFER.copySource,
      }),
    ),
  );
}

export async function buildDataset(
  gpu: Gpu,
  parameters: PowParameters,
  layout: Layout,
  cache: Bytes,
  onProgress: BuildProgress = () => {},
): Promise<GpuDataset> {
  const { device } = gpu;
  const pipeline = await datasetPipeline(gpu, parameters.cacheLog2);
  const shards = await allocate(gpu, layout);
  const cacheBuffer = device.createBuffer({
    label: 'cache',
    size: cache.byteLength,
    usage: BUFFER.storage | BUFFER.copyTarget,
  });
  const uniform = device.createBuffer({ label: 'slice', size: 16, usage: BUFFER.uniform | BUFFER.copyTarget });
  const destroy = (): void => {
    for (const shard of shards) shard.destroy();
  };
  try {
    device.queue.writeBuffer(cacheBuffer, 0, cache);
    await guarded(gpu, device.queue.onSubmittedWorkDone(), 'the upload of the cache');
    const started = gpu.clock.now();
    const total = (2 ** parameters.pagesLog2 * PAGE_BYTES) / ITEM_BYTES;
    let done = 0;
    let slice = FIRST_SLICE;
    for (const [k, shard] of shards.entries()) {
      const bindings = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [uniform, cacheBuffer, shard].map((buffer, binding) => ({ binding, resource: { buffer } })),
      });
      const items = ((layout.shards[k] as { pages: number }).pages * PAGE_BYTES) / ITEM_BYTES;
      for (let at = 0; at < items; ) {
        const count = Math.min(slice, items - at);
        const row = (at * ITEM_BYTES) / ROW_BYTES;
        device.queue.writeBuffer(uniform, 0, new Uint32Array([done, row, count, 0]));
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass({ label: 'dataset slice' });
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, bindings);
        const { x, y } = grid(Math.ceil(count / WORKGROUP), gpu.limits.maxComputeWorkgroupsPerDimension);
        pass.dispatchWorkgroups(x, y);
        pass.end();
        const before = gpu.clock.now();
        device.queue.submit([encoder.finish()]);
        await guarded(gpu, device.queue.onSubmittedWorkDone(), 'a slice of the dataset');
        at += count;
        done += count;
        onProgress(done, total);
        if (count === slice)
          slice = steer({ work: slice, millis: gpu.clock.now() - before }, BUILD_BAND, WORKGROUP, 2 ** 31);
      }
    }
    const dataset = { layout, shards, buildMillis: gpu.clock.now() - started, destroy };
    await checkSample(gpu, parameters, dataset, cache);
    return dataset;
  } catch (error) {
    destroy();
    throw error;
  } finally {
    cacheBuffer.destroy();
    uniform.destroy();
  }
}

/** Reads one item back, through the layout. */
export async function readItem(gpu: Gpu, dataset: GpuDataset, item: number): Promise<Uint8Array<ArrayBuffer>> {
  const page = Math.floor((item * ITEM_BYTES) / PAGE_BYTES);
  const k = dataset.layout.shards.findLastIndex((shard) => shard.first <= page);
  const first = ((dataset.layout.shards[k] as { first: number }).first * PAGE_BYTES) / ITEM_BYTES;
  const staging = gpu.device.createBuffer({ size: ITEM_BYTES, usage: BUFFER.mapRead | BUFFER.copyTarget });
  const encoder = gpu.device.createCommandEncoder();
  encoder.copyBufferToBuffer(dataset.shards[k] as GPUBuffer, (item - first) * ITEM_BYTES, staging, 0, ITEM_BYTES);
  gpu.device.queue.submit([encoder.finish()]);
  await guarded(gpu, staging.mapAsync(MAP_READ), 'a dataset item');
  const bytes = new Uint8Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return bytes;
}

/** First and last item of the dataset and some between: a card with faulty memory is detected before it mines. */
async function checkSample(gpu: Gpu, parameters: PowParameters, dataset: GpuDataset, cache: Bytes): Promise<void> {
  const items = 2 ** (parameters.pagesLog2 + 1);
  for (let n = 0; n < SAMPLES; n++) {
    const item = Math.floor(((items - 1) * n) / (SAMPLES - 1));
    const built = await readItem(gpu, dataset, item);
    if (!equalBytes(built, datasetItem(cache, parameters.cacheLog2, item)))
      throw new GpuError('gpu_wrong_dataset', 'the device computed a wrong dataset item', { device: gpu.name, item });
  }
}
