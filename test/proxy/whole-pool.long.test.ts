/**
 * A proxy in front of a whole pool of this process, with rigs of both wires behind it. The proxy is started anew and the pool is killed under them: what was passed on is
 * booked once, under the name of its rig. With programs that are killed: processes.deep.slow.test.ts, kills.deep.slow.test.ts.
 */
import { cpSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { openPoolBed, type RunningPool } from '../pool/pool-bed.ts';
import { bookedShares } from '../pool/rig.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { FARM_ADDRESS, type ProxyBed, startProxy, theVerifier } from './proxy-bed.ts';

const HOST = '127.0.0.1';
const SHARES = 4;

/** The pool has another port after each start; the proxy knows this one. */
async function doorTo(port: () => number): Promise<number> {
  const server = createServer((socket) => {
    const far = connect(port(), HOST);
    const end = (): void => {
      socket.destroy();
      far.destroy();
    };
    socket.on('error', end).on('close', end).pipe(far);
    far.on('error', end).on('close', end).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as { port: number }).port;
}

/** Each rig gets shares accepted, of which the proxy passes on those that are good enough for the pool: here all. */
async function work(proxy: ProxyBed): Promise<void> {
  const rigs = [await V1Client.open(proxy.port()), await V2Client.open(proxy.port())];
  const names = ['rig-1', `${FARM_ADDRESS}.hall.rig-2`];
  for (const [i, rig] of rigs.entries()) {
    await rig.login(names[i] as string);
    for (let n = 0, from = 0n; n < SHARES; n++) {
      const job = rig.jobs.at(-1)!;
      const { nonce, next } = mine(job, rig.prefix, from);
      from = next;
      expect(await rig.submitCode(job.jobId, nonce)).toBe(0);
    }
  }
  await until(() => proxy.relay.figures.waiting === 0);
  for (const rig of rigs) rig.close();
}

test(
  'shares of all rigs are booked once under their names, also after the pool was killed and the proxy was started anew',
  lasts(120, 'a pool is started twice'),
  async () => {
    const bed = await openPoolBed(['--start-work', '4']);
    await bed.cut();
    let pool: RunningPool = await bed.start();
    const door = await doorTo(() => pool.port('pplns'));
    const start = () => startProxy([`stratum2+tcp://${HOST}:${door}`], theVerifier());
    const first = await start();
    await work(first);

    // What a killed pool leaves is a copy of its files.
    const next = join(temporaryDirectory(), 'pool');
    cpSync(pool.dataDir, next, { recursive: true, filter: (path) => !/^lock\.\d+$/.test(basename(path)) });
    await pool.stop();
    await until(async () => !(await first.rigs.current?.figures())?.ready);
    pool = await bed.start(next);
    await until(async () => (await first.rigs.current?.figures())?.ready);
    await work(first);
    const before = first.relay.figures;
    await first.stop();

    const second = await start();
    await work(second);
    const after = second.relay.figures;
    for (const { lost, rejected } of [before, after]) expect([lost, rejected]).toEqual([0, {}]);
    const told = before.accepted + after.accepted;
    expect(told).toBeGreaterThan(0);
    const booked = async () =>
      new Map([...(await bookedShares(bed.sql))].map(([name, { accepted }]) => [name, accepted]));
    const sum = async () => [...(await booked()).values()].reduce((total, n) => total + n, 0);
    await until(async () => (await sum()) >= told);
    expect(await sum()).toBe(told);
    expect([...(await booked()).keys()].sort()).toEqual(
      ['hall.rig-2', 'rig-1'].map((name) => `${FARM_ADDRESS}/pplns/${name}`),
    );
  },
);
