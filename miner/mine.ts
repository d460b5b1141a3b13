/**
 * `svc-miner` itself: reads its options, lists or measures devices, or mines until it is stopped. Exit codes are in
 * EXIT and in docs/miner.md.
 */
import { formatUsername } from '../protocol/stratum/username.ts';
import { monotonicMillis, wallMillis } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/watched-clock.ts';
import { parseCommandLine, showListenAddress, UsageError } from '../runtime/command-line/command-line.ts';
import { claimFormat } from '../runtime/files/directory-format.ts';
import { makeDirectory } from '../runtime/files/make-directory.ts';
import { type Logger, type OpenLog, openLog, standardErrorSink } from '../runtime/log/log.ts';
import { addProcessMetrics, Metrics } from '../runtime/metrics/metrics.ts';
import { listenForMetrics } from '../runtime/metrics/metrics-listener.ts';
import { type Command, command, mistakeText, refuse, type Terminal, version } from '../runtime/program.ts';
import { DEFAULT_SHUTDOWN_LIMIT_MS, Shutdown } from '../runtime/shutdown.ts';
import { listenForApi } from './api.ts';
import { followConfig } from './config-watch.ts';
import { benchmark, benchmarkLines } from './devices/benchmark.ts';
import { chooseDevices, findGpus, type ListedDevice, listDevices } from './devices/device-list.ts';
import { openDevice } from './devices/open-device.ts';
import { TuningFile } from './devices/tuning-file.ts';
import { Miner, type MinerSettings } from './miner.ts';
import { MinerError } from './miner-error.ts';
import { addMinerMetrics } from './miner-metrics.ts';
import { realParts } from './miner-parts.ts';
import { defaultDataDir, type MinerValues, minerCommand } from './options.ts';
import { poolSettings } from './pool-settings.ts';
import { statsDocument, statusLines, threadLines } from './stats.ts';
import { type KeyInput, keysText, listenForKeys } from './terminal/keys.ts';
import { ProgressLine } from './terminal/progress-line.ts';
import {
  BottomLine,
  bannerLines,
  connectionLines,
  liveLine,
  paintFor,
  shareLines,
  shortLine,
  summaryLines,
  type Tag,
  taggedLine,
} from './terminal/terminal-view.ts';

export const EXIT = {
  /** Ended as asked: key q, a signal, or a finished --benchmark or --list-devices. */
  done: 0,
  /** Something failed that should not. */
  failed: 1,
  /** The command line or the config file is wrong. */
  usage: 2,
  /** No device can mine, or all of them were stopped. */
  noDevice: 3,
} as const;

export type MineDependencies = {
  readonly input: KeyInput;
  readonly isTerminal: boolean;
  /** Whether people read standard error, where the log goes, in a terminal. */
  readonly logsToTerminal?: boolean;
  /** Current width of the terminal. */
  readonly columns?: () => number;
};

const LIVE_MILLIS = 1_000;

/** As command() of runtime/program.ts, but it keeps the words: a changed config file is read with them again. */
export function mineCommand(dependencies: MineDependencies): Command {
  return {
    spec: minerCommand,
    async start(words, terminal) {
      let configPath: string | undefined;
      const readText = (path: string): string => {
        configPath = path;
        return terminal.readText(path);
      };
      const parse = () => parseCommandLine(minerCommand, words, readText);
      const parsed = parse();
      if (parsed.kind !== 'run') return await command(minerCommand, () => EXIT.done).start(words, terminal);
      const { values } = parsed;
      const lacks = (message: string, remedy: string): number =>
        refuse('svc-miner', new UsageError('usage_option_missing', message, remedy), terminal);
      const isMining = !values.listDevices && values.benchmark === undefined;
      if (isMining && values.pool.length === 0) return lacks('no pool is named', 'add -o stratum+tcp://HOST:PORT');
      if (isMining && values.user === undefined) return lacks('no address is named', 'add -u ADDRESS.WORKER');
      const bottom = new BottomLine(terminal.out);
      const log = openLog(
        'miner',
        values,
        terminal.env,
        {
          ...standardErrorSink,
          write: (line) => bottom.above(() => standardErrorSink.write(line)),
        },
        dependencies.logsToTerminal === true ? shortLine(paintFor(true, terminal.env)) : undefined,
      );
      try {
        if (values.listDevices) return await showDevices(values, terminal);
        if (values.benchmark !== undefined)
          return await measure(values, values.benchmark, terminal, log.log, dependencies);
        return await mine(values, { configPath, parse, terminal, log, bottom, ...dependencies });
      } catch (error) {
        return refused(error, terminal);
      } finally {
        log.close();
      }
    },
  };
}

/** Says what the user can put right, and gives the exit code. */
function refused(error: unknown, terminal: Terminal): number {
  const says = mistakeText(error);
  if (says === undefined) throw error;
  terminal.err(`svc-miner: ${says}\n`);
  const { code } = error as { code?: unknown };
  return code === 'device_unknown' ? EXIT.usage : code === 'device_none' ? EXIT.noDevice : EXIT.failed;
}

async function showDevices(values: MinerValues, terminal: Terminal): Promise<number> {
  const { gpus, why } = values.gpu ? await findGpus() : { gpus: [], why: '--no-gpu' };
  const listed = listDevices(gpus);
  if (values.json) {
    terminal.out(`${JSON.stringify({ devices: listed, no_gpu_because: why ?? null })}\n`);
    return EXIT.done;
  }
  for (const device of listed) {
    const notes =
      device.kind === 'wasm'
        ? `processor, ${device.threads} threads`
        : `graphics card${device.software ? ', played by the processor' : ''}${device.count > 1 ? `, ${device.count} of one name: only the first can be opened` : ''}`;
    terminal.out(`${device.number}  ${device.name}  (${notes})\n`);
  }
  if (why !== undefined) terminal.out(`no graphics card: ${why}\n`);
  return EXIT.done;
}

async function findDevices(values: MinerValues, log: Logger): Promise<ListedDevice[]> {
  const { gpus, why } = values.gpu ? await findGpus() : { gpus: [], why: undefined };
  if (why !== undefined)
    log.info('no graphics card: without the Vulkan driver of a card only the processor mines', { reason: why });
  const chosen = chooseDevices(listDevices(gpus), values);
  if (chosen.length === 0) throw new MinerError('device_none', 'no device is left to mine with: see --list-devices');
  for (const device of chosen)
    if (device.kind === 'webgpu' && device.count > 1)
      log.warn('graphics cards of one name: only the first is used', { name: device.name, cards: device.count });
  return chosen;
}

async function openTunings(values: MinerValues): Promise<{ dataDir: string; tunings: TuningFile }> {
  const dataDir = values.dataDir ?? defaultDataDir();
  makeDirectory(dataDir);
  await claimFormat(dataDir, 'miner');
  const tunings = new TuningFile(dataDir);
  if (values.retune) tunings.forget();
  return { dataDir, tunings };
}

async function measure(
  values: MinerValues,
  seconds: number,
  terminal: Terminal,
  log: Logger,
  { isTerminal }: MineDependencies,
): Promise<number> {
  const devices = await findDevices(values, log);
  const { dataDir, tunings } = await openTunings(values);
  const { network, light, unsafeGpu } = values;
  // Progress goes to standard error, so that --json stays JSON.
  const progress = new ProgressLine({ isTerminal }, { out: terminal.err, now: monotonicMillis });
  const figures = await benchmark(
    { network, seconds, jobMillis: values.benchmarkJobs },
    devices.map((device) => ({
      number: device.number,
      name: device.name,
      open: (events) =>
        openDevice(device, { network, light, unsafeGpu, dataDir, timed: true }, { log, tunings }, events),
    })),
    (device, state) => progress.show(device, state),
  );
  if (values.json) terminal.out(`${JSON.stringify(figures)}\n`);
  else for (const line of benchmarkLines(figures)) terminal.out(`${line}\n`);
  return EXIT.done;
}

type Run = MineDependencies & {
  readonly configPath: string | undefined;
  readonly parse: () => ReturnType<typeof parseCommandLine<typeof minerCommand.options>>;
  readonly terminal: Terminal;
  readonly log: OpenLog;
  readonly bottom: BottomLine;
};

const settingsOf = async (values: MinerValues, dataDir: string, log: Logger): Promise<MinerSettings> => ({
  values,
  ...poolSettings(values),
  devices: await findDevices(values, log),
  dataDir,
});

async function mine(values: MinerValues, run: Run): Promise<number> {
  const { log } = run.log;
  const shutdown = new Shutdown({ limitMs: DEFAULT_SHUTDOWN_LIMIT_MS }, { log, process, now: monotonicMillis });
  return await shutdown.run(
    () => begin(values, shutdown, run),
    (error) => refused(error, run.terminal),
  );
}

async function begin(
  values: MinerValues,
  shutdown: Shutdown,
  { configPath, parse, terminal, log: { log }, bottom, input, isTerminal, logsToTerminal, columns = () => 80 }: Run,
): Promise<void> {
  shutdown.add('clock', watchClock(log.child('clock')).stop);
  const { dataDir, tunings } = await openTunings(values);
  const settings = await settingsOf(values, dataDir, log);
  shutdown.signal.throwIfAborted();
  const now = monotonicMillis;
  const progress = new ProgressLine(
    { isTerminal },
    {
      out: (text) => {
        bottom.clear();
        terminal.out(text);
      },
      now,
    },
  );
  const miner = new Miner(settings, {
    parts: realParts(),
    log,
    progress,
    tunings,
    version: version(),
    now,
    wall: wallMillis,
    onNoDevice: () => shutdown.request('no device is left', EXIT.noDevice),
  });
  const say = (lines: readonly string[]): void =>
    bottom.above(() => {
      progress.break();
      for (const line of lines) terminal.out(`${line}\n`);
    });
  // After the miner's end: shares that are not answered then are counted as lost.
  shutdown.add('summary', () => say(summaryLines(miner.snapshot())));
  shutdown.add('miner', () => miner.stop());
  const pools = values.pool.map(({ text }) => text);
  const devices = settings.devices.map(({ number, name }) => `${number}: ${name}`);
  const { text: address, worker } = settings.user;
  const { network } = settings.user.address;
  const paint = paintFor(isTerminal, terminal.env);
  if (isTerminal)
    say(bannerLines({ version: version(), pools, user: formatUsername(address, worker), network, devices }, paint));
  // The banner says the same.
  log[isTerminal && logsToTerminal === true ? 'debug' : 'info']('mining', { pools, address, worker, network, devices });
  miner.start();

  // In a file the lines are told apart by the log's own.
  const tell = (tag: Tag, lines: readonly string[]): void =>
    say(isTerminal ? lines.map((line) => taggedLine(Date.now(), tag, line, paint)) : lines);
  const status = (): void => tell('rate', statusLines(miner.snapshot()));
  const live = (): void => {
    if (!progress.isOpen) bottom.show(liveLine(miner.snapshot(), columns(), paint));
  };
  const liveTimer = isTerminal ? setInterval(live, LIVE_MILLIS) : undefined;
  shutdown.add('screen', () => {
    clearInterval(liveTimer);
    bottom.clear();
  });
  let statusTimer = setInterval(status, values.statusEvery);
  shutdown.add('status', () => clearInterval(statusTimer));
  const hashRate = (): void => {
    const snapshot = miner.snapshot();
    tell('rate', [...threadLines(snapshot), ...statusLines(snapshot)]);
  };
  shutdown.add(
    'keys',
    listenForKeys(input, {
      h: hashRate,
      p: () => miner.pause(),
      r: () => miner.resume(),
      s: () => tell('share', shareLines(miner.snapshot())),
      c: () => tell('pool', connectionLines(miner.snapshot())),
      q: () => shutdown.request('key q'),
      help: () => tell('miner', [`keys: ${keysText()}`]),
    }),
  );
  await listen(values, miner, shutdown, log);

  if (configPath !== undefined) {
    let current = values;
    const apply = async (news: MinerValues): Promise<void> => {
      await miner.apply(await settingsOf(news, dataDir, log));
      if (news.statusEvery !== current.statusEvery) {
        clearInterval(statusTimer);
        statusTimer = setInterval(status, news.statusEvery);
      }
      const fixed = (v: MinerValues) =>
        JSON.stringify([v.apiBind, v.apiToken, v.metricsBind, v.logFile, v.logLevel?.text, v.logFormat, v.dataDir]);
      if (fixed(current) !== fixed(news))
        log.warn('changes of api-bind, api-token, metrics-bind, data-dir and log options need a restart');
      current = news;
    };
    shutdown.add('config', followConfig(configPath, parse, apply, log));
  }
}

/** A second miner on the machine finds the ports taken: it mines nonetheless. */
async function listen(values: MinerValues, miner: Miner, shutdown: Shutdown, log: Logger): Promise<void> {
  const { apiBind, metricsBind, apiToken } = values;
  const open = async (
    what: string,
    address: typeof apiBind,
    start: () => Promise<{ address: { host: string; port: number }; close(): Promise<void> }>,
  ) => {
    if (address === 'off') return;
    try {
      const listener = await start();
      shutdown.add(what, () => listener.close());
      log.info(`${what} listening`, { address: showListenAddress(listener.address) });
    } catch (error) {
      log.warn(`${what} not listening`, { address: showListenAddress(address), error });
    }
  };
  const metrics = new Metrics('svc_miner');
  addProcessMetrics(metrics, version());
  addMinerMetrics(metrics, () => miner.snapshot());
  if (apiBind !== 'off')
    await open('api', apiBind, () =>
      listenForApi(apiBind, apiToken, {
        actions: {
          stats: () => statsDocument(miner.snapshot()),
          pause: () => miner.pause(),
          resume: () => miner.resume(),
        },
        log,
        hosts: values.hostName,
      }),
    );
  if (metricsBind !== 'off')
    await open('metrics', metricsBind, () => listenForMetrics(metricsBind, { metrics, log, hosts: values.hostName }));
}
