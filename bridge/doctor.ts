/** What a stratum server needs (`svc-bridge doctor`, and the pool's). */

import type { SteadyClock } from '../runtime/clock/clock.ts';
import { bad, type Check, ok, warn } from '../runtime/doctor/doctor.ts';
import { DATASET_BYTES, memoryCheck, openFilesCheck, PROGRAM_BYTES } from '../runtime/doctor/machine.ts';
import { miningListenerChecks } from '../runtime/doctor/other-programs.ts';
import { readCertificate } from './connection/certificate.ts';
import type { StratumValues } from './options.ts';

/** Listeners, journals, the database's and the node's connections. */
const OWN_FILES = 2_048;
const DAY_MILLIS = 86_400_000;
const SOON_DAYS = 14;

export const stratumDoctor = (
  values: Pick<StratumValues, 'tlsCert' | 'tlsKey' | 'maxConnections'> & {
    readonly network: string;
    readonly dataDir: string | undefined;
    readonly powMode: 'full' | 'light';
    readonly node: readonly string[];
  },
  now: SteadyClock,
): Check[] => [
  memoryCheck(
    PROGRAM_BYTES + (values.network !== 'development' && values.powMode === 'full' ? DATASET_BYTES : 0),
    'start with --pow-mode light, which verifies fewer shares a second',
  ),
  openFilesCheck(OWN_FILES + Math.ceil((4 * values.maxConnections) / 3), values.dataDir ?? ''),
  ...certificateChecks(values.tlsCert, values.tlsKey, now()),
  ...miningListenerChecks(values.node),
];

export function certificateChecks(cert: string | undefined, key: string | undefined, nowMillis: number): Check[] {
  if (cert === undefined && key === undefined) return [];
  const look = () => {
    if (cert === undefined || key === undefined)
      return bad('a certificate and its key are needed together', 'name both --tls-cert and --tls-key');
    const { expiresMillis } = readCertificate({ cert, key });
    const days = Math.floor((expiresMillis - nowMillis) / DAY_MILLIS);
    const says = `${cert} is valid until ${new Date(expiresMillis).toISOString()}`;
    const remedy = 'renew it; the program reads the file again by itself';
    if (days < 0) return bad(`${says}: it has expired`, remedy);
    return days < SOON_DAYS ? warn(`${says}: ${days} days are left`, remedy) : ok(says);
  };
  return [{ name: 'certificate', look }];
}
