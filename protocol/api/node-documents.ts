/**
 * Documents about the chain head, the mempool and the node itself, and the one error document.
 */

import { described, exactly, flag, type Infer, list, nullable, object, oneOf, optional, text } from './schema.ts';
import { FAILURES } from './transaction-documents.ts';
import { amount, bigNumber, count, cutReference, height, identifier, millis, network, version } from './values.ts';

export const chainHead = object(
  {
    api_version: version,
    network,
    chain_id: identifier,
    finalized_height: height,
    cut: cutReference,
    finalized_at_millis: millis,
  },
  'ChainHead',
);
export type ChainHead = Infer<typeof chainHead>;

export const chainRates = object(
  {
    api_version: version,
    finalized_height: height,
    cuts: described(count, 'cuts the figures are taken over'),
    span_millis: count,
    cut_millis: described(count, 'mean time between cuts'),
    hashrate: described(bigNumber, 'hashes per second of the registered work'),
    block_work: described(bigNumber, 'hashes one block takes on average at the current target'),
    target: text({ pattern: '^[0-9a-f]{64}$' }),
    registered_blocks: described(count, 'blocks registered by these cuts'),
  },
  'ChainRates',
);
export type ChainRates = Infer<typeof chainRates>;

export const mempool = object(
  {
    api_version: version,
    finalized_height: height,
    transactions: count,
    bytes: count,
    max_bytes: count,
    min_fee_per_mass: amount,
  },
  'Mempool',
);
export type MempoolDocument = Infer<typeof mempool>;

export const nodeIdentity = object(
  {
    api_version: version,
    identity: described(identifier, 'hash of the public key; pin this'),
    public_key: text({ pattern: '^[0-9a-f]{3904}$', description: 'ML-DSA-65, hex' }),
    algorithm: exactly('ML-DSA-65'),
    envelope_version: exactly(1),
    chain_id: identifier,
  },
  'NodeIdentity',
);

export const nodeSync = object(
  {
    api_version: version,
    synced: flag(),
    finalized_height: height,
    best_peer_height: described(nullable(height), 'null without peers'),
    behind_by: count,
    peers: count,
  },
  'NodeSync',
);
export type NodeSync = Infer<typeof nodeSync>;

export const nodeStatus = object(
  {
    api_version: version,
    version: text(),
    network,
    chain_id: identifier,
    state: oneOf(['starting', 'syncing', 'ready', 'stopped']),
    started_at_millis: millis,
    uptime_millis: count,
    finalized_height: height,
    indexed_height: height,
    update_required: flag('the network follows rules this release does not know'),
    update_announced: flag('a peer runs a newer release'),
    storage: described(oneOf(['full', 'archive', 'pruned']), 'what the node keeps of old cuts'),
    bodies_from_height: described(height, 'the lowest cut of which the node has every block'),
    validators: described(
      oneOf(['embedded', 'network']),
      '`embedded`: this development node makes the cuts itself; `network`: validators in separate nodes make them',
    ),
  },
  'NodeStatus',
);

export const errorDocument = object(
  {
    api_version: version,
    error: object(
      {
        code: text(),
        message: text(),
        field: optional(described(text(), 'the field or parameter that is wrong')),
        failure: optional(described(oneOf(FAILURES), 'why a submission was refused')),
        reason: optional(described(text(), 'the rule it broke, as a code')),
        transaction_id: optional(identifier),
      },
      'ErrorDetail',
    ),
    retry_after_millis: optional(described(count, 'with 429 and 503')),
  },
  'Error',
);
export type ErrorDocument = Infer<typeof errorDocument>;

export const routeList = object(
  {
    api_version: version,
    name: exactly('svcd'),
    version: text(),
    network,
    routes: list(object({ method: oneOf(['GET', 'POST']), path: text(), summary: text() }, 'RouteEntry')),
    sockets: list(object({ path: text(), subprotocol: text(), summary: text() }, 'SocketEntry')),
  },
  'RouteList',
);
