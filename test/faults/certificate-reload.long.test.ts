/**
 * A certificate that is renewed again and again while miners are connected and others connect: no connection is lost, no handshake
 * fails, shares go on, and later connections see the newest. Half-written pairs and keys that others can read change nothing.
 */
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type PeerCertificate } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { readCertificate, watchCertificate } from '../../bridge/connection/certificate.ts';
import { EASY, startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { count } from '../level.ts';
import { OTHER_CERTIFICATE, OTHER_FINGERPRINT, TEST_CERTIFICATE, TEST_FINGERPRINT } from '../miner/certificate.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

const PAIRS = [
  { pair: TEST_CERTIFICATE, fingerprint: TEST_FINGERPRINT },
  { pair: OTHER_CERTIFICATE, fingerprint: OTHER_FINGERPRINT },
] as const;

/** The fingerprint that a newcomer is shown; rejects when the handshake fails. */
const shown = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      const { fingerprint256 } = socket.getPeerCertificate() as PeerCertificate;
      socket.destroy();
      resolve(fingerprint256.replaceAll(':', '').toLowerCase());
    });
    socket.on('error', reject);
  });

test.each([0, 2])('reloads under load lose no connection (%i listener threads)', async (threads) => {
  const { server, port, sink } = await startBed({
    certificate: TEST_CERTIFICATE,
    threads,
    limits: { ...EASY, vardiff: { ...EASY.vardiff, startWork: 1n } },
  });
  let lost = 0;
  const miners = await Promise.all(
    Array.from({ length: count({ full: 10, deep: 400 }) }, async (_, i) => {
      const client = await V1Client.open(port, 'tls');
      void client.closed.then(() => lost++);
      await client.login(`${addressOf(i)}.rig`);
      return client;
    }),
  );
  let isOver = false;
  let newcomers = 0;
  const churn = (async () => {
    while (!isOver) {
      await Promise.all(Array.from({ length: 5 }, () => shown(port)));
      newcomers += 5;
    }
  })();
  let shares = 0;
  const load = (async () => {
    for (let [i, from] = [0, 0n]; !isOver; i++) {
      const client = miners[i % miners.length] as V1Client;
      const job = client.jobs.at(-1) ?? expect.fail('a miner without a job');
      const { nonce, next } = mine(job, client.prefix, from);
      from = next;
      expect(await client.submitCode(job.jobId, nonce)).toBe(0);
      shares++;
    }
  })();
  const reloads = count({ full: 30, deep: 2_000 });
  for (let i = 1; i <= reloads; i++) {
    const { pair } = PAIRS[i % 2] as (typeof PAIRS)[number];
    server.setCertificate(pair);
    await sleep(10);
  }
  const { fingerprint } = PAIRS[reloads % 2] as (typeof PAIRS)[number];
  await expect.poll(() => shown(port)).toBe(fingerprint);
  await expect.poll(() => newcomers).toBeGreaterThan(10);
  isOver = true;
  await Promise.all([churn, load]);
  expect(lost).toBe(0);
  expect(sink.accepted).toHaveLength(shares);
  for (const client of miners) client.close();
});

test('files are read again when they change; half a pair, or a key that others can read, leaves the old one', async () => {
  const { server, port } = await startBed({ certificate: TEST_CERTIFICATE });
  const directory = temporaryDirectory();
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
  const put = (path: string, text: string) => {
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  put(files.cert, TEST_CERTIFICATE.cert);
  put(files.key, TEST_CERTIFICATE.key);
  let changes = 0;
  let current = TEST_CERTIFICATE.cert;
  const stop = watchCertificate(files, readCertificate(files), quietLog, (pair) => {
    // Both files are watched: each may bring the same pair.
    if (pair.cert !== current) changes++;
    current = pair.cert;
    server.setCertificate(pair);
  });
  onTestFinished(stop);
  const miner = await V1Client.open(port, 'tls');
  await miner.login(`${addressOf(1)}.rig`);
  put(files.cert, OTHER_CERTIFICATE.cert);
  await sleep(3_000);
  expect([changes, await shown(port)]).toEqual([0, TEST_FINGERPRINT]);
  put(files.key, OTHER_CERTIFICATE.key);
  await expect.poll(() => shown(port)).toBe(OTHER_FINGERPRINT);
  const before = changes;
  chmodSync(files.key, 0o644);
  put(files.cert, TEST_CERTIFICATE.cert);
  await sleep(3_000);
  expect([changes, await shown(port)]).toEqual([before, OTHER_FINGERPRINT]);
  const job = miner.jobs.at(-1) ?? expect.fail('no job');
  expect(await miner.submitCode(job.jobId, mine(job, miner.prefix).nonce)).toBe(0);
  miner.close();
});
