/**
 * Remembers how fast each device was, so that the next start can ask the server for a suitable share work:
 * DIR/rates-NETWORK.json. An unreadable file counts as absent.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { NetworkName } from '../../protocol/network.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import type { ListedDevice } from './device-list.ts';

const MOST_BYTES = 65_536;
const MOST_DEVICES = 64;
/** A smaller change is not worth a write. */
const LEAST_CHANGE = 0.1;

/** The key of a rate: everything it depends on. */
export const rateKey = (device: ListedDevice, light: boolean): string =>
  device.kind === 'webgpu' ? device.name : `${device.name}, ${device.threads} threads${light ? ', light' : ''}`;

const isRate = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 1;

export class RateFile {
  readonly #path: string;
  readonly #rates: Map<string, number>;

  constructor(directory: string, network: NetworkName) {
    this.#path = join(directory, `rates-${network}.json`);
    this.#rates = read(this.#path);
  }

  /** Hashes per second. */
  of(key: string): number | undefined {
    return this.#rates.get(key);
  }

  async remember(key: string, rate: number): Promise<void> {
    const before = this.#rates.get(key);
    if (!isRate(rate) || (before !== undefined && Math.abs(rate / before - 1) < LEAST_CHANGE)) return;
    this.#rates.delete(key);
    this.#rates.set(key, Math.round(rate));
    const newest = [...this.#rates].slice(-MOST_DEVICES);
    mkdirSync(join(this.#path, '..'), { recursive: true });
    await writeDurably(this.#path, `${JSON.stringify(Object.fromEntries(newest), undefined, 2)}\n`);
  }
}

function read(path: string): Map<string, number> {
  try {
    const saved = JSON.parse(readSmallFile(path, MOST_BYTES)) as Record<string, unknown>;
    return new Map(
      Object.entries(saved)
        .filter((entry): entry is [string, number] => isRate(entry[1]))
        .slice(-MOST_DEVICES),
    );
  } catch {
    return new Map();
  }
}
