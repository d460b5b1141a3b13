/** The figures of a stratum server for Prometheus, under a prefix: `svc_bridge_` here, `svc_pool_` in the pool. */
import type { Counter, Metrics } from '../runtime/metrics/metrics.ts';
import type { StratumFigures } from './stratum-server.ts';

/** A counter that is fed with totals: adds the increase since the last total. */
export class Totals {
  readonly #counter: { add(amount: number, labels?: Record<string, string>): void };
  readonly #last = new Map<string, number>();

  constructor(counter: Counter<never> | Counter<'reason'> | Counter<'code'> | Counter<'state'> | Counter<'anchor'>) {
    this.#counter = counter as unknown as { add(amount: number, labels?: Record<string, string>): void };
  }

  set(total: number, labels?: Record<string, string>): void {
    const key = JSON.stringify(labels ?? {});
    const rise = total - (this.#last.get(key) ?? 0);
    this.#last.set(key, total);
    // A listener thread that was replaced starts again from 0.
    this.#counter.add(rise < 0 ? total : rise, labels);
  }
}

export function stratumMetrics(metrics: Metrics, prefix: string): (figures: StratumFigures) => void {
  const name = (text: string) => `${prefix}${text}`;
  const ready = metrics.gauge(name('ready'), { help: 'Whether miners are served' });
  const height = metrics.gauge(name('finalized_height'), { help: 'Height of the newest cut' });
  const connections = metrics.gauge(name('connections'), { help: 'Open connections', labels: ['transport'] });
  const mining = metrics.gauge(name('mining_connections'), { help: 'Connections that mine', labels: ['service'] });
  const farms = metrics.gauge(name('farms'), { help: 'Connections that are farm sessions' });
  const farmRigs = metrics.gauge(name('farm_rigs'), { help: 'Rigs that farm sessions have named' });
  const nodes = metrics.gauge(name('node_healthy'), {
    help: 'Whether a node can serve',
    labels: ['node'],
    maxSeries: 16,
  });
  const verifying = metrics.gauge(name('shares_verifying'), { help: 'Shares without a verdict yet' });
  const fanOut = metrics.gauge(name('fan_out_seconds'), { help: 'Time the last job took to reach all connections' });
  const bans = metrics.gauge(name('bans'), { help: 'Addresses banned now' });
  const opened = new Totals(metrics.counter(name('opened_total'), { help: 'Connections whose protocol is known' }));
  const turnedAway = new Totals(metrics.counter(name('turned_away_total'), { help: 'Connections refused on arrival' }));
  const closed = new Totals(
    metrics.counter(name('closed_total'), { help: 'Connections ended, by reason', labels: ['reason'], maxSeries: 32 }),
  );
  const refused = new Totals(
    metrics.counter(name('shares_refused_total'), { help: 'Shares refused, by code', labels: ['code'], maxSeries: 32 }),
  );
  const sent = new Totals(metrics.counter(name('jobs_sent_total'), { help: 'Jobs of new templates sent' }));
  const skipped = new Totals(metrics.counter(name('jobs_skipped_total'), { help: 'Jobs held back from slow readers' }));
  const published = new Totals(metrics.counter(name('templates_total'), { help: 'Sets of templates published' }));
  const anchors = new Totals(
    metrics.counter(name('template_anchors_total'), {
      help: 'Templates, by the age of their anchor',
      labels: ['anchor'],
    }),
  );
  const anchorAge = metrics.gauge(name('template_anchor_age_cuts'), {
    help: 'Mean age of the anchors of the newest templates',
  });
  const kept = metrics.gauge(name('templates_kept'), { help: 'Templates that a block can still need' });
  const keptBytes = metrics.gauge(name('templates_kept_bytes'), { help: 'Bytes of their transactions, each once' });
  const blocks = new Totals(metrics.counter(name('blocks_total'), { help: 'Blocks, by state', labels: ['state'] }));
  return (figures) => {
    const { listeners } = figures;
    const sum = (pick: (listener: StratumFigures['listeners'][number]) => number): number =>
      listeners.reduce((total, listener) => total + pick(listener), 0);
    const merged = (pick: (listener: StratumFigures['listeners'][number]) => Readonly<Record<string, number>>) => {
      const all: Record<string, number> = {};
      for (const listener of listeners)
        for (const [key, value] of Object.entries(pick(listener))) all[key] = (all[key] ?? 0) + value;
      return Object.entries(all);
    };
    ready.set(figures.ready ? 1 : 0);
    height.set(figures.headHeight);
    for (const [transport, count] of merged(({ byTransport }) => byTransport)) connections.set(count, { transport });
    for (const [service, count] of merged(({ byService }) => byService)) mining.set(count, { service });
    farms.set(sum((listener) => listener.farms));
    farmRigs.set(sum((listener) => listener.farmRigs));
    for (const { name: node, healthy } of figures.nodes) nodes.set(healthy ? 1 : 0, { node });
    verifying.set(sum((listener) => listener.verifying));
    fanOut.set(Math.max(0, ...listeners.map(({ fanOutMillis }) => fanOutMillis)) / 1_000);
    bans.set(figures.bans);
    opened.set(sum((listener) => listener.opened));
    turnedAway.set(sum((listener) => listener.refusedConnections));
    for (const [reason, count] of merged((listener) => listener.closed)) closed.set(count, { reason });
    for (const [code, count] of merged((listener) => listener.answers)) refused.set(count, { code });
    sent.set(sum((listener) => listener.jobsSent));
    skipped.set(sum((listener) => listener.jobsSkipped));
    published.set(figures.templates.published);
    const { newest, older, meanAge } = figures.templates.anchors;
    anchors.set(newest, { anchor: 'newest' });
    anchors.set(older, { anchor: 'older' });
    anchorAge.set(meanAge);
    kept.set(figures.templates.kept.kept);
    keptBytes.set(figures.templates.kept.bytes);
    const { found, accepted, late, refused: turned, paid, expired } = figures.blocks;
    for (const [state, count] of Object.entries({ found, accepted, late, refused: turned, paid, expired }))
      blocks.set(count, { state });
  };
}
