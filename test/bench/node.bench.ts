/**
 * The node's own figures: transactions into the mempool, templates, candidates, sealing, restart. Words choose parts (`mempool`, `candidates`, `seal`,
 * `restart`); all without any. `waiting=N` sets how many transactions wait, `cuts=N` how many cuts the store of the restart has, `outputs=N` how many outputs the larger sealing has.
 */
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { createVerifier } from '../../kernels/verifier.ts';
import { chainRates, nodeSync } from '../../node/api/chain-routes.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { listenForMining } from '../../node/mining/listener.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { Bed, type BedSettings, searchNonce, silentLog } from '../node/bed.ts';
import { certificates } from '../node/simulation.ts';
import { type Bench, bench } from './harness.ts';

const alice = developmentKey('alice').address;
const treasury = developmentKey(TREASURY).address;

/** A node whose genesis has this many outputs of one coin for the treasury. */
const bedWith = (outputs: number, settings: BedSettings = {}): Promise<Bed> =>
  Bed.open({
    ...settings,
    genesis: {
      validators: 4,
      fund: Array.from({ length: outputs }, () => ({ address: treasury, amount: 100_000_000n })),
      ...settings.genesis,
    },
  });

/** Between two candidates: a network makes a few blocks a second at most, and a burst asks the store for 30 MiB a second. */
const NETWORK_MILLIS = 300;
const BURST_MILLIS = 20;

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] as number;

const mainThreadMillis = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

async function timed(work: () => Promise<unknown> | unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const pay = (bed: Bed, i: number): Bytes =>
  bed.payment([bed.genesisOutput(i) as UnspentOutput], [{ address: alice, amount: 1_000n }]);

async function submitAll(bed: Bed, wires: readonly Bytes[], inFlight = 512): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < wires.length) {
      const outcome = await bed.node.submitTransaction(wires[next++] as Bytes);
      if (outcome.status !== 'accepted') throw new Error(JSON.stringify(outcome));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
}

async function listen(bed: Bed): Promise<{ base: string; close(): Promise<void> }> {
  const listener = await listenForMining(
    { bind: { host: '127.0.0.1', port: 0 } },
    {
      node: bed.node,
      log: silentLog,
      syncDocument: () => nodeSync(bed.node),
      ratesDocument: () => chainRates(bed.node),
      follow: (socket) => socket.close(),
    },
  );
  return { base: `http://127.0.0.1:${listener.address.port}`, close: () => listener.close() };
}

/**
 * Asks for a template over HTTP and reads all of the answer, in a thread of its own and always into the same memory: what is measured
 * is the node and not how the asker collects its garbage.
 */
const ASKING = `
  const { parentPort } = require('node:worker_threads');
  const { connect } = require('node:net');
  let expected = 0, bytes = 0, start = 0;
  const take = (length, room) => {
    if (expected === 0) {
      const head = room.latin1Slice(0, length);
      const end = head.indexOf('\\r\\n\\r\\n') + 4;
      expected = end + Number(/content-length: (\\d+)/i.exec(head)[1]);
    }
    bytes += length;
    if (bytes === expected) parentPort.postMessage({ millis: performance.now() - start, bytes });
    return true;
  };
  let socket;
  parentPort.on('message', ({ url, request }) => {
    const { hostname, port, pathname } = new URL(url);
    socket ??= connect({ host: hostname, port: Number(port), noDelay: true, onread: { buffer: Buffer.alloc(1 << 18), callback: take } });
    const body = JSON.stringify(request);
    [expected, bytes, start] = [0, 0, performance.now()];
    socket.write('POST ' + pathname + ' HTTP/1.1\\r\\nhost: ' + hostname + '\\r\\ncontent-length: ' + body.length + '\\r\\n\\r\\n' + body);
  });
`;

async function measureMempool(b: Bench, waiting: number): Promise<void> {
  const bed = await bedWith(waiting);
  const server = await listen(bed);
  try {
    b.note(`signing ${waiting} payments`);
    const wires = Array.from({ length: waiting }, (_, i) => pay(bed, i));
    const idle = mainThreadMillis();
    const millis = await timed(() => submitAll(bed, wires));
    b.figure('mempool-main-thread', (mainThreadMillis() - idle) / waiting, 'ms/tx');
    b.figure('mempool-transactions', (waiting / millis) * 1000, 'tx/s');
    await measureTemplates(b, bed);
    await measureTemplateAnswers(b, `${server.base}/v1/mining/templates`);
  } finally {
    await server.close();
    await bed.close();
  }
}

const TEMPLATES = 1_000;

/** Each a new draw, as an embedded bridge takes it: the body is put together only when a block is found. */
async function measureTemplates(b: Bench, bed: Bed): Promise<void> {
  const times: number[] = [];
  const busy: number[] = [];
  let count = 0;
  for (let i = 0; i < TEMPLATES; i++) {
    const before = mainThreadMillis();
    const start = performance.now();
    const template = bed.node.template({ payout: alice, maxTransactions: 1_000, draw: 10_000 + i });
    count += template.transactionCount;
    times.push(performance.now() - start);
    busy.push(mainThreadMillis() - before);
    await new Promise((resolve) => setImmediate(resolve));
  }
  b.note(`a template carries ${Math.round(count / TEMPLATES)} of them in 1 MiB`);
  b.figure('template-main-thread-p50', percentile(busy, 0.5), 'ms');
  b.figure('template-main-thread-p99', percentile(busy, 0.99), 'ms');
  b.figure('template-p50', percentile(times, 0.5), 'ms');
  b.figure('template-p99', percentile(times, 0.99), 'ms');
}

async function measureTemplateAnswers(b: Bench, url: string): Promise<void> {
  const asking = new Worker(ASKING, { eval: true });
  const times: number[] = [];
  const busy: number[] = [];
  try {
    for (let i = 0; i < TEMPLATES; i++) {
      const request = { payout: formatAddress(alice, 'development'), max_transactions: 1_000, draw: i + 1 };
      const before = mainThreadMillis();
      asking.postMessage({ url, request });
      const [{ millis, bytes }] = (await once(asking, 'message')) as [{ millis: number; bytes: number }];
      if (bytes < 1_000_000) throw new Error(`a template of ${bytes} bytes`);
      times.push(millis);
      busy.push(mainThreadMillis() - before);
    }
  } finally {
    await asking.terminate();
  }
  b.figure('template-http-main-thread-p50', percentile(busy, 0.5), 'ms');
  b.figure('template-http-main-thread-p99', percentile(busy, 0.99), 'ms');
  b.figure('template-http-p50', percentile(times, 0.5), 'ms');
  b.figure('template-http-p99', percentile(times, 0.99), 'ms');
}

async function measureCandidates(b: Bench): Promise<void> {
  const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
  await verifier.prepare(0);
  for (const [name, settings, transactions, pause] of [
    ['candidate', {}, 10, BURST_MILLIS],
    ['candidate-1MiB', {}, 1_000, NETWORK_MILLIS],
    ['candidate-1MiB-burst', {}, 1_000, BURST_MILLIS],
    ['candidate-pow', { dependencies: { verifier } }, 10, BURST_MILLIS],
  ] as const) {
    const bed = await bedWith(200, settings);
    try {
      await submitAll(
        bed,
        Array.from({ length: 200 }, (_, i) => pay(bed, i)),
      );
      const times: number[] = [];
      const busy: number[] = [];
      for (let i = 0; i < 200; i++) {
        const template = bed.node.template({ payout: alice, maxTransactions: transactions });
        // Parents and carriers would empty the next template; blocks of one draw are what a busy bridge sends.
        const header = name === 'candidate-pow' ? template.header : searchNonce(template.header, template.target);
        const { body } = template;
        const before = mainThreadMillis();
        times.push(await timed(() => bed.node.submitBlock(header, body)));
        busy.push(mainThreadMillis() - before);
        bed.now += 10;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
      b.figure(`${name}-main-thread-p50`, percentile(busy, 0.5), 'ms');
      b.figure(`${name}-main-thread-p99`, percentile(busy, 0.99), 'ms');
      b.figure(`${name}-p50`, percentile(times, 0.5), 'ms');
      b.figure(`${name}-p99`, percentile(times, 0.99), 'ms');
    } finally {
      await bed.close();
    }
  }
  await verifier.close();
}

const MEBIBYTE = 1024 * 1024;
const SEALINGS = 5;

async function measureSeal(b: Bench, large: number): Promise<void> {
  const few = 20_000;
  const first = { clock: 0, busy: 0 };
  for (const outputs of [few, large]) {
    b.note(`a chain with ${outputs.toLocaleString('en-US')} outputs`);
    const bed = await bedWith(outputs);
    try {
      const times: number[] = [];
      const busy: number[] = [];
      let spent = 0;
      for (let round = 0; round < SEALINGS; round++) {
        const wires = Array.from({ length: 1_000 }, (_, i) =>
          pay(bed, Math.floor((spent + i) * (outputs / (SEALINGS * 1_000)))),
        );
        spent += 1_000;
        await submitAll(bed, wires);
        for (let block = 0; block < 16; block++) await bed.mine(alice, 63, 100 * round + block);
        let executed = 0;
        const stop = bed.node.on('cut', (effects) => {
          executed = effects.transactions.filter(({ outcome }) => outcome === 'executed').length;
        });
        const before = mainThreadMillis();
        times.push(await timed(() => bed.seal()));
        busy.push(mainThreadMillis() - before);
        stop();
        if (executed !== 1_000) throw new Error(`${executed} transactions were executed instead of 1,000`);
      }
      const middle = { clock: percentile(times, 0.5), busy: percentile(busy, 0.5) };
      if (outputs === few) Object.assign(first, middle);
      const against = (value: number, yardstick: number) =>
        outputs === few ? undefined : { ratio: value / yardstick, yardstick: 'the same with 20,000 outputs' };
      b.figure(`seal-1000-of-${outputs}`, middle.clock, 'ms', against(middle.clock, first.clock));
      // On a machine that does other things too this says more than the time on the clock.
      b.figure(`seal-1000-of-${outputs}-main-thread`, middle.busy, 'ms', against(middle.busy, first.busy));
      // Genesis is in memory too, with an object for each of its outputs.
      b.figure(`seal-1000-of-${outputs}-memory`, process.memoryUsage().rss / MEBIBYTE, 'MiB');
    } finally {
      await bed.close();
    }
  }
}

async function measureRestart(b: Bench, cuts: number): Promise<void> {
  const certificate = certificates(4);
  const bed = await bedWith(1_000, { dependencies: { certify: certificate.certify } });
  try {
    for (let i = 1; i <= cuts; i++) {
      certificate.signed = i === cuts;
      if (i % 16 === 0) await bed.mine(alice, 0);
      await bed.seal();
    }
    await bed.node.close();
    const store = join(bed.directory, 'store');
    const log = readdirSync(store).filter((file) => file.endsWith('.log'));
    const bytes = log.reduce((sum, file) => sum + statSync(join(store, file)).size, 0);
    b.note(`the log of the store has ${(bytes / MEBIBYTE).toFixed(1)} MiB`);
    b.figure(`restart-${cuts}-cuts`, await timed(() => bed.openNode()), 'ms');
    // Opening the store has made a table of the log: this time there is none to read.
    await bed.node.close();
    b.figure(`restart-${cuts}-cuts-empty-log`, await timed(() => bed.openNode()), 'ms');
  } finally {
    await bed.close();
  }
}

export default bench('mempool, templates, candidates, sealing and restart of the node', async (b) => {
  const number = (name: string, fallback: number) =>
    Number(b.words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? fallback);
  const parts = b.words.filter((word) => !word.includes('='));
  const wanted = (part: string) => parts.length === 0 || parts.includes(part);
  if (wanted('mempool')) await measureMempool(b, number('waiting', 10_000));
  if (wanted('candidates')) await measureCandidates(b);
  if (wanted('seal')) await measureSeal(b, number('outputs', 1_000_000));
  if (wanted('restart')) await measureRestart(b, number('cuts', 5_000));
});
