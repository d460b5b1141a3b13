/**
 * Initialises a data directory without a chain from a snapshot, from a file or from peers. One that has a chain is left
 * unchanged: a node is restarted with the same options.
 */
import { rm } from 'node:fs/promises';
import type { Genesis } from '../../protocol/ledger/genesis.ts';
import { type LedgerClock, steadyMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { NetworkPlan } from '../network/network-options.ts';
import { fetchDirectory, fetchSnapshot } from '../network/snapshots/fetch-snapshot.ts';
import { hasChain, installSnapshot } from '../snapshot/install-snapshot.ts';
import { SnapshotError } from '../snapshot/snapshot-error.ts';
import type { SnapshotPlan } from '../snapshot/snapshot-options.ts';
import { storeDirectory } from '../store/storage-mode.ts';

export type BeginSettings = NonNullable<SnapshotPlan['begin']> & {
  readonly network: Genesis['network'];
  readonly dataDir: string;
  readonly genesis: Genesis | undefined;
  readonly peers: NetworkPlan | undefined;
  readonly release: string;
};

export type BeginDependencies = {
  readonly log: Logger;
  readonly now: LedgerClock;
  readonly started: (name: string, stop: () => void) => void;
};

export async function beginWithSnapshot(settings: BeginSettings, dependencies: BeginDependencies): Promise<void> {
  const { file, trust, dataDir } = settings;
  const { log } = dependencies;
  const fetched = fetchDirectory(dataDir);
  if (await hasChain(storeDirectory(dataDir))) {
    await rm(fetched, { recursive: true, force: true });
    log.info('the data directory has a chain already: no snapshot is read');
    return;
  }
  if (file === undefined) {
    const found = await fetchFrom(settings, dependencies);
    await install(settings, found.file, found.cutId, dependencies);
    await rm(fetched, { recursive: true, force: true });
  } else await install(settings, file, trust.cutId, dependencies);
}

async function fetchFrom(
  { genesis, peers, dataDir, trust, release }: BeginSettings,
  { log, now, started }: BeginDependencies,
) {
  if (peers === undefined)
    throw new SnapshotError(
      'snapshot_config',
      '--trust without --snapshot asks peers, and there are none: --bootstrap',
    );
  if (genesis === undefined)
    throw new SnapshotError('snapshot_config', '--trust without --snapshot asks peers of a chain: name its --genesis');
  const closing = new AbortController();
  started('snapshot of peers', () => closing.abort());
  return await fetchSnapshot(
    { dataDir, peers, trust, genesis, release },
    { log: log.child('p2p'), now, steady: steadyMillis, signal: closing.signal },
  );
}

async function install(
  { network, genesis, dataDir }: BeginSettings,
  file: string,
  trust: Uint8Array,
  { log, now }: BeginDependencies,
): Promise<void> {
  log.info('reading a snapshot', { file });
  const chain = { network, genesis, nowMillis: now(), storeDirectory: storeDirectory(dataDir) };
  const found = await installSnapshot({ ...chain, file, trust });
  if (found !== undefined)
    log.info('snapshot read', { height: found.head.state.height, cut: found.head.cut.cutId, pieces: found.pieces });
}
