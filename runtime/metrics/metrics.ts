/**
 * Figures of a program for Prometheus, by `prom-client`. Labels are bounded: a metric has at most `maxSeries` label
 * combinations; further ones are added up under `other`, and such drops are counted, so that many workers cannot fill
 * the memory of this program or of the server that scrapes it.
 */
import * as prometheus from 'prom-client';
import { clientFaults } from '../clients/client-fault.ts';
import { clockJumps } from '../clock/watched-clock.ts';

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
type LabelList<L extends string> = readonly [Labels<L>?];

const DEFAULT_MAX_SERIES = 100;
const OVERFLOW = 'other';
const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** The label combinations of a metric, to limit their number. */
class LabelBound<L extends string> {
  readonly #names: readonly L[];
  readonly #limit: number;
  readonly #dropped: () => void;
  readonly #seen = new Set<string>();

  constructor(settings: Settings<L>, dropped: () => void) {
    this.#names = settings.labels ?? [];
    this.#limit = settings.maxSeries ?? DEFAULT_MAX_SERIES;
    this.#dropped = dropped;
  }

  /** The labels to count under: those given, or `other` in each of them. */
  admit([labels]: LabelList<L>): Record<string, string> {
    if (labels === undefined) return {};
    const key = this.#key(labels);
    if (this.#seen.has(key)) return labels;
    if (this.#seen.size < this.#limit) {
      this.#seen.add(key);
      return labels;
    }
    this.#dropped();
    return Object.fromEntries(this.#names.map((name) => [name, OVERFLOW]));
  }

  forget([labels]: LabelList<L>): void {
    if (labels !== undefined) this.#seen.delete(this.#key(labels));
  }

  #key(labels: Labels<L>): string {
    return JSON.stringify(this.#names.map((name) => labels[name]));
  }
}

/** The program (specification: Limits). Every metric has it, those about the process too. */
export type MetricsPrefix = 'svc_node' | 'svc_bridge' | 'svc_pool' | 'svc_miner' | 'svc_proxy';

export class Metrics {
  readonly registry = new prometheus.Registry();
  readonly prefix: MetricsPrefix;
  readonly #beforeScrape: (() => void)[] = [];
  readonly #dropped: Counter<'metric'>;

  constructor(prefix: MetricsPrefix) {
    this.prefix = prefix;
    this.#dropped = this.counter(`${prefix}_metric_series_dropped_total`, {
      help: 'Updates that went to the label value "other" because a metric has too many label values',
      labels: ['metric'],
    });
  }

  /** Names end in `_total`. */
  counter<const L extends string = never>(name: string, settings: Settings<L>): Counter<L> {
    const { bound, ...own } = this.#settings(name, settings);
    const counter = new prometheus.Counter<string>(own);
    return {
      add(amount, ...labels) {
        if (!(amount >= 0)) throw new RangeError(`counter ${name} cannot go down by ${amount}`);
        counter.inc(bound.admit(labels), amount);
      },
    };
  }

  gauge<const L extends string = never>(name: string, settings: Settings<L>): Gauge<L> {
    const { bound, ...own } = this.#settings(name, settings);
    const gauge = new prometheus.Gauge<string>(own);
    return {
      set: (value, ...labels) => gauge.set(bound.admit(labels), value),
      remove(...labels) {
        bound.forget(labels);
        gauge.remove(labels[0] ?? {});
      },
    };
  }

  /** `buckets` are upper bounds in rising order; the infinite one is added. */
  histogram<const L extends string = never>(
    name: string,
    settings: Settings<L> & { readonly buckets: readonly number[] },
  ): Histogram<L> {
    const { bound, ...own } = this.#settings(name, settings);
    const histogram = new prometheus.Histogram<string>({ ...own, buckets: [...settings.buckets] });
    return { observe: (value, ...labels) => histogram.observe(bound.admit(labels), value) };
  }

  /** Called before each scrape: the place to set gauges that are read rather than kept. */
  beforeScrape(update: () => void): void {
    this.#beforeScrape.push(update);
  }

  async text(): Promise<string> {
    for (const update of this.#beforeScrape) update();
    return await this.registry.metrics();
  }

  #settings<L extends string>(name: string, settings: Settings<L>) {
    if (!NAME.test(name) || !name.startsWith(`${this.prefix}_`) || this.registry.getSingleMetric(name) !== undefined)
      throw new Error(`metric name '${name}' is taken or not valid`);
    return {
      name,
      help: settings.help,
      labelNames: [...(settings.labels ?? [])],
      registers: [this.registry],
      bound: new LabelBound(settings, () => this.#dropped.add(1, { metric: name })),
    };
  }
}

/**
 * Metrics of every program about its own process: the default metrics of prom-client, and a few of ours. Once per
 * process.
 */
export function addProcessMetrics(metrics: Metrics, version: string): void {
  const { prefix, registry } = metrics;
  prometheus.collectDefaultMetrics({ register: registry, prefix: `${prefix}_` });
  const uptime = metrics.gauge(`${prefix}_uptime_seconds`, { help: 'Time since the process started' });
  addFaultMetric(metrics);
  addClockMetric(metrics);
  metrics.gauge(`${prefix}_build_info`, { help: 'Version of the program', labels: ['version'] }).set(1, { version });
  metrics.beforeScrape(() => uptime.set(process.uptime()));
}

/** Zero unless a client triggered a bug in this program (client-fault.ts). */
const addFaultMetric = (metrics: Metrics): void =>
  addTotal(metrics, `${metrics.prefix}_client_faults_total`, {
    help: 'Clients ended by a defect of this program; the log says which',
    source: clientFaults,
  });

const addClockMetric = (metrics: Metrics): void =>
  addTotal(metrics, `${metrics.prefix}_clock_jumps_total`, { help: 'Jumps of the system clock', source: clockJumps });

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
