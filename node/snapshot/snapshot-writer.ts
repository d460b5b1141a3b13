/**
 * Writes snapshots while the node runs: at a fixed interval of cuts a view of the store is taken, which costs nothing,
 * and the file is written from it, part by part, while cuts continue. The last two files are kept; an incomplete one
 * has another name.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../runtime/log/log.ts';
import type { FullNode } from '../full-node.ts';
import type { FrozenStore } from '../store/database.ts';
import { createSnapshot } from './create-snapshot.ts';
import { UNFINISHED } from './snapshot-file.ts';
import { isSnapshotHeight } from './snapshot-head.ts';
import type { SnapshotPlan } from './snapshot-options.ts';

const KEPT = 2;
const PREFIX = 'snapshot-';

/** Undefined if it is not a complete snapshot. */
export function heightOfName(name: string): number | undefined {
  const [, digits] = /^snapshot-(\d{1,15})$/.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

export type SnapshotWriterDependencies = NonNullable<SnapshotPlan['write']> & {
  readonly node: Pick<FullNode, 'on'> & { frozen(): FrozenStore };
  readonly log: Logger;
  /** A new file exists, and older ones were deleted. */
  readonly written?: () => Promise<void>;
};

export class SnapshotWriter {
  readonly #with: SnapshotWriterDependencies;
  readonly #unsubscribe: () => void;
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor(dependencies: SnapshotWriterDependencies) {
    this.#with = dependencies;
    // In the listener the newest cut is in the store and the next is not.
    this.#unsubscribe = dependencies.node.on('cut', ({ header: { height } }) => {
      if (!isSnapshotHeight(height) || (height + 1) % dependencies.everyCuts !== 0) return;
      if (!this.#stopped && this.#writing === undefined) this.#begin(height);
    });
  }

  #begin(height: number): void {
    const { node, log } = this.#with;
    const frozen = node.frozen();
    this.#writing = this.#write(height, frozen)
      .catch((error) => log.error('no snapshot was written', { height, error }))
      .finally(async () => {
        await frozen.close();
        this.#writing = undefined;
      });
  }

  async #write(height: number, frozen: FrozenStore): Promise<void> {
    const { directory, log } = this.#with;
    await mkdir(directory, { recursive: true });
    const file = join(directory, `${PREFIX}${height}`);
    const { cutId, bytes } = await createSnapshot(frozen, file, () => this.#stopped);
    log.info('snapshot written', { file, height, cut: cutId, bytes });
    await this.#tidy();
    await this.#with.written?.();
  }

  /** Older ones, and leftovers of a crash. */
  async #tidy(): Promise<void> {
    const { directory } = this.#with;
    const names = (await readdir(directory)).filter((name) => name.startsWith(PREFIX));
    const heightOf = (name: string): number => heightOfName(name) ?? -1;
    const whole = names.filter((name) => heightOf(name) >= 0);
    const old = whole.sort((a, b) => heightOf(b) - heightOf(a)).slice(KEPT);
    for (const name of [...old, ...names.filter((name) => name.endsWith(UNFINISHED))])
      await rm(join(directory, name), { force: true });
  }

  /** Nothing is being written. */
  async idle(): Promise<void> {
    await this.#writing;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    await this.idle();
  }
}
