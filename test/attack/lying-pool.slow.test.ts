/**
 * A real svc-miner against every lie of lying-pool.ts, one after the other, with an honest pool at the end of its list: it never
 * works for another payout, reaches the honest pool, and stays within bounds of memory and log. Both wire forms.
 */
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { PoolClient, systemClock } from '../../miner/client/pool-client.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import { connectFromNode } from '../../miner/client/transport-node.ts';
import { PACE } from '../../miner/work/pace.ts';
import { parseAddress } from '../../protocol/address.ts';
import { equalBytes } from '../../protocol/bytes.ts';
import { MINER_ADDRESS, PoolFixture } from '../miner/pool-fixture.ts';
import { RunningMiner } from '../miner/running-miner.ts';
import { sessionOptions } from '../miner/session-options.ts';
import { until } from '../until.ts';
import { LIES, NUISANCES, openLies } from './lying-pool.ts';

const MEBIBYTE = 1 << 20;
/** Lies and the rule about them take no hashes. */
const QUIET = ['--no-gpu', '--cpu-threads', '1', '--throttle', '10', '--api-bind', 'off', '--metrics-bind', 'off'];
const words = (urls: readonly string[]): string[] => [
  ...urls.flatMap((url) => ['-o', url]),
  '-u',
  `${MINER_ADDRESS}.rig`,
  ...QUIET,
];

/** The most memory the process ever had, in bytes. */
const peakOf = ({ child }: RunningMiner): number =>
  1_024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);

async function honestPool(): Promise<PoolFixture> {
  const pool = await new PoolFixture({ shareWork: 5_000n }).listen();
  onTestFinished(() => pool.close());
  return pool;
}

async function lies(of: typeof LIES): Promise<Map<string, PoolFixture>> {
  const pools = await openLies(of);
  onTestFinished(async () => {
    for (const pool of pools.values()) await pool.close();
  });
  return pools;
}

test('every lie is left for the next pool, and nothing is mined for anybody else', async () => {
  const pools = await lies(LIES);
  const honest = await honestPool();
  const versions = [1, 2];
  const miners = versions.map(
    (version) => new RunningMiner(words([...pools.values(), honest].map(({ url }) => `${url}?protocol=v${version}`))),
  );
  const served = (version: number) =>
    honest.judged.filter(({ client, code }) => client.version === version && code === 0).length;
  await until(() => versions.every((version) => served(version) >= 2), {
    why: () => miners.map(({ err }) => err).join('\n'),
  });
  const own = parseAddress(MINER_ADDRESS).payload;
  for (const [name, pool] of pools) {
    expect({ name, connections: pool.connections >= versions.length }).toEqual({ name, connections: true });
    for (const { client, submit } of pool.judged) {
      const job = client.session?.jobs.get(submit.jobId);
      expect({ name, own: job !== undefined && equalBytes(job.payout, own) }).toEqual({ name, own: true });
    }
    // What was on its way when the miner left; a flood is ended, not read.
    expect({ name, sent: pool.mostSent < 16 * MEBIBYTE }).toEqual({ name, sent: true });
  }
  for (const miner of miners) {
    expect(miner.exit).toBeUndefined();
    expect(miner.err.split('\n').length).toBeLessThan(4 * pools.size + 20);
    expect(miner.err.length).toBeLessThan(64 * 1_024);
    expect(peakOf(miner)).toBeLessThan(700 * MEBIBYTE);
  }
});

test('the easiest target and one job for ever: few shares, few lines, bounded memory', async () => {
  const pools = [...(await lies(NUISANCES)).values()];
  const began = performance.now();
  const miners = pools.map(({ url }, i) => new RunningMiner(words([`${url}?protocol=v${i + 1}`])));
  await until(() => pools.every(({ judged }) => judged.length > PACE.burst));
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const seconds = (performance.now() - began) / 1_000;
  for (const pool of pools) {
    // Until the rate is known, a few steps with a burst each.
    expect(pool.judged.length).toBeLessThan(PACE.sharesPerSecond * seconds * 1.5 + 20 * PACE.burst);
  }
  for (const miner of miners) {
    expect(miner.exit).toBeUndefined();
    await miner.says('only the hardest shares are sent');
    expect(miner.err.length).toBeLessThan(8 * 1_024);
    expect(peakOf(miner)).toBeLessThan(700 * MEBIBYTE);
  }
});

function client(urls: readonly string[], loginMillis = 500): PoolClient {
  const made = new PoolClient(
    {
      pools: urls.map((url) => parsePoolUrl(url)),
      session: sessionOptions(),
      times: { tickMillis: 20, openMillis: loginMillis, loginMillis },
    },
    { onJob: () => undefined, onVerdict: () => undefined },
    { ...systemClock, connect: connectFromNode({ pins: ['00'.repeat(32)] }), note: () => undefined },
  );
  made.start();
  onTestFinished(() => made.stop());
  return made;
}

/** A server that knows nothing of the protocol; counts what it could send. */
async function rawServer(act: (socket: Socket) => void): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    act(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

const drip = (text: string) => (socket: Socket) => {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] as string), 20);
  socket.on('close', () => clearInterval(timer));
};

test.each([
  ['a TLS handshake that never goes on', 'stratum+tls', () => undefined],
  ['a TLS handshake byte by byte', 'stratum+tls', drip('\x16\x03\x03\x40\x00')],
  ['a line byte by byte', 'stratum+tcp', drip('{"jsonrpc":"2.0",        ')],
  ['a frame byte by byte', 'stratum2+tcp', drip('\xff\x0f\x10\x00')],
  ['an upgrade byte by byte', 'ws', drip('HTTP/1.1 101 Switching Protocols\r\nX: ')],
])('%s is left in time', async (_, scheme, act: (socket: Socket) => void) => {
  const honest = await honestPool();
  const port = await rawServer(act);
  const miner = client([`${scheme}://127.0.0.1:${port}`, honest.url]);
  await until(() => miner.state?.pool === 1);
});

test('pings of a WebSocket without end are left too', async () => {
  const honest = await honestPool();
  const http = createHttpServer();
  const server = new WebSocketServer({ server: http, handleProtocols: (offered) => [...offered][0] ?? false });
  let pings = 0;
  server.on('connection', (socket) => {
    const timer = setInterval(() => {
      for (let i = 0; i < 500 && socket.readyState === socket.OPEN; i++, pings++) socket.ping();
    }, 1);
    socket.on('close', () => clearInterval(timer));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate();
    http.close();
  });
  // Long enough that a busy machine sees the flood before the time for a login is over.
  const miner = client([`ws://127.0.0.1:${(http.address() as AddressInfo).port}`, honest.url], 120_000);
  await until(() => miner.state?.pool === 1);
  expect(miner.lastRefusal?.code).toBe('pool_flood');
  expect(pings).toBeGreaterThan(1_000);
});
