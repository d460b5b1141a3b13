/**
 * The nodes that a stratum server works on: those named by --node, or one embedded in this process, on the verifier of
 * this process. Used by svc-bridge and svc-pool.
 */
import { join } from 'node:path';
import { attachVerifier, type Verifier } from '../../kernels/verifier.ts';
import type { FullNode } from '../../node/full-node.ts';
import type { AnchorPolicy } from '../../node/mining/anchor-choice.ts';
import { ADDRESS_PAYLOAD_BYTES, formatAddress } from '../../protocol/address.ts';
import type { Pin } from '../../protocol/api/pinned-node.ts';
import { toHex } from '../../protocol/bytes.ts';
import { MAX_EXTRANONCE } from '../../protocol/ledger/tag.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { LedgerClock } from '../../runtime/clock/clock.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { EmbeddedNode } from './node-embedded.ts';
import { HttpNode } from './node-http.ts';
import type { NodeSource } from './upstream.ts';

export type NodeSourceOptions = {
  readonly network: NetworkName;
  /** Mining listeners; without any a node is embedded. */
  readonly urls: readonly string[];
  readonly pin: Pin | undefined;
  readonly anchors: AnchorPolicy;
  /** An embedded node keeps its chain in `node` under it. */
  readonly dataDir: string;
  /** Listener threads of the server. */
  readonly threads: number;
};

export type NodeSourceDependencies = {
  readonly verifier: Verifier;
  readonly log: Logger;
  readonly now: LedgerClock;
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  readonly fault: (reason: string) => void;
};

export type NodeSources = {
  readonly sources: readonly NodeSource[];
  readonly embedded?: { readonly node: FullNode; readonly directory: string };
};

const MAX_TEMPLATE_TRANSACTIONS = 65_536;
const NODE_TIMEOUT_MILLIS = 10_000;

/** The placeholder payout of a template, replaced by each connection's own address. */
const PLACEHOLDER_PAYOUT = new Uint8Array(ADDRESS_PAYLOAD_BYTES);
/** As long as an extranonce can be: the body must leave room for every connection's own. */
const PLACEHOLDER_EXTRANONCE = new Uint8Array(MAX_EXTRANONCE);

export async function openNodeSources(
  { network, urls, pin, anchors, dataDir, threads }: NodeSourceOptions,
  { verifier, log, now, started, fault }: NodeSourceDependencies,
): Promise<NodeSources> {
  if (urls.length > 0) {
    const options = {
      payout: formatAddress(PLACEHOLDER_PAYOUT, network),
      maxTransactions: MAX_TEMPLATE_TRANSACTIONS,
      extranonce: toHex(PLACEHOLDER_EXTRANONCE),
      anchors,
      timeoutMillis: NODE_TIMEOUT_MILLIS,
      pin,
    };
    return { sources: urls.map((url) => new HttpNode({ ...options, url }, nodeTransport())) };
  }
  const directory = join(dataDir, 'node');
  const lock = lockDirectory(directory);
  started("the node's directory lock", () => lock.release());
  // Loaded only when needed: a program with external nodes does not load the node's code.
  const { openNode } = await import('../../node/open-node.ts');
  const node = await openNode(
    { network, dataDir: directory },
    // Where shares are checked on this thread too, the node has a queue of its own: so that a backlog of shares does not delay the check of a block.
    {
      verifier: threads === 0 ? attachVerifier(verifier.share()) : verifier,
      log: log.child('node'),
      now,
      started,
      fault,
    },
  );
  const options = {
    payout: PLACEHOLDER_PAYOUT,
    maxTransactions: MAX_TEMPLATE_TRANSACTIONS,
    extranonce: PLACEHOLDER_EXTRANONCE,
    anchors,
  };
  return { sources: [new EmbeddedNode(options, node)], embedded: { node, directory } };
}
