/** Whether a node goes on. A fault stops it for good: nothing more is accepted or written, and what was written stays. */
import type { Logger } from '../runtime/log/log.ts';
import type { NodeListeners } from './node-listeners.ts';

export class NodeEnd {
  readonly #log: Logger;
  readonly #listeners: NodeListeners;
  #fault: Error | undefined;
  #isClosed = false;

  constructor(log: Logger, listeners: NodeListeners) {
    this.#log = log;
    this.#listeners = listeners;
  }

  get isStopped(): boolean {
    return this.#isClosed || this.#fault !== undefined;
  }

  /** Why nothing more is done here. */
  get reason(): Error {
    return this.#fault ?? new Error('the node is closed');
  }

  /** The store cannot be written, or the ledger does not add up. */
  fail(error: Error, height: number): void {
    if (this.isStopped) return;
    this.#fault = error;
    this.#log.error('the node stopped', { height, error });
    this.#listeners.emit('fault', error);
  }

  /** False if it was closed before. */
  close(): boolean {
    const isFirst = !this.#isClosed;
    this.#isClosed = true;
    return isFirst;
  }
}
