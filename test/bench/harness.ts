/**
 * The one harness of all benchmarks. A benchmark is a file test/bench/NAME.bench.ts:
 *
 *   export default bench('what it measures', async (b) => {
 *     b.figure('encode', await rate(() => encode(value)), 'op/s');
 *   });
 *
 * Figures with a yardstick are measured in the same run as the yardstick, in turns (`rates`), because machines differ
 * and are rarely quiet. A figure says more is better unless it is a time.
 */

export interface Figure {
  /** NAME/figure. */
  readonly bench: string;
  readonly value: number;
  readonly unit: string;
  /** The value divided by the yardstick's. */
  readonly ratio?: number;
  readonly yardstick?: string;
}

export interface Bench {
  /** The words after the name on the command line. */
  readonly words: readonly string[];
  figure(
    name: string,
    value: number,
    unit: string,
    against?: { readonly ratio: number; readonly yardstick: string },
  ): void;
  /** A line for people: circumstances of the run. */
  note(text: string): void;
}

export interface Benchmark {
  readonly summary: string;
  readonly run: (b: Bench) => Promise<void>;
}

export const bench = (summary: string, run: (b: Bench) => Promise<void>): Benchmark => ({ summary, run });

export interface RateOptions {
  /** Length of one round. */
  readonly seconds?: number;
  readonly rounds?: number;
}

type Work = () => unknown;

/** Runs per second: the median of some rounds, after a round to warm up. */
export async function rate(work: Work, options: RateOptions = {}): Promise<number> {
  return (await rates({ work }, options)).work;
}

/** The rates of several works, their rounds taking turns so that a noisy machine hurts all alike. */
export async function rates<K extends string>(
  works: Record<K, Work>,
  options: RateOptions = {},
): Promise<Record<K, number>> {
  const { seconds = 0.4, rounds = 5 } = options;
  const names = Object.keys(works) as K[];
  const measured = new Map<K, number[]>(names.map((name) => [name, []]));
  const batches = new Map<K, number>();
  for (const name of names) batches.set(name, await batchFor(works[name]));
  for (let i = 0; i <= rounds; i++)
    for (const name of names) {
      const perSecond = await round(works[name], batches.get(name) as number, seconds);
      if (i > 0) measured.get(name)?.push(perSecond);
    }
  return Object.fromEntries(names.map((name) => [name, median(measured.get(name) as number[])])) as Record<K, number>;
}

/** How many runs make a batch of about a millisecond: reading the clock must not be what is measured. */
async function batchFor(work: Work): Promise<number> {
  for (let batch = 1; ; batch *= 2) {
    const start = performance.now();
    await runBatch(work, batch);
    if (performance.now() - start >= 1 || batch >= 2 ** 20) return batch;
  }
}

/** Waits only for promises: an await of every plain value would cost more than most works do. */
async function runBatch(work: Work, batch: number): Promise<void> {
  for (let i = 0; i < batch; i++) {
    const result = work();
    if (result instanceof Promise) await result;
  }
}

async function round(work: Work, batch: number, seconds: number): Promise<number> {
  const start = performance.now();
  let runs = 0;
  let elapsed = 0;
  do {
    await runBatch(work, batch);
    runs += batch;
    elapsed = performance.now() - start;
  } while (elapsed < seconds * 1000);
  return (runs / elapsed) * 1000;
}

export const percentile = (values: readonly number[], part: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

export async function runBenchmark(
  name: string,
  benchmark: Benchmark,
  words: readonly string[],
  say: (text: string) => void,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  await benchmark.run({
    words,
    note: (text) => say(`  ${text}\n`),
    figure(figure, value, unit, against) {
      if (!Number.isFinite(value)) throw new RangeError(`${name}/${figure} is ${value}`);
      figures.push({ bench: `${name}/${figure}`, value, unit, ...against });
    },
  });
  return figures;
}

/** Three to four digits that matter, and thousands set apart. */
export function showValue(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 1000 || size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)) - 1);
  return value.toLocaleString('en-US', { minimumFractionDigits: 0, maximumFractionDigits: Math.min(20, digits) });
}

export function renderTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ bench, value, unit, ratio, yardstick }) => [
    bench,
    showValue(value),
    unit,
    ratio === undefined ? '' : `${ratio.toFixed(2)} of ${yardstick}`,
  ]);
  const widths = [0, 1, 2].map((i) => Math.max(...rows.map((row) => (row[i] as string).length)));
  return rows
    .map(([name = '', value = '', unit = '', against = '']) =>
      `  ${name.padEnd(widths[0] as number)}  ${value.padStart(widths[1] as number)} ${unit.padEnd(widths[2] as number)}  ${against}`.trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}
