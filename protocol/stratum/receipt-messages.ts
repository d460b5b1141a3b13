/**
 * Receipts on both wires (docs/protocol/stratum.md, S33 to S36). v1 sends one notification with everything in it; v2 sends the
 * signed head once and each receipt after it, because both together would not fit a frame.
 */

import {
  encodeReceiptEntry,
  encodeReceiptHead,
  type Receipt,
  type ReceiptEntry,
  type ReceiptHead,
  readReceiptEntry,
  readReceiptHead,
  receiptDocument,
} from '../books/receipt.ts';
import { ByteReader, type Bytes, type ByteWriter, toHex } from '../bytes.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { NETWORKS, networkById } from '../network.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../transactions/transaction.ts';
import type { Fields } from './fields.ts';
import { checkInteger, checkLength, checkText, checkWorker, U32_MAX } from './messages.ts';

/** The pool's public key, and where its API is ('' where it does not say). Null: this server gives no receipts. */
export type ReceiptsOffer = { readonly key: Bytes; readonly api: string } | null;

/**
 * Only host, port and path: after a query or fragment, the suffix added by a miner would not be a path, and the pool
 * could make it call anything.
 */
const API = /^(https?:\/\/[A-Za-z0-9.:_[\]-]+(\/[\w.~%/-]*)?)?$/;

export const isApiUrl = (text: string): boolean => API.test(text) && (text === '' || URL.canParse(text));

export function checkOffer(offer: ReceiptsOffer): ReceiptsOffer {
  if (offer === null) return null;
  checkLength('key', offer.key, PUBLIC_KEY_BYTES);
  const api = checkText('api', offer.api);
  if (!API.test(api) || (api !== '' && !URL.canParse(api)))
    throw new ProtocolError('out_of_range', 'api must be a URL');
  return offer;
}

export function offerBody(offer: ReceiptsOffer): Record<string, unknown> {
  if (checkOffer(offer) === null || offer === null) return {};
  return { key: toHex(offer.key), ...(offer.api === '' ? {} : { api: offer.api }) };
}

export const readOfferFields = (fields: Fields): ReceiptsOffer =>
  fields.has('key') ? checkOffer({ key: fields.hex('key', PUBLIC_KEY_BYTES), api: fields.textOr('api', '') }) : null;

export function writeOffer(payload: ByteWriter, offer: ReceiptsOffer): void {
  const key = checkOffer(offer)?.key ?? new Uint8Array(0);
  payload
    .u16(key.length)
    .raw(key)
    .text(offer?.api ?? '');
}

export function readOffer(reader: ByteReader): ReceiptsOffer {
  const length = reader.u16();
  if (length !== 0 && length !== PUBLIC_KEY_BYTES) throw new ProtocolError('out_of_range', 'not a public key');
  const key = reader.take(length);
  const api = reader.text();
  if (length === 0 && api !== '') throw new ProtocolError('not_canonical', 'an api without a key');
  return length === 0 ? null : checkOffer({ key, api });
}

/** A whole notification, as its parameters. */
export const receiptBody = (receipt: Receipt): Record<string, unknown> => ({
  ...receipt,
  network: NETWORKS[receipt.network].id,
});

/** The common part of all receipts of a head is encoded once; the rest is appended for each. */
export function receiptLines(head: ReceiptHead, signature: Bytes): (entry: ReceiptEntry) => string {
  const shared = JSON.stringify({ ...head, network: NETWORKS[head.network].id, signature: toHex(signature) });
  const start = `{"jsonrpc":"2.0","method":"mining.receipt","params":${shared.slice(0, -1)}`;
  return (entry) => {
    const { address, worker, shares, work, open, account_work, index, siblings } = receiptDocument(head, EMPTY, entry);
    const own = JSON.stringify({ address, worker, shares, work, open, account_work, index, siblings });
    return `${start},${own.slice(1)}}`;
  };
}
const EMPTY = new Uint8Array(0);

export function readReceiptFields(fields: Fields): Receipt {
  const service = fields.text('service');
  if (service !== 'pplns' && service !== 'solo') throw new ProtocolError('out_of_range', 'no such service');
  const hash = (name: string): string => toHex(fields.hex(name, ID_BYTES));
  return {
    network: networkById(fields.integer('network', U32_MAX)).name,
    service,
    slice: fields.integer('slice'),
    boot: toHex(fields.hex('boot', 8)),
    chain: hash('chain'),
    root: hash('root'),
    accounts: fields.integer('accounts', U32_MAX),
    total_work: String(fields.decimal('total_work')),
    receipts: fields.integer('receipts', U32_MAX),
    receipts_root: hash('receipts_root'),
    signature: toHex(fields.hex('signature', SIGNATURE_BYTES)),
    address: checkText('address', fields.text('address')),
    worker: checkWorker(fields.text('worker')),
    shares: fields.integer('shares', U32_MAX),
    work: String(fields.decimal('work')),
    open: String(fields.decimal('open')),
    account_work: String(fields.decimal('account_work')),
    index: fields.integer('index', U32_MAX),
    siblings: toHex(fields.hex('siblings')),
  };
}

export type SignedHead = { readonly head: ReceiptHead; readonly signature: Bytes };

export function writeHead(payload: ByteWriter, { head, signature }: SignedHead): void {
  payload.raw(encodeReceiptHead(head)).raw(checkLength('signature', signature, SIGNATURE_BYTES));
}

export const readHead = (reader: ByteReader): SignedHead => ({
  head: readReceiptHead(reader),
  signature: reader.take(SIGNATURE_BYTES),
});

export function writeEntry(payload: ByteWriter, entry: ReceiptEntry): void {
  checkInteger('index', entry.index, U32_MAX);
  checkWorker(entry.leaf.worker);
  payload.raw(encodeReceiptEntry(entry));
}

export function readEntry(reader: ByteReader): ReceiptEntry {
  const entry = readReceiptEntry(reader);
  checkWorker(entry.leaf.worker);
  return entry;
}

export const entryOfBytes = (bytes: Bytes): ReceiptEntry => {
  const reader = new ByteReader(bytes);
  const entry = readReceiptEntry(reader);
  reader.end();
  return entry;
};
