/** Reads a file of PoW vectors (vectors/README.md, pow.json). The file comes from outside, so its shape is checked. */
import { fromHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { NETWORKS, type Network } from '../../protocol/network.ts';
import { MinerError } from '../miner-error.ts';

export interface PowVector {
  readonly network: Network;
  readonly epoch: number;
  readonly datasetSeed: Uint8Array<ArrayBuffer>;
  readonly cache: readonly IndexedBytes[];
  readonly items: readonly IndexedBytes[];
  readonly hashes: readonly HashVector[];
}

export interface IndexedBytes {
  readonly index: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface HashVector {
  readonly header: Uint8Array<ArrayBuffer>;
  readonly preHash: Uint8Array<ArrayBuffer>;
  readonly seed: Uint8Array<ArrayBuffer>;
  readonly mix: Uint8Array<ArrayBuffer>;
  readonly pow: Uint8Array<ArrayBuffer>;
}

/** A JSON value with its path, for messages. */
class Place {
  readonly #value: unknown;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    this.#value = value;
    this.#path = path;
  }

  wrong(expected: string): MinerError {
    return new MinerError('vectors_invalid', `${this.#path} is not ${expected}`);
  }

  at(key: string): Place {
    if (typeof this.#value !== 'object' || this.#value === null) throw this.wrong('an object');
    return new Place((this.#value as Record<string, unknown>)[key], `${this.#path}.${key}`);
  }

  list<T>(read: (entry: Place) => T): T[] {
    if (!Array.isArray(this.#value)) throw this.wrong('a list');
    return this.#value.map((entry, i) => read(new Place(entry, `${this.#path}[${i}]`)));
  }

  count(below: number): number {
    const value = this.#value;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value >= below)
      throw this.wrong(`a whole number below ${below}`);
    return value;
  }

  hex(length: number): Uint8Array<ArrayBuffer> {
    if (typeof this.#value !== 'string') throw this.wrong('hex text');
    try {
      return fromHex(this.#value, length);
    } catch (error) {
      if (error instanceof ProtocolError) throw this.wrong(`${length} bytes of hex text (${error.message})`);
      throw error;
    }
  }

  network(): Network {
    const network = Object.values(NETWORKS).find(({ name }) => name === this.#value);
    if (network === undefined) throw this.wrong('the name of a network');
    return network;
  }
}

export function readPowVectors(text: string): PowVector[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new MinerError('vectors_invalid', `the file is not JSON: ${(error as Error).message}`);
  }
  return new Place(json, 'file').list(readVector);
}

function readVector(place: Place): PowVector {
  const network = place.at('network').network();
  const indexed = (limit: number) => (entry: Place) => ({
    index: entry.at('index').count(limit),
    bytes: entry.at('bytes').hex(64),
  });
  if (place.at('network_id').count(2 ** 32) !== network.id) throw place.at('network_id').wrong(`${network.id}`);
  return {
    network,
    epoch: place.at('epoch').count(2 ** 32),
    datasetSeed: place.at('dataset_seed').hex(32),
    cache: place.at('cache').list(indexed(2 ** network.pow.cacheLog2)),
    items: place.at('items').list(indexed(2 ** (network.pow.pagesLog2 + 1))),
    hashes: place.at('hashes').list((entry) => ({
      header: entry.at('header').hex(312),
      preHash: entry.at('pre_hash').hex(32),
      seed: entry.at('seed').hex(64),
      mix: entry.at('mix').hex(32),
      pow: entry.at('pow').hex(32),
    })),
  };
}
