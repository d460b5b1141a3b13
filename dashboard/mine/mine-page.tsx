/** Mining in the browser: consent first, a visible switch, a throttle, and plain words when something is missing. */
import { useState } from 'preact/hooks';
import { hasWebGpu, type PageMinerStats } from '../../miner/browser/page-miner.ts';
import type { ConnectDocument, PoolDocument, ServiceName } from '../../pool/api/documents.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { MakeAddress } from '../address/make-address.tsx';
import { Chart } from '../chart/chart.tsx';
import type { Point } from '../chart/chart-points.ts';
import { useDocument } from '../data/hooks.ts';
import { checkNode, nodeReads } from '../data/node.ts';
import { usePace } from '../data/pace.ts';
import { earnedPerDay } from '../earnings.ts';
import { count, duration, hashRate, percent, roundedCoins } from '../format.ts';
import { linkTo } from '../router.ts';
import { Figure, Placeholder } from '../view/parts.tsx';
import { BooksWatched, storageOf } from './books-watched.tsx';
import { WHY_NOT } from './consent.ts';
import { miningSession, useMiningSession } from './mining-session.ts';

type Device = 'auto' | 'webgpu' | 'wasm' | 'light';
type Settings = {
  readonly address: string;
  readonly worker: string;
  readonly service: ServiceName;
  readonly device: Device;
  readonly threads: number;
  readonly throttle: number;
  readonly whenHidden: boolean;
  readonly onBattery: boolean;
};

const CORES = navigator.hardwareConcurrency || 2;
const KEPT = 'svc-page-miner';

function initial(): Settings {
  const base: Settings = {
    address: '',
    worker: 'browser',
    service: 'pplns',
    device: 'auto',
    threads: Math.max(1, Math.floor(CORES / 2)),
    throttle: 0.5,
    whenHidden: false,
    onBattery: false,
  };
  try {
    return { ...base, ...(JSON.parse(localStorage.getItem(KEPT) ?? '{}') as Partial<Settings>) };
  } catch {
    return base;
  }
}

function keep(settings: Settings): void {
  try {
    localStorage.setItem(KEPT, JSON.stringify(settings));
  } catch {
    // Nothing is kept, nothing is lost.
  }
}

/** What this browser lacks, in words, before anyone presses the button. */
export function missing(device: Device): string[] {
  const words: string[] = [];
  if (device === 'webgpu' && !hasWebGpu())
    words.push('This browser does not support WebGPU: choose the processor, or use a browser with WebGPU enabled.');
  if (device === 'auto' && !hasWebGpu()) words.push('No WebGPU in this browser: the processor will be used.');
  if (globalThis.crossOriginIsolated !== true)
    words.push(
      'This page is not cross-origin isolated, so only one processor thread can be used. A proxy may have removed its headers.',
    );
  return words;
}

export function MinePage() {
  const connect = useDocument<ConnectDocument>('connect', 600_000);
  const pool = useDocument<PoolDocument>('pool', 60_000);
  const [settings, setSettings] = useState(initial);
  const [agreed, setAgreed] = useState(false);
  const { wanted, decision, stats, problem, points, summary } = useMiningSession();
  const session = miningSession();
  const feePpm = pool.data?.services.find(({ service }) => service === settings.service)?.fee_ppm ?? 0;

  const change = (values: Partial<Settings>) => {
    const next = { ...settings, ...values };
    setSettings(next);
    keep(next);
    session.setWishes(next);
  };

  const start = async () => {
    const path = connect.data?.services.find((one) => one.service === settings.service)?.websocket_path;
    if (path === undefined) return;
    const url = new URL(path, document.baseURI);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    session.setWishes(settings);
    await session.start({
      url: url.href,
      address: settings.address.trim(),
      worker: settings.worker.trim(),
      device: settings.device === 'light' ? 'wasm' : settings.device,
      light: settings.device === 'light',
      threads: settings.threads,
      throttle: settings.throttle,
      books: {
        api: new URL('.', document.baseURI).href,
        storage: storageOf(),
        node: checkNode() === '' ? null : nodeReads(checkNode()),
      },
    });
  };

  if (connect.data === undefined)
    return (
      <>
        <h1>Mine in this browser</h1>
        <Placeholder error={connect.error} loading empty="" />
      </>
    );
  return (
    <>
      <h1>Mine in this browser</h1>
      <section class="card">
        <p>
          This uses your graphics card or processor, and so your electricity. It starts only when you press the button,
          stops when you press it again or close the tab, and pays the address you enter. You can open other pages of
          this site meanwhile. On the main network the first start builds a dataset of 2 GiB; light mode needs 64 MiB
          and is much slower.
        </p>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            void (wanted ? session.stop() : start());
          }}
        >
          <label class="grow">
            Your payout address
            <input
              required
              spellcheck={false}
              aria-describedby="mine-problem"
              value={settings.address}
              readOnly={wanted}
              onInput={(event) => change({ address: event.currentTarget.value })}
            />
          </label>
          <label>
            Worker name
            <input
              value={settings.worker}
              readOnly={wanted}
              pattern="[A-Za-z0-9_.\-]{0,64}"
              title="Letters, digits, _ . -; at most 64"
              onInput={(event) => change({ worker: event.currentTarget.value })}
            />
          </label>
          <label>
            Mode
            <select
              value={settings.service}
              disabled={wanted}
              onChange={(event) => change({ service: event.currentTarget.value as ServiceName })}
            >
              <option value="pplns">PPLNS</option>
              <option value="solo">Solo</option>
            </select>
          </label>
          <label>
            Device
            <select
              value={settings.device}
              disabled={wanted}
              onChange={(event) => change({ device: event.currentTarget.value as Device })}
            >
              <option value="auto">choose for me</option>
              <option value="webgpu">graphics card (WebGPU)</option>
              <option value="wasm">processor</option>
              <option value="light">processor, light mode</option>
            </select>
          </label>
          <label>
            Threads
            <input
              type="number"
              min={1}
              max={CORES}
              value={settings.threads}
              readOnly={wanted}
              onInput={(event) => change({ threads: Number(event.currentTarget.value) || 1 })}
            />
          </label>
          <label>
            Time spent mining: {percent(settings.throttle)}
            <input
              type="range"
              min={0.05}
              max={1}
              step={0.05}
              value={settings.throttle}
              onInput={(event) => {
                const throttle = Number(event.currentTarget.value);
                change({ throttle });
                session.setThrottle(throttle);
              }}
            />
          </label>
          <div class="row full">
            <label class="inline">
              <input
                type="checkbox"
                checked={settings.whenHidden}
                onChange={(event) => change({ whenHidden: event.currentTarget.checked })}
              />
              keep mining while the tab is hidden
            </label>
            <label class="inline">
              <input
                type="checkbox"
                checked={settings.onBattery}
                onChange={(event) => change({ onBattery: event.currentTarget.checked })}
              />
              keep mining on battery
            </label>
            <label class="inline">
              <input
                type="checkbox"
                checked={agreed}
                disabled={wanted}
                onChange={(event) => setAgreed(event.currentTarget.checked)}
              />
              I agree that this page may mine on my machine
            </label>
          </div>
          <button type="submit" class="primary" disabled={!wanted && (!agreed || settings.address.trim() === '')}>
            {wanted ? 'Stop mining' : 'Start mining'}
          </button>
        </form>
        {missing(settings.device).map((words) => (
          <p key={words} class="warn">
            {words}
          </p>
        ))}
        <div role="status">
          {wanted && !decision.mine ? <p>{WHY_NOT[decision.why]}</p> : null}
          {wanted && stats?.notice !== undefined ? <p class="warn">{stats.notice}</p> : null}
          {wanted || summary === undefined ? null : (
            <p>
              Mined for {duration(summary.seconds)}: {count(summary.accepted)} shares accepted, {count(summary.stale)}{' '}
              stale, {count(summary.rejected)} rejected.{' '}
              <a href={linkTo('miner', settings.address.trim())}>Your figures at the pool</a>
            </p>
          )}
        </div>
        {(problem ?? stats?.problem) === undefined ? null : (
          <p id="mine-problem" class="bad" role="alert">
            {problem ?? stats?.problem}
          </p>
        )}
      </section>
      {wanted || pool.data === undefined ? null : (
        <MakeAddress network={pool.data.network as NetworkName} onAddress={(address) => change({ address })} />
      )}
      {stats === undefined || !wanted ? null : (
        <Running stats={stats} points={points} address={settings.address} feePpm={feePpm} />
      )}
    </>
  );
}

type RunningParts = {
  readonly stats: PageMinerStats;
  readonly points: readonly Point[];
  readonly address: string;
  readonly feePpm: number;
};

function Running({ stats, points, address, feePpm }: RunningParts) {
  const { progress } = stats;
  const pace = usePace();
  const rate = stats.rates.short ?? 0;
  const perDay = pace === undefined || rate === 0 ? undefined : earnedPerDay(rate, feePpm, pace);
  return (
    <>
      {progress === undefined ? null : (
        <section class="card">
          <label>
            Preparing ({progress.stage}
            {progress.secondsLeft === undefined ? '' : `, ${duration(progress.secondsLeft)} left`})
            <progress max={progress.total} value={progress.done} />
          </label>
        </section>
      )}
      <div class="grid">
        <Figure
          label={stats.device || 'Device'}
          value={<span data-testid="rate">{hashRate(rate)}</span>}
          note={
            stats.connected
              ? `connected, ${stats.latencyMillis === undefined ? '–' : Math.round(stats.latencyMillis)} ms`
              : 'not connected'
          }
        />
        <Figure
          label="Shares accepted"
          value={<span data-testid="accepted">{count(stats.accepted)}</span>}
          note={`${count(stats.stale)} stale, ${count(stats.rejected)} rejected`}
        />
        <Figure
          label="Earns about"
          value={perDay === undefined ? '–' : roundedCoins(perDay)}
          note={perDay === undefined ? 'once the rate is known' : 'coins a day, on average'}
        />
        <Figure
          label="Measured by the pool"
          value={stats.poolRate === undefined ? '–' : hashRate(stats.poolRate)}
          note={stats.poolRate === undefined ? 'after a few shares' : 'from your shares'}
        />
      </div>
      <BooksWatched books={stats.books} />
      <section class="card">
        <h2>Hash rate</h2>
        {points.filter(({ value }) => value !== null).length < 2 ? (
          <p class="note">Measuring…</p>
        ) : (
          <Chart points={points} label="Hash rate of this browser" />
        )}
        <p>
          <a href={linkTo('miner', address.trim())}>Your figures at the pool</a>
        </p>
      </section>
    </>
  );
}
