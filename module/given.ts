/** What a caller gave: each value is checked before anything is done with it, and a refusal says which one it was. */
import { type Bytes, fromHex } from '../protocol/bytes.ts';
import { ProtocolError } from '../protocol/errors.ts';
import { NETWORK_NAMES, type NetworkName } from '../protocol/network.ts';
import { Fields } from '../protocol/stratum/fields.ts';
import { type Json, parseJson } from '../protocol/stratum/json.ts';

/** The hex of the largest answer of a node, and room. */
const MAX_TEXT = 4 * 1024 * 1024;
const DECIMAL = /^(?:0|[1-9][0-9]{0,15})$/;

const wrong = (what: string, want: string): ProtocolError => new ProtocolError('field_type', `${what} must be ${want}`);

export function givenText(value: unknown, what: string, max = MAX_TEXT): string {
  if (typeof value !== 'string') throw wrong(what, 'a string');
  if (value.length > max) throw new ProtocolError('too_long', `${what} has more than ${max} characters`);
  if (!value.isWellFormed()) throw new ProtocolError('bad_utf8', `${what} is not valid Unicode`);
  return value;
}

export function givenHex(value: unknown, what: string, length?: number): Uint8Array<ArrayBuffer> {
  return fromHex(givenText(value, what), length);
}

/** A small number, such as an index: a whole number, or its decimal digits. */
export function givenInteger(value: unknown, what: string, max: number): number {
  const number = typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw wrong(what, 'a whole number');
  if (number < 0 || number > max) throw new ProtocolError('out_of_range', `${what} goes from 0 to ${max}`);
  return number;
}

export function givenFlag(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw wrong(what, 'true or false');
  return value;
}

export function givenNetwork(value: unknown): NetworkName {
  const network = NETWORK_NAMES.find((name) => name === value);
  if (network === undefined) throw new ProtocolError('wrong_network', `network is one of ${NETWORK_NAMES.join(', ')}`);
  return network;
}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;
export const givenOr = <T>(value: unknown, read: (value: unknown) => T): T | undefined =>
  isAbsent(value) || value === '' ? undefined : read(value);

/** Of a call that takes whole histories. */
export type Bounds = { readonly text: number; readonly values: number };

const givenJson = (value: unknown, what: string, bounds?: Bounds): Json =>
  parseJson(givenText(value, what, bounds?.text), bounds?.values);

/** An object as JSON text. The reader calls `end()`, so that no field goes unread. */
export const givenObject = (value: unknown, what: string, bounds?: Bounds): Fields =>
  new Fields(givenJson(value, what, bounds), what);

export function givenList(value: unknown, what: string, max: number, bounds?: Bounds): readonly Json[] {
  return listOf(givenJson(value, what, bounds), what, max);
}

export function listOf(json: Json, what: string, max: number): readonly Json[] {
  if (!Array.isArray(json)) throw wrong(what, 'an array');
  if (json.length > max) throw new ProtocolError('out_of_range', `${what} has at most ${max} entries`);
  return json;
}

/** An integer of the protocol: decimal text (specification: Conventions, 8). */
export function decimalOf(fields: Fields, name: string, max: number): number {
  const value = fields.decimal(name);
  if (value > BigInt(max)) throw new ProtocolError('out_of_range', `${name} goes to ${max}`);
  return Number(value);
}

export const textIn = (json: Json, what: string): string => {
  if (typeof json !== 'string') throw wrong(what, 'a string');
  return json;
};

/** Nothing in here is secret, and every integer is text. */
export const written = (document: unknown): string =>
  JSON.stringify(document, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));

export const hexIn = (json: Json, what: string): Bytes => fromHex(textIn(json, what));
