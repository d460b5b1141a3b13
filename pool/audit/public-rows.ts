/** Parses the rows that a pool publishes: malformed rows are refused, and unknown fields are dropped. */
import { parseAddress } from '../../protocol/address.ts';
import { parseAtoms } from '../../protocol/amount.ts';
import { type BooksService, readWork, type SliceRecord } from '../../protocol/books/books-slice.ts';
import type { CommitmentRow } from '../../protocol/books/ledger-payouts.ts';
import { NETWORKS, type NetworkName } from '../../protocol/network.ts';
import type { PaymentDocument } from '../api/documents.ts';

type Fields = Readonly<Record<string, unknown>>;

const MAX_ID = 64;
const HASH = /^[0-9a-f]{96}$/;
const TARGET = /^[0-9a-f]{64}$/;

const refused = (what: string): Error => new Error(`${what} has an invalid form`);

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused('a document');
  return value as Fields;
}

export function listOf(value: unknown, most: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length > most) throw refused('a list');
  return value;
}

function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw refused(name);
  // JSON has two zeros, 0 and -0.
  return value === 0 ? 0 : value;
}

function textOf(fields: Fields, name: string, form: RegExp | number): string {
  const value = fields[name];
  const isGood = typeof value === 'string' && (typeof form === 'number' ? value.length <= form : form.test(value));
  if (!isGood) throw refused(name);
  return value;
}

function oneOf<T extends string>(fields: Fields, name: string, values: readonly T[]): T {
  const found = values.find((value) => value === fields[name]);
  if (found === undefined) throw refused(name);
  return found;
}

const orNull = <T>(fields: Fields, name: string, read: (fields: Fields, name: string) => T): T | null =>
  fields[name] == null ? null : read(fields, name);

const hashOf = (fields: Fields, name: string): string => textOf(fields, name, HASH);

/** An amount has one spelling and is never negative: a negative row could hide another. */
function atomsOf(fields: Fields, name: string): string {
  const text = textOf(fields, name, MAX_ID);
  parseAtoms(text);
  return text;
}

function addressOf(fields: Fields, network: NetworkName): string {
  const text = textOf(fields, 'address', 128);
  parseAddress(text, network);
  return text;
}

const STATES = ['reserved', 'submitting', 'submitted', 'finalized', 'void'] as const;

export function readPayment(value: unknown, network: NetworkName): PaymentDocument {
  const fields = fieldsOf(value);
  return {
    payout_id: textOf(fields, 'payout_id', MAX_ID),
    state: oneOf(fields, 'state', STATES),
    address: addressOf(fields, network),
    amount: atomsOf(fields, 'amount'),
    transaction_id: orNull(fields, 'transaction_id', hashOf),
    created_millis: numberOf(fields, 'created_millis'),
    final_height: orNull(fields, 'final_height', numberOf),
  };
}

export function readCommitmentRow(value: unknown): CommitmentRow {
  const fields = fieldsOf(value);
  return {
    number: numberOf(fields, 'number'),
    state: oneOf(fields, 'state', ['pending', 'finalized', 'void'] as const),
    transaction_id: orNull(fields, 'transaction_id', hashOf),
    final_height: orNull(fields, 'final_height', numberOf),
    slice: orNull(fields, 'slice', numberOf),
    head: orNull(fields, 'head', hashOf),
  };
}

/** With the root of its list, if it has one. */
export type PublishedRecord = SliceRecord & { readonly credits: { readonly root: string } | null };

function workOf(fields: Fields, name: string): string {
  const text = textOf(fields, name, 80);
  readWork(text);
  return text;
}

export function readRecord(value: unknown, service: BooksService, network: NetworkName): PublishedRecord {
  const fields = fieldsOf(value);
  return {
    network: oneOf(fields, 'network', [network]),
    service: oneOf(fields, 'service', [service]),
    slice: numberOf(fields, 'slice'),
    slice_cuts: numberOf(fields, 'slice_cuts'),
    window_thousandths: numberOf(fields, 'window_thousandths'),
    fee_ppm: numberOf(fields, 'fee_ppm'),
    target: textOf(fields, 'target', TARGET),
    window_work: workOf(fields, 'window_work'),
    accounts: numberOf(fields, 'accounts'),
    total_work: workOf(fields, 'total_work'),
    root: hashOf(fields, 'root'),
    previous: hashOf(fields, 'previous'),
    chain: hashOf(fields, 'chain'),
    credits: orNull(fields, 'credits', (of, name) => ({ root: hashOf(fieldsOf(of[name]), 'root') })),
  };
}

export function readLeaf(value: unknown, network: NetworkName): { readonly key: Uint8Array; readonly value: bigint } {
  const fields = fieldsOf(value);
  return { key: parseAddress(addressOf(fields, network), network).payload, value: BigInt(workOf(fields, 'work')) };
}

export type BlockPlace = {
  readonly block_id: string;
  readonly state: 'paid' | 'held';
  readonly credited_with: number | null;
};

export function readBlockPlace(value: unknown): BlockPlace {
  const fields = fieldsOf(value);
  return {
    block_id: hashOf(fields, 'block_id'),
    state: oneOf(fields, 'state', ['paid', 'held'] as const),
    credited_with: orNull(fields, 'credited_with', numberOf),
  };
}

export const isNetwork = (value: unknown): value is NetworkName =>
  typeof value === 'string' && Object.hasOwn(NETWORKS, value);
