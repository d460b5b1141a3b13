/**
 * Documents about addresses: balances, unspent outputs, history, changes, registered keys, pending payments, positions.
 */

import { described, flag, type Infer, integer, list, nullable, object, oneOf, optional } from './schema.ts';
import {
  address,
  amount,
  changeKind,
  count,
  cursor,
  height,
  identifier,
  MAX_BATCH_ADDRESSES,
  MAX_CHANGES,
  millis,
  nextCursor,
  outpoint,
  source,
  version,
} from './values.ts';

export const addressBalance = object(
  { api_version: version, address, balance: amount, utxos: count, indexed_height: height },
  'AddressBalance',
);
export type AddressBalance = Infer<typeof addressBalance>;

export const utxo = object({ outpoint, amount, address, source, finalized_height: height }, 'Utxo');
export type UtxoDocument = Infer<typeof utxo>;

export const addressUtxos = object(
  {
    api_version: version,
    address,
    finalized_height: height,
    indexed_height: height,
    utxos: list(utxo),
    next_cursor: nextCursor,
  },
  'AddressUtxos',
);

export const historyEvent = object(
  {
    finalized_height: height,
    kind: changeKind,
    outpoint,
    amount,
    source,
    transaction_id: described(identifier, 'the transaction that made or spent the output'),
  },
  'HistoryEvent',
);
export type HistoryEvent = Infer<typeof historyEvent>;

export const addressHistory = object(
  { api_version: version, address, indexed_height: height, events: list(historyEvent), next_cursor: nextCursor },
  'AddressHistory',
);

export const change = object(
  { finalized_height: height, address, kind: changeKind, outpoint, amount, source, transaction_id: identifier },
  'Change',
);
export type ChangeDocument = Infer<typeof change>;

const addresses = list(address, { minItems: 1, maxItems: MAX_BATCH_ADDRESSES });
export const addressesBody = object({ api_version: optional(version), addresses }, 'Addresses');
/** A transaction is at most 16 payments, 8 spent and 8 made, and is not divided between pages. */
export const mempoolPendingBody = object(
  {
    api_version: optional(version),
    addresses,
    cursor: optional(cursor),
    limit: optional(integer({ minimum: 16, maximum: 512, default: 512 })),
  },
  'MempoolPendingRequest',
);
export const stakingPositionsBody = object(
  {
    api_version: optional(version),
    addresses,
    cursor: optional(cursor),
    limit: optional(integer({ minimum: 1, maximum: 256, default: 256 })),
  },
  'StakingPositionsRequest',
);
export const addressUtxosBody = object(
  {
    api_version: optional(version),
    addresses,
    cursor: optional(cursor),
    limit: optional(integer({ minimum: 1, maximum: 512, default: 512 })),
  },
  'AddressesUtxosRequest',
);
export const addressChangesBody = object(
  {
    api_version: optional(version),
    addresses,
    after_height: described(height, 'changes of the cuts above this height are listed'),
    cursor: optional(cursor),
    limit: optional(integer({ minimum: 1, maximum: MAX_CHANGES, default: 1024 })),
  },
  'AddressChangesRequest',
);

export const addressBalances = object(
  {
    api_version: version,
    finalized_height: height,
    indexed_height: height,
    balances: list(object({ address, balance: amount, utxos: count }, 'BalanceEntry')),
  },
  'AddressBalances',
);
export const addressesUtxos = object(
  {
    api_version: version,
    finalized_height: height,
    indexed_height: height,
    utxos: list(utxo),
    next_cursor: nextCursor,
  },
  'AddressesUtxos',
);
export const addressChanges = object(
  {
    api_version: version,
    after_height: height,
    finalized_height: height,
    indexed_height: described(height, 'after the last page, everything up to this height was listed'),
    changes: described(list(change), 'oldest first'),
    next_cursor: nextCursor,
  },
  'AddressChanges',
);

export const registeredKeys = object(
  {
    api_version: version,
    finalized_height: height,
    keys: list(
      object(
        {
          address,
          registered: flag('a referenced witness may be used'),
          registered_height: described(nullable(height), 'finalized cut that put the key into the registry'),
        },
        'RegisteredKey',
      ),
    ),
  },
  'RegisteredKeys',
);

export const pendingPayment = object(
  {
    address,
    transaction_id: identifier,
    direction: oneOf(['incoming', 'outgoing']),
    outpoint: described(outpoint, 'the output to be made, or the one being spent'),
    amount,
    lifecycle: oneOf(['processing', 'receiving', 'registered']),
    first_seen_millis: millis,
  },
  'PendingPayment',
);
export type PendingPayment = Infer<typeof pendingPayment>;

export const mempoolPending = object(
  {
    api_version: version,
    finalized_height: height,
    pending: described(
      list(pendingPayment),
      'the longest waiting transactions first; one that comes or goes while pages are read may be missed or come twice',
    ),
    next_cursor: nextCursor,
  },
  'MempoolPending',
);
