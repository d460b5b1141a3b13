/**
 * Memory of a bridge without a single miner, with full bodies of a mebibyte in four draws every half second, each cut with
 * some new transactions: `npm run bench -- templates`. It lasts SVC_SOAK_MINUTES, three unless it says otherwise: what is
 * kept of templates reaches its highest after 48 seconds (96 cuts).
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bench } from './harness.ts';
import { FullNode } from './templates/full-node.ts';

const ROOT = join(import.meta.dirname, '../..');
const CUT_MILLIS = 500;
const SAMPLE_MILLIS = 5_000;
const MIB = 1024 * 1024;

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

export default bench('memory of a bridge with full templates every half second', async (b) => {
  const minutes = Number(process.env.SVC_SOAK_MINUTES ?? 3);
  const perCut = Number(b.words[0] ?? 15);
  const node = new FullNode(perCut);
  const url = await node.listen();
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const words = ['--node', url, '--data-dir', directory, '--listen', '127.0.0.1:0', '--listen-ws', 'off'];
  const quiet = ['--stats-bind', 'off', '--metrics-bind', '127.0.0.1:0', '--threads', '1', '--verify-threads', '1'];
  const bridge = spawn(process.execPath, [join(ROOT, 'bin/svc-bridge'), ...words, ...quiet], { cwd: ROOT });
  let output = '';
  const port = Promise.withResolvers<string>();
  const read = (part: Buffer) => {
    output += part.toString();
    const found = /metrics address=127\.0\.0\.1:(\d+)/.exec(output)?.[1];
    if (found !== undefined) port.resolve(found);
  };
  bridge.stdout.on('data', read);
  bridge.stderr.on('data', read);
  const metrics = `http://127.0.0.1:${await port.promise}/metrics`;
  const metric = async (name: string) =>
    Number(new RegExp(`^${name} (\\S+)`, 'm').exec(await (await fetch(metrics)).text())?.[1] ?? 0);
  const cuts = setInterval(() => node.cut(), CUT_MILLIS);
  const resident: number[] = [];
  const kept: number[] = [];
  try {
    for (const until = Date.now() + minutes * 60_000; Date.now() < until; ) {
      await sleep(SAMPLE_MILLIS);
      resident.push(residentBytes(bridge.pid as number) / MIB);
      kept.push((await metric('svc_bridge_templates_kept_bytes')) / MIB);
    }
    const part = Math.max(1, Math.floor(resident.length / 3));
    b.note(`${minutes} min, ${perCut} new transactions a cut, ${await metric('svc_bridge_templates_total')} sets`);
    b.figure('kept-bytes-highest', Math.max(...kept), 'MiB');
    b.figure('memory-first-third', mean(resident.slice(0, part)), 'MiB');
    b.figure('memory-middle-third', mean(resident.slice(part, 2 * part)), 'MiB');
    b.figure('memory-last-third', mean(resident.slice(-part)), 'MiB');
    b.figure('memory-highest', Math.max(...resident), 'MiB');
  } finally {
    clearInterval(cuts);
    bridge.kill('SIGTERM');
    node.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
