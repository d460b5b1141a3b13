/** Remembers how each graphics card runs fastest, so that it is tuned once: DIR/tuning.json, by the card's name. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Shape, VARIANTS } from '../../kernels/gpu/search.ts';
import type { Tuning } from '../../kernels/gpu/tune.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';

/** A tuning of another version of the kernels is ignored. */
const VERSION = 2;

const FLIGHTS = [1, 2, 3, 4, 5, 6, 7, 8];

type Saved = { version: number; devices: Record<string, unknown> };

const isOneOf = (value: unknown, choices: readonly unknown[]): boolean => choices.includes(value);

/** The file may be damaged: invalid entries are ignored. The backend decides whether the card can run a tuning. */
function asTuning(value: unknown): Tuning | undefined {
  const { shape } = (value ?? {}) as { shape?: Partial<Record<keyof Shape, unknown>> };
  if (typeof shape !== 'object' || shape === null) return undefined;
  const { variant, lanes, flight, workgroup } = shape;
  const isSize = Number.isInteger(workgroup) && (workgroup as number) > 0 && (workgroup as number) <= 1_024;
  const isKnown = isOneOf(variant, VARIANTS) && isOneOf(lanes, [4, 8]) && isOneOf(flight, FLIGHTS);
  return isSize && isKnown ? (value as Tuning) : undefined;
}

export class TuningFile {
  readonly #path: string;
  readonly #saved: Saved;

  constructor(directory: string) {
    this.#path = join(directory, 'tuning.json');
    this.#saved = read(this.#path);
  }

  of(device: string): Tuning | undefined {
    return asTuning(this.#saved.devices[device]);
  }

  forget(): void {
    this.#saved.devices = {};
  }

  async remember(device: string, tuning: unknown): Promise<void> {
    if (asTuning(tuning) === undefined) return;
    this.#saved.devices[device] = tuning;
    mkdirSync(join(this.#path, '..'), { recursive: true });
    await writeDurably(this.#path, `${JSON.stringify(this.#saved, undefined, 2)}\n`);
  }
}

function read(path: string): Saved {
  try {
    const { version, devices } = JSON.parse(readSmallFile(path)) as Saved;
    if (version === VERSION && typeof devices === 'object' && devices !== null) return { version, devices };
  } catch {
    // Absent or damaged: the cards are tuned again.
  }
  return { version: VERSION, devices: {} };
}
