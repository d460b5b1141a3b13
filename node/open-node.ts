/**
 * A node as a library: its chain opened from a directory and running, without listeners. `svcd` puts listeners around it
 * (daemon.ts); the bridge and the pool embed it. The verifier is handed in, so that a process has one dataset.
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import type { Verifier } from '../kernels/verifier.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import type { Output } from '../protocol/transaction.ts';
import { steadyMillis } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { certifyWith } from './certificate.ts';
import { DEVELOPMENT_DEFAULTS, developmentGenesis, developmentKey, validatorName } from './development.ts';
import type { FullNode } from './full-node.ts';
import { addressIndex } from './index/address-index.ts';
import { createNode, NODE_DEFAULTS } from './node.ts';
import type { NodeMetrics } from './node-metrics.ts';
import { StoreError } from './store/ledger-store.ts';

type ChainSettings = {
  readonly cutMillis: number;
  readonly mempoolSize: number;
  readonly signatureThreads: number;
  /** Of a new development chain. */
  readonly powEpochLength: number;
  readonly initialWork: number;
  readonly minimumWork: number;
  readonly fund: readonly Output[];
};

const DEFAULTS: ChainSettings = {
  cutMillis: NODE_DEFAULTS.cutMillis,
  mempoolSize: NODE_DEFAULTS.mempoolBytes,
  signatureThreads: NODE_DEFAULTS.signatureThreads,
  powEpochLength: DEVELOPMENT_DEFAULTS.powEpochLength,
  initialWork: Number(DEVELOPMENT_DEFAULTS.initialWork),
  minimumWork: Number(DEVELOPMENT_DEFAULTS.minimumWork),
  fund: [],
};

export type NodeSettings = {
  readonly network: NetworkName;
  /** Locked by the caller. */
  readonly dataDir: string;
} & Partial<ChainSettings>;

export type NodeDependencies = {
  readonly verifier: Pick<Verifier, 'prepare' | 'hash'>;
  readonly log: Logger;
  /** The wall clock that the chain's times come from. */
  readonly now: () => number;
  /** Registers what has started, to be stopped in reverse. */
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  /** The node cannot go on. */
  readonly fault: (reason: string) => void;
  readonly figures?: NodeMetrics;
};

export const storeDirectory = (dataDir: string): string => join(dataDir, 'store');

/** Only the development network has a genesis; inventing one for another would make a chain that nobody else is on. */
export function checkNetwork(network: NetworkName): void {
  if (network !== 'development')
    throw new StoreError(
      'store_genesis',
      `no ${network} genesis is defined yet: only --network development can be run`,
    );
}

export async function openNode(given: NodeSettings, dependencies: NodeDependencies): Promise<FullNode> {
  checkNetwork(given.network);
  const settings = { ...DEFAULTS, ...given };
  const { verifier, log, now, started, fault, figures } = dependencies;
  const newGenesis = () =>
    developmentGenesis({
      timestampMillis: now(),
      powEpochLength: settings.powEpochLength,
      initialWork: BigInt(settings.initialWork),
      minimumWork: BigInt(settings.minimumWork),
      fund: settings.fund,
    });
  const keys = [0, 1, 2, 3].map((member) => developmentKey(validatorName(member)).privateKey);
  const node = await createNode(
    {
      storeDirectory: storeDirectory(settings.dataDir),
      network: NETWORKS[settings.network],
      cutMillis: settings.cutMillis,
      mempoolBytes: settings.mempoolSize,
      signatureThreads: settings.signatureThreads,
      newGenesis,
    },
    {
      verifier,
      certify: certifyWith(keys),
      now,
      steady: steadyMillis,
      random: (limit) => randomInt(limit),
      log: log.child('chain'),
      indexers: [addressIndex],
      ...(figures === undefined ? {} : { onCutStep: figures.cutStep, onSubmission: figures.submission }),
    },
  );
  started('node', () => node.close());
  figures?.watch(node);
  node.on('fault', (error) => fault(`fault: ${error.message}`));
  return node;
}
