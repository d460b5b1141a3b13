/** `svc-miner doctor`: what a rig needs. */
import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { bad, type Check, type Finding, ok, warn } from '../../runtime/doctor/doctor.ts';
import {
  DATASET_BYTES,
  directoryChecks,
  memoryCheck,
  PROGRAM_BYTES,
  portChecks,
} from '../../runtime/doctor/machine.ts';
import { nodeChecks, poolChecks } from '../../runtime/doctor/other-programs.ts';
import { defaultDataDir, type MinerValues } from '../options.ts';
import { findGpus } from './device-list.ts';

export function minerDoctor(values: MinerValues, now: SteadyClock): Check[] {
  const { dataDir = defaultDataDir(), pool, user, gpu, light, nodeApi } = values;
  const network = user?.address.network ?? values.network;
  const needed = PROGRAM_BYTES + (network === 'development' || light ? 0 : DATASET_BYTES);
  return [
    ...directoryChecks(dataDir),
    memoryCheck(needed, 'mine with --light, or with a graphics card and --cpu-threads 0'),
    { name: 'devices', look: () => (gpu ? lookAtCards() : ok(processor())) },
    ...portChecks(undefined, [
      { option: 'api-bind', address: values.apiBind },
      { option: 'metrics-bind', address: values.metricsBind },
    ]),
    ...poolChecks(
      user !== undefined,
      pool.map(({ endpoint }) => endpoint),
    ),
    ...(nodeApi === undefined ? [] : nodeChecks([nodeApi], '--node-api', user?.address.network, now)),
  ];
}

const processor = (): string => `processor with ${availableParallelism()} threads`;

async function lookAtCards(): Promise<Finding> {
  const { gpus, why } = await findGpus();
  const cards = gpus.filter(({ software }) => !software);
  if (cards.length > 0) return ok(`${cards.map(({ name }) => name).join(', ')}; ${processor()}`);
  // A card that the kernel knows and Vulkan does not.
  const isThere = existsSync('/dev/dri') && readdirSync('/dev/dri').some((name) => name.startsWith('renderD'));
  const says = `no graphics card can be used (${why ?? 'none found'}); ${processor()}`;
  return isThere || existsSync('/dev/nvidia0')
    ? bad(says, "install the card's driver with Vulkan, and let this user open /dev/dri (groups video and render)")
    : warn(says, 'the processor mines far slower; if there is a card, install its driver with Vulkan');
}
