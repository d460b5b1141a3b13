/** The first row of the specification's operator commands, as a process: metrics where they are asked for, the log in a file, levels per module from the environment. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { runOptions } from '../../node/node-options.ts';
import { parseCommandLine, showListenAddress } from '../../runtime/command-line/command-line.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { temporaryDirectory } from '../temporary.ts';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

test('Operator commands: `svcd run --metrics-bind`', async () => {
  // Without a port it is 28790, which another program of this machine may have.
  const spec = { name: 'svcd run', summary: '', options: runOptions };
  const bindOf = (word: string) => {
    const parsed = parseCommandLine(spec, ['--metrics-bind', word], () => '');
    if (parsed.kind !== 'run' || parsed.values.metricsBind === undefined) return parsed.kind;
    return showListenAddress(parsed.values.metricsBind);
  };
  expect(['127.0.0.1', '0.0.0.0', '127.0.0.1:1234'].map(bindOf)).toEqual([
    '127.0.0.1:28790',
    '0.0.0.0:28790',
    '127.0.0.1:1234',
  ]);

  const directory = temporaryDirectory();
  const logFile = join(directory, 'node.log');
  const [port] = await freePorts(1);
  const words = [
    '--data-dir',
    join(directory, 'data'),
    '--api-bind',
    'off',
    '--mining-bind',
    'off',
    '--cut-millis',
    '200',
    '--pow-mode',
    'light',
  ];
  const child = spawn(
    process.execPath,
    [MAIN, 'run', ...words, '--metrics-bind', `127.0.0.1:${port}`, '--log-file', logFile],
    { env: { ...process.env, RUST_LOG: 'warn,node.chain=info' }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const gone = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part: Buffer) => {
      said += part;
    });
  const at = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });
  const metrics = async () => await (await at('/metrics')).text();
  await expect.poll(() => metrics().catch(() => '')).toMatch(/^svc_node_cuts_total [1-9]/m);
  const text = await metrics();
  expect(text).toMatch(/^svc_node_info\{version="[^"]+",network="development"\} 1$/m);
  for (const name of [
    'uptime_seconds',
    'finalized_height',
    'synced',
    'cuts_total',
    'registered_blocks_total',
    'executed_blocks_total',
    'paid_rewards_total',
    'mempool_transactions',
    'work_pool_blocks',
  ])
    expect(text).toMatch(new RegExp(`^svc_node_${name} \\d`, 'm'));
  expect(text).toMatch(/^svc_node_cut_step_seconds_bucket\{.*step="apply"/m);
  expect((await at('/v1/node/sync')).status).toBe(404);
  expect((await at('/metrics', 'POST')).status).toBe(405);
  // One module says more than the others, and all of it is in the file.
  await expect.poll(() => readFileSync(logFile, 'utf8')).toMatch(/INFO {2}node\.chain: chain open/);
  expect(readFileSync(logFile, 'utf8')).not.toMatch(/INFO {2}node(?!\.chain)/);
  expect(said).toBe('');
});
