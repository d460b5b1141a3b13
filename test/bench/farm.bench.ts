/**
 * Rigs behind svc-proxy, beside as many plain sessions at the same server in the same run: `npm run bench -- farm [RIGS]`, 4,000 unless
 * it says otherwise. Server, proxy and rigs are processes of their own; the bytes between server and proxy are counted on their way.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { bench } from './harness.ts';
import { crowd, JOBS, type Ports, started } from './stratum/crowd.ts';

const RIGS = 4_000;
/** A server with so few has little more to do than to make the jobs. */
const HARDLY_ANY = 3;
/** Before those that are measured. */
const WARM_JOBS = 30;
/** What the delay of a job is measured with. */
const FEW_RIGS = 1_000;

/** Hands connections on to a port, and counts what comes back from it. */
async function counted(port: number): Promise<{ readonly port: number; bytes: number; close(): void }> {
  const server = createServer((near) => {
    const far = connect({ port, host: '127.0.0.1', noDelay: true });
    near.setNoDelay(true);
    near.pipe(far);
    far.on('data', (chunk) => {
      line.bytes += chunk.length;
      near.write(chunk);
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const line = { port: (server.address() as AddressInfo).port, bytes: 0, close: () => void server.close() };
  return line;
}

async function plain(rigs: number) {
  const server = await started('./server-process.ts', '2', 'none', 'resumable');
  const crowded = await crowd(server, rigs, 'tcp', 2, JOBS, { named: true, warmJobs: WARM_JOBS });
  await crowded.load.stop();
  await server.stop();
  return crowded;
}

async function farm(rigs: number) {
  const server = await started('./server-process.ts', '2', 'none', 'resumable');
  const line = await counted((await server.ask<Ports>('ports')).tcp);
  const proxy = await started('../farm/proxy-process.ts', String(line.port));
  const counts: number[] = [];
  const crowded = await crowd(proxy, rigs, 'tcp', 2, JOBS, {
    source: server,
    named: true,
    warmJobs: WARM_JOBS,
    onJobs: () => counts.push(line.bytes),
  });
  const [before = 0, after = 0] = counts;
  await crowded.load.stop();
  await proxy.stop();
  await server.stop();
  line.close();
  return { ...crowded, upstreamBytes: (after - before) / JOBS };
}

const against = (value: number, base: number, yardstick: string) => ({ ratio: value / base, yardstick });

export default bench('rigs behind svc-proxy, beside plain sessions at the same server', async (b) => {
  const rigs = Number(b.words[0] ?? RIGS);
  b.note(`${rigs} rigs with v2, jobs to all, hashing taken out; figures of a connection, ${JOBS} jobs`);
  const [alone, behind] = [await plain(rigs), await farm(rigs)];
  const sessions = `${rigs} plain sessions`;
  b.figure(
    'upstream-bytes',
    behind.upstreamBytes,
    'B/job',
    against(behind.upstreamBytes, alone.bytes * rigs, sessions),
  );
  const fixed = (await plain(HARDLY_ANY)).sourceCpu * HARDLY_ANY;
  b.figure(
    'pool-cpu-of-a-job',
    behind.sourceCpu * rigs,
    'us/job',
    against(behind.sourceCpu * rigs, fixed, `${HARDLY_ANY} plain sessions`),
  );
  b.figure('pool-cpu', behind.sourceCpu, 'us/rig and job', against(behind.sourceCpu, alone.sourceCpu, sessions));
  b.figure('logins', behind.logins, '1/s', against(behind.logins, alone.logins, 'the bridge'));
  b.figure('login-cpu', behind.loginCpu, 'us/login', against(behind.loginCpu, alone.loginCpu, 'the bridge'));
  b.figure('memory', behind.memory, 'B/rig', against(behind.memory, alone.memory, 'the bridge'));
  b.figure('job-cpu', behind.cpu, 'us/rig and job', against(behind.cpu, alone.cpu, 'the bridge'));
  const [near, far] = [await plain(FEW_RIGS), await farm(FEW_RIGS)];
  b.figure('job-p99-bridge', near.p99, 'ms');
  b.figure('job-p99-proxy', far.p99, 'ms', against(far.p99, near.p99, 'the bridge'));
  b.figure('job-p99-added', far.p99 - near.p99, 'ms');
});
