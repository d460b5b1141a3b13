/** Many miners at one server, in processes of their own. */
import { Asked } from './asked.ts';

type Transport = 'tcp' | 'tls' | 'ws';
export type Ports = { readonly tcp: number; readonly ws: number };
export type Arrivals = { readonly p50: number; readonly p99: number };

export const JOBS = 7;
const FIRST_LOGINS = 200;
const IDLE_MILLIS = 3_000;

export async function started(file: string, ...words: string[]): Promise<Asked> {
  const process = new Asked(file, words, true);
  await process.ready;
  return process;
}

/** What a piece of work costs the server, and how long it takes. */
export async function costOf<T>(server: Asked, work: () => Promise<T>): Promise<{ value: T; cpu: number }> {
  const before = await server.ask<number>('cpu');
  const value = await work();
  return { value, cpu: (await server.ask<number>('cpu')) - before };
}

/** Processor time that a process takes in a millisecond in which nothing happens, for its timers. */
async function idleCost(process: Asked): Promise<number> {
  const before = await process.ask<number>('cpu');
  await new Promise((resolve) => setTimeout(resolve, IDLE_MILLIS));
  return ((await process.ask<number>('cpu')) - before) / IDLE_MILLIS;
}

type Manner = {
  readonly accounts?: number;
  /** Whether each miner has a worker's name of its own. */
  readonly named?: boolean;
  /** Who makes the jobs, if that is another process. */
  readonly source?: Asked;
  /** Jobs to all before those that count: a process that is new compiles what it does often. */
  readonly warmJobs?: number;
  /** Called before the first job, and after the last. */
  readonly onJobs?: () => void;
};

/** One server with its miners: logins, memory a connection, jobs to all. */
export async function crowd(
  server: Asked,
  connections: number,
  transport: Transport,
  version: 1 | 2,
  jobs: number,
  { accounts = 1, named = false, source = server, warmJobs = 0, onJobs = () => {} }: Manner = {},
) {
  const ports = await server.ask<Ports>('ports');
  const load = await started('./load-process.ts');
  const port = transport === 'ws' ? ports.ws : ports.tcp;
  // The first third warms everything up; what a connection costs is what the others add.
  const first = Math.floor(connections / 3);
  const few = Math.min(first, FIRST_LOGINS);
  const cold = await costOf(server, () =>
    load.ask<number>('login', { port, count: few, transport, version, accounts, named }),
  );
  if (first > few) await load.ask<number>('login', { port, count: first - few, transport, version, accounts, named });
  const before = await server.ask<number>('memory');
  const added = connections - first;
  const login = await costOf(server, () =>
    load.ask<number>('login', { port, count: added, transport, version, accounts, named }),
  );
  const memory = (await server.ask<number>('memory')) - before;
  const toAll = async (): Promise<Arrivals> => {
    await load.ask('expectJobs');
    return await load.ask<Arrivals>('jobs', await source.ask<string>('job'));
  };
  for (let i = 0; i < warmJobs; i++) await toAll();
  const idle = await idleCost(source);
  const arrivals: Arrivals[] = [];
  onJobs();
  const began = performance.now();
  const bytesBefore = await load.ask<number>('received');
  const sourceBefore = await source.ask<number>('cpu');
  const { cpu } = await costOf(server, async () => {
    for (let i = 0; i < jobs; i++) arrivals.push(await toAll());
  });
  const sourceCpu = (await source.ask<number>('cpu')) - sourceBefore - idle * (performance.now() - began);
  onJobs();
  const p99 = arrivals.map((each) => each.p99).sort((a, b) => a - b)[Math.floor(arrivals.length / 2)] ?? 0;
  return {
    load,
    logins: added / login.value,
    loginCpu: login.cpu / added,
    firstLoginCpu: cold.cpu / few,
    memory: memory / added,
    p99,
    /** Of the jobs, for one connection. */
    bytes: ((await load.ask<number>('received')) - bytesBefore) / (jobs * connections),
    /** What it takes for jobs alone: without what it takes in the same time without any. */
    sourceCpu: sourceCpu / (jobs * connections),
    cpu: cpu / (jobs * connections),
  };
}
