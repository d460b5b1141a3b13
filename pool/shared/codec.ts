/**
 * Binary encoding of the values that instances exchange in Redis. A codec is a list of fields with their bounds:
 * decoding gives a value of exactly that shape, or a ProtocolError. The input never decides which types are built, how
 * large they get, or which code runs.
 */
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';

export type Codec<T> = {
  readonly write: (writer: ByteWriter, value: T) => unknown;
  readonly read: (reader: ByteReader) => T;
};

export function encode<T>(codec: Codec<T>, value: T): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(256);
  codec.write(writer, value);
  return writer.done();
}

export function decode<T>(codec: Codec<T>, bytes: Bytes): T {
  const reader = new ByteReader(bytes);
  const value = codec.read(reader);
  reader.end();
  return value;
}

export const u16: Codec<number> = { write: (writer, value) => writer.u16(value), read: (reader) => reader.u16() };
export const u32: Codec<number> = { write: (writer, value) => writer.u32(value), read: (reader) => reader.u32() };
/** A count, a height, a time in whole milliseconds. */
export const count: Codec<number> = {
  write: (writer, value) => writer.height(value),
  read: (reader) => reader.height(),
};
export const u128: Codec<bigint> = { write: (writer, value) => writer.u128(value), read: (reader) => reader.u128() };

const scratch = new DataView(new ArrayBuffer(8));

/** A finite number: rates and clocks of a process. */
export const float: Codec<number> = {
  write(writer, value) {
    scratch.setFloat64(0, value);
    writer.u64(scratch.getBigUint64(0));
  },
  read(reader) {
    scratch.setBigUint64(0, reader.u64());
    const value = scratch.getFloat64(0);
    if (!Number.isFinite(value)) throw new ProtocolError('out_of_range', 'a number that is not finite');
    return value;
  },
};

export const flag: Codec<boolean> = {
  write: (writer, value) => writer.u8(value ? 1 : 0),
  read(reader) {
    const value = reader.u8();
    if (value > 1) throw new ProtocolError('not_canonical', 'a flag that is neither 0 nor 1');
    return value === 1;
  },
};

export const bytes = (length: number): Codec<Bytes> => ({
  write(writer, value) {
    if (value.length !== length) throw new ProtocolError('out_of_range', `${value.length} bytes instead of ${length}`);
    writer.raw(value);
  },
  read: (reader) => reader.take(length),
});

export const bytesUpTo = (max: number): Codec<Bytes> => ({
  write: (writer, value) => writer.short(value, max),
  read: (reader) => reader.short(max),
});

export const text = (max: number): Codec<string> => ({
  write: (writer, value) => writer.text(value, max),
  read: (reader) => reader.text(max),
});

/** One of a few words, by its index. */
export const choice = <const T extends string>(words: readonly T[]): Codec<T> => ({
  write: (writer, value) => writer.u8(words.indexOf(value)),
  read(reader) {
    const word = words[reader.u8()];
    if (word === undefined) throw new ProtocolError('unsupported_kind', `none of ${words.join(', ')}`);
    return word;
  },
});

export const nullable = <T>(codec: Codec<T>): Codec<T | null> => ({
  write(writer, value) {
    flag.write(writer, value !== null);
    if (value !== null) codec.write(writer, value);
  },
  read: (reader) => (flag.read(reader) ? codec.read(reader) : null),
});

/** At most `max` values; also checked when encoding. */
export const list = <T>(codec: Codec<T>, max: number): Codec<readonly T[]> => ({
  write(writer, values) {
    if (values.length > max) throw new ProtocolError('too_long', `${values.length} values, at most ${max} allowed`);
    writer.u32(values.length);
    for (const value of values) codec.write(writer, value);
  },
  read(reader) {
    const length = reader.u32();
    if (length > max) throw new ProtocolError('too_long', `${length} values, at most ${max} allowed`);
    // Grown value by value: with a false length, decoding stops at the first missing value.
    const values: T[] = [];
    for (let i = 0; i < length; i++) values.push(codec.read(reader));
    return values;
  },
});

export const pair = <A, B>(first: Codec<A>, second: Codec<B>): Codec<readonly [A, B]> => ({
  write(writer, [a, b]) {
    first.write(writer, a);
    second.write(writer, b);
  },
  read: (reader) => [first.read(reader), second.read(reader)],
});

/** Names and values. It has no prototype: a name can be `__proto__` and is still only a name. */
export const dictionary = <T>(codec: Codec<T>, max: number): Codec<Readonly<Record<string, T>>> => {
  const entries = list(pair(text(64), codec), max);
  return {
    write: (writer, value) => entries.write(writer, Object.entries(value)),
    read(reader) {
      const value: Record<string, T> = Object.create(null);
      for (const [name, each] of entries.read(reader)) value[name] = each;
      return value;
    },
  };
};

/** All fields of a type, in the order given here. A missing field is a compile error. */
export const struct = <T extends object>(fields: { readonly [K in keyof T]-?: Codec<T[K]> }): Codec<T> => {
  const names = Object.keys(fields) as (keyof T)[];
  return {
    write(writer, value) {
      for (const name of names) fields[name].write(writer, value[name]);
    },
    read: (reader) => Object.fromEntries(names.map((name) => [name, fields[name].read(reader)])) as T,
  };
};
