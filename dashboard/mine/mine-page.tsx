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
import { count, duration, hashRate, MODES, percent, roundedCoins } from '../format.ts';
import { linkTo } from '../router.ts';
import { Figure, Placeholder } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { BooksWatched, storageOf } from './books-watched.tsx';
import { whyNot } from './consent.ts';
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
  if (device === 'webgpu' && !hasWebGpu()) words.push(word('mine.no_webgpu'));
  if (device === 'auto' && !hasWebGpu()) words.push(word('mine.uses_processor'));
  if (globalThis.crossOriginIsolated !== true) words.push(word('mine.not_isolated'));
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
        <h1>{word('mine.title')}</h1>
        <Placeholder error={connect.error} loading empty="" />
      </>
    );
  return (
    <>
      <h1>{word('mine.title')}</h1>
      <section class="card">
        <p>{word('mine.explained')}</p>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            void (wanted ? session.stop() : start());
          }}
        >
          <label class="grow">
            {word('mine.address')}
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
            {word('mine.worker')}
            <input
              value={settings.worker}
              readOnly={wanted}
              pattern="[A-Za-z0-9_.\-]{0,64}"
              title={word('mine.worker_rule')}
              onInput={(event) => change({ worker: event.currentTarget.value })}
            />
          </label>
          <label>
            {word('blocks.mode')}
            <select
              value={settings.service}
              disabled={wanted}
              onChange={(event) => change({ service: event.currentTarget.value as ServiceName })}
            >
              <option value="pplns">{MODES.pplns}</option>
              <option value="solo">{MODES.solo}</option>
            </select>
          </label>
          <label>
            {word('mine.device')}
            <select
              value={settings.device}
              disabled={wanted}
              onChange={(event) => change({ device: event.currentTarget.value as Device })}
            >
              <option value="auto">{word('mine.auto')}</option>
              <option value="webgpu">{word('mine.webgpu')}</option>
              <option value="wasm">{word('mine.wasm')}</option>
              <option value="light">{word('mine.light')}</option>
            </select>
          </label>
          <label>
            {word('mine.threads')}
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
            {word('mine.time', { part: percent(settings.throttle) })}
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
              {word('mine.when_hidden')}
            </label>
            <label class="inline">
              <input
                type="checkbox"
                checked={settings.onBattery}
                onChange={(event) => change({ onBattery: event.currentTarget.checked })}
              />
              {word('mine.on_battery')}
            </label>
            <label class="inline">
              <input
                type="checkbox"
                checked={agreed}
                disabled={wanted}
                onChange={(event) => setAgreed(event.currentTarget.checked)}
              />
              {word('mine.agree')}
            </label>
          </div>
          <button type="submit" class="primary" disabled={!wanted && (!agreed || settings.address.trim() === '')}>
            {word(wanted ? 'mine.stop' : 'mine.start')}
          </button>
        </form>
        {missing(settings.device).map((words) => (
          <p key={words} class="warn">
            {words}
          </p>
        ))}
        <div role="status">
          {wanted && !decision.mine ? <p>{whyNot(decision.why)}</p> : null}
          {wanted && stats?.notice !== undefined ? <p class="warn">{stats.notice}</p> : null}
          {wanted || summary === undefined ? null : (
            <p>
              {word('mine.summary', {
                time: duration(summary.seconds),
                accepted: count(summary.accepted),
                stale: count(summary.stale),
                rejected: count(summary.rejected),
              })}{' '}
              <a href={linkTo('miner', settings.address.trim())}>{word('mine.your_figures')}</a>
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
            {word(progress.secondsLeft === undefined ? 'mine.preparing' : 'mine.preparing_left', {
              stage: word(`mine.stage_${progress.stage}`),
              time: duration(progress.secondsLeft ?? 0),
            })}
            <progress max={progress.total} value={progress.done} />
          </label>
        </section>
      )}
      <div class="grid">
        <Figure
          label={stats.device || word('mine.device')}
          value={<span data-testid="rate">{hashRate(rate)}</span>}
          note={
            stats.connected
              ? word('mine.connected', {
                  time: stats.latencyMillis === undefined ? '–' : Math.round(stats.latencyMillis),
                })
              : word('mine.not_connected')
          }
        />
        <Figure
          label={word('mine.accepted')}
          value={<span data-testid="accepted">{count(stats.accepted)}</span>}
          note={word('mine.others', { stale: count(stats.stale), rejected: count(stats.rejected) })}
        />
        <Figure
          label={word('miner.earns')}
          value={perDay === undefined ? '–' : roundedCoins(perDay)}
          note={word(perDay === undefined ? 'mine.once_known' : 'mine.a_day')}
        />
        <Figure
          label={word('mine.by_pool')}
          value={stats.poolRate === undefined ? '–' : hashRate(stats.poolRate)}
          note={word(stats.poolRate === undefined ? 'mine.after_shares' : 'mine.from_shares')}
        />
      </div>
      <BooksWatched books={stats.books} />
      <section class="card">
        <h2>{word('chart.rate')}</h2>
        {points.filter(({ value }) => value !== null).length < 2 ? (
          <p class="note">{word('mine.measuring')}</p>
        ) : (
          <Chart points={points} label={word('mine.chart')} />
        )}
        <p>
          <a href={linkTo('miner', address.trim())}>{word('mine.your_figures')}</a>
        </p>
      </section>
    </>
  );
}
