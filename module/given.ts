/** What a caller gave: each value is checked before anything is done with it, and a refusal says which one it was. */
import { type Bytes, fromHex } from '../protocol/bytes.ts';
import { ProtocolError, type ProtocolErrorCode } from '../protocol/errors.ts';
import { NETWORK_NAMES, type NetworkName } from '../protocol/network.ts';
import { Fields, inField } from '../protocol/stratum/fields.ts';
import { type Json, parseJson } from '../protocol/stratum/json.ts';

/** The hex of the largest answer of a node, and room. */
const MAX_TEXT = 4 * 1024 * 1024;
const DECIMAL = /^(?:0|[1-9][0-9]{0,15})$/;

/** Every refusal has the name of the argument or field, with the path to it, in its text and as `fields.field`. */
const refusal = (code: ProtocolErrorCode, what: string, text: string): ProtocolError =>
  new ProtocolError(code, `${what} ${text}`, { field: what });
const wrong = (what: string, want: string): ProtocolError => refusal('field_type', what, `must be ${want}`);

export function givenText(value: unknown, what: string, max = MAX_TEXT): string {
  if (typeof value !== 'string') throw wrong(what, 'a string');
  if (value.length > max) throw refusal('too_long', what, `has more than ${max} characters`);
  if (!value.isWellFormed()) throw refusal('bad_utf8', what, 'is not valid Unicode');
  return value;
}

export function givenHex(value: unknown, what: string, length?: number): Uint8Array<ArrayBuffer> {
  return hexOf(givenText(value, what), what, length);
}

const hexOf = (text: string, what: string, length?: number): Uint8Array<ArrayBuffer> =>
  inField(what, () => fromHex(text, length));

/** Text that a decoder of the protocol reads. */
export function givenParsed<T>(value: unknown, what: string, read: (text: string) => T): T {
  const text = givenText(value, what);
  return inField(what, () => read(text));
}

/** A small number, such as an index: a whole number, or its decimal digits. */
export function givenInteger(value: unknown, what: string, max: number): number {
  const number = typeof value === 'string' && DECIMAL.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw wrong(what, 'a whole number');
  if (number < 0 || number > max) throw refusal('out_of_range', what, `goes from 0 to ${max}`);
  return number;
}

export function givenFlag(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw wrong(what, 'true or false');
  return value;
}

export const givenNetwork = (value: unknown): NetworkName => networkOf(value, 'network');

export function networkOf(value: unknown, what: string): NetworkName {
  const network = NETWORK_NAMES.find((name) => name === value);
  if (network === undefined) throw refusal('wrong_network', what, `is one of ${NETWORK_NAMES.join(', ')}`);
  return network;
}

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;
export const givenOr = <T>(value: unknown, read: (value: unknown) => T): T | undefined =>
  isAbsent(value) || value === '' ? undefined : read(value);

/** Of any network where none is named. An empty text is a wrong name: a setting that is missing must not end the check. */
export const givenNetworkOr = (value: unknown): NetworkName | undefined =>
  isAbsent(value) ? undefined : givenNetwork(value);

/** Of a call that takes whole histories. */
export type Bounds = { readonly text: number; readonly values: number };

function givenJson(value: unknown, what: string, bounds?: Bounds): Json {
  if (typeof value !== 'string') throw wrong(what, 'JSON text, a string');
  const text = givenText(value, what, bounds?.text);
  return inField(what, () => parseJson(text, bounds?.values));
}

/** An object as JSON text. The reader calls `end()`, so that no field goes unread. */
export const givenObject = (value: unknown, what: string, bounds?: Bounds): Fields =>
  new Fields(givenJson(value, what, bounds), what, `${what}.`);

/** Reads one entry of a list. `what` is its name: that of the list, and its place in it from 0 on. */
export type ReadEntry<T> = (json: Json, what: string) => T;

export function givenList<T>(value: unknown, what: string, max: number, read: ReadEntry<T>, bounds?: Bounds): T[] {
  return entriesOf(givenJson(value, what, bounds), what, max, read);
}

/** A list in a field of an object. */
export const listIn = <T>(fields: Fields, name: string, max: number, read: ReadEntry<T>): T[] =>
  entriesOf(fields.value(name), fields.pathOf(name), max, read);

function entriesOf<T>(json: Json, what: string, max: number, read: ReadEntry<T>): T[] {
  if (!Array.isArray(json)) throw wrong(what, 'an array');
  if (json.length > max) throw refusal('out_of_range', what, `has at most ${max} entries`);
  return json.map((entry, i) => {
    const name = `${what}[${i}]`;
    return inField(name, () => read(entry, name));
  });
}

export const objectIn: ReadEntry<Fields> = (json, what) => new Fields(json, what, `${what}.`);

/** An integer of the protocol: decimal text (specification: Conventions, 8). */
export function decimalOf(fields: Fields, name: string, max: number): number {
  const value = fields.decimal(name);
  if (value > BigInt(max)) throw refusal('out_of_range', fields.pathOf(name), `goes to ${max}`);
  return Number(value);
}

export const textIn: ReadEntry<string> = (json, what) => {
  if (typeof json !== 'string') throw wrong(what, 'a string');
  return json;
};

/** Hex in a list, of this many bytes if it says so. */
export const hexIn =
  (length?: number): ReadEntry<Bytes> =>
  (json, what) =>
    hexOf(textIn(json, what), what, length);

/** Nothing in here is secret, and every integer is text (specification: Conventions, 8). */
export const written = (document: unknown): string =>
  JSON.stringify(document, (_, value: unknown) =>
    typeof value === 'bigint' || typeof value === 'number' ? value.toString() : value,
  );
