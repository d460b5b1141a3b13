/** `svcd doctor`: what a node needs. */

import { toHex } from '../protocol/bytes.ts';
import { chainId, encodeGenesis } from '../protocol/ledger/genesis.ts';
import type { NetworkName } from '../protocol/network.ts';
import type { SteadyClock } from '../runtime/clock/clock.ts';
import type { ValuesOf } from '../runtime/command-line/command-line.ts';
import { optionName } from '../runtime/command-line/options.ts';
import { bad, type Check, ok, warn } from '../runtime/doctor/doctor.ts';
import {
  DATASET_BYTES,
  directoryChecks,
  isInUse,
  memoryCheck,
  openFilesCheck,
  PROGRAM_BYTES,
  portChecks,
  secretCheck,
} from '../runtime/doctor/machine.ts';
import { nodeChecks, reachCheck } from '../runtime/doctor/other-programs.ts';
import { EVERY_INTERFACE, showListenAddress } from '../runtime/listen-address.ts';
import { loadGenesis } from './genesis/make-genesis.ts';
import type { runOptions } from './node-options.ts';

/** Files of the store and connections of the API, beside the peers. */
const OWN_FILES = 1_024;

export function nodeDoctor(values: ValuesOf<typeof runOptions>, now: SteadyClock): Check[] {
  const { dataDir, network, apiBind, miningBind, metricsBind, powMode } = values;
  const { consensusKeyFile, consensusPasswordFile, heartbeatFeeKeyFile, heartbeatFeePasswordFile } = values;
  const secrets = { consensusKeyFile, consensusPasswordFile, heartbeatFeeKeyFile, heartbeatFeePasswordFile };
  const hasDataset = network !== 'development' && powMode === 'full';
  const isRunning = isInUse(dataDir);
  return [
    ...directoryChecks(dataDir),
    memoryCheck(PROGRAM_BYTES + (hasDataset ? DATASET_BYTES : 0), 'start with --pow-mode light'),
    openFilesCheck(OWN_FILES + 4 * values.maxPeers, dataDir),
    ...portChecks(isRunning, [
      { option: 'api-bind', address: apiBind },
      { option: 'mining-bind', address: miningBind },
      { option: 'metrics-bind', address: metricsBind },
    ]),
    ...Object.entries(secrets).flatMap(([name, file]) =>
      file === undefined
        ? []
        : [
            secretCheck(
              optionName(name),
              file,
              'export it from the wallet that holds it (svc-wallet --help), or name the right file',
            ),
          ],
    ),
    ...(consensusKeyFile === undefined || powMode === 'full' ? [] : [lightValidator]),
    ...(values.genesis === undefined ? [] : [genesisCheck(values.genesis, network)]),
    ...(values.bootstrap.length === 0 ? [] : [bootstrapCheck(values.bootstrap)]),
    ...values.neighbour.map((address) =>
      reachCheck('neighbour', address, 'ask its operator whether the node runs and its port is open'),
    ),
    ...(isRunning && apiBind !== 'off' ? nodeChecks([ownUrl(apiBind)], '--api-bind', network, now).slice(0, 1) : []),
  ];
}

const lightValidator: Check = {
  name: 'pow-mode',
  look: () => bad('a validator needs the full dataset', 'run it without --pow-mode light'),
};

const ownUrl = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  `http://${showListenAddress({ host: host === EVERY_INTERFACE || host === '0.0.0.0' ? '127.0.0.1' : host, port })}`;

const genesisCheck = (file: string, network: NetworkName): Check => ({
  name: 'genesis',
  look: () => {
    try {
      const genesis = loadGenesis(file, network);
      return ok(`chain ${toHex(chainId(encodeGenesis(genesis)))}, ${genesis.validators.length} validators`);
    } catch (error) {
      return bad(
        `${file}: ${(error as Error).message}`,
        'get the genesis document from the operators of the chain again',
      );
    }
  },
});

/** Which of the peers to begin with accept connections over TCP. One is enough. */
const bootstrapCheck = (addresses: readonly string[]): Check => ({
  name: 'bootstrap',
  look: async () => {
    const remedy =
      'one is enough, and they may not have started yet: ask their operators whether they run and the ports are open';
    const silent = await Promise.all(
      addresses.map(async (address) => {
        const [, , host = '', way, port] = address.split('/');
        if (way !== 'tcp') return undefined;
        const { state } = await reachCheck('', { host, port: Number(port) }, remedy).look();
        return state === 'ok' ? undefined : `${host}:${port}`;
      }),
    );
    const away = silent.filter((address) => address !== undefined);
    const says = `${addresses.length - away.length} of ${addresses.length} peers answer`;
    return away.length === 0 ? ok(says) : warn(`${says}; no answer from ${away.join(', ')}`, remedy);
  },
});
