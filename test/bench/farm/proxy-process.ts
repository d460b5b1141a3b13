/** svc-proxy as a process of its own for the benchmark, with hashing taken out and an upstream at the given port. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { proxyCommand } from '../../../proxy/options.ts';
import { runProxy } from '../../../proxy/proxy.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { parseCommandLine } from '../../../runtime/command-line/command-line.ts';
import { Shutdown } from '../../../runtime/shutdown.ts';
import { addressOf } from '../../bridge/stratum-client.ts';
import { quietLog } from '../../quiet-log.ts';
import { answerAsked } from '../stratum/asked.ts';
import { withoutHashing } from '../stratum/without-hashing.ts';

const [upstream = ''] = process.argv.slice(2);
const dataDir = mkdtempSync(join(tmpdir(), 'svc-bench-proxy-'));
process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }));
const parsed = parseCommandLine(
  proxyCommand,
  [
    ...['-o', `stratum2+tcp://127.0.0.1:${upstream}`, '-u', addressOf(1), '--data-dir', dataDir],
    ...['--listen', '127.0.0.1:0', '--listen-ws', 'off', '--stats-bind', 'off', '--metrics-bind', 'off'],
    ...['--threads', '2', '--max-per-address', '100000', '--login-time', '120s', '--no-check-books'],
  ],
  () => '',
);
if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
const shutdown = new Shutdown({ limitMs: 5_000 }, { log: quietLog, process, now: steadyMillis });
const proxy = await runProxy(parsed.values, { log: quietLog, shutdown, version: 'bench', verifier: withoutHashing() });
while (proxy.link().job?.farm === undefined || (await proxy.rigs.current?.figures())?.ready !== true)
  await new Promise((resolve) => setTimeout(resolve, 20));

answerAsked({
  ports: async () => ({ tcp: proxy.rigs.current?.addresses[0]?.port ?? 0, ws: 0 }),
  memory: async () => {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return process.memoryUsage().rss;
  },
  cpu: async () => process.cpuUsage().user + process.cpuUsage().system,
  stop: async () => process.exit(0),
});
