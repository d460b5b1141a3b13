/** Event listeners of a node. An exception in a listener is logged and does not stop the chain. */
import type { Logger } from '../runtime/log/log.ts';
import type { NodeEvents } from './full-node.ts';

export class NodeListeners {
  readonly #log: Logger;
  readonly #listeners: { [E in keyof NodeEvents]: Set<NodeEvents[E]> } = {
    cut: new Set(),
    block: new Set(),
    mempoolAdded: new Set(),
    mempoolRemoved: new Set(),
    fault: new Set(),
  };

  constructor(log: Logger) {
    this.#log = log;
  }

  on<E extends keyof NodeEvents>(event: E, listener: NodeEvents[E]): () => void {
    this.#listeners[event].add(listener);
    return () => void this.#listeners[event].delete(listener);
  }

  emit<E extends keyof NodeEvents>(event: E, ...values: Parameters<NodeEvents[E]>): void {
    for (const listener of this.#listeners[event])
      try {
        (listener as (...values: Parameters<NodeEvents[E]>) => void)(...values);
      } catch (error) {
        this.#log.error('a listener failed', { event, error });
      }
  }
}
