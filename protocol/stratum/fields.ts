/**
 * Reads the fields of one JSON object and refuses what it does not know (docs/protocol/stratum.md, S13): call the typed
 * readers, then end().
 */
import { type Bytes, fromHex } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import type { Json, JsonObject } from './json.ts';
import { WORK_MAX } from './messages.ts';

const DECIMAL = /^(?:0|[1-9][0-9]{0,38})$/;

function wrong(name: string, want: string): never {
  throw new ProtocolError('field_type', `${name} must be ${want}`);
}

export class Fields {
  readonly #entries: JsonObject;
  #taken = 0;

  constructor(value: Json | undefined, what: string) {
    if (!(value instanceof Map)) wrong(what, 'an object');
    this.#entries = value;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  value(name: string): Json {
    const value = this.#entries.get(name);
    if (value === undefined) throw new ProtocolError('field_missing', `${name} is missing`);
    this.#taken++;
    return value;
  }

  text(name: string): string {
    const value = this.value(name);
    if (typeof value !== 'string') wrong(name, 'a string');
    return value;
  }

  textOr<T>(name: string, otherwise: T): string | T {
    return this.has(name) ? this.text(name) : otherwise;
  }

  hex(name: string, length?: number): Bytes {
    return fromHex(this.text(name), length);
  }

  integer(name: string, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.value(name);
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > max)
      wrong(name, `an integer from 0 to ${max}`);
    return value;
  }

  /** A bigint as decimal text, without sign or leading zeros. */
  decimal(name: string): bigint {
    const text = this.text(name);
    if (!DECIMAL.test(text)) wrong(name, 'a decimal number as text');
    const value = BigInt(text);
    if (value > WORK_MAX) throw new ProtocolError('out_of_range', `${name} does not fit 128 bits`);
    return value;
  }

  boolean(name: string): boolean {
    const value = this.value(name);
    if (typeof value !== 'boolean') wrong(name, 'true or false');
    return value;
  }

  fields(name: string): Fields {
    return new Fields(this.value(name), name);
  }

  /** Every field was read once, so a difference in number means that one was not asked for. */
  end(): void {
    if (this.#taken !== this.#entries.size)
      throw new ProtocolError('field_unknown', 'there is a field that does not belong here');
  }
}
