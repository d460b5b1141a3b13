/** A certificate that has run out: said at the start, on a change and to the miner; pinned ones go on, and a renewed one is taken at once. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readCertificate, warnOfExpiry, watchCertificate } from '../../bridge/connection/certificate.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import { connectFromNode, type TlsOptions } from '../../miner/client/transport-node.ts';
import { EXPIRED_CERTIFICATE, EXPIRED_FINGERPRINT, TEST_CERTIFICATE } from '../miner/certificate.ts';
import { quietLog } from '../quiet-log.ts';
import { Program } from './program.ts';

/** How a miner's attempt to connect ends: 'open', or the refusal it shows. */
const attempt = (port: string, tls: TlsOptions): Promise<string> =>
  new Promise((resolve) => {
    const transport = connectFromNode(tls)(parsePoolUrl(`stratum+tls://127.0.0.1:${port}`), {
      onOpen: () => {
        resolve('open');
        transport.close();
      },
      onData: () => {},
      onClose: ({ code, message }) => resolve(`${code}: ${message}`),
    });
  });

test('served with a warning, refused by miners in plain words, replaced without a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-certificate-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(cert, EXPIRED_CERTIFICATE.cert);
  writeFileSync(key, EXPIRED_CERTIFICATE.key, { mode: 0o600 });
  // The node need not be there for TLS to be.
  const bridge = new Program('svc-bridge', [
    '--node',
    'http://127.0.0.1:9',
    '--data-dir',
    folder,
    '--threads',
    '1',
    '--verify-threads',
    '1',
    '--listen',
    '127.0.0.1:0',
    '--listen-ws',
    'off',
    '--stats-bind',
    'off',
    '--metrics-bind',
    'off',
    '--tls-cert',
    cert,
    '--tls-key',
    key,
  ]);
  await bridge.until(/the certificate has (expired): only miners that pin it connect at=2001-01-01/);
  const port = await bridge.until(/kind=tcp host=127.0.0.1 port=(\d+)/);
  const trusting = { pins: [], authorities: EXPIRED_CERTIFICATE.cert };
  expect(await attempt(port, trusting)).toMatch(
    /^pool_certificate: stratum\+tls:\/\/127\.0\.0\.1:\d+: certificate has expired/,
  );
  expect(await attempt(port, { pins: [EXPIRED_FINGERPRINT] })).toBe('open');

  writeFileSync(cert, 'not a certificate');
  await bridge.until(/certificate could not be (read) again, the old one stays/);
  expect(await attempt(port, { pins: [EXPIRED_FINGERPRINT] })).toBe('open');

  writeFileSync(cert, TEST_CERTIFICATE.cert);
  await bridge.until(/certificate (read) again/);
  await expect.poll(() => attempt(port, { pins: [], authorities: TEST_CERTIFICATE.cert })).toBe('open');

  writeFileSync(cert, EXPIRED_CERTIFICATE.cert);
  await bridge.until(/certificate read again[\s\S]*the certificate has (expired)/);
  expect(await bridge.stop()).toBe(0);
});

test('the warning comes two weeks ahead', () => {
  const said: string[] = [];
  const log = { ...quietLog, warn: (message: string) => void said.push(message) };
  const day = 86_400_000;
  const certificate = { ...TEST_CERTIFICATE, expiresMillis: 100 * day };
  warnOfExpiry(certificate, log, 85 * day);
  expect(said).toEqual([]);
  warnOfExpiry(certificate, log, 87 * day);
  warnOfExpiry(certificate, log, 100 * day);
  expect(said).toEqual([
    'the certificate expires soon',
    'the certificate has expired: only miners that pin it connect',
  ]);
});

test('the daily look needs no file: one that was removed meanwhile ends nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-certificate-'));
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.cert, EXPIRED_CERTIFICATE.cert);
  writeFileSync(files.key, EXPIRED_CERTIFICATE.key, { mode: 0o600 });
  const certificate = readCertificate(files);
  const said: string[] = [];
  const log = { ...quietLog, warn: (message: string) => void said.push(message) };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  onTestFinished(watchCertificate(files, certificate, log, () => {}));
  rmSync(folder, { recursive: true });
  vi.advanceTimersByTime(86_400_000);
  expect(said).toEqual(['the certificate has expired: only miners that pin it connect']);
});
