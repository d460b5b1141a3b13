/**
 * Reads the fields of one JSON object and refuses what it does not know (docs/protocol/stratum.md, S13): call the typed
 * readers, then end(). Every refusal names the field, with the path to it if one was given.
 */
import { type Bytes, fromHex } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import type { Json, JsonObject } from './json.ts';
import { WORK_MAX } from './messages.ts';

const DECIMAL = /^(?:0|[1-9][0-9]{0,38})$/;
/** Names of unknown fields come from the sender: no more of one is repeated in a message. */
const MAX_SHOWN_NAME = 40;

const shownName = (name: string): string => name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_SHOWN_NAME);

function wrong(field: string, want: string): never {
  throw new ProtocolError('field_type', `${field} must be ${want}`, { field });
}

/** Adds the field's name to the error of a decoder; the innermost name counts. */
export function inField<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ProtocolError) || 'field' in error.fields) throw error;
    throw new ProtocolError(error.code, `${field}: ${error.message}`, { ...error.fields, field });
  }
}

export class Fields {
  readonly #entries: JsonObject;
  readonly #path: string;
  readonly #taken: string[] = [];

  /** `path`: the prefix of the names of its fields, such as `request.outputs[0].`. */
  constructor(value: Json | undefined, what: string, path = '') {
    if (!(value instanceof Map)) wrong(what, 'an object');
    this.#entries = value;
    this.#path = path;
  }

  /** Its name with the path to it. */
  pathOf(name: string): string {
    return this.#path + name;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  value(name: string): Json {
    const value = this.#entries.get(name);
    if (value === undefined) {
      const field = this.pathOf(name);
      throw new ProtocolError('field_missing', `${field} is missing`, { field });
    }
    this.#taken.push(name);
    return value;
  }

  text(name: string): string {
    const value = this.value(name);
    if (typeof value !== 'string') wrong(this.pathOf(name), 'a string');
    return value;
  }

  textOr<T>(name: string, otherwise: T): string | T {
    return this.has(name) ? this.text(name) : otherwise;
  }

  /** Text that a decoder reads. */
  parsed<T>(name: string, read: (text: string) => T): T {
    const text = this.text(name);
    return inField(this.pathOf(name), () => read(text));
  }

  hex(name: string, length?: number): Bytes {
    return this.parsed(name, (text) => fromHex(text, length));
  }

  integer(name: string, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.value(name);
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > max)
      wrong(this.pathOf(name), `an integer from 0 to ${max}`);
    return value;
  }

  /** A bigint as decimal text, without sign or leading zeros. */
  decimal(name: string): bigint {
    const text = this.text(name);
    const field = this.pathOf(name);
    if (!DECIMAL.test(text)) wrong(field, 'a decimal number as text');
    const value = BigInt(text);
    if (value > WORK_MAX) throw new ProtocolError('out_of_range', `${field} does not fit 128 bits`, { field });
    return value;
  }

  boolean(name: string): boolean {
    const value = this.value(name);
    if (typeof value !== 'boolean') wrong(this.pathOf(name), 'true or false');
    return value;
  }

  fields(name: string): Fields {
    const field = this.pathOf(name);
    return new Fields(this.value(name), field, `${field}.`);
  }

  /** Every field was read once, so a difference in number means that one was not asked for. */
  end(): void {
    if (this.#taken.length === this.#entries.size) return;
    const unknown = [...this.#entries.keys()].find((name) => !this.#taken.includes(name)) ?? '';
    const field = this.pathOf(shownName(unknown));
    throw new ProtocolError('field_unknown', `${field} does not belong here`, { field });
  }
}
