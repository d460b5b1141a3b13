/**
 * Decides which dataset files are kept. Servers name epochs, and may lie: a file with much work is worth more than one
 * that was only requested, so it is never deleted for the latter. The work done with each file is kept beside them in
 * dataset-use.json; it is halved every three days, so that files of past epochs are deleted. Node only.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WallClock } from '../runtime/clock/clock.ts';
import { readSmallFile } from '../runtime/files/small-file.ts';

/** Files of one network, the one just saved included. */
export const MOST_FILES = 3;
const HALF_LIFE_MILLIS = 3 * 86_400_000;
/** Less than this part of the most used one's work is as good as none. */
const LEAST_PART = 1 / 64;
const WRITE_EVERY_MILLIS = 600_000;
const MOST_BYTES = 65_536;
const FILE = 'dataset-use.json';

export type EpochUse = { readonly epoch: number; readonly work: number };

/** The epochs whose files stay when `saved` was written: at most three. */
export function epochsToKeep(files: readonly EpochUse[], saved: number): number[] {
  const others = files.filter(({ epoch }) => epoch !== saved).sort((a, b) => b.work - a.work);
  const most = others[0]?.work ?? 0;
  const worked = others.filter(({ work }) => work > 0 && work >= most * LEAST_PART);
  const beside = others.filter((file) => Math.abs(file.epoch - saved) === 1 && !worked.includes(file));
  return [saved, ...[...worked, ...beside].map(({ epoch }) => epoch)].slice(0, MOST_FILES);
}

type Entry = { readonly work: number; readonly atMillis: number };

export class DatasetUse {
  readonly #path: string;
  readonly #now: WallClock;
  readonly #entries = new Map<string, Entry>();
  #writtenAt: number;

  constructor(directory: string, now: WallClock) {
    this.#path = join(directory, FILE);
    this.#now = now;
    this.#writtenAt = now();
    for (const [name, { work, atMillis }] of Object.entries(read(this.#path)))
      if (Number.isFinite(work) && Number.isFinite(atMillis)) this.#entries.set(name, { work, atMillis });
  }

  of(name: string): number {
    const entry = this.#entries.get(name);
    if (entry === undefined) return 0;
    return entry.work * 2 ** -(Math.max(0, this.#now() - entry.atMillis) / HALF_LIFE_MILLIS);
  }

  add(name: string, work: number): void {
    const atMillis = this.#now();
    this.#entries.set(name, { work: this.of(name) + work, atMillis });
    if (Math.abs(atMillis - this.#writtenAt) >= WRITE_EVERY_MILLIS) this.write();
  }

  forget(name: string): void {
    this.#entries.delete(name);
  }

  /** Losing it costs at most one rebuilt dataset, so a failed write is ignored. */
  write(): void {
    if (this.#entries.size === 0) return;
    this.#writtenAt = this.#now();
    try {
      writeFileSync(this.#path, `${JSON.stringify(Object.fromEntries(this.#entries))}\n`);
    } catch {}
  }
}

function read(path: string): Record<string, Entry> {
  try {
    return JSON.parse(readSmallFile(path, MOST_BYTES)) as Record<string, Entry>;
  } catch {
    return {};
  }
}
