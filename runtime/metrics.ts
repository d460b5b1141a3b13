/**
 * Figures of a program in the Prometheus text format (version 0.0.4). Labels are bounded: a metric has at most
 * `maxSeries` label combinations; what comes after is added up under `other`, and the drop is itself counted, so no
 * crowd of workers can fill the memory of this program or of whoever scrapes it.
 */
import { clientFaults } from './client-fault.ts';
import { clockJumps } from './watched-clock.ts';

export type Labels<L extends string> = Readonly<Record<L, string>>;

interface Settings<L extends string> {
  readonly help: string;
  readonly labels?: readonly L[];
  readonly maxSeries?: number;
}

export interface Counter<L extends string> {
  add(amount: number, ...labels: LabelArgument<L>): void;
}

export interface Gauge<L extends string> {
  set(value: number, ...labels: LabelArgument<L>): void;
  remove(...labels: LabelArgument<L>): void;
}

export interface Histogram<L extends string> {
  observe(value: number, ...labels: LabelArgument<L>): void;
}

type LabelArgument<L extends string> = [L] extends [never] ? [] : [labels: Labels<L>];

const DEFAULT_MAX_SERIES = 100;
const OVERFLOW = 'other';
const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

const escapeHelp = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
const escapeLabel = (text: string): string => escapeHelp(text).replace(/"/g, '\\"');
const number = (value: number): string =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';

/** The label combinations of one metric, each with a state of its own. */
class Series<L extends string, S> {
  readonly #names: readonly L[];
  readonly #limit: number;
  readonly #make: () => S;
  readonly #overflowed: () => void;
  readonly #states = new Map<string, S>();

  constructor(settings: Settings<L>, make: () => S, overflowed: () => void) {
    this.#names = settings.labels ?? [];
    this.#limit = settings.maxSeries ?? DEFAULT_MAX_SERIES;
    this.#make = make;
    this.#overflowed = overflowed;
    if (this.#names.length === 0) this.#states.set('', make());
  }

  #key(values: (name: L) => string): string {
    return this.#names.map((name) => `${name}="${escapeLabel(values(name))}"`).join(',');
  }

  at([labels]: readonly [Labels<L>?]): S {
    const key = this.#key((name) => labels?.[name] ?? '');
    const found = this.#states.get(key);
    if (found !== undefined) return found;
    if (this.#states.size < this.#limit) return this.#add(key);
    this.#overflowed();
    const other = this.#key(() => OVERFLOW);
    return this.#states.get(other) ?? this.#add(other);
  }

  #add(key: string): S {
    const state = this.#make();
    this.#states.set(key, state);
    return state;
  }

  remove([labels]: readonly [Labels<L>?]): void {
    this.#states.delete(this.#key((name) => labels?.[name] ?? ''));
  }

  entries(): Iterable<[string, S]> {
    return this.#states;
  }
}

type Render = () => string;

export class Metrics {
  readonly #families = new Map<string, Render>();
  readonly #beforeScrape: (() => void)[] = [];
  readonly #dropped: Counter<'metric'>;

  constructor() {
    this.#dropped = this.counter('svc_metric_series_dropped_total', {
      help: 'Updates that went to the label value "other" because a metric has too many label values',
      labels: ['metric'],
    });
  }

  /** Names end in `_total`. */
  counter<const L extends string = never>(name: string, settings: Settings<L>): Counter<L> {
    const series = this.#series(name, settings, () => ({ value: 0 }));
    this.#family(name, 'counter', settings.help, () =>
      [...series.entries()].map(([key, state]) => sample(name, key, state.value)),
    );
    return {
      add(amount, ...labels) {
        if (!(amount >= 0)) throw new RangeError(`counter ${name} cannot go down by ${amount}`);
        series.at(labels).value += amount;
      },
    };
  }

  gauge<const L extends string = never>(name: string, settings: Settings<L>): Gauge<L> {
    const series = this.#series(name, settings, () => ({ value: 0 }));
    this.#family(name, 'gauge', settings.help, () =>
      [...series.entries()].map(([key, state]) => sample(name, key, state.value)),
    );
    return {
      set(value, ...labels) {
        series.at(labels).value = value;
      },
      remove: (...labels) => series.remove(labels),
    };
  }

  /** `buckets` are upper bounds in rising order; the infinite one is added. */
  histogram<const L extends string = never>(
    name: string,
    settings: Settings<L> & { readonly buckets: readonly number[] },
  ): Histogram<L> {
    const { buckets } = settings;
    const make = () => ({ counts: new Array<number>(buckets.length).fill(0), sum: 0, count: 0 });
    const series = this.#series(name, settings, make);
    this.#family(name, 'histogram', settings.help, () =>
      [...series.entries()].flatMap(([key, state]) => {
        let total = 0;
        const prefix = key === '' ? '' : `${key},`;
        const lines = buckets.map((bound, i) => {
          total += state.counts[i] as number;
          return sample(`${name}_bucket`, `${prefix}le="${number(bound)}"`, total);
        });
        lines.push(sample(`${name}_bucket`, `${prefix}le="+Inf"`, state.count));
        lines.push(sample(`${name}_sum`, key, state.sum), sample(`${name}_count`, key, state.count));
        return lines;
      }),
    );
    return {
      observe(value, ...labels) {
        const state = series.at(labels);
        const bucket = buckets.findIndex((bound) => value <= bound);
        if (bucket >= 0) state.counts[bucket] = (state.counts[bucket] as number) + 1;
        state.sum += value;
        state.count += 1;
      },
    };
  }

  /** Called before each scrape: the place to set gauges that are read rather than kept. */
  beforeScrape(update: () => void): void {
    this.#beforeScrape.push(update);
  }

  text(): string {
    for (const update of this.#beforeScrape) update();
    return [...this.#families.values()].map((render) => render()).join('');
  }

  #series<L extends string, S>(name: string, settings: Settings<L>, make: () => S): Series<L, S> {
    if (!NAME.test(name) || this.#families.has(name)) throw new Error(`metric name '${name}' is taken or not valid`);
    return new Series(settings, make, () => this.#dropped?.add(1, { metric: name }));
  }

  #family(name: string, type: string, help: string, lines: () => string[]): void {
    const head = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
    this.#families.set(name, () => head + lines().join(''));
  }
}

const sample = (name: string, labels: string, value: number): string =>
  `${name}${labels === '' ? '' : `{${labels}}`} ${number(value)}\n`;

/** What every program tells about its own process. */
export function addProcessMetrics(metrics: Metrics, version: string): void {
  const memory = metrics.gauge('process_resident_memory_bytes', { help: 'Resident memory' });
  const heap = metrics.gauge('svc_heap_used_bytes', { help: 'JavaScript heap in use' });
  const cpu = metrics.gauge('svc_process_cpu_seconds', { help: 'Processor time used since the start' });
  const uptime = metrics.gauge('svc_uptime_seconds', { help: 'Time since the process started' });
  addFaultMetric(metrics);
  addClockMetric(metrics);
  metrics.gauge('svc_build_info', { help: 'Version of the program', labels: ['version'] }).set(1, { version });
  metrics.beforeScrape(() => {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    memory.set(rss);
    heap.set(heapUsed);
    cpu.set((user + system) / 1e6);
    uptime.set(process.uptime());
  });
}

/** Zero unless this program has a defect that a client met (client-fault.ts). */
export const addFaultMetric = (metrics: Metrics): void =>
  addTotal(metrics, 'svc_client_faults_total', {
    help: 'Clients ended by a defect of this program; the log says which',
    source: clientFaults,
  });

export const addClockMetric = (metrics: Metrics): void =>
  addTotal(metrics, 'svc_clock_jumps_total', { help: 'Jumps of the system clock', source: clockJumps });

/** A count that is kept elsewhere in the process. */
function addTotal(
  metrics: Metrics,
  name: string,
  { help, source }: { readonly help: string; readonly source: { readonly total: number } },
): void {
  const counter = metrics.counter(name, { help });
  let counted = 0;
  metrics.beforeScrape(() => {
    const { total } = source;
    counter.add(Math.max(0, total - counted));
    counted = total;
  });
}
