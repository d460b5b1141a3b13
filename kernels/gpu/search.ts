/**
 * The search on one device (docs: pow.md, "Hash"): kernel, ring of dispatches in flight, results. A dispatch tries a run of
 * nonces; its hits come back through an atomic counter and slots, staged by one read-back buffer a ring place.
 * Loads in browsers.
 */
import { assemble } from './assemble.ts';
import type { GpuDataset } from './dataset.ts';
import { BUFFER, type Gpu, guarded, MAP_READ, scoped } from './device.ts';
import { type Layout, layoutParameters } from './layout.ts';
import { grid } from './steer.ts';
import { type Pass, Speed, Timeline } from './timeline.ts';

/**
 * The three forms of the search: `stream` (subgroup shuffles, invocations stay for the whole dispatch and no seed is kept),
 * `shuffle` (subgroup shuffles, one nonce an invocation, its seed in workgroup memory), `workgroup` (no subgroups needed).
 */
export type Variant = 'stream' | 'shuffle' | 'workgroup';
export const VARIANTS: readonly Variant[] = ['stream', 'shuffle', 'workgroup'];

/** What is tuned per device; a plain object that can be stored. */
export type Shape = {
  readonly variant: Variant;
  /** Invocations that share a hash: 8, or 4 where a subgroup has no more. The workgroup variant always has 8. */
  readonly lanes: 4 | 8;
  /** Hashes of a group that are mixed at once: at most `lanes`, and a divisor of it but for `stream`. */
  readonly flight: number;
  readonly workgroup: number;
};

/** Hits that one dispatch can bring home. */
export const SLOTS = 256;
const HIT_WORDS = 10;
const HEAD_WORDS = 2;
const RESULT_BYTES = 4 * HEAD_WORDS + SLOTS * HIT_WORDS * 4;
const JOB_WORDS = 16;
/** Rounds of a hash, in fours (pow.md, "Hash", step 3). */
const QUADS = 16;

/**
 * Dispatches in flight: one runs and one waits, so that the device never pauses. Submitting the second only 6 to 12 ms before
 * the end of the first cost 3 to 6 percent on an H200 (docs/lab/gpu.md).
 */
export const RING = 2;
/** How long before the expected end of a dispatch its results are polled for. */
const POLLING_MILLIS = 3;
/** However wrong an expectation is, no sleep is longer. Dispatches of 150 ms are slept through. */
const LONGEST_IDLE_MILLIS = 200;
/** Two times of 64 bits: begin and end of a pass. */
const TIMES_BYTES = 16;
const NANOS_PER_MILLI = 1e6;

/** Invocations of a `stream` dispatch: more than any card holds at once; those that find no nonce left end at once. */
const STAYING = 2 ** 19;

const stashWords = (shape: Shape): number => (shape.variant === 'stream' ? 0 : shape.workgroup * 16);
const exchangeWords = (shape: Shape): number => (shape.workgroup / 8) * shape.flight * 2;

export function shapeIsPossible(shape: Shape, gpu: Gpu): boolean {
  const { limits } = gpu;
  if (shape.workgroup > Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX))
    return false;
  if (shape.flight > shape.lanes || (shape.variant !== 'stream' && shape.lanes % shape.flight !== 0)) return false;
  const exchange = shape.variant === 'workgroup' ? exchangeWords(shape) : 0;
  if (4 * (stashWords(shape) + exchange) > limits.maxComputeWorkgroupStorageSize) return false;
  return shape.variant !== 'workgroup' ? gpu.subgroupSize >= shape.lanes : shape.lanes === 8;
}

export function searchCode(gpu: Gpu, shape: Shape, layout: Layout): string {
  return assemble(
    `search-${shape.variant}`,
    {
      ...layoutParameters(layout),
      CHAIN: gpu.software ? 1 : 0,
      CHECKED: gpu.unsafe ? 0 : 1,
      SLOTS,
      LANES: shape.lanes,
      LANE_MASK: shape.lanes - 1,
      ROWS: 8 / shape.lanes,
      FLIGHT: shape.flight,
      COMPONENT: ['x', 'y', 'z', 'w'],
      // Word j of a row meets word (j + i) mod 4 of the page's row.
      ROTATION: ['xyzw', 'yzwx', 'zwxy', 'wxyz'],
      PARITY: [0, 1, 0, 1],
    },
    gpu.sources,
  );
}

export type Kernel = { readonly shape: Shape; readonly layout: Layout; readonly pipeline: GPUComputePipeline };

export async function compileSearch(gpu: Gpu, shape: Shape, layout: Layout): Promise<Kernel> {
  const code = searchCode(gpu, shape, layout);
  const pipeline = await scoped(gpu, 'validation', 'gpu_compile', () =>
    gpu.device.createComputePipelineAsync({
      label: `search ${shape.variant}`,
      layout: 'auto',
      compute: {
        module: gpu.device.createShaderModule({ label: `search ${shape.variant}`, code }),
        entryPoint: 'search',
        constants: {
          WORKGROUP: shape.workgroup,
          PAGE_SHIFT: 32 - layout.pagesLog2,
          ...(shape.variant === 'stream' ? {} : { STASH: stashWords(shape) }),
          ...(shape.variant === 'workgroup' ? { EXCHANGE: exchangeWords(shape) } : {}),
        },
      },
    }),
  );
  return { shape, layout, pipeline };
}

/** One run of nonces of one job. */
export type Run = {
  /** The job's pre-hash, 8 words. */
  readonly prefix: Uint32Array;
  readonly nonce: bigint;
  readonly count: number;
  /** 32 bytes, big-endian. */
  readonly target: Uint8Array;
};

export type RawHit = { readonly nonce: bigint; readonly hash: Uint8Array<ArrayBuffer> };

export type Outcome = {
  /** Hits whose first 64 bits are at or below the target's; the caller compares the rest. */
  readonly hits: readonly RawHit[];
  /** Hits found; more than hits.length where the slots did not suffice. */
  readonly found: number;
  /** How long the device worked on it, as the host saw it: a late host makes one longer and the next one shorter. */
  readonly millis: number;
  /** When it worked, by its own clock, where passes are timed. */
  readonly pass: Pass | undefined;
};

type Place = {
  readonly times: { readonly queries: GPUQuerySet; readonly resolved: GPUBuffer } | undefined;
  readonly job: GPUBuffer;
  readonly results: GPUBuffer;
  readonly staging: GPUBuffer;
  readonly bindings: GPUBindGroup;
};

export type Ticket = { readonly run: Run; readonly place: Place; readonly submitted: number };

function readPass(bytes: ArrayBuffer): Pass {
  const [began, ended] = new BigUint64Array(bytes) as unknown as [bigint, bigint];
  return { began: Number(began) / NANOS_PER_MILLI, ended: Number(ended) / NANOS_PER_MILLI };
}

function readResults(words: Uint32Array): Pick<Outcome, 'hits' | 'found'> {
  const found = words[0] as number;
  const hits = Array.from({ length: Math.min(found, SLOTS) }, (_, n) => {
    const hit = words.slice(HEAD_WORDS + n * HIT_WORDS, HEAD_WORDS + (n + 1) * HIT_WORDS);
    const nonce = (BigInt(hit[1] as number) << 32n) | BigInt(hit[0] as number);
    return { nonce, hash: new Uint8Array(hit.slice(2).buffer) };
  });
  return { hits, found };
}

export class Searcher {
  readonly kernel: Kernel;
  readonly #gpu: Gpu;
  readonly #places: Place[] = [];
  readonly #free: Place[] = [];
  readonly #timeline: Timeline;
  readonly #speed = new Speed();
  readonly #datasets = new WeakMap<GpuDataset, GPUBindGroup>();

  /** Searchers of one device share a timeline. */
  constructor(gpu: Gpu, kernel: Kernel, timeline = new Timeline()) {
    this.#gpu = gpu;
    this.kernel = kernel;
    this.#timeline = timeline;
    for (let n = 0; n < RING; n++) this.#places.push(this.#makePlace(n));
    this.#free.push(...this.#places);
  }

  #makePlace(n: number): Place {
    const { device } = this.#gpu;
    const buffer = (label: string, size: number, usage: number): GPUBuffer =>
      device.createBuffer({ label: `${label} ${n}`, size, usage });
    const job = buffer('job', 4 * JOB_WORDS, BUFFER.uniform | BUFFER.copyTarget);
    const results = buffer('results', RESULT_BYTES, BUFFER.storage | BUFFER.copySource | BUFFER.copyTarget);
    const timesBytes = this.#gpu.timed ? TIMES_BYTES : 0;
    const staging = buffer('staging', RESULT_BYTES + timesBytes, BUFFER.mapRead | BUFFER.copyTarget);
    const times = this.#gpu.timed
      ? {
          queries: device.createQuerySet({ label: `times ${n}`, type: 'timestamp', count: 2 }),
          resolved: buffer('times', TIMES_BYTES, BUFFER.queryResolve | BUFFER.copySource),
        }
      : undefined;
    const bindings = device.createBindGroup({
      layout: this.kernel.pipeline.getBindGroupLayout(0),
      entries: [
        { binding: 0, resource: { buffer: job } },
        { binding: 1, resource: { buffer: results } },
      ],
    });
    return { job, results, staging, bindings, times };
  }

  /** Nonces that one workgroup tries: runs are cheapest in multiples of it. */
  get quantum(): number {
    return this.kernel.shape.workgroup;
  }

  /** Milliseconds that so many nonces take, by the last few runs; 0 before the first. */
  expectedMillis(count: number): number {
    return count * this.#speed.millisPerNonce;
  }

  get free(): number {
    return this.#free.length;
  }

  #shards(dataset: GpuDataset): GPUBindGroup {
    const known = this.#datasets.get(dataset);
    if (known !== undefined) return known;
    const made = this.#gpu.device.createBindGroup({
      layout: this.kernel.pipeline.getBindGroupLayout(1),
      entries: dataset.shards.map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
    this.#datasets.set(dataset, made);
    return made;
  }

  /** Queues a run; there must be a free place. */
  submit(dataset: GpuDataset, run: Run): Ticket {
    const place = this.#free.pop();
    if (place === undefined) throw new Error('no free place in the ring');
    const { device, limits } = this.#gpu;
    const target = new DataView(run.target.buffer, run.target.byteOffset);
    const job = new Uint32Array(JOB_WORDS);
    job.set(run.prefix, 0);
    job.set([Number(run.nonce & 0xffffffffn), Number(run.nonce >> 32n), run.count, QUADS], 8);
    job.set([target.getUint32(0), target.getUint32(4)], 12);
    device.queue.writeBuffer(place.job, 0, job);
    const encoder = device.createCommandEncoder();
    encoder.clearBuffer(place.results, 0, 4 * HEAD_WORDS);
    const { times } = place;
    const pass = encoder.beginComputePass({
      label: 'search',
      ...(times === undefined
        ? {}
        : { timestampWrites: { querySet: times.queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } }),
    });
    pass.setPipeline(this.kernel.pipeline);
    pass.setBindGroup(0, place.bindings);
    pass.setBindGroup(1, this.#shards(dataset));
    const groups = Math.ceil(run.count / this.quantum);
    const stay = this.kernel.shape.variant === 'stream' ? Math.ceil(STAYING / this.quantum) : groups;
    const { x, y } = grid(Math.min(groups, stay), limits.maxComputeWorkgroupsPerDimension);
    pass.dispatchWorkgroups(x, y);
    pass.end();
    encoder.copyBufferToBuffer(place.results, 0, place.staging, 0, RESULT_BYTES);
    if (times !== undefined) {
      encoder.resolveQuerySet(times.queries, 0, 2, times.resolved, 0);
      encoder.copyBufferToBuffer(times.resolved, 0, place.staging, RESULT_BYTES, TIMES_BYTES);
    }
    device.queue.submit([encoder.finish()]);
    return { run, place, submitted: this.#gpu.clock.now() };
  }

  /**
   * Sleeps until shortly before the run is expected to end: the moment to ask for its results. Asking earlier would cost a
   * core, because Dawn polls for a mapping all the time that one is pending.
   */
  async approach(ticket: Ticket): Promise<void> {
    const idle = this.#expectedEnd(ticket) - POLLING_MILLIS - this.#gpu.clock.now();
    if (idle > 1 && !this.#timeline.isLost)
      await new Promise<void>((resolve) => this.#gpu.clock.after(Math.min(idle, LONGEST_IDLE_MILLIS), resolve));
  }

  #expectedEnd({ submitted, run }: Ticket): number {
    return this.#timeline.start(submitted) + this.expectedMillis(run.count);
  }

  /** Waits for a run and frees its place; runs are waited for in the order of their submission. */
  async finish(ticket: Ticket): Promise<Outcome> {
    const { staging, times } = ticket.place;
    const started = this.#timeline.start(ticket.submitted);
    const expected = this.#expectedEnd(ticket);
    const asked = this.#gpu.clock.now();
    await guarded(this.#gpu, staging.mapAsync(MAP_READ), 'a search dispatch');
    const mapped = staging.getMappedRange();
    const results = readResults(new Uint32Array(mapped, 0, RESULT_BYTES / 4));
    const pass = times === undefined ? undefined : readPass(mapped.slice(RESULT_BYTES));
    staging.unmap();
    this.#free.push(ticket.place);
    const millis = this.#timeline.ended(asked, this.#gpu.clock.now(), expected) - started;
    this.#speed.add(ticket.run.count, millis);
    return { ...results, millis, pass };
  }

  destroy(): void {
    for (const { job, results, staging, times } of this.#places) {
      for (const buffer of [job, results, staging]) buffer.destroy();
      times?.queries.destroy();
      times?.resolved.destroy();
    }
  }
}
