/**
 * The wallet's access to the node: the few calls of the public API that it needs, with all pages, and a check of the
 * chain. The client has checked all answers against their schemas.
 */

import type { ChangeDocument, PendingPayment } from '../../protocol/api/address-documents.ts';
import { type ApiClient, ApiError } from '../../protocol/api/client.ts';
import type { Manifest, TransactionDocument } from '../../protocol/api/transaction-documents.ts';
import { MAX_BATCH_ADDRESSES } from '../../protocol/api/values.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { WalletError } from '../wallet-error.ts';

export type NodeClient = Pick<
  ApiClient,
  | 'nodeSync'
  | 'manifest'
  | 'cuts'
  | 'addressChanges'
  | 'addressesUtxos'
  | 'addressBalances'
  | 'addressHistory'
  | 'cutChanges'
  | 'cutTransactions'
  | 'registeredKeys'
  | 'utxoProofs'
  | 'mempoolPending'
  | 'transactionStatuses'
  | 'submitTransaction'
  | 'stakingPositions'
  | 'stakingValidators'
  | 'stakingValidator'
>;

export function batches<T>(items: readonly T[], size = MAX_BATCH_ADDRESSES): T[][] {
  const found: T[][] = [];
  for (let i = 0; i < items.length; i += size) found.push(items.slice(i, i + size));
  return found;
}

/** Parsing and checking an answer delays other calls: in normal operation pages are small. */
const FEW_CUTS = 16;
const SMALL_PAGE = 256;
/** Page size during a long catch-up. */
const LARGE_PAGE = 4096;
const TRANSACTION_PAGE = 16;

/** The node is unavailable; the same call may succeed later. */
export const isAway = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);

/** The error of a wallet call when the node fails. */
export function nodeFailure(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  return new WalletError('node_unreachable', `the node does not answer: ${error.message}`, { node_code: error.code });
}

export function checkManifest(manifest: Manifest, network: NetworkName, chainId: string | null): void {
  if (manifest.network !== network)
    throw new WalletError('node_other_network', `the node is on ${manifest.network}, this wallet on ${network}`);
  if (chainId !== null && manifest.chain_id !== chainId)
    throw new WalletError('node_other_chain', 'the node follows another chain than this wallet has known');
}

/**
 * More pages than any list of a node has that the wallet reads: 4,194,304 changes. A node that sends more, or repeats
 * pages, would fill the wallet's memory; that is an error.
 */
const MAX_PAGES = 4_096;

/** Pages of a list, one after the other. `what`: the list, in words. */
export async function* pagesOf<Page extends { readonly next_cursor?: string | undefined }>(
  what: string,
  read: (place: { readonly cursor?: string }) => Promise<Page>,
): AsyncGenerator<Page> {
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await read(cursor === undefined ? {} : { cursor });
    yield page;
    const next = page.next_cursor;
    if (next === undefined) return;
    if (next === cursor) break;
    cursor = next;
  }
  throw new WalletError('node_unreachable', `the node’s list of ${what} does not end`);
}

/**
 * Changes of these addresses in the cuts above `after` and up to `through`, oldest first. A node's index may be a
 * little behind its head: `complete` is the height that the answer covers.
 */
export async function changesOfAddresses(
  client: NodeClient,
  addresses: readonly string[],
  after: number,
  through: number,
): Promise<{ changes: ChangeDocument[]; complete: number }> {
  const changes: ChangeDocument[] = [];
  let complete = through;
  for (const batch of batches(addresses)) {
    const asked = {
      addresses: batch,
      after_height: after,
      limit: through - after <= FEW_CUTS ? SMALL_PAGE : LARGE_PAGE,
    };
    for await (const page of pagesOf('changes', (place) => client.addressChanges({ ...asked, ...place }))) {
      for (const change of page.changes) if (change.finalized_height <= through) changes.push(change);
      complete = Math.min(complete, page.indexed_height);
      // Pages are in ascending order: everything after this one is newer still.
      if ((page.changes.at(-1)?.finalized_height ?? 0) > through) break;
    }
  }
  return { changes: changes.filter((change) => change.finalized_height <= complete), complete };
}

/** All changes of one cut, for wallets with more addresses than there are cuts to read. */
export async function changesOfCut(client: NodeClient, height: number): Promise<ChangeDocument[]> {
  const found: ChangeDocument[] = [];
  const asked = { height, limit: LARGE_PAGE };
  for await (const page of pagesOf('changes of a cut', (place) => client.cutChanges({ ...asked, ...place })))
    found.push(...page.changes);
  return found;
}

/** The requested transactions of a cut. A node that pruned them still has the amounts, which are in the changes. */
export async function transactionsOfCut(
  client: NodeClient,
  height: number,
  wanted: ReadonlySet<string>,
): Promise<Map<string, TransactionDocument>> {
  try {
    return await readTransactions(client, height, wanted);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'cut_pruned') return new Map();
    throw error;
  }
}

async function readTransactions(
  client: NodeClient,
  height: number,
  wanted: ReadonlySet<string>,
): Promise<Map<string, TransactionDocument>> {
  const found = new Map<string, TransactionDocument>();
  if (wanted.size === 0) return found;
  const asked = { height, limit: TRANSACTION_PAGE };
  for await (const page of pagesOf('transactions', (place) => client.cutTransactions({ ...asked, ...place }))) {
    // A cut may name a transaction again that an earlier block already carried; only the one that ran counts.
    for (const document of page.transactions)
      if (wanted.has(document.transaction_id) && document.outcome === 'finalized')
        found.set(document.transaction_id, document);
    if (found.size >= wanted.size) break;
  }
  return found;
}

/** Genesis outputs that have been spent, taken from the transactions that spent them. */
export const spentGenesisOutputs = (changes: readonly ChangeDocument[]): ChangeDocument[] =>
  changes
    .filter(({ kind, source }) => kind === 'spent' && source === 'genesis')
    .map((change) => ({
      ...change,
      kind: 'received',
      finalized_height: 0,
      transaction_id: change.outpoint.transaction_id,
    }));

/** Outputs of the genesis document are in no cut's changes. */
export async function genesisOutputs(client: NodeClient, addresses: readonly string[]): Promise<ChangeDocument[]> {
  const found: ChangeDocument[] = [];
  for (const batch of batches(addresses)) {
    const read = (place: { readonly cursor?: string }) => client.addressesUtxos({ addresses: batch, ...place });
    for await (const page of pagesOf('outputs', read))
      for (const { outpoint, amount, address, source, finalized_height } of page.utxos)
        if (finalized_height === 0)
          found.push({
            finalized_height,
            address,
            kind: 'received',
            outpoint,
            amount,
            source,
            transaction_id: outpoint.transaction_id,
          });
  }
  return found;
}

/** More pages than any mempool fills: more from a node are an error. */
const MAX_PENDING_PAGES = 1024;

/** Pending payments of some addresses, all pages, and the height up to which missing ones may have become final. */
export async function readPending(
  client: Pick<NodeClient, 'mempoolPending'>,
  addresses: string[],
): Promise<{ readonly pending: readonly PendingPayment[]; readonly finalizedHeight: number }> {
  const pending: PendingPayment[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PENDING_PAGES; pages++) {
    const page = await client.mempoolPending({ addresses, ...(cursor === undefined ? {} : { cursor }) });
    for (const payment of page.pending) pending.push(payment);
    cursor = page.next_cursor;
    if (cursor === undefined) return { pending, finalizedHeight: page.finalized_height };
  }
  throw new WalletError('node_unreachable', 'the node’s list of waiting payments does not end');
}
