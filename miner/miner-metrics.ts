/** The metrics `svc_miner_*`, set from a snapshot before each scrape. */
import type { Metrics } from '../runtime/metrics/metrics.ts';
import { minerState, type Snapshot } from './stats.ts';

const RESULTS = ['accepted', 'stale', 'rejected', 'lost', 'bad'] as const;
const WINDOWS = { short: '10s', medium: '60s', long: '15m' } as const;

export function addMinerMetrics(metrics: Metrics, snapshot: () => Snapshot): void {
  const gauge = <L extends string = never>(name: string, help: string, labels: readonly L[] = []) =>
    metrics.gauge<L>(`svc_miner_${name}`, { help, labels });
  const rate = gauge('hash_rate', 'Hashes per second by device and window', ['device', 'window']);
  const shares = gauge('shares', 'Shares since the start by device and result', ['device', 'result']);
  const hashes = gauge('hashes', 'Hashes since the start by device', ['device']);
  const up = gauge('device_up', '1 while the device searches', ['device']);
  const celsius = gauge('temperature_celsius', 'Temperature of a graphics card', ['device']);
  const watts = gauge('power_watts', 'Power of a graphics card', ['device']);
  const poolRate = gauge('pool_hash_rate', 'Hashes per second by the work of accepted shares');
  const connected = gauge('connected', '1 while a pool gives work');
  const latency = gauge('latency_seconds', 'Time a ping to the pool takes');
  const connections = gauge('connections', 'Connections opened since the start');
  const mining = gauge('mining', '1 while at least one device searches');
  const work = gauge('accepted_work', 'Work of accepted shares since the start, in hashes');
  const alarms = gauge(
    'books_alarms',
    "Times that the pool's books did not agree with its receipts, or those with its answers",
  );
  metrics.beforeScrape(() => {
    const now = snapshot();
    for (const device of now.devices) {
      const label = { device: String(device.number) };
      for (const key of Object.keys(WINDOWS) as (keyof typeof WINDOWS)[])
        rate.set(device.rates[key] ?? 0, { ...label, window: WINDOWS[key] });
      for (const result of RESULTS) shares.set(device.shares[result], { ...label, result });
      hashes.set(device.hashes, label);
      up.set(device.state === 'searching' ? 1 : 0, label);
      if (device.sensor?.celsius !== undefined) celsius.set(device.sensor.celsius, label);
      if (device.sensor?.watts !== undefined) watts.set(device.sensor.watts, label);
    }
    poolRate.set(now.poolRate ?? 0);
    connected.set(now.pool === undefined ? 0 : 1);
    latency.set((now.pool?.latencyMillis ?? 0) / 1_000);
    connections.set(now.connections);
    mining.set(minerState(now) === 'mining' ? 1 : 0);
    work.set(Number(now.acceptedWork));
    alarms.set(now.books?.alarms ?? 0);
  });
}
