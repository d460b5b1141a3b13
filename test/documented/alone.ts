/** docs/bridge.md and docs/pool.md: servers that bring all they need, one with TLS, one with a database and Redis. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:tls';
import { expect } from 'vitest';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { startRedisServer } from '../pool/redis-server.ts';
import { until } from '../until.ts';
import { json } from './asking.ts';
import type { Reader, Readers } from './reader.ts';

const READY = /ready healthy=true/;

export async function bridgeWithNode(readers: Readers, otto: Reader): Promise<void> {
  expect(await otto.runs('svc-bridge --help')).toContain('--listen');
  const bridge = otto.starts('svc-bridge');
  await bridge.until(/ready healthy=true/);
  await bridge.stop();

  const words = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost';
  const made = spawnSync('openssl', ['req', ...words.split(' '), '-keyout', 'key.pem', '-out', 'chain.pem'], {
    cwd: otto.folder,
  });
  expect(made.status, String(made.stderr)).toBe(0);
  for (const name of ['key.pem', 'chain.pem']) readers.give(otto.path(name));
  const secret = otto.starts('svc-bridge --tls-cert chain.pem --tls-key key.pem');
  await secret.until(/ready healthy=true/);
  const socket = connect({ host: '127.0.0.1', port: readers.port(28_710), rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  socket.destroy();
  await secret.stop();
}

/** Node, wallet and database are its own. */
export async function poolAlone(readers: Readers, eva: Reader): Promise<void> {
  expect(await eva.runs('svc-pool run --help')).toContain('--pplns-listen');
  const pool = eva.starts('svc-pool run');
  await pool.until(READY);
  const asked = `${readers.url(28_740)}/api/v1/pool`;
  expect(await until(() => json(asked), { why: () => pool.shown })).toMatchObject({ network: 'development' });
  await pool.stop();
}

export async function poolOfMany(eva: Reader): Promise<void> {
  const [postgres, redis] = await Promise.all([startPostgresServer(20), startRedisServer()]);
  try {
    const pool = eva.starts('svc-pool run --database postgres://pool:secret@db/pool --redis redis://cache:6379', {
      names: { 'postgres://pool:secret@db/pool': postgres.url, 'redis://cache:6379': redis.url },
    });
    await pool.until(READY);
    await pool.stop();
  } finally {
    await Promise.all([postgres.stop(), redis.stop()]);
  }
}
