import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { addProcessMetrics, Metrics } from '../../runtime/metrics/metrics.ts';
import { listenForMetrics, METRICS_CONTENT_TYPE } from '../../runtime/metrics/metrics-listener.ts';
import { quietLog } from '../quiet-log.ts';

test('counters, gauges and histograms in the text format', async () => {
  const metrics = new Metrics('svc_node');
  const shares = metrics.counter('svc_node_shares_total', { help: 'Shares\nby result', labels: ['result'] });
  shares.add(2, { result: 'accepted' });
  shares.add(1, { result: 'a"b\\c\n' });
  metrics.gauge('svc_node_height', { help: 'Height' }).set(7);
  const seconds = metrics.histogram('svc_node_seconds', { help: 'Time', buckets: [0.1, 1], labels: ['kind'] });
  for (const value of [0.05, 0.1, 0.5, 3]) seconds.observe(value, { kind: 'x' });
  expect(await metrics.text()).toMatchInlineSnapshot(`
    "# HELP svc_node_metric_series_dropped_total Updates that went to the label value "other" because a metric has too many label values
    # TYPE svc_node_metric_series_dropped_total counter

    # HELP svc_node_shares_total Shares\\nby result
    # TYPE svc_node_shares_total counter
    svc_node_shares_total{result="accepted"} 2
    svc_node_shares_total{result="a\\"b\\\\c\\n"} 1

    # HELP svc_node_height Height
    # TYPE svc_node_height gauge
    svc_node_height 7

    # HELP svc_node_seconds Time
    # TYPE svc_node_seconds histogram
    svc_node_seconds_bucket{le="0.1",kind="x"} 2
    svc_node_seconds_bucket{le="1",kind="x"} 3
    svc_node_seconds_bucket{le="+Inf",kind="x"} 4
    svc_node_seconds_sum{kind="x"} 3.65
    svc_node_seconds_count{kind="x"} 4
    "
  `);
});

test('a scraper reads every line, and promtool too where it is installed', async () => {
  const metrics = new Metrics('svc_node');
  addProcessMetrics(metrics, '1.2.3');
  metrics.counter('svc_node_shares_total', { help: 'By result', labels: ['result'] }).add(1, { result: 'a"b\\c\n' });
  metrics.gauge('svc_node_height', { help: 'Height' }).set(Number.NaN);
  metrics.histogram('svc_node_step_seconds', { help: 'Time', buckets: [0.1, 1] }).observe(0.5);
  const text = await metrics.text();
  const label = String.raw`[a-z_]+="(?:[^"\\\n]|\\["\\n])*"`;
  const line = new RegExp(
    String.raw`^(?:# HELP \w+ .+|# TYPE \w+ (?:counter|gauge|histogram|summary)|\w+(?:\{${label}(?:,${label})*\})? (?:-?[\d.]+(?:e[+-]?\d+)?|[+-]Inf|Nan))$`,
    'i',
  );
  expect(text.split('\n').filter((entry) => entry !== '' && !line.test(entry))).toEqual([]);
  for (const name of ['process_cpu_seconds_total', 'nodejs_gc_duration_seconds', 'nodejs_eventloop_lag_p99_seconds'])
    expect(text).toContain(`# TYPE svc_node_${name} `);
  const promtool = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  if (promtool.error !== undefined) return;
  // 3 is its opinion on names (three of prom-client's own); a text that cannot be read is 1.
  expect([0, 3], promtool.stderr).toContain(promtool.status);
  expect(promtool.stderr).not.toMatch(/svc_node_(?!nodejs_)/);
});

test('a flood of label values ends in one series, and is counted', async () => {
  const metrics = new Metrics('svc_node');
  const counter = metrics.counter('svc_node_workers_total', { help: 'x', labels: ['worker'], maxSeries: 10 });
  for (let i = 0; i < 1_000; i++) counter.add(1, { worker: `w${i}` });
  const text = await metrics.text();
  expect(text.match(/^svc_node_workers_total\{/gm)?.length).toBe(11);
  expect(text).toContain('svc_node_workers_total{worker="other"} 990');
  expect(text).toContain('svc_node_metric_series_dropped_total{metric="svc_node_workers_total"} 990');
});

test.each(['svc_node', 'svc_bridge', 'svc_pool', 'svc_miner'] as const)(
  'every metric of a program begins with %s_, those about its process too',
  async (prefix) => {
    const metrics = new Metrics(prefix);
    addProcessMetrics(metrics, '1.2.3');
    const names = [...(await metrics.text()).matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
    expect(names).toContain(`${prefix}_build_info`);
    expect(names.filter((name) => !name?.startsWith(`${prefix}_`))).toEqual([]);
    expect(() => metrics.gauge('svc_height', { help: 'x' })).toThrow(/not valid/);
  },
);

test('misuse is a bug and throws', () => {
  const metrics = new Metrics('svc_node');
  const counter = metrics.counter('svc_node_a_total', { help: 'x' });
  expect(() => counter.add(-1)).toThrow(RangeError);
  expect(() => counter.add(Number.NaN)).toThrow(RangeError);
  expect(() => metrics.gauge('svc_node_a_total', { help: 'x' })).toThrow(/taken/);
  expect(() => metrics.gauge('svc_node_a-b', { help: 'x' })).toThrow(/not valid/);
});

test('the listener serves GET /metrics and nothing else', async () => {
  const metrics = new Metrics('svc_node');
  addProcessMetrics(metrics, '1.2.3');
  const listener = await listenForMetrics({ host: '127.0.0.1', port: 0 }, { metrics, log: quietLog });
  const base = `http://127.0.0.1:${listener.address.port}`;
  const answer = await fetch(`${base}/metrics?x=1`);
  expect(answer.headers.get('content-type')).toBe(METRICS_CONTENT_TYPE);
  expect(await answer.text()).toContain('svc_node_build_info{version="1.2.3"} 1');
  expect(await metrics.text()).toContain('svc_node_client_faults_total 0\n');
  expect((await fetch(`${base}/`)).status).toBe(404);
  expect((await fetch(`${base}/metrics`, { method: 'POST' })).status).toBe(405);
  await expect(listenForMetrics(listener.address, { metrics, log: quietLog })).rejects.toThrow(
    /^cannot listen on 127\.0\.0\.1:\d+ for metrics: another program listens there already: stop it, or choose another port$/,
  );
  await listener.close();
  await expect(fetch(`${base}/metrics`)).rejects.toThrow();
});
