/** What a stratum server needs (`svc-bridge doctor`, and the pool's). */

import type { Check } from '../runtime/doctor/doctor.ts';
import {
  certificateChecks,
  DATASET_BYTES,
  memoryCheck,
  openFilesCheck,
  PROGRAM_BYTES,
} from '../runtime/doctor/machine.ts';
import { miningListenerChecks } from '../runtime/doctor/other-programs.ts';
import type { StratumValues } from './options.ts';

/** Listeners, journals, the database's and the node's connections. */
const OWN_FILES = 1_024;

export const stratumDoctor = (
  values: Pick<StratumValues, 'tlsCert' | 'tlsKey' | 'maxConnections'> & {
    readonly network: string;
    readonly powMode: 'full' | 'light';
    readonly node: readonly string[];
  },
  now: () => number,
): Check[] => [
  memoryCheck(
    PROGRAM_BYTES + (values.network !== 'development' && values.powMode === 'full' ? DATASET_BYTES : 0),
    'start with --pow-mode light, which verifies fewer shares a second',
  ),
  openFilesCheck(OWN_FILES + values.maxConnections),
  ...certificateChecks(values.tlsCert, values.tlsKey, now()),
  ...miningListenerChecks(values.node),
];
