/**
 * `npm run bench -- session [NETWORK] [SECONDS] [CUDA_PROGRAM|-] [initial-work=N] [cut-millis=N] [proxy=SHARES_A_SECOND] [miner options]`: node, bridge and `svc-miner` as the three
 * processes that they are, on a chain of their own; with `proxy=` an `svc-proxy` between bridge and miner, which sends so many shares. Counted are the hashes that the miner did and the work that the bridge
 * credited for them. On `testnet` (the default) the bridge verifies with the 2 GiB dataset. With the compiled yardstick
 * (nvcc -O3 -arch=sm_90 -o pow-cuda test/bench/pow.cu) CUDA runs before and after the session.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cacheFromSeed } from '../../kernels/gpu/cache.ts';
import { ADDRESS_PAYLOAD_BYTES, formatAddress } from '../../protocol/address.ts';
import { datasetSeed, powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { until } from '../until.ts';
import { type Bench, bench } from './harness.ts';
import { runCuda } from './pow-gpu.ts';

const ROOT = join(import.meta.dirname, '../..');
/** About a block a second of a card with 500 MH/s, so that block work limits no share. */
const INITIAL_WORK = { testnet: 500_000_000, development: 2_000_000 } as const;
const CLOCK_TICKS_PER_SECOND = 100;

type MinerStats = {
  readonly hash_rate: { readonly '60s': number | null };
  readonly shares: Record<'accepted' | 'stale' | 'rejected' | 'lost' | 'bad', number>;
  readonly accepted_work: string;
  readonly devices: readonly { readonly name: string; readonly hashes: number }[];
};
type BridgeStats = {
  readonly ready: boolean;
  readonly shares: { readonly accepted: number; readonly work: string };
  readonly blocks: Record<string, number>;
};
type ProxyStats = { readonly ready: boolean; readonly pool: unknown; readonly passed_on: unknown };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

class Processes {
  readonly #folder = mkdtempSync(join(tmpdir(), 'session-'));
  readonly #children: ChildProcess[] = [];
  /** The program that ended by itself. */
  #failed: string | undefined;

  path(name: string): string {
    return join(this.#folder, name);
  }

  start(program: 'node' | 'bridge' | 'proxy' | 'miner', words: readonly string[]): ChildProcess {
    const child = spawn(
      process.execPath,
      [join(ROOT, program, 'main.ts'), ...words, '--log-file', this.path(`${program}.log`)],
      { cwd: this.#folder, stdio: ['ignore', 'ignore', 'inherit'] },
    );
    child.once('exit', (code) => {
      if (code === 0 || code === null) return;
      this.#failed = program;
      process.stderr.write(`${program} ended with ${code}\n${this.log(program)}\n`);
    });
    this.#children.push(child);
    return child;
  }

  /** Looks until there is something, as long as all programs run. */
  seen<T>(what: string, seconds: number, look: () => Promise<T | undefined>): Promise<T> {
    const attempt = () => {
      if (this.#failed !== undefined) throw new Error(`${this.#failed} ended while ${what} was waited for`);
      return look().catch(() => undefined);
    };
    return until(attempt, { millis: seconds * 1000, everyMillis: 100, why: () => what });
  }

  log(program: string): string {
    return readFileSync(this.path(`${program}.log`), 'utf8').slice(-4_000);
  }

  async end(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await Promise.race([ended, sleep(20_000, undefined, { ref: false })]);
    child.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    for (const child of this.#children.reverse()) await this.end(child);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function read<T>(url: string): Promise<T> {
  return (await (await fetch(url, { signal: AbortSignal.timeout(5_000) })).json()) as T;
}

/** Seconds of processor time that a process has used, by the kernel's count. */
function processorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

async function cuda(b: Bench, program: string | undefined, network: 'testnet' | 'development') {
  if (program === undefined || program === '-') return undefined;
  const parameters = powParameters(NETWORKS[network]);
  const folder = mkdtempSync(join(tmpdir(), 'session-cuda-'));
  writeFileSync(join(folder, 'cache'), await cacheFromSeed(parameters, datasetSeed(parameters.networkId, 0)));
  return {
    rate: () => runCuda(program, join(folder, 'cache'), 2, (line) => b.note(line)),
    end: () => rmSync(folder, { recursive: true }),
  };
}

export default bench('node, bridge and svc-miner together: hashes done and work credited', async (b) => {
  const [network = 'testnet', seconds = '300', program, ...rest] = b.words;
  const ofChain = (name: string): string | undefined =>
    rest.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const words = rest.filter((word) => !/^(initial-work|cut-millis|proxy)=/.test(word));
  if (network !== 'testnet' && network !== 'development')
    throw new Error(`'${network}' is neither testnet nor development`);
  const yardstick = await cuda(b, program, network);
  const before = await yardstick?.rate();
  const processes = new Processes();
  try {
    const ports = { mining: 0, stratum: 0, stats: 0, proxy: 0, proxyStats: 0, miner: 0 };
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort();
    const address = formatAddress(new Uint8Array(ADDRESS_PAYLOAD_BYTES).fill(7).fill(0, 0, 1), network);
    const genesis = ['--development-validators', '4', '--fund', `${address}=16000000`];
    execFileSync(process.execPath, [
      join(ROOT, 'node/main.ts'),
      'genesis',
      '--network',
      network,
      '--out',
      processes.path('genesis.json'),
      ...genesis,
      '--initial-work',
      ofChain('initial-work') ?? String(INITIAL_WORK[network]),
    ]);
    processes.start('node', [
      'run',
      '--network',
      network,
      '--genesis',
      processes.path('genesis.json'),
      '--data-dir',
      processes.path('node'),
      '--api-bind',
      'off',
      '--mining-bind',
      `127.0.0.1:${ports.mining}`,
      '--pow-mode',
      'light',
      '--p2p',
      'off',
      '--cut-millis',
      ofChain('cut-millis') ?? '2500',
    ]);
    processes.start('bridge', [
      '--network',
      network,
      '--node',
      `http://127.0.0.1:${ports.mining}`,
      '--data-dir',
      processes.path('bridge'),
      '--listen',
      `127.0.0.1:${ports.stratum}`,
      '--listen-ws',
      'off',
      '--metrics-bind',
      'off',
      '--stats-bind',
      `127.0.0.1:${ports.stats}`,
    ]);
    const began = performance.now();
    const bridgeStats = () => read<BridgeStats>(`http://127.0.0.1:${ports.stats}/v1/stats`);
    await processes.seen('the bridge', 600, async () => ((await bridgeStats()).ready ? true : undefined));
    b.figure('bridge ready after its start', (performance.now() - began) / 1_000, 's');
    const upstream = ofChain('proxy');
    const proxyStats = () => read<ProxyStats>(`http://127.0.0.1:${ports.proxyStats}/v1/stats`);
    if (upstream !== undefined) {
      processes.start('proxy', [
        '--pool',
        `stratum2+tcp://127.0.0.1:${ports.stratum}`,
        '--user',
        address,
        '--upstream-shares',
        upstream,
        // One rig sends at least as many.
        '--submit-rate',
        String(4 * Number(upstream)),
        '--no-check-books',
        '--data-dir',
        processes.path('proxy'),
        '--listen',
        `127.0.0.1:${ports.proxy}`,
        '--listen-ws',
        'off',
        '--metrics-bind',
        'off',
        '--stats-bind',
        `127.0.0.1:${ports.proxyStats}`,
      ]);
      await processes.seen('the proxy', 600, async () => ((await proxyStats()).ready ? true : undefined));
    }
    const started = performance.now();
    const miner = processes.start('miner', [
      '--pool',
      `stratum+tcp://127.0.0.1:${upstream === undefined ? ports.stratum : ports.proxy}`,
      '--user',
      `${address}.session`,
      '--data-dir',
      processes.path('miner'),
      '--api-bind',
      `127.0.0.1:${ports.miner}`,
      '--metrics-bind',
      'off',
      '--no-check-books',
      ...words,
    ]);
    const minerStats = () => read<MinerStats>(`http://127.0.0.1:${ports.miner}/v1/stats`);
    const hashes = (stats: MinerStats) => stats.devices.reduce((sum, device) => sum + device.hashes, 0);
    const first = await processes.seen('a share', 300, async () => {
      const stats = await minerStats();
      return stats.shares.accepted > 0 ? stats : undefined;
    });
    b.figure('first accepted share after the start', (performance.now() - started) / 1_000, 's');
    b.note(`device ${first.devices.map(({ name }) => name).join(', ')}`);
    // What is mined before the tenth second pays less: the share work still rises. A proxy asks for another after a minute.
    await sleep(upstream === undefined ? 10_000 : 75_000);
    const [from, fromBridge] = [await minerStats(), await bridgeStats()];
    const [fromCpu, fromAt] = [processorSeconds(miner.pid as number), performance.now()];
    await sleep(Number(seconds) * 1_000);
    const [to, toBridge] = [await minerStats(), await bridgeStats()];
    const took = (performance.now() - fromAt) / 1_000;
    const done = hashes(to) - hashes(from);
    const credited = Number(BigInt(toBridge.shares.work) - BigInt(fromBridge.shares.work));
    const shares = toBridge.shares.accepted - fromBridge.shares.accepted;
    const load = (processorSeconds(miner.pid as number) - fromCpu) / took;
    await processes.end(miner);
    const after = await yardstick?.rate();
    const best = before === undefined || after === undefined ? undefined : Math.max(before, after);
    if (best !== undefined) b.figure('cuda', best / 1e6, 'MH/s');
    const against = best === undefined ? undefined : { ratio: done / took / best, yardstick: 'CUDA' };
    b.figure('rate', done / took / 1e6, 'MH/s', against);
    b.figure('credited work per hash', credited / done, '');
    b.note(`one standard deviation of it: ${(1 / Math.sqrt(shares)).toFixed(4)} with ${shares} shares`);
    const found = Object.values(to.shares).reduce((sum, count) => sum + count, 0);
    b.figure('accepted, of the shares found', to.shares.accepted / found, '');
    b.figure('credited, from the start of the miner', Number(toBridge.shares.work) / hashes(to), '');
    for (const kind of ['stale', 'rejected', 'lost', 'bad'] as const) b.figure(kind, to.shares[kind], 'shares');
    b.figure('processor load of the miner', load, 'cores');
    if (upstream !== undefined)
      b.note(`proxy: ${JSON.stringify(await proxyStats().then(({ pool, passed_on }) => ({ pool, passed_on })))}`);
    b.note(`blocks ${JSON.stringify(toBridge.blocks)}`);
  } finally {
    await processes.stop();
    yardstick?.end();
  }
});
