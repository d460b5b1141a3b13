/** Routes about addresses: balances, unspent outputs, history, changes, keys, pending payments. */

import { formatAddress } from '../../protocol/address.ts';
import {
  CHANGE_KINDS,
  type ChangeDocument,
  type PendingPayment,
  type UtxoDocument,
} from '../../protocol/api/documents.ts';
import { type Bytes, compareBytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { ID_BYTES, id } from '../../protocol/crypto/identifier.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import type { PendingTransaction } from '../full-node.ts';
import {
  asBuffer,
  BY_AT,
  eventPlace,
  OUTPOINT_BYTES,
  outpointKey,
  PLACE_AT,
  PLACE_BYTES,
  placeBytes,
} from '../index/index-keys.ts';
import type { IndexedOutput, IndexReader, PlacedEvent } from '../index/index-reader.ts';
import { OUTPUT_SOURCES } from '../ledger/effects.ts';
import { type ApiContext, type Handlers, JsonText, readAddress, readAddresses } from './api-context.ts';
import { refusal } from './api-error.ts';
import { makeCursor, readCursor } from './cursor.ts';
import {
  mayConcern,
  PENDING_PLACE_BYTES,
  pendingOf,
  pendingPlace,
  shortName,
  waitingAfter,
} from './pending-payments.ts';

export function cursorPlace(scope: string, text: string | undefined, bytes: number): Bytes | undefined {
  if (text === undefined) return undefined;
  const place = readCursor(scope, text, bytes);
  if (place === undefined) throw refusal('bad_cursor', 'the cursor is not of this query', { field: 'cursor' });
  return place;
}

/** The index of the cursor's owner in the list. Anyone can make a cursor, so its owner may be missing. */
export function ownerPlace(owners: readonly Bytes[], named: Bytes | undefined): number {
  if (named === undefined) return 0;
  const place = owners.findIndex((owner) => equalBytes(owner, named));
  if (place < 0) throw refusal('bad_cursor', 'the cursor is not of this query', { field: 'cursor' });
  return place;
}

const utxoDocument = (output: IndexedOutput, address: string): UtxoDocument => ({
  outpoint: { transaction_id: nativeHex(output.outpoint.transactionId), output_index: output.outpoint.outputIndex },
  amount: output.amount.toString(),
  address,
  source: output.source,
  finalized_height: output.height,
});

const changeDocument = (event: PlacedEvent, address: string): ChangeDocument => ({
  finalized_height: event.height,
  address,
  kind: event.kind,
  outpoint: { transaction_id: nativeHex(event.outpoint.transactionId), output_index: event.outpoint.outputIndex },
  amount: event.amount.toString(),
  source: event.source,
  transaction_id: nativeHex(event.transactionId),
});

export { changeDocument };

/** Events of one address, fetched a few at a time: a merge over 64 of them must not read 64 full pages. */
class EventQueue {
  readonly address: { readonly text: string; readonly payload: Bytes };
  readonly #index: IndexReader;
  readonly #through: number;
  readonly #chunk: number;
  #after: Bytes;
  #events: PlacedEvent[] = [];
  #ended = false;

  constructor(
    index: IndexReader,
    address: { text: string; payload: Bytes },
    range: { after: Bytes; through: number; chunk: number },
  ) {
    this.#index = index;
    this.address = address;
    this.#after = range.after;
    this.#through = range.through;
    this.#chunk = range.chunk;
  }

  async fill(): Promise<void> {
    if (this.#ended || this.#events.length > 0) return;
    this.#events = await this.#index.eventsAfter(this.address.payload, this.#after, this.#through, this.#chunk);
    this.#ended = this.#events.length < this.#chunk;
    const last = this.#events.at(-1);
    if (last !== undefined) this.#after = placeBytes(last.height, last.place);
  }

  get first(): PlacedEvent | undefined {
    return this.#events[0];
  }

  shift(): PlacedEvent {
    return this.#events.shift() as PlacedEvent;
  }
}

const earlier = (a: PlacedEvent, b: PlacedEvent): boolean =>
  a.height < b.height || (a.height === b.height && a.place < b.place);

/** Identifies a list of addresses, so that a cursor is valid only for that list. */
const listScope = (addresses: readonly { payload: Bytes }[]): string =>
  toHex(id('SVC_API_CURSOR_V1', Buffer.concat(addresses.map((address) => address.payload))));

/** A history event written straight from the index's bytes: a page has up to 256 of them, thousands of pages a second. */
function historyEventJson(value: Uint8Array): string {
  const bytes = asBuffer(value);
  const made = bytes.toString('hex', 10, 10 + ID_BYTES);
  const by = bytes[0] === 0 ? made : bytes.toString('hex', BY_AT, PLACE_AT);
  return (
    `{"finalized_height":${eventPlace(value).height},"kind":"${CHANGE_KINDS[bytes[0] as number]}",` +
    `"outpoint":{"transaction_id":"${made}","output_index":${bytes.readUInt32BE(10 + ID_BYTES)}},` +
    `"amount":"${bytes.readBigUInt64LE(2)}","source":"${OUTPUT_SOURCES[bytes[1] as number]}","transaction_id":"${by}"}`
  );
}

export const addressRoutes: Pick<
  Handlers,
  | 'addressBalance'
  | 'addressUtxos'
  | 'addressHistory'
  | 'addressBalances'
  | 'addressesUtxos'
  | 'addressChanges'
  | 'mempoolPending'
  | 'registeredKeys'
> = {
  addressBalance(context, { params }) {
    const { height, value } = context.index.balance(readAddress(context, params.address, 'address'));
    return {
      api_version: 1,
      address: params.address,
      balance: value.atoms.toString(),
      utxos: value.utxos,
      indexed_height: height,
    };
  },

  async addressUtxos(context, { params, query }) {
    const address = readAddress(context, params.address, 'address');
    const scope = `utxos ${params.address}`;
    const limit = query.limit ?? 100;
    const after = cursorPlace(scope, query.cursor, OUTPOINT_BYTES);
    const { height, value } = await context.index.unspent(address, after, limit + 1);
    const page = value.slice(0, limit);
    const last = page.at(-1);
    return {
      api_version: 1,
      address: params.address,
      finalized_height: height,
      indexed_height: height,
      utxos: page.map((output) => utxoDocument(output, params.address)),
      next_cursor: value.length > limit && last ? makeCursor(scope, outpointKey(last.outpoint)) : undefined,
    };
  },

  async addressHistory(context, { params, query }) {
    const address = readAddress(context, params.address, 'address');
    const scope = `history ${params.address}`;
    const limit = query.limit ?? 100;
    const before = cursorPlace(scope, query.cursor, PLACE_BYTES);
    const { height, value } = await context.index.history(address, before, limit + 1);
    const events: string[] = [];
    const shown = Math.min(limit, value.length);
    for (let i = 0; i < shown; i++) events.push(historyEventJson(value[i] as Uint8Array));
    const last = value.length > limit ? eventPlace(value[limit - 1] as Uint8Array) : undefined;
    const cursor =
      last === undefined ? '' : `,"next_cursor":"${makeCursor(scope, placeBytes(last.height, last.place))}"`;
    return new JsonText(
      `{"api_version":1,"address":"${params.address}","indexed_height":${height},"events":[${events.join(',')}]${cursor}}`,
    );
  },

  addressBalances(context, { body }) {
    const addresses = readAddresses(context, body.addresses);
    const { height, value } = context.index.balances(addresses.map(({ payload }) => payload));
    return {
      api_version: 1,
      finalized_height: height,
      indexed_height: height,
      balances: value.map((balance, i) => ({
        address: (addresses[i] as { text: string }).text,
        balance: balance.atoms.toString(),
        utxos: balance.utxos,
      })),
    };
  },

  async addressesUtxos(context, { body }) {
    const addresses = readAddresses(context, body.addresses).sort((a, b) => compareBytes(a.payload, b.payload));
    const texts = new Map(addresses.map(({ text, payload }) => [payload, text]));
    const scope = `utxos of many ${listScope(addresses)}`;
    const limit = body.limit ?? 512;
    const place = cursorPlace(scope, body.cursor, 49 + OUTPOINT_BYTES);
    const owners = addresses.map(({ payload }) => payload);
    const from = ownerPlace(owners, place?.subarray(0, 49));
    const { height, value } = await context.index.unspentOfMany(owners.slice(from), place?.subarray(49), limit + 1);
    const page = value.slice(0, limit);
    const last = page.at(-1);
    return {
      api_version: 1,
      finalized_height: height,
      indexed_height: height,
      utxos: page.map(({ address, output }) => utxoDocument(output, texts.get(address) as string)),
      next_cursor:
        value.length > limit && last
          ? makeCursor(scope, Buffer.concat([last.address, outpointKey(last.output.outpoint)]))
          : undefined,
    };
  },

  async addressChanges(context, { body }) {
    const addresses = readAddresses(context, body.addresses);
    // Without the missing changes a wallet would take the rest for the whole history.
    if (body.after_height + 1 < context.node.chain.historyFrom())
      throw refusal('cut_pruned', 'this node began with a snapshot of a later cut; ask one that has the whole chain');
    const limit = body.limit ?? 1024;
    const scope = `changes ${body.after_height} ${listScope(addresses)}`;
    const through = context.index.height();
    const after = cursorPlace(scope, body.cursor, PLACE_BYTES) ?? placeBytes(body.after_height, 0xffffffff);
    const chunk = Math.max(16, Math.min(limit + 1, Math.ceil((2 * limit) / addresses.length)));
    const queues = addresses.map((address) => new EventQueue(context.index, address, { after, through, chunk }));
    const changes: ChangeDocument[] = [];
    let last: PlacedEvent | undefined;
    let more = false;
    await Promise.all(queues.map((queue) => queue.fill()));
    for (;;) {
      let next: EventQueue | undefined;
      for (const queue of queues)
        if (queue.first !== undefined && (next?.first === undefined || earlier(queue.first, next.first))) next = queue;
      if (next === undefined) break;
      if (changes.length === limit) {
        more = true;
        break;
      }
      last = next.shift();
      changes.push(changeDocument(last, next.address.text));
      if (next.first === undefined) await next.fill();
    }
    return {
      api_version: 1,
      after_height: body.after_height,
      finalized_height: through,
      indexed_height: through,
      changes,
      next_cursor: more && last ? makeCursor(scope, placeBytes(last.height, last.place)) : undefined,
    };
  },

  mempoolPending(context, { body }) {
    const addresses = readAddresses(context, body.addresses);
    const limit = body.limit ?? 512;
    const scope = `pending ${listScope(addresses)}`;
    const after = cursorPlace(scope, body.cursor, PENDING_PLACE_BYTES);
    const wanted = new Map(addresses.map(({ text, payload }) => [nativeHex(payload), text]));
    const names = new Set(addresses.map(({ payload }) => shortName(payload)));
    const pending: PendingPayment[] = [];
    let last: PendingTransaction | undefined;
    let more = false;
    for (const transaction of waitingAfter(context.node.mempool, after)) {
      if (!mayConcern(transaction, names)) continue;
      const payments = pendingOf(context, transaction, wanted);
      more = pending.length + payments.length > limit;
      if (more) break;
      pending.push(...payments);
      last = transaction;
    }
    return {
      api_version: 1,
      finalized_height: context.node.chain.head().height,
      pending,
      next_cursor: more && last ? makeCursor(scope, pendingPlace(last)) : undefined,
    };
  },

  registeredKeys(context, { body }) {
    const finalized_height = context.index.height();
    return {
      api_version: 1,
      finalized_height,
      keys: readAddresses(context, body.addresses).map(({ text, payload }) => {
        const height = context.index.keyHeight(payload);
        return { address: text, registered: height !== undefined, registered_height: height ?? null };
      }),
    };
  },
};

export const addressText = (context: ApiContext, payload: Bytes): string =>
  formatAddress(asBuffer(payload), context.node.chain.network.name);
