/** PostgreSQL servers that files of one worker share (test/pool/ready-cluster.ts) end with the run: a worker is ended by a signal, and ends nothing. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

let directory = '';

export function setup(): void {
  directory = mkdtempSync(join(tmpdir(), 'svc-databases-'));
  process.env.SVC_TEST_DATABASES = directory;
}

async function end(file: string): Promise<void> {
  if (!existsSync(file)) return;
  try {
    process.kill(Number(readFileSync(file, 'utf8').split('\n')[0]), 'SIGINT');
  } catch {
    // It has ended by itself, and its file is an old one.
    return;
  }
  // A server takes it away at its end.
  while (existsSync(file)) await sleep(20);
}

export async function teardown(): Promise<void> {
  await Promise.all(readdirSync(directory).map((name) => end(join(directory, name, 'data', 'postmaster.pid'))));
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
