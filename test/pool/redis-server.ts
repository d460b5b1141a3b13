/** A real redis-server for tests: its own directory, a free port, nothing saved unless asked, so a restart forgets everything. */
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { connectRedis, redisReady } from '../../pool/shared/redis.ts';
import { freePort } from '../../runtime/free-port.ts';
import { quietLog } from '../quiet-log.ts';

export type RedisServer = {
  readonly url: string;
  /** As the programs connect, until the test ends: what is left open tries to connect for ever when the server has ended. */
  connect(name: string): Promise<Redis>;
  /** Kills the process at once; its data is gone. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Keeps a copy of what it holds now. */
  save(): Promise<void>;
  /** Kills it and starts it with the copy. */
  restore(): Promise<void>;
  stop(): Promise<void>;
};

export async function startRedisServer(): Promise<RedisServer> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'svc-redis-'));
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const start = async () => {
    child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory], {
      stdio: 'ignore',
    });
    const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
    redis.on('error', () => undefined);
    await redis.ping();
    redis.disconnect();
  };
  const kill = async () => {
    const running = child;
    child = undefined;
    if (running === undefined) return;
    const closed = new Promise((resolve) => running.once('close', resolve));
    running.kill('SIGKILL');
    await closed;
    await sleep(20);
  };
  await start();
  const [dump, copy] = [join(directory, 'dump.rdb'), join(directory, 'copy.rdb')];
  return {
    url,
    async connect(name) {
      const redis = connectRedis(url, name, quietLog);
      onTestFinished(() => redis.disconnect());
      await redisReady(redis, 120_000);
      return redis;
    },
    start,
    kill,
    async save() {
      const redis = new Redis(url);
      await redis.save();
      redis.disconnect();
      copyFileSync(dump, copy);
      rmSync(dump);
    },
    async restore() {
      await kill();
      copyFileSync(copy, dump);
      await start();
      rmSync(dump, { force: true });
    },
    async stop() {
      await kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
