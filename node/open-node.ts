/**
 * A node as a library: its chain opened from a directory and running, without listeners. `svcd` adds listeners
 * (daemon.ts); the bridge and the pool embed it. The verifier is passed in, so that a process has one dataset.
 */
import { randomInt } from 'node:crypto';
import type { Verifier } from '../kernels/verifier.ts';
import type { Certificate } from '../protocol/ledger/cut.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import type { Evidence } from '../protocol/staking/operation.ts';
import type { Output } from '../protocol/transactions/transaction.ts';
import { type LedgerClock, steadyMillis, type WallClock } from '../runtime/clock/clock.ts';
import type { Logger } from '../runtime/log/log.ts';
import { AutoPruning } from './chain/auto-pruning.ts';
import { beginWithSnapshot } from './chain/begin-with-snapshot.ts';
import { certifyWith } from './chain/certificate.ts';
import { type Checkpoint, checkpointsOf, checkStoredChain } from './chain/checkpoints.ts';
import { heightsToShow, Tip } from './chain/tip.ts';
import type { ConsensusDriver } from './consensus/driver/driver.ts';
import type { FullNode } from './full-node.ts';
import {
  DEVELOPMENT_DEFAULTS,
  developmentGenesis,
  developmentKey,
  EMBEDDED_VALIDATORS,
  validatorName,
} from './genesis/development.ts';
import { loadGenesis } from './genesis/make-genesis.ts';
import { addressIndex } from './index/address-index.ts';
import { INDEX_NAME, outpointKey } from './index/index-keys.ts';
import { IndexReader } from './index/index-reader.ts';
import { nameOf } from './ledger/registration.ts';
import type { NetworkPlan } from './network/network-options.ts';
import { openNetwork, type PeerView } from './network/open-network.ts';
import { type ConsensusNode, createNode } from './node.ts';
import { NODE_DEFAULTS } from './node-defaults.ts';
import type { NodeMetrics } from './node-metrics.ts';
import { openConsensus } from './open-consensus.ts';
import type { SnapshotPlan } from './snapshot/snapshot-options.ts';
import { SnapshotShelf } from './snapshot/snapshot-shelf.ts';
import { SnapshotWriter } from './snapshot/snapshot-writer.ts';
import { type StorageMode, storeDirectory } from './store/storage-mode.ts';
import { EvidenceDesk } from './validator/evidence.ts';
import { type HeartbeatDependencies, type HeartbeatFees, Heartbeats } from './validator/heartbeats.ts';
import { loadValidatorKey, ValidatorError, type ValidatorKey } from './validator/validator-key.ts';
import type { HeartbeatPlan, ValidatorPlan } from './validator/validator-options.ts';

type ChainSettings = {
  readonly cutMillis: number;
  readonly mempoolSize: number;
  readonly signatureThreads: number;
  readonly storage: StorageMode;
  /** Of a new development chain. */
  readonly powEpochLength: number;
  readonly initialWork: number;
  readonly minimumWork: number;
  readonly intervalCuts: number;
  readonly fund: readonly Output[];
};

const DEFAULTS: ChainSettings = {
  cutMillis: NODE_DEFAULTS.cutMillis,
  mempoolSize: NODE_DEFAULTS.mempoolBytes,
  signatureThreads: NODE_DEFAULTS.signatureThreads,
  storage: 'full',
  powEpochLength: DEVELOPMENT_DEFAULTS.powEpochLength,
  initialWork: Number(DEVELOPMENT_DEFAULTS.initialWork),
  minimumWork: Number(DEVELOPMENT_DEFAULTS.minimumWork),
  intervalCuts: DEVELOPMENT_DEFAULTS.intervalCuts,
  fund: [],
};

export type NodeSettings = {
  readonly network: NetworkName;
  /** Locked by the caller. */
  readonly dataDir: string;
  /** File of a genesis document; a network other than development needs one for a new data directory. */
  readonly genesis?: string | undefined;
  /** Cuts are made by validators in separate nodes, of which this may be one; without it they are made inside this node. */
  readonly validators?: ValidatorPlan | undefined;
  /** Peers; without it the node has none. */
  readonly peers?: NetworkPlan | undefined;
  readonly release?: string;
  readonly snapshots?: SnapshotPlan;
  /** In addition to those of the release. */
  readonly checkpoint?: readonly Checkpoint[];
} & Partial<ChainSettings>;

export type OpenNodeDependencies = {
  readonly verifier: Pick<Verifier, 'prepare' | 'hash'>;
  readonly log: Logger;
  /** The wall clock that the chain's times come from. */
  readonly now: LedgerClock;
  /** The system's clock, where `now` follows it late. */
  readonly wall?: WallClock;
  /** Registers a started part, to be stopped in reverse order. */
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  /** The node must stop. */
  readonly fault: (reason: string) => void;
  readonly figures?: NodeMetrics;
  /** The network of peers has started. */
  readonly onPeers?: (view: PeerView) => void;
};

/** Cut 0 follows from the genesis document: nodes without the keys do not need a signature for it. */
const UNSIGNED: Certificate = { round: 0, signatures: [] };

/** The publicly known keys, which every node holds. */
const embeddedKeys = () =>
  Array.from({ length: EMBEDDED_VALIDATORS }, (_, member) => developmentKey(validatorName(member)));

async function loadHeartbeatFees(
  { files, validatorId, maxFeeAtoms, feePerMass }: HeartbeatPlan,
  network: NetworkName,
): Promise<HeartbeatFees> {
  const key = await loadValidatorKey(files, 'heartbeat-fee', network);
  return { validatorId, key, maxFeeAtoms, feePerMass };
}

function unspentOf(node: FullNode): HeartbeatDependencies['unspent'] {
  const index = new IndexReader(node.chain.reader(INDEX_NAME), () => node.chain.head().height);
  return async (address, after) => (await index.unspent(address, after && outpointKey(after), 512)).value;
}

function beat(node: FullNode, log: Logger, keys: readonly ValidatorKey[], fees?: HeartbeatFees): Heartbeats {
  const heartbeats = new Heartbeats({ node, keys, fees, unspent: unspentOf(node), log: log.child('validator') });
  node.on('cut', () => void heartbeats.tick().catch((error) => log.warn('no heartbeat could be sent', { error })));
  return heartbeats;
}

function accuse(node: FullNode, log: Logger, fees: HeartbeatFees): EvidenceDesk {
  const desk = new EvidenceDesk({ node, fees, unspent: unspentOf(node), log: log.child('validator') });
  node.on('cut', () => void desk.tick().catch((error) => log.warn('no evidence could be sent', { error })));
  return desk;
}

/** Of a node with the overlay of validators and no peers. */
function followOverlay(
  node: FullNode,
  driver: Pick<ConsensusDriver, 'reported'>,
  cutMillis: number,
  clocks: readonly (() => number)[],
): void {
  const { chain } = node;
  const tip = new Tip({ head: () => chain.head(), proven: () => driver.reported(), cutMillis, clocks });
  node.on('cut', () => tip.look());
  chain.followPeers(() => ({
    ...heightsToShow(driver.reported(), chain.head().height),
    synced: tip.look(),
    peers: 0,
    updateAnnounced: false,
    updateRequired: false,
  }));
}

function whyNoValidator(historyFrom: number, bodiesFrom: number): string {
  if (historyFrom > 0)
    return `a validator executes every cut since genesis, and this data directory began with a snapshot of cut ${historyFrom - 1}: sync into a new one`;
  return bodiesFrom > 0
    ? `a validator needs every block since genesis, and this data directory has none before cut ${bodiesFrom}: sync into a new one`
    : 'a validator keeps every block: run it without --storage pruned';
}

/** Deleted blocks stay deleted, whatever the mode is now. */
function checkStorage({ chain }: FullNode, storage: StorageMode, isValidator: boolean, log: Logger): void {
  const bodiesFrom = chain.bodiesFrom();
  const historyFrom = chain.historyFrom();
  if (historyFrom > 0)
    log.info('this node began with a snapshot: it follows, and neither makes cuts nor signs', {
      history_from: historyFrom,
    });
  if (isValidator && (storage === 'pruned' || bodiesFrom > 0))
    throw new ValidatorError('validator_pruned', whyNoValidator(historyFrom, bodiesFrom));
  if (storage !== 'pruned' && bodiesFrom > 0)
    log.warn('blocks are missing that were pruned before: this node cannot serve the whole chain', {
      storage,
      bodies_from: bodiesFrom,
      advice: 'sync into a new data directory',
    });
}

/** Snapshots are written to the folder, and those in it are given to peers. */
async function serveSnapshots(
  write: NonNullable<SnapshotPlan['write']>,
  node: ConsensusNode,
  log: Logger,
  started: OpenNodeDependencies['started'],
): Promise<SnapshotShelf> {
  const { directory } = write;
  const shelf = new SnapshotShelf({
    directory,
    cutIdOf: (height) => node.chain.cut(height)?.cutId,
    steady: steadyMillis,
    log,
  });
  started('snapshots for peers', () => shelf.close());
  await shelf.look();
  const writer = new SnapshotWriter({ ...write, node, log, written: () => shelf.look() });
  started('snapshots', () => writer.stop());
  return shelf;
}

export async function openNode(given: NodeSettings, dependencies: OpenNodeDependencies): Promise<FullNode> {
  const settings = { ...DEFAULTS, ...given };
  const { verifier, log, now, wall, started, fault, figures } = dependencies;
  const { validators, network, dataDir, cutMillis, peers } = settings;
  // A node with a configured peer follows it, whatever keys it holds: if it made cuts itself, it would make another chain.
  const mayMakeCuts = validators === undefined && (peers === undefined || peers.bootstrap.length === 0);
  // Checked before anything is opened: a key that cannot be used stops the start.
  const key = validators?.files && (await loadValidatorKey(validators.files, 'consensus', network));
  const checkpoints = checkpointsOf(network, settings.checkpoint ?? []);
  const genesis = settings.genesis === undefined ? undefined : loadGenesis(settings.genesis, network);
  const begin = settings.snapshots?.begin;
  if (begin !== undefined && key !== undefined)
    throw new ValidatorError(
      'validator_pruned',
      'a validator reads the chain from genesis: run it without --snapshot and --trust',
    );
  const release = settings.release ?? '';
  if (begin !== undefined)
    await beginWithSnapshot({ ...begin, network, dataDir, genesis, peers, release }, { log, now, started });
  const newGenesis = () =>
    developmentGenesis({
      timestampMillis: now(),
      powEpochLength: settings.powEpochLength,
      initialWork: BigInt(settings.initialWork),
      minimumWork: BigInt(settings.minimumWork),
      intervalCuts: settings.intervalCuts,
      fund: settings.fund,
    });
  const keys = embeddedKeys();
  const names = new Set(keys.map(({ publicKey }) => nameOf(publicKey)));
  const node = await createNode(
    {
      storeDirectory: storeDirectory(settings.dataDir),
      storage: settings.storage,
      network: NETWORKS[settings.network],
      cutMillis: settings.cutMillis,
      mempoolBytes: settings.mempoolSize,
      signatureThreads: settings.signatureThreads,
      makesCuts: mayMakeCuts,
      checkpoints,
      // A made-up genesis for another network would create a separate chain.
      ...(settings.network === 'development' && mayMakeCuts && { newGenesis }),
      ...(genesis !== undefined && { genesis }),
    },
    {
      verifier,
      certify: mayMakeCuts ? certifyWith(keys.map(({ privateKey }) => privateKey)) : async () => UNSIGNED,
      isSigner: (publicKey) => names.has(nameOf(publicKey)),
      now,
      steady: steadyMillis,
      random: (limit) => randomInt(limit),
      log: log.child('chain'),
      indexers: [addressIndex],
      ...(figures === undefined ? {} : { onCutStep: figures.cutStep, onSubmission: figures.submission }),
    },
  );
  started('node', () => node.close());
  checkStorage(node, settings.storage, key !== undefined, log);
  checkStoredChain(node.chain, checkpoints);
  const pruning = settings.storage === 'pruned' ? new AutoPruning({ node, log, steady: steadyMillis }) : undefined;
  if (pruning !== undefined) started('pruning', () => pruning.stop());
  pruning?.begin();
  const write = settings.snapshots?.write;
  const shelf = write && (await serveSnapshots(write, node, log.child('snapshots'), started));
  figures?.watch(node);
  node.on('fault', (error) => fault(`fault: ${error.message}`));
  const fees = validators?.heartbeat && (await loadHeartbeatFees(validators.heartbeat, network));
  if (node.makesCuts || (key !== undefined && fees !== undefined)) {
    const heartbeats = beat(node, log, key === undefined ? keys : [key], fees);
    started('heartbeats', () => heartbeats.stop());
  }
  if (key !== undefined && fees === undefined)
    log.warn('this validator sends no heartbeats', {
      advice: 'configure validator.heartbeat: without heartbeats the seat is lost after two epochs',
    });
  const desk = fees && accuse(node, log, fees);
  if (desk !== undefined) started('evidence', () => desk.stop());
  const onEvidence = desk && ((evidence: Evidence) => desk.add(evidence));
  const driver =
    validators &&
    (await openConsensus({ dataDir, cutMillis, key, ...validators }, { node, log, now, started, figures, onEvidence }));
  if (peers !== undefined) {
    const view = await openNetwork(
      { ...peers, follows: !node.makesCuts },
      {
        node,
        dataDir,
        cutMillis,
        release,
        now,
        wall,
        overlay: driver && {
          adopt: (cut, certificate) => driver.adopt(cut, certificate),
          reported: () => driver.reported(),
        },
        log: log.child('p2p'),
        served: (peer, of) => pruning?.served(peer, of),
        snapshots: shelf,
        checkpoints,
      },
    );
    started('peers', () => view.close());
    figures?.peers(view);
    dependencies.onPeers?.(view);
  } else if (driver !== undefined) followOverlay(node, driver, cutMillis, wall === undefined ? [now] : [now, wall]);
  return node;
}
