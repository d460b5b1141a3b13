/**
 * Compares the table files of the store with the checksums in them. The store reads them without (its binding has no such
 * option): a flipped bit makes it forget or change records without a word, and a forgotten request would be paid again, or
 * ends the program. To be called while the store is open: then no unfinished file of a crash is left.
 *
 * A table: blocks of `content | u8 compression | u32 checksum`, of which the last two name all others, and a footer.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { attempt } from '../../protocol/errors.ts';
import { Checksum } from './checksum.ts';

const FOOTER_BYTES = 48;
const TABLE_END = 0xdb4775248b80fb57n;
const TRAILER_BYTES = 5;
const SNAPPY = 1;

class Reader {
  readonly #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes.readUInt8(this.at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  /** Where a block lies. */
  place(): Stretch {
    return { offset: this.number(), size: this.number() };
  }

  take(length: number): Buffer {
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }
}

type Stretch = { readonly offset: number; readonly size: number };

/** The store's compression: literals, and copies of what came before. */
function unpacked(bytes: Buffer): Buffer {
  const reader = new Reader(bytes);
  const out = Buffer.alloc(reader.number());
  for (let end = 0; reader.at < bytes.length; ) {
    const tag = reader.take(1)[0] as number;
    const kind = tag & 3;
    if (kind === 0) {
      const short = tag >> 2;
      const length = 1 + (short < 60 ? short : reader.take(short - 59).readUIntLE(0, short - 59));
      end += reader.take(length).copy(out, end);
      continue;
    }
    const length = kind === 1 ? 4 + ((tag >> 2) & 7) : 1 + (tag >> 2);
    const width = kind === 3 ? 4 : kind;
    const distance = reader.take(width).readUIntLE(0, width) + (kind === 1 ? (tag >> 5) << 8 : 0);
    for (const stop = end + length; end < stop; end++) out[end] = out[end - distance] as number;
  }
  return out;
}

/** The content of a block; undefined where it is not the one that was written. */
function blockAt(file: Buffer, { offset, size }: Stretch): Buffer | undefined {
  const end = offset + size;
  if (end + TRAILER_BYTES > file.length) return undefined;
  if (Checksum.of(file.subarray(offset, end + 1)) !== file.readUInt32LE(end + 1)) return undefined;
  return file.subarray(offset, end);
}

/** The blocks that a block names. */
function placesIn(file: Buffer, at: Stretch): Stretch[] | undefined {
  const raw = blockAt(file, at);
  if (raw === undefined) return undefined;
  const block = file[at.offset + at.size] === SNAPPY ? unpacked(raw) : raw;
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4);
  const places: Stretch[] = [];
  for (const reader = new Reader(block); reader.at < end; ) {
    reader.number();
    const [key, value] = [reader.number(), reader.number()];
    reader.take(key);
    places.push(new Reader(reader.take(value)).place());
  }
  return places;
}

/** False where a bit differs from what was written. A file without its end is left to the store, which finds that itself. */
function isWholeTable(file: Buffer): boolean {
  if (file.length < FOOTER_BYTES || file.readBigUInt64LE(file.length - 8) !== TABLE_END) return true;
  const footer = new Reader(file, file.length - FOOTER_BYTES);
  return [footer.place(), footer.place()].every((at) =>
    placesIn(file, at)?.every((place) => blockAt(file, place) !== undefined),
  );
}

/** The name of a damaged table; undefined if there is none. */
export async function damagedTable(directory: string): Promise<string | undefined> {
  for (const name of await readdir(directory)) {
    if (!/\.(ldb|sst)$/.test(name)) continue;
    // One that was merged with others meanwhile is gone.
    const file = await readFile(join(directory, name)).catch(() => Buffer.alloc(0));
    const whole = attempt(() => isWholeTable(file));
    if (!whole.ok || !whole.value) return name;
  }
  return undefined;
}
