/**
 * The certificate of a stratum server: read from its files, checked before use, and read again when they change. A new
 * one that cannot be used, or half of a pair, leaves the old one in place; one that has expired is served with a
 * warning, because miners that pin it still accept it.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { BridgeError } from '../bridge-error.ts';
import type { CertificatePem } from '../threads/hub.ts';

export type CertificateFiles = { readonly cert: string; readonly key: string };
export type ReadCertificate = CertificatePem & { readonly expiresMillis: number };

const POLL_MILLIS = 2_000;
const DAY_MILLIS = 86_400_000;
const SOON_DAYS = 14;

export function readCertificate(files: CertificateFiles): ReadCertificate {
  try {
    const cert = readFileSync(files.cert, 'utf8');
    const secret = readPrivateFile(files.key);
    if (secret.kind !== 'text') throw new Error(secret.kind === 'missing' ? 'there is no key file' : secret.reason);
    const key = secret.text;
    const parsed = new X509Certificate(cert);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error('the key does not belong to the certificate');
    return { cert, key, expiresMillis: Date.parse(parsed.validTo) };
  } catch (error) {
    throw new BridgeError('certificate_unusable', `${files.cert} and ${files.key}: ${(error as Error).message}`);
  }
}

/** Returns a function that stops watching. `read` is the certificate in use; its expiry is checked once a day. */
export function watchCertificate(
  files: CertificateFiles,
  read: ReadCertificate,
  log: Logger,
  onChange: (certificate: ReadCertificate) => void,
): () => void {
  let current = read;
  const reload = (): void => {
    try {
      current = readCertificate(files);
      warnOfExpiry(current, log, Date.now());
      onChange(current);
      log.info('certificate read again', { file: files.cert });
    } catch (error) {
      if (!(error instanceof BridgeError)) throw error;
      log.warn('certificate could not be read again, the old one stays in use', { error });
    }
  };
  const timer = setInterval(() => warnOfExpiry(current, log, Date.now()), DAY_MILLIS);
  timer.unref();
  for (const file of [files.cert, files.key]) watchFile(file, { interval: POLL_MILLIS }, reload);
  return () => {
    clearInterval(timer);
    for (const file of [files.cert, files.key]) unwatchFile(file, reload);
  };
}

export function warnOfExpiry({ expiresMillis }: ReadCertificate, log: Logger, nowMillis: number): void {
  const at = new Date(expiresMillis).toISOString();
  if (expiresMillis <= nowMillis) log.warn('the certificate has expired: only miners that pin it connect', { at });
  else if (expiresMillis <= nowMillis + SOON_DAYS * DAY_MILLIS)
    log.warn('the certificate expires soon', { at, days: Math.floor((expiresMillis - nowMillis) / DAY_MILLIS) });
}
