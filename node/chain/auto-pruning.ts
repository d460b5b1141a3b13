/**
 * Pruning (network rule 14): after every 96th cut, the bodies of cuts older than 1,440 are deleted. Cuts that a peer is
 * fetching stay until a minute after its last request. That delays the deletion by at most another 1,440 cuts, so that
 * no peer can make a node keep everything.
 */
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { FullNode } from '../full-node.ts';
import { CERTIFICATE_STEP } from '../store/kept-certificates.ts';
import { PRUNED_KEEPS } from '../store/storage-mode.ts';

const HELD_MILLIS = 60_000;
const MAX_HOLDERS = 1_024;

export type Hold = { readonly from: number; readonly atMillis: number };

/** The last cut whose bodies may be deleted. */
export function pruneThrough(height: number, holds: Iterable<Hold>, nowMillis: number, keeps = PRUNED_KEEPS): number {
  let through = height - keeps;
  for (const { from, atMillis } of holds) if (nowMillis - atMillis < HELD_MILLIS) through = Math.min(through, from - 1);
  return Math.max(through, height - 2 * keeps);
}

export type AutoPruningDependencies = {
  readonly node: Pick<FullNode, 'chain' | 'on' | 'pruneBodies'>;
  readonly log: Logger;
  readonly steady: SteadyClock;
  /** Cuts whose bodies are kept, at least 96; default 1,440. */
  readonly keeps?: number;
};

export class AutoPruning {
  readonly #with: AutoPruningDependencies;
  readonly #holds = new BoundedMap<string, Hold>(MAX_HOLDERS);
  readonly #unsubscribe: () => void;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(dependencies: AutoPruningDependencies) {
    this.#with = dependencies;
    this.#unsubscribe = dependencies.node.on('cut', ({ header }) => {
      if ((header.height + 1) % CERTIFICATE_STEP === 0) this.begin();
    });
  }

  /**
   * A peer was sent cuts from this height on; without a height, it asked for something that belongs to earlier ones.
   */
  served(peer: string, from?: number): void {
    const held = from ?? this.#holds.get(peer)?.from;
    if (held !== undefined) this.#holds.set(peer, { from: held, atMillis: this.#with.steady() });
  }

  begin(): void {
    if (this.#stopped || this.#running !== undefined) return;
    this.#running = this.#prune()
      .catch((error) => this.#with.log.error('old bodies could not be deleted', { error }))
      .finally(() => {
        this.#running = undefined;
      });
  }

  /**
   * In steps, so that a node with much to delete can be stopped, and cuts that a peer starts to fetch meanwhile stay.
   */
  async #prune(): Promise<void> {
    const { node, log, steady, keeps } = this.#with;
    const { chain } = node;
    let bodies = 0;
    while (!this.#stopped) {
      const last = pruneThrough(chain.head().height, this.#holds.values(), steady(), keeps);
      if (last < chain.bodiesFrom()) break;
      bodies += await node.pruneBodies(Math.min(last, chain.bodiesFrom() + CERTIFICATE_STEP - 1));
    }
    if (bodies > 0) log.debug('old bodies deleted', { bodies, bodies_from: chain.bodiesFrom() });
  }

  /** Nothing is being deleted. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    await this.idle();
  }
}
