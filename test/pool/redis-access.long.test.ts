/** The Redis of deploy/compose.yaml asks for a password, and the pool's connection gives it; TLS with an authority of one's own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { connectRedis, redisReady } from '../../pool/shared/redis.ts';
import { freePort } from '../../runtime/free-port.ts';
import { read } from '../guards/project-files.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

async function serve(port: number, words: readonly string[]): Promise<void> {
  const server: ChildProcess = spawn('redis-server', words, { stdio: 'ignore' });
  onTestFinished(async () => {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
  while (!(await isOpen())) await sleep(25);
}

/** A good answer is waited for; a refusal shows within the time. */
async function answer(url: string, millis = 2_000): Promise<string> {
  const redis = connectRedis(url, 'test', quietLog);
  onTestFinished(() => redis.disconnect());
  await redisReady(redis, millis);
  return redis.ping().catch((error: Error) => error.message);
}

test('the compose file starts a Redis that takes nothing without its password', async () => {
  const directory = temporaryDirectory();
  const secret = join(directory, 'redis.conf');
  writeFileSync(secret, 'requirepass a-long-password\n', { mode: 0o600 });
  const line = /^ {4}command: (\["redis-server".*\])$/m.exec(read('deploy/compose.yaml'))?.[1] ?? '[]';
  const [program, config, ...options] = JSON.parse(line) as string[];
  expect([program, config]).toEqual(['redis-server', '/run/secrets/redis']);
  const port = await freePort();
  await serve(port, [secret, ...options, '--port', String(port), '--bind', '127.0.0.1', '--dir', directory]);
  expect(await answer(`redis://:a-long-password@127.0.0.1:${port}`, 120_000)).toBe('PONG');
  expect(await answer(`redis://127.0.0.1:${port}`)).toMatch(/NOAUTH|not ready|isn't writeable|closed/i);
  expect(await answer(`redis://:a-guess@127.0.0.1:${port}`)).not.toBe('PONG');
});

test('rediss:// is TLS: the certificate of an authority that NODE_EXTRA_CA_CERTS names is taken, and no other', async () => {
  const directory = temporaryDirectory();
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  writeFileSync(cert, TEST_CERTIFICATE.cert);
  writeFileSync(key, TEST_CERTIFICATE.key, { mode: 0o600 });
  const port = await freePort();
  await serve(port, [
    '--port',
    '0',
    '--tls-port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    directory,
    '--save',
    '',
    '--tls-cert-file',
    cert,
    '--tls-key-file',
    key,
    '--tls-auth-clients',
    'no',
    '--requirepass',
    'p',
  ]);
  // A process of its own: Node reads the variable once, when it starts.
  const script = `
    import { connectRedis, redisReady } from '${join(import.meta.dirname, '../../pool/shared/redis.ts')}';
    import { quietLog } from '${join(import.meta.dirname, '../quiet-log.ts')}';
    const redis = connectRedis('rediss://:p@localhost:${port}', 'test', quietLog);
    await redisReady(redis, Number(process.argv[1]));
    console.log(await redis.ping().catch(() => 'refused'));
    redis.disconnect();`;
  const run = (env: Record<string, string>, millis: number) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', script, String(millis)], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    }).stdout.trim();
  expect(run({ NODE_EXTRA_CA_CERTS: cert }, 120_000)).toBe('PONG');
  expect(run({}, 2_000)).toBe('refused');
});
