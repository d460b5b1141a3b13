/** Miners of the benchmark: many connections in one process, as little work per message as can be. */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { WebSocket } from 'ws';
import { FrameSplitter } from '../../../protocol/stratum/frame.ts';
import { encodeClientFrame } from '../../../protocol/stratum/v2.ts';
import { addressOf } from '../../bridge/stratum-client.ts';
import { answerAsked } from './asked.ts';

type Transport = 'tcp' | 'tls' | 'ws';
type Miner = {
  send(data: string | Uint8Array): void;
  close(): void;
  jobId: string;
  prefix: string;
  jobAt: bigint;
  isIn: boolean;
  counter: number;
  sentAt: number;
  held: string;
};

/** Whom the connections mine for, in turn, at which share work, and whether each has a worker's name of its own. */
let crew = { accounts: 1, work: 1, named: false };
const login = (username: string): string =>
  '{"jsonrpc":"2.0","id":1,"method":"mining.subscribe","params":{"agent":"load/1"}}\n' +
  `{"jsonrpc":"2.0","id":2,"method":"mining.authorize","params":{"username":"${username}","password":"d=${crew.work}"}}\n`;
const loginV2 = (username: string) =>
  Buffer.concat([
    Buffer.from('SVC2'),
    encodeClientFrame({ type: 'subscribe', subscribe: { agent: 'load/2', tag: '', session: null } }),
    encodeClientFrame({ type: 'authorize', authorize: { username, password: `d=${crew.work}` } }),
  ]);

let miners: Miner[] = [];
let onIn = (): void => {};
let onJob = (): void => {};
let onAnswer: ((miner: Miner, count: number) => void) | null = null;
let errors = 0;
let received = 0;

const newMiner = (send: Miner['send'], close: Miner['close']): Miner => ({
  send,
  close,
  jobId: '',
  prefix: '',
  jobAt: 0n,
  isIn: false,
  counter: 0,
  sentAt: 0,
  held: '',
});

function tookJob(miner: Miner): void {
  miner.jobAt = process.hrtime.bigint();
  if (!miner.isIn) {
    miner.isIn = true;
    onIn();
  }
  onJob();
}

function takeText(miner: Miner, chunk: string): void {
  const text = miner.held + chunk;
  let from = 0;
  let answers = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
    // The method is at one place in a notification, and nowhere in an answer.
    if (text.startsWith('mining.notify', from + 27)) {
      const at = text.indexOf('"job_id":"', from) + 10;
      miner.jobId = text.slice(at, at + 8);
      tookJob(miner);
    } else if (miner.prefix === '' && text.indexOf('"nonce_prefix":"', from) >= 0) {
      const at = text.indexOf('"nonce_prefix":"', from) + 16;
      miner.prefix = text.slice(at, at + 4);
    } else {
      answers++;
      if (text.startsWith('"error"', from + 24) || text.slice(from, end).includes('"error":')) errors++;
    }
    from = end + 1;
  }
  miner.held = text.slice(from);
  if (answers > 0 && miner.isIn) onAnswer?.(miner, answers);
}

function open(port: number, transport: Transport, version: 1 | 2): void {
  const username = `${addressOf(1 + (miners.length % crew.accounts))}.w${crew.named ? miners.length : ''}`;
  if (transport === 'ws') {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, ['svc-mining-v1'], { perMessageDeflate: false });
    const miner = newMiner(
      (data) => socket.send(String(data).trimEnd()),
      () => socket.terminate(),
    );
    socket.on('open', () => {
      for (const line of login(username).trim().split('\n')) socket.send(line);
    });
    socket.on('message', (data) => takeText(miner, `${String(data).trimEnd()}\n`));
    socket.on('error', () => {});
    miners.push(miner);
    return;
  }
  const socket: Socket =
    transport === 'tls'
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect({ port, host: '127.0.0.1', noDelay: true });
  const miner = newMiner(
    (data) => void (typeof data === 'string' ? socket.write(data, 'latin1') : socket.write(data)),
    () => socket.destroy(),
  );
  miners.push(miner);
  socket.on('error', () => {});
  socket.on(transport === 'tls' ? 'secureConnect' : 'connect', () => {
    if (version === 1) socket.write(login(username), 'latin1');
    else socket.write(loginV2(username));
  });
  socket.on('data', (chunk) => {
    received += chunk.length;
  });
  if (version === 1) socket.on('data', (chunk) => takeText(miner, chunk.toString('latin1')));
  else {
    const splitter = new FrameSplitter();
    socket.on('data', (chunk) =>
      splitter.push(chunk, (type) => {
        if (type === 0x10) tookJob(miner);
        return true;
      }),
    );
  }
}

const nonceOf = (miner: Miner): string => `${(miner.counter++).toString(16).padStart(12, '0')}${miner.prefix}`;

function submitOn(miner: Miner): string {
  return `{"jsonrpc":"2.0","id":${miner.counter + 10},"method":"mining.submit","params":{"job_id":"${miner.jobId || '0000001a'}","nonce":"${nonceOf(miner)}"}}\n`;
}

const percentile = (values: number[], part: number): number =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

answerAsked({
  /** Logs in `count` connections, at most `atOnce` under way; seconds it took. */
  login: async ({
    port,
    count,
    transport,
    version,
    accounts = 1,
    work = 1,
    named = false,
  }: {
    port: number;
    count: number;
    transport: Transport;
    version: 1 | 2;
    accounts?: number;
    work?: number;
    named?: boolean;
  }) => {
    crew = { accounts, work, named };
    let [started, done] = [0, 0];
    const from = performance.now();
    await new Promise<void>((resolve) => {
      const next = (): void => {
        if (started < count) {
          started++;
          open(port, transport, version);
        }
      };
      onIn = () => {
        done++;
        if (done === count) resolve();
        else next();
      };
      for (let i = 0; i < Math.min(count, 256); i++) next();
    });
    onIn = () => {};
    return (performance.now() - from) / 1000;
  },
  /** Bytes in all; over TCP and TLS. */
  received: async () => received,
  expectJobs: async () => {
    let seen = 0;
    onJob = () => {
      seen++;
      if (seen === miners.length) arrived?.();
    };
    let arrived: (() => void) | null = null;
    waiting = new Promise<void>((resolve) => {
      arrived = resolve;
    });
  },
  /** Milliseconds from `at` to the median and 99th percentile of arrivals. */
  jobs: async (at: string) => {
    await waiting;
    const from = BigInt(at);
    const millis = miners.map(({ jobAt }) => Number(jobAt - from) / 1e6);
    return { p50: percentile(millis, 0.5), p99: percentile(millis, 0.99) };
  },
  /** Keeps `inFlight` submits open on each of `connections`; answers per second and the 99th percentile of waiting. */
  submits: async ({ connections, inFlight, seconds }: { connections: number; inFlight: number; seconds: number }) => {
    let answers = 0;
    errors = 0;
    let running = true;
    onAnswer = (miner, count) => {
      answers += count;
      if (!running) return;
      let out = '';
      for (let i = 0; i < count; i++) out += submitOn(miner);
      miner.send(out);
    };
    for (const miner of miners.slice(0, connections)) {
      let out = '';
      for (let i = 0; i < inFlight; i++) out += submitOn(miner);
      miner.send(out);
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    const [before, from] = [answers, performance.now()];
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const rate = ((answers - before) / (performance.now() - from)) * 1000;
    running = false;
    await new Promise((resolve) => setTimeout(resolve, 500));
    onAnswer = null;
    return { rate, errors, answers };
  },
  /** A steady number of submits per second, spread over all connections. */
  steady: async ({ perSecond, seconds }: { perSecond: number; seconds: number }) => {
    const waits: number[] = [];
    errors = 0;
    onAnswer = (miner) => {
      if (miner.sentAt > 0) waits.push(performance.now() - miner.sentAt);
      miner.sentAt = 0;
    };
    let at = 0;
    const until = performance.now() + seconds * 1000;
    while (performance.now() < until) {
      for (let i = 0; i < perSecond / 100; i++) {
        const miner = miners[at++ % miners.length] as Miner;
        if (miner.sentAt > 0) continue;
        miner.sentAt = performance.now();
        miner.send(submitOn(miner));
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    onAnswer = null;
    return { p50: percentile(waits, 0.5), p99: percentile(waits, 0.99), answers: waits.length, errors };
  },
  stop: async () => process.exit(0),
  close: async () => {
    for (const miner of miners) miner.close();
    miners = [];
    await new Promise((resolve) => setTimeout(resolve, 500));
  },
});

let waiting: Promise<void> = Promise.resolve();
