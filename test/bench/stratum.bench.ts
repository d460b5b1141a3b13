/**
 * The stratum server under load: server, miners and yardstick in processes of their own. `npm run bench -- stratum`
 * takes some minutes; `npm run bench -- stratum 2000` uses fewer connections than 10,000. The yardstick is a bare
 * node:net server that writes the same bytes and does nothing else. `npm run bench -- stratum soak` is about memory alone and lasts
 * SVC_SOAK_MINUTES, one unless it says otherwise.
 */
import { bench } from './harness.ts';
import { Asked } from './stratum/asked.ts';
import { benchSoak } from './stratum/soak.ts';

type Transport = 'tcp' | 'tls' | 'ws';
type Ports = { readonly tcp: number; readonly ws: number };
type Arrivals = { readonly p50: number; readonly p99: number };

const JOBS = 7;

async function started(file: string, ...words: string[]): Promise<Asked> {
  const process = new Asked(file, words, true);
  await process.ready;
  return process;
}

/** One server with its miners: logins, memory a connection, jobs to all. */
async function crowd(server: Asked, connections: number, transport: Transport, version: 1 | 2, jobs: number) {
  const ports = await server.ask<Ports>('ports');
  const load = await started('./load-process.ts');
  const port = transport === 'ws' ? ports.ws : ports.tcp;
  // The first third warms everything up; what a connection costs is what the others add.
  const first = Math.floor(connections / 3);
  await load.ask<number>('login', { port, count: first, transport, version });
  const before = await server.ask<number>('memory');
  const seconds = await load.ask<number>('login', { port, count: connections - first, transport, version });
  const memory = (await server.ask<number>('memory')) - before;
  const arrivals: Arrivals[] = [];
  const cpuBefore = await server.ask<number>('cpu');
  for (let i = 0; i < jobs; i++) {
    await load.ask('expectJobs');
    arrivals.push(await load.ask<Arrivals>('jobs', await server.ask<string>('job')));
  }
  const cpu = (await server.ask<number>('cpu')) - cpuBefore;
  const p99 = arrivals.map((each) => each.p99).sort((a, b) => a - b)[Math.floor(arrivals.length / 2)] ?? 0;
  const added = connections - first;
  return { load, logins: added / seconds, memory: memory / added, p99, cpu: cpu / (jobs * connections) };
}

const against = (value: number, base: number, yardstick = 'the bare server') => ({ ratio: value / base, yardstick });

export default bench('the stratum server under load, beside a bare node:net server', async (b) => {
  if (b.words[0] === 'soak') {
    const server = await started('./server-process.ts', '2', 'none', 'resumable');
    const load = await started('./load-process.ts');
    const { tcp } = await server.ask<Ports>('ports');
    await benchSoak(b, server, load, tcp, Number(process.env.SVC_SOAK_MINUTES ?? 1));
    await load.stop();
    await server.stop();
    return;
  }
  const connections = Number(b.words[0] ?? 10_000);
  b.note(`${connections} connections, two listener threads, load in a process of its own`);

  const bare = await started('./bare-process.ts', '2');
  const plain = await crowd(bare, connections, 'tcp', 1, JOBS);
  const bareOne = await plain.load.ask<{ rate: number }>('submits', { connections, inFlight: 1, seconds: 3 });
  const bareMany = await plain.load.ask<{ rate: number }>('submits', { connections: 1_000, inFlight: 16, seconds: 3 });
  await plain.load.stop();
  await bare.stop();
  b.figure('bare-logins', plain.logins, '1/s');
  b.figure('bare-memory', plain.memory, 'B/connection');
  b.figure('bare-job-p99', plain.p99, 'ms');
  b.figure('bare-answers-1-in-flight', bareOne.rate, '1/s');
  b.figure('bare-answers-16-in-flight', bareMany.rate, '1/s');

  const server = await started('./server-process.ts', '2', 'none');
  const v1 = await crowd(server, connections, 'tcp', 1, JOBS);
  b.figure('logins', v1.logins, '1/s', against(v1.logins, plain.logins));
  b.figure('memory-tcp', v1.memory, 'B/connection', against(v1.memory, plain.memory));
  b.figure('job-p99-v1', v1.p99, 'ms', against(v1.p99, plain.p99));
  b.figure('job-cpu-v1', v1.cpu, 'us/job', against(v1.cpu, plain.cpu));
  const one = await v1.load.ask<{ rate: number; errors: number }>('submits', { connections, inFlight: 1, seconds: 3 });
  b.figure('submits-1-in-flight', one.rate, '1/s', against(one.rate, bareOne.rate));
  const many = await v1.load.ask<{ rate: number; errors: number }>('submits', {
    connections: 1_000,
    inFlight: 16,
    seconds: 3,
  });
  b.figure('submits-16-in-flight', many.rate, '1/s', against(many.rate, bareMany.rate));
  b.note(`refused while hashing was out: ${one.errors + many.errors}`);
  await server.ask('stall');
  const change = setInterval(() => void server.ask('job'), 2_500);
  const steady = await v1.load.ask<Arrivals & { errors: number }>('steady', { perSecond: 1_000, seconds: 8 });
  clearInterval(change);
  b.figure('answer-p99-steady', steady.p99, 'ms');
  b.figure('main-loop-stall', await server.ask<number>('stall'), 'ms');
  await v1.load.stop();
  await server.stop();

  const second = await started('./server-process.ts', '2', 'none');
  const v2 = await crowd(second, connections, 'tcp', 2, JOBS);
  b.figure('job-p99-v2', v2.p99, 'ms', against(v2.p99, plain.p99, 'the bare server writing v1'));
  await v2.load.stop();
  await second.stop();

  for (const [transport, count] of [
    ['ws', Math.min(connections, 5_000)],
    ['tls', Math.min(connections, 1_000)],
  ] as const) {
    const other = await started('./server-process.ts', '2', 'none');
    const crowded = await crowd(other, count, transport, 1, 1);
    b.figure(`memory-${transport}`, crowded.memory, 'B/connection');
    await crowded.load.stop();
    await other.stop();
  }

  const hashing = await started('./server-process.ts', '2', 'development');
  const real = await crowd(hashing, 1_000, 'tcp', 1, 1);
  const verified = await real.load.ask<{ rate: number; errors: number }>('submits', {
    connections: 1_000,
    inFlight: 16,
    seconds: 4,
  });
  b.figure('submits-hashed', verified.rate, '1/s');
  b.note(`refused while hashing was in: ${verified.errors}`);
  await real.load.stop();
  await hashing.stop();
});
