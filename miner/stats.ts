/** The miner's statistics: one snapshot, from which come /v1/stats, the metrics and the status lines. */
import type { BooksFigures } from './books/pool-books.ts';
import type { PoolState } from './client/pool-client.ts';
import type { Reading } from './devices/sensors.ts';
import type { Refusal } from './miner-error.ts';
import type { DeviceState, ShareCounts } from './work/device.ts';
import { type Rates, showRate } from './work/hash-rate.ts';

export type DeviceSnapshot = {
  readonly number: number;
  readonly name: string;
  readonly kind: 'wasm' | 'webgpu';
  readonly state: DeviceState;
  readonly reason: string | undefined;
  readonly rates: Rates;
  /** Rates of each thread over 10 s, if the device has threads. */
  readonly threads: readonly (number | undefined)[];
  readonly hashes: number;
  readonly shares: Readonly<ShareCounts>;
  readonly sensor: Reading | undefined;
};

export type Snapshot = {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly network: string;
  readonly address: string;
  readonly worker: string;
  readonly paused: boolean;
  readonly pool: (PoolState & { readonly connectedSeconds: number }) | undefined;
  readonly pools: readonly string[];
  readonly connections: number;
  /** Until the next pool is tried; undefined while one is connected or being tried. */
  readonly nextTrySeconds: number | undefined;
  readonly lastRefusal: Refusal | undefined;
  readonly poolRate: number | undefined;
  readonly acceptedWork: bigint;
  /** Work of a share of the job at hand. */
  readonly shareWork: bigint | undefined;
  /** The highest rate over 10 s of all devices together. */
  readonly fastest: number | undefined;
  readonly blocks: number;
  /** Results of the watch over the pool's books; undefined without --check-books. */
  readonly books: BooksFigures | undefined;
  readonly devices: readonly DeviceSnapshot[];
};

/** Sum of the known values; undefined if there are none. */
export function totalRates(devices: readonly Pick<DeviceSnapshot, 'rates'>[]): Rates {
  const sum = (pick: (rates: Rates) => number | undefined): number | undefined => {
    const known = devices.map(({ rates }) => pick(rates)).filter((rate) => rate !== undefined);
    return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0);
  };
  return { short: sum((r) => r.short), medium: sum((r) => r.medium), long: sum((r) => r.long) };
}

export function totalShares(devices: readonly DeviceSnapshot[]): ShareCounts {
  const total: ShareCounts = { accepted: 0, stale: 0, rejected: 0, lost: 0, bad: 0 };
  for (const { shares } of devices)
    for (const key of Object.keys(total) as (keyof ShareCounts)[]) total[key] += shares[key];
  return total;
}

export function minerState(snapshot: Snapshot): 'mining' | 'paused' | 'connecting' | 'preparing' | 'stopped' {
  if (snapshot.paused) return 'paused';
  if (snapshot.devices.length > 0 && snapshot.devices.every(({ state }) => state === 'stopped')) return 'stopped';
  if (snapshot.devices.some(({ state }) => state === 'searching')) return 'mining';
  return snapshot.pool === undefined ? 'connecting' : 'preparing';
}

/** Accepted work per hash done, 1 on average. Null before the first hash. */
export function workPerHash({ acceptedWork, devices }: Snapshot): number | null {
  const hashes = devices.reduce((sum, device) => sum + device.hashes, 0);
  return hashes === 0 ? null : Number((Number(acceptedWork) / hashes).toFixed(5));
}

const rates = ({ short, medium, long }: Rates) => ({
  '10s': short ?? null,
  '60s': medium ?? null,
  '15m': long ?? null,
});

/** How much a device does with its power; undefined where its driver does not tell it. */
export function hashesPerJoule({ rates, sensor }: Pick<DeviceSnapshot, 'rates' | 'sensor'>): number | undefined {
  const rate = rates.medium ?? rates.short;
  if (rate === undefined || sensor?.watts === undefined || sensor.watts <= 0) return undefined;
  return Math.round(rate / sensor.watts);
}

/** The document of /v1/stats (docs/miner.md). Rates are hashes per second. */
export function statsDocument(snapshot: Snapshot): Record<string, unknown> {
  const { pool } = snapshot;
  return {
    version: snapshot.version,
    uptime_seconds: Math.floor(snapshot.uptimeSeconds),
    state: minerState(snapshot),
    network: snapshot.network,
    address: snapshot.address,
    worker: snapshot.worker,
    pool:
      pool === undefined
        ? null
        : {
            url: pool.endpoint,
            name: pool.poolName ?? null,
            server: pool.server,
            latency_millis: pool.latencyMillis === undefined ? null : Math.round(pool.latencyMillis),
            connected_seconds: Math.floor(pool.connectedSeconds),
          },
    pools: snapshot.pools,
    connections: snapshot.connections,
    last_error: snapshot.lastRefusal === undefined ? null : { ...snapshot.lastRefusal },
    hash_rate: { ...rates(totalRates(snapshot.devices)), pool: snapshot.poolRate ?? null },
    shares: totalShares(snapshot.devices),
    accepted_work: snapshot.acceptedWork.toString(),
    work_per_hash: workPerHash(snapshot),
    blocks: snapshot.blocks,
    books:
      snapshot.books === undefined
        ? null
        : {
            compared_slices: snapshot.books.compared,
            newest_slice: snapshot.books.newest,
            alarms: snapshot.books.alarms,
            proven_lists: snapshot.books.proven,
            unchecked_lists: snapshot.books.unchecked,
          },
    devices: snapshot.devices.map((device) => ({
      number: device.number,
      name: device.name,
      kind: device.kind,
      state: device.state,
      reason: device.reason ?? null,
      hash_rate: rates(device.rates),
      hashes: device.hashes,
      shares: device.shares,
      temperature_celsius: device.sensor?.celsius ?? null,
      power_watts: device.sensor?.watts ?? null,
      hashes_per_joule: hashesPerJoule(device) ?? null,
    })),
  };
}

export function shareText({ accepted, stale, rejected, lost, bad }: ShareCounts): string {
  const more = [
    [stale, 'stale'],
    [rejected, 'rejected'],
    [lost, 'lost'],
    [bad, 'bad'],
  ] as const;
  return `${accepted} accepted${more.map(([count, name]) => (count === 0 ? '' : `, ${count} ${name}`)).join('')}`;
}

function rateText({ short, medium, long }: Rates): string {
  return `${showRate(short)} (10 s)  ${showRate(medium)} (60 s)  ${showRate(long)} (15 min)`;
}

/** A few lines that read well in a terminal and in a file: one per device, one for all. */
export function statusLines(snapshot: Snapshot): string[] {
  const { devices, pool } = snapshot;
  const lines = devices.map((device) => {
    const { sensor } = device;
    const efficiency = hashesPerJoule(device);
    const heat = [
      sensor?.celsius === undefined ? [] : [`${sensor.celsius} °C`],
      sensor?.watts === undefined ? [] : [`${Math.round(sensor.watts)} W`],
      efficiency === undefined ? [] : [showRate(efficiency).replace('/s', '/J')],
    ].flat();
    const state =
      device.state === 'searching'
        ? ''
        : `  [${device.state}${device.reason === undefined ? '' : `: ${device.reason}`}]`;
    return `device ${device.number} ${device.name}: ${rateText(device.rates)}  ${shareText(device.shares)}${heat.map((h) => `  ${h}`).join('')}${state}`;
  });
  const where = pool === undefined ? 'no pool' : pool.endpoint;
  const latency = pool?.latencyMillis === undefined ? '' : `, ${Math.round(pool.latencyMillis)} ms`;
  const total = `total: ${rateText(totalRates(devices))}  max ${showRate(snapshot.fastest)}  at the pool ${showRate(snapshot.poolRate)}  ${shareText(totalShares(devices))}`;
  return [...lines, `${total}  [${minerState(snapshot)}, ${where}${latency}]`];
}

const THREADS_PER_LINE = 8;

/** The rate of every thread over 10 s, for a person who asks: a thread that shares its core is seen here. */
export const threadLines = ({ devices }: Snapshot): string[] =>
  devices.flatMap(({ number, threads }) =>
    threads.length < 2
      ? []
      : Array.from({ length: Math.ceil(threads.length / THREADS_PER_LINE) }, (_, i) => {
          const from = i * THREADS_PER_LINE;
          const some = threads.slice(from, from + THREADS_PER_LINE);
          return `device ${number} threads ${from}-${from + some.length - 1} (10 s): ${some.map(showRate).join('  ')}`;
        }),
  );
