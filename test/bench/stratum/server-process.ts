/** The stratum server as a process of its own for the benchmark: templates made here, hashing real or taken out. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NodeUpstream, UPSTREAM_DEFAULTS } from '../../../bridge/nodes/upstream.ts';
import { LIMIT_DEFAULTS } from '../../../bridge/options.ts';
import { createStratumServer } from '../../../bridge/server.ts';
import { Counters } from '../../../bridge/shares/counters.ts';
import { createVerifier } from '../../../kernels/verifier.ts';
import { NETWORKS } from '../../../protocol/network.ts';
import { useNativeSha384 } from '../../../runtime/native/native-sha384.ts';
import { TemplateSource } from '../../bridge/template-source.ts';
import { TEST_CERTIFICATE } from '../../miner/certificate.ts';
import { quietLog } from '../../quiet-log.ts';
import { answerAsked } from './asked.ts';
import { withoutHashing } from './without-hashing.ts';

const [threads = '2', hashing = 'none', resume = 'not resumable', streams = 'handles'] = process.argv.slice(2);
useNativeSha384();

const verifier =
  hashing === 'none'
    ? withoutHashing()
    : createVerifier({
        network: hashing === 'testnet' ? NETWORKS.testnet : NETWORKS.development,
        mode: 'full',
        threads: 2,
      });
await verifier.prepare(0);
const source = new TemplateSource();
source.blockWork = 1n << 60n;
const upstream = new NodeUpstream(
  { network: NETWORKS.development, ...UPSTREAM_DEFAULTS },
  { sources: [source], now: Date.now, log: quietLog },
);
const sessionsDirectory = mkdtempSync(join(tmpdir(), 'svc-bench-sessions-'));
process.on('exit', () => rmSync(sessionsDirectory, { recursive: true, force: true }));
const many = { perSecond: 1e9, burst: 1e9 };
const server = await createStratumServer(
  {
    network: NETWORKS.development,
    server: 'svc-bridge/bench',
    services: [
      {
        name: 'bridge',
        listen: { host: '127.0.0.1', port: 0 },
        listenWs: { host: '127.0.0.1', port: 0 },
        pool: null,
        tag: 'miner',
      },
    ],
    threads: Number(threads),
    streams: streams === 'sockets' ? 'sockets' : 'handles',
    // Bounds that a load test from one address meets on purpose are out of the way; all checks are made.
    limits: {
      ...LIMIT_DEFAULTS,
      connectionsPerAddress: 100_000,
      loginMillis: 120_000,
      submits: many,
      submitsOverall: many,
      requests: many,
      ...(resume === 'not resumable' ? { resumeMillis: 0 } : {}),
      // Every nonce is a share, however many come.
      vardiff: { ...LIMIT_DEFAULTS.vardiff, startWork: 1n, minWork: 1n, maxWork: 1n },
    },
    wsOrigins: [],
    proxies: [],
    allow: [],
    certificate: TEST_CERTIFICATE,
    ...(resume === 'logged' ? { sessionsDirectory } : {}),
  },
  { upstream, sink: new Counters(), verifier, log: quietLog },
);
while (!(await server.figures()).ready) await new Promise((resolve) => setTimeout(resolve, 20));

/** The longest time that the main thread did not come to its timers, since it was last asked; nothing is measured before the first question. */
let delay = 0;
let beat: number | undefined;
function watchBeats(): void {
  beat = performance.now();
  setInterval(() => {
    const now = performance.now();
    delay = Math.max(delay, now - (beat ?? now) - 5);
    beat = now;
  }, 5);
}

answerAsked({
  ports: async () => ({
    tcp: server.addresses.find(({ kind }) => kind === 'tcp')?.port ?? 0,
    ws: server.addresses.find(({ kind }) => kind === 'ws')?.port ?? 0,
  }),
  memory: async () => {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return process.memoryUsage().rss;
  },
  job: async () => {
    const at = process.hrtime.bigint().toString();
    source.cut();
    return at;
  },
  cpu: async () => process.cpuUsage().user + process.cpuUsage().system,
  stall: async () => {
    if (beat === undefined) watchBeats();
    const seen = delay;
    delay = 0;
    return seen;
  },
  stop: async () => process.exit(0),
});
