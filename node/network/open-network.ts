/** Assembles the peer-to-peer network of a node: key, remembered peers, thread, serving, relaying, and syncing. */
import { ProtocolError } from '../../protocol/errors.ts';
import { RULE_SET } from '../../protocol/transactions/transaction.ts';
import { type LedgerClock, steadyMillis, type WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { type Adopt, adoptInto } from '../chain/adopted-cut.ts';
import type { Checkpoint } from '../chain/checkpoints.ts';
import { heightsToShow, Tip } from '../chain/tip.ts';
import type { ConsensusNode } from '../node.ts';
import { NetworkError } from './network-error.ts';
import type { NetworkPlan } from './network-options.ts';
import { type OpenPeers, type PeerLink, threadOfPeers } from './peer-network.ts';
import { PeerHeights } from './peers/peer-heights.ts';
import { loadPeerKey } from './peers/peer-key.ts';
import { ReleaseWatch } from './peers/release-watch.ts';
import { readRemembered, remember } from './peers/remembered-peers.ts';
import { ServingBudget } from './peers/serving-budget.ts';
import { BlockRelay } from './relay/block-relay.ts';
import { CutGossip } from './relay/cut-gossip.ts';
import { decodeRelayQuestion } from './relay/relay-messages.ts';
import { answerRelay } from './relay/relay-server.ts';
import { TransactionRelay } from './relay/transaction-relay.ts';
import { WaitingPull } from './relay/waiting-pull.ts';
import type { SnapshotQuestion } from './snapshots/snapshot-messages.ts';
import { answerSnapshot, type SnapshotSource } from './snapshots/snapshot-server.ts';
import { answerSync } from './sync/cut-server.ts';
import { CutSync } from './sync/cut-sync.ts';
import { decodeSyncQuestion } from './sync/sync-messages.ts';
import { BUSY, type Finding, type HostFigures, type PeerName, type Protocol, type Topic } from './thread/host-types.ts';

/** After this many cut intervals without news, peers are asked. */
const PROBE_CUTS = 3;
const LEAST_PROBE_MILLIS = 1_000;

export type NetworkDependencies = {
  readonly node: ConsensusNode;
  readonly dataDir: string;
  readonly cutMillis: number;
  readonly release: string;
  readonly log: Logger;
  readonly now: LedgerClock;
  /** The system's clock, where `now` follows it late. */
  readonly wall?: WallClock | undefined;
  /** The overlay of validators, from which cuts come too: it takes what peers prove, and knows what members report. */
  readonly overlay?: { readonly adopt: Adopt; reported(): number } | undefined;
  /** Called when a syncing peer was sent cuts from a height on. */
  readonly served?: ((peer: PeerName, from?: number) => void) | undefined;
  /** Snapshots that it can serve to new nodes. */
  readonly snapshots?: SnapshotSource | undefined;
  /** Ascending; a chain that contradicts one is not followed. */
  readonly checkpoints?: readonly Checkpoint[];
  /** For tests of the limits. */
  readonly countsNear?: boolean;
  /** Without it the network has a thread of its own. */
  readonly openPeers?: OpenPeers;
};

export type PeerView = {
  readonly addresses: readonly string[];
  figures(): HostFigures;
  /** According to the peer. */
  heightOf(peer: PeerName): number | undefined;
  queuedCuts(): number;
  queuedBlocks(): number;
  /** Bytes of the answers to this node's questions of a kind: bodies, where announcements come by gossip. */
  answeredBytes(protocol: Protocol): number;
  close(): Promise<void>;
};

/** `follows`: this node does not make the cuts alone, and takes those that peers prove. */
export type NetworkSettings = NetworkPlan & { readonly follows: boolean };

export async function openNetwork(plan: NetworkSettings, dependencies: NetworkDependencies): Promise<PeerView> {
  const { node, dataDir, cutMillis, release, log, now, wall, countsNear, served, snapshots, overlay } = dependencies;
  const { openPeers = threadOfPeers } = dependencies;
  const { chain, ledger } = node;
  const seed = await loadPeerKey(dataDir);
  let remembered = readRemembered(dataDir, log);
  const releases = new ReleaseWatch({ release, ruleSet: RULE_SET }, steadyMillis);
  let hasUnknownCuts = false;
  const announcing = (take: () => void, fields: { readonly release: string }) => {
    const wasAnnounced = releases.isAnnounced();
    take();
    if (!wasAnnounced && releases.isAnnounced())
      log.warn('update_announced: a peer runs a newer release', { ...fields, own: release });
  };
  const { follows, ...settings } = plan;
  const network: PeerLink = openPeers(
    () => ({
      ...settings,
      seed,
      remembered,
      release,
      chainId: chain.chainId,
      ruleSet: RULE_SET,
      height: chain.head().height,
      ...(countsNear !== undefined && { countsNear }),
    }),
    {
      joined: (peer, info) => {
        heights.joined(peer, info.height);
        pull.joined(peer, info);
        budget.joined(peer, info.address);
        node.warmUp();
        sync?.wake();
        announcing(() => releases.joined(peer, info), { release: info.release });
      },
      refused: (peer, info) => announcing(() => releases.refused(peer, info), { release: info.release }),
      left: (peer) => {
        heights.left(peer);
        pull.left(peer);
        releases.left(peer);
      },
      serve: (peer, protocol, question) => serve(peer, protocol, question),
      gossip: (peer, topic, data) => judges[topic].judge(peer, data),
      remember: (addresses) => {
        remembered = addresses;
        remember(dataDir, addresses, log);
      },
    },
    log,
  );
  const sync = follows
    ? new CutSync({
        ledger,
        adopt: overlay?.adopt ?? adoptInto(ledger),
        hasNeighbours: overlay !== undefined,
        network,
        log,
        checkpoints: dependencies.checkpoints ?? [],
        steady: steadyMillis,
        probeMillis: Math.max(LEAST_PROBE_MILLIS, PROBE_CUTS * cutMillis),
        isAtTip: () => tip.look(),
        updateRequired: (version) => {
          hasUnknownCuts = true;
          log.error(
            'update_required: the network makes cuts that this release does not know; the node follows no more',
            {
              version,
              own: release,
              height: chain.head().height,
            },
          );
        },
      })
    : undefined;
  const heights = sync?.heights ?? new PeerHeights();
  const tip = new Tip({
    head: () => chain.head(),
    proven: () => Math.max(heights.proven, overlay?.reported() ?? -1),
    cutMillis,
    clocks: wall === undefined ? [now] : [now, wall],
  });
  const isSynced = () => chain.sync().synced;
  const cuts = new CutGossip({
    node,
    publish: (topic, data) => network.publish(topic, data),
    fault: (peer, fault, reason) => network.fault(peer, fault, reason),
    isSynced,
    proved: (peer, height) => heights.proved(peer, height),
    heard: (peer, height) => {
      heights.heard(peer, height);
      sync?.wake();
    },
  });
  const transactions = new TransactionRelay({
    node,
    network,
    isSynced,
    steady: steadyMillis,
    holderOf: (peer) => budget.holderOf(peer),
  });
  const blocks = new BlockRelay({ node, network, isSynced });
  const pull = new WaitingPull({ node, network, relay: transactions, isSynced, steady: steadyMillis });
  const judges: Readonly<Record<Topic, { judge(peer: PeerName, data: Uint8Array): Promise<Finding> }>> = {
    cuts,
    transactions,
    blocks,
  };
  const budget = new ServingBudget(steadyMillis);
  const answer = (peer: PeerName, protocol: Protocol, bytes: Uint8Array): Uint8Array | Promise<Uint8Array> => {
    if (protocol === 'relay') return answerRelay(node, decodeRelayQuestion(bytes), (id) => blocks.second(id));
    const question = decodeSyncQuestion(bytes);
    served?.(peer, question.type === 'cuts' && question.from >= chain.bodiesFrom() ? question.from : undefined);
    if (question.type === 'snapshots') return answerSnapshot(snapshots, question);
    if (question.type === 'part') return answerPart(peer, question);
    return answerSync(chain, question);
  };
  const answerPart = async (peer: PeerName, question: SnapshotQuestion): Promise<Uint8Array> => {
    if (!budget.mayReadPart(peer)) return BUSY;
    const answer = await answerSnapshot(snapshots, question);
    budget.chargePart(peer, answer.length);
    return answer;
  };
  const serve = async (peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array | undefined> => {
    if (!budget.mayAsk(peer)) return BUSY;
    // Time of this thread only, so that a busy machine is not charged to peers.
    const before = process.threadCpuUsage();
    try {
      const answering = answer(peer, protocol, question);
      const { user, system } = process.threadCpuUsage(before);
      // Reading from a file does not use this thread.
      const given = answering instanceof Promise ? await answering : answering;
      budget.charge(peer, (user + system) / 1_000, given.length);
      return given;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // A later release may ask for more than this one knows.
      if (error.code !== 'unsupported_version') network.fault(peer, 'malformed', error.message);
      return undefined;
    }
  };
  const unsubscribeCuts = node.on('cut', ({ header }) => {
    tip.look();
    network.setHeight(header.height);
    sync?.arrived();
  });
  const unsubscribeBlocks = node.on('block', () => sync?.arrived());
  let addresses: readonly string[];
  try {
    addresses = await network.start();
  } catch (error) {
    await network.close();
    throw new NetworkError('p2p_listen', `peers cannot be listened for: ${(error as Error).message}`);
  }
  const bestHeight = () => Math.max(heights.best(chain.head().height, tip.look()), overlay?.reported() ?? -1);
  chain.followPeers(() => ({
    ...heightsToShow(bestHeight(), chain.head().height),
    synced: node.makesCuts || (tip.look() && !hasUnknownCuts),
    peers: heights.count,
    updateAnnounced: releases.isAnnounced(),
    // What peers claim counts only where no cuts come any more.
    updateRequired: hasUnknownCuts || (releases.hasNewRules() && !node.makesCuts && !tip.look()),
  }));
  sync?.start();
  return {
    addresses,
    figures: () => network.figures,
    heightOf: (peer) => heights.get(peer)?.claim,
    queuedBlocks: () => blocks.judged,
    queuedCuts: () => sync?.queued ?? 0,
    answeredBytes: (protocol) => network.answeredBytes[protocol],
    close: async () => {
      unsubscribeCuts();
      unsubscribeBlocks();
      for (const part of [cuts, transactions, blocks, pull]) part.close();
      // Pending requests must not prevent the node from stopping.
      await Promise.all([network.close(), sync?.close()]);
    },
  };
}

/** For the operator: `GET /v1/node/peers` of the mining listener, which serves this machine only. */
export function peersDocument(view: PeerView) {
  const { peers, barred, receivedBytes, sentBytes } = view.figures();
  return {
    api_version: 1,
    addresses: view.addresses,
    barred,
    received_bytes: receivedBytes,
    sent_bytes: sentBytes,
    peers: peers.map(({ peer, address, direction, release, lostScore, sinceMillis, height }) => ({
      peer,
      address,
      direction,
      release,
      height: view.heightOf(peer) ?? height,
      lost_score: lostScore,
      connected_millis: Math.round(sinceMillis),
    })),
  };
}
