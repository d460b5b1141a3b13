/** What an operator has to keep up, as figures for Prometheus: room on the disk, copies of the books, certificate, wallet. */
import { X509Certificate } from 'node:crypto';
import { readFile, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { WallClock } from '../runtime/clock/clock.ts';
import type { Gauge, Metrics } from '../runtime/metrics/metrics.ts';
import type { PayoutWallet } from './payout/payout-wallet.ts';

/** Its time is that of the newest copy that `svc-pool backup` made; empty. */
export const LAST_BACKUP_FILE = 'last-backup';

export type Upkeep = {
  readonly dataDir: string;
  readonly certificate: string | undefined;
  readonly wallet: Pick<PayoutWallet, 'status'>;
  readonly wall: WallClock;
};

/** A figure that is not known is not exported: the alerts look for missing ones. */
export function upkeepMetrics(metrics: Metrics, { dataDir, certificate, wallet, wall }: Upkeep): () => Promise<void> {
  const gauge = (name: string, help: string) => {
    let made: Gauge<never> | undefined;
    return (value: number) => {
      made ??= metrics.gauge(name, { help });
      made.set(value);
    };
  };
  const free = gauge('svc_pool_disk_free_bytes', 'Room on the disk of the data directory');
  const backup = gauge('svc_pool_backup_age_seconds', 'Since the newest copy of the books by svc-pool backup');
  const expiry = gauge('svc_pool_certificate_expires_seconds', 'Until the certificate of the stratum ports expires');
  const spendable = gauge('svc_pool_wallet_spendable_atoms', 'What the wallet can pay now');
  return async () => {
    const { bavail, bsize } = await statfs(dataDir);
    free(bavail * bsize);
    const copied = await stat(join(dataDir, LAST_BACKUP_FILE)).catch(() => undefined);
    if (copied !== undefined) backup(Math.max(0, (wall() - copied.mtimeMs) / 1000));
    const pem = certificate === undefined ? undefined : await readFile(certificate).catch(() => undefined);
    if (pem !== undefined) expiry((Date.parse(new X509Certificate(pem).validTo) - wall()) / 1000);
    const answer = await wallet.status();
    if (answer.kind === 'ok') spendable(Number(answer.value.spendable));
  };
}
