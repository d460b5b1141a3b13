/**
 * The stratum server under load: server, miners and yardstick in processes of their own. `npm run bench -- stratum`
 * takes some minutes; `npm run bench -- stratum 2000` uses fewer connections than 10,000. The yardstick is a bare
 * node:net server that writes the same bytes and does nothing else. `npm run bench -- stratum 2000 tcp` measures only TCP
 * with v1, the costs by processor time: on handles, on sockets, and with sessions that are not kept; with
 * SVC_BENCH_BEFORE=DIR also the server of another checkout, in the same run. `stratum 6000 pairs`: handles and sockets in turns, or with SVC_BENCH_BEFORE=DIR
 * that server and this one; SVC_BENCH_TURNS is how often (3), SVC_BENCH_ACCOUNTS how many addresses log in (1).
 * `stratum 6000 pairs log`: sessions that end with the process, and sessions that are logged for the next one.
 * `stratum 6000 tcp own` measures only the server as it is. `stratum 1000 dataset`: shares that are verified with testnet's dataset of 2 GiB. Cores and profiles: stratum/asked.ts.
 * `npm run bench -- stratum soak` is about memory alone and lasts SVC_SOAK_MINUTES, one unless it says otherwise.
 */
import { join } from 'node:path';
import { type Bench, bench } from './harness.ts';
import type { Asked } from './stratum/asked.ts';
import { type Arrivals, costOf, crowd, JOBS, type Ports, started } from './stratum/crowd.ts';
import { benchSoak } from './stratum/soak.ts';

const SUBMIT_SECONDS = 3;

/** Answers a second, and the server's processor time for each. */
async function submits(server: Asked, load: Asked, connections: number, inFlight: number) {
  const argument = { connections, inFlight, seconds: SUBMIT_SECONDS };
  const { value, cpu } = await costOf(server, () =>
    load.ask<{ rate: number; errors: number; answers: number }>('submits', argument),
  );
  return { ...value, cpu: cpu / value.answers };
}

const ROUNDS = 4;

/** Memory after each round in which all connections end and come again. */
async function reconnects(server: Asked, load: Asked, connections: number): Promise<number[]> {
  const { tcp: port } = await server.ask<Ports>('ports');
  const resident: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    await load.ask('close');
    await load.ask('login', { port, count: connections, transport: 'tcp', version: 1 });
    resident.push((await server.ask<number>('memory')) / 2 ** 20);
  }
  return resident;
}

/** TCP with v1 alone, of one or several servers in turns. */
async function benchTcp(b: Bench, connections: number, isAlone: boolean): Promise<void> {
  const before = process.env.SVC_BENCH_BEFORE;
  const own = './server-process.ts';
  const servers: [name: string, file: string, streams: 'handles' | 'sockets', resume: string][] = [
    ['bare-', './bare-process.ts', 'sockets', ''],
    ['bare-handles-', './bare-process.ts', 'handles', ''],
    ...(before === undefined
      ? []
      : [['before-', join(before, 'test/bench/stratum/server-process.ts'), 'handles', 'resumable'] as const]),
    ['sockets-', own, 'sockets', 'resumable'],
    // What sessions that are kept after their connection take is the difference to the next.
    ['forgotten-', own, 'handles', 'not resumable'],
    ['', own, 'handles', 'resumable'],
  ].map((each) => [...each] as [string, string, 'handles' | 'sockets', string]);
  for (const [name, file, streams, resume] of isAlone ? servers.slice(-1) : servers) {
    const server = await started(file, '2', 'none', resume, streams);
    const crowded = await crowd(server, connections, 'tcp', 1, JOBS);
    b.figure(`${name}logins`, crowded.logins, '1/s');
    b.figure(`${name}first-login-cpu`, crowded.firstLoginCpu, 'us/login');
    b.figure(`${name}login-cpu`, crowded.loginCpu, 'us/login');
    b.figure(`${name}memory-tcp`, crowded.memory, 'B/connection');
    b.figure(`${name}job-p99-v1`, crowded.p99, 'ms');
    b.figure(`${name}job-cpu-v1`, crowded.cpu, 'us/job');
    for (const inFlight of [1, 16]) {
      const count = inFlight === 1 ? connections : Math.min(connections, 1_000);
      const { rate, cpu } = await submits(server, crowded.load, count, inFlight);
      b.figure(`${name}submits-${inFlight}-in-flight`, rate, '1/s');
      b.figure(`${name}submit-cpu-${inFlight}-in-flight`, cpu, 'us/answer');
    }
    const rounds = await reconnects(server, crowded.load, connections);
    b.note(`${name}memory after each of ${ROUNDS} rounds of reconnects: ${rounds.map(Math.round).join(', ')} MiB`);
    await crowded.load.stop();
    await server.stop();
  }
}

type Contender = {
  readonly name: string;
  readonly file: string;
  readonly streams: 'handles' | 'sockets';
  readonly resume: 'not resumable' | 'resumable' | 'logged';
};

/** Two servers in turns: a busy machine changes the means of both alike. The second is compared with the first. */
async function benchPairs(b: Bench, connections: number): Promise<void> {
  const {
    SVC_BENCH_BEFORE: before,
    SVC_BENCH_TURNS: turnsAsked = '3',
    SVC_BENCH_ACCOUNTS: accounts = '1',
  } = process.env;
  const own = './server-process.ts';
  const plain = { file: own, streams: 'handles', resume: 'not resumable' } as const;
  const contenders = (): readonly [Contender, Contender] => {
    if (b.words[2] === 'log')
      return [
        { ...plain, name: 'in-memory', resume: 'resumable' },
        { ...plain, name: 'logged', resume: 'logged' },
      ];
    if (before === undefined)
      return [
        { ...plain, name: 'sockets', streams: 'sockets' },
        { ...plain, name: 'handles' },
      ];
    return [
      { ...plain, name: 'before', file: join(before, 'test/bench/stratum/server-process.ts') },
      { ...plain, name: 'after' },
    ];
  };
  const [first, second] = contenders();
  const figures = new Map<string, number[]>();
  const add = (name: string, value: number) => figures.set(name, [...(figures.get(name) ?? []), value]);
  for (let turn = 0; turn < Number(turnsAsked); turn++)
    for (const { name, file, streams, resume } of turn % 2 === 0 ? [first, second] : [second, first]) {
      const server = await started(file, '2', 'none', resume, streams);
      const crowded = await crowd(server, connections, 'tcp', 1, JOBS, { accounts: Number(accounts) });
      add(`${name} login-cpu us`, crowded.loginCpu);
      add(`${name} memory B`, crowded.memory);
      add(`${name} job-cpu us`, crowded.cpu);
      for (const inFlight of [1, 16]) {
        const count = inFlight === 1 ? connections : Math.min(connections, 1_000);
        const { cpu } = await submits(server, crowded.load, count, inFlight);
        add(`${name} submit-cpu-${inFlight}-in-flight us`, cpu);
      }
      await crowded.load.stop();
      await server.stop();
    }
  const mean = (values: readonly number[] = []): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  for (const figure of [
    'login-cpu us',
    'job-cpu us',
    'memory B',
    'submit-cpu-1-in-flight us',
    'submit-cpu-16-in-flight us',
  ]) {
    const [name = '', unit = ''] = figure.split(' ');
    const [yardstick, measured] = [first, second].map((each) => figures.get(`${each.name} ${figure}`) ?? []);
    const listOf = (values: readonly number[] = []) => values.map((value) => value.toFixed(1)).join(', ');
    b.note(`${name} ${unit}: ${first.name} ${listOf(yardstick)}; ${second.name} ${listOf(measured)}`);
    b.figure(
      `${second.name}-${name}`,
      mean(measured),
      unit,
      against(mean(measured), mean(yardstick), `${first.name}, in turns`),
    );
  }
}

/** Shares that are verified, sixteen in flight on each connection. */
async function benchHashing(b: Bench, dataset: 'development' | 'testnet', connections: number): Promise<void> {
  const server = await started('./server-process.ts', '2', dataset);
  const { load } = await crowd(server, connections, 'tcp', 1, 1);
  const verified = await load.ask<{ rate: number; errors: number }>('submits', {
    connections,
    inFlight: 16,
    seconds: 4,
  });
  b.figure(`submits-hashed${dataset === 'testnet' ? '-2-GiB' : ''}`, verified.rate, '1/s');
  b.note(`refused while hashing was in: ${verified.errors}`);
  if (dataset === 'testnet') {
    const change = setInterval(() => void server.ask('job'), 2_500);
    const steady = await load.ask<Arrivals & { errors: number }>('steady', { perSecond: 1_000, seconds: 8 });
    clearInterval(change);
    b.figure('answer-p50-steady-2-GiB', steady.p50, 'ms');
    b.figure('answer-p99-steady-2-GiB', steady.p99, 'ms');
    b.note(`refused at 1,000 shares/s: ${steady.errors}`);
    b.figure('memory-2-GiB', (await server.ask<number>('memory')) / 2 ** 20, 'MiB');
  }
  await load.stop();
  await server.stop();
}

/** Development's dataset and testnet's, one after the other. */
async function benchDataset(b: Bench, connections: number): Promise<void> {
  await benchHashing(b, 'development', connections);
  b.note('building the dataset of testnet');
  await benchHashing(b, 'testnet', connections);
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
  if (b.words[1] === 'pairs') return await benchPairs(b, connections);
  if (b.words[1] === 'tcp') return await benchTcp(b, connections, b.words[2] === 'own');
  if (b.words[1] === 'dataset') return await benchDataset(b, connections);

  const bare = await started('./bare-process.ts', '2');
  const plain = await crowd(bare, connections, 'tcp', 1, JOBS);
  const bareOne = await submits(bare, plain.load, connections, 1);
  const bareMany = await submits(bare, plain.load, 1_000, 16);
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
  b.figure('first-login-cpu', v1.firstLoginCpu, 'us/login', against(v1.firstLoginCpu, plain.firstLoginCpu));
  b.figure('login-cpu', v1.loginCpu, 'us/login', against(v1.loginCpu, plain.loginCpu));
  b.figure('memory-tcp', v1.memory, 'B/connection', against(v1.memory, plain.memory));
  b.figure('job-p99-v1', v1.p99, 'ms', against(v1.p99, plain.p99));
  b.figure('job-cpu-v1', v1.cpu, 'us/job', against(v1.cpu, plain.cpu));
  const one = await submits(server, v1.load, connections, 1);
  b.figure('submits-1-in-flight', one.rate, '1/s', against(one.rate, bareOne.rate));
  b.figure('submit-cpu-1-in-flight', one.cpu, 'us/answer', against(one.cpu, bareOne.cpu));
  const many = await submits(server, v1.load, 1_000, 16);
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

  await benchHashing(b, 'development', 1_000);
});
