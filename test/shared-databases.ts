/** PostgreSQL servers that files of one worker share (test/pool/ready-cluster.ts) end with the run: a worker is ended by a signal, and ends nothing. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** From the signal until it is killed: it takes a second, and the machine may be busy. */
const END_MILLIS = 60_000;
const LOOK_MILLIS = 20;

let directory = '';

export function setup(): void {
  directory = mkdtempSync(join(tmpdir(), 'svc-databases-'));
  process.env.SVC_TEST_DATABASES = directory;
}

const tell = (pid: number, signal: 'SIGINT' | 'SIGKILL'): boolean => {
  try {
    return process.kill(pid, signal);
  } catch {
    // It has ended by itself.
    return false;
  }
};

/** `file`: where a server wrote its process; it takes the file away at its end. What does not end is killed, and said. */
export async function endServer(file: string, say: (line: string) => void, endMillis = END_MILLIS): Promise<void> {
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  if (!tell(pid, 'SIGINT')) return;
  for (let left = endMillis; left > 0 && existsSync(file); left -= LOOK_MILLIS) await sleep(LOOK_MILLIS);
  if (existsSync(file) && tell(pid, 'SIGKILL'))
    say(`a PostgreSQL of the tests (process ${pid}) did not end in ${endMillis / 1_000} s and was killed`);
}

export async function teardown(): Promise<void> {
  const files = readdirSync(directory).map((name) => join(directory, name, 'data', 'postmaster.pid'));
  await Promise.all(files.map((file) => endServer(file, console.error)));
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
