/**
 * A worker thread, the same in Node (worker_threads) and in a browser (Web Worker). `thread.ask()` sends a task and
 * resolves with its answer; other messages of a worker go to `onEvent`. All of them run kernels/cpu/thread-main.ts.
 */
import { KernelError } from '../kernel-error.ts';
import type { ThreadAnswer, ThreadEvent, ThreadTask } from './thread-tasks.ts';

type Transferable = MessagePort | ArrayBuffer;

/** The common interface of both kinds of workers and ports. */
type Channel = {
  post(message: unknown, transfer: readonly Transferable[]): void;
  end(): Promise<void>;
};

export type ThreadEvents = {
  onEvent?(event: ThreadEvent): void;
  /** The worker ended unexpectedly. Its pending tasks are rejected first. */
  onDeath?(reason: string): void;
};

export const isNode = typeof process === 'object' && process.versions?.node !== undefined;

/** Whether threads can share a memory here: always in Node, in a browser only when the page is isolated. */
export const canShareMemory = (): boolean =>
  typeof SharedArrayBuffer === 'function' && (isNode || globalThis.crossOriginIsolated === true);

export const coreCount = (): number =>
  isNode
    ? process.getBuiltinModule('node:os').availableParallelism()
    : (globalThis.navigator?.hardwareConcurrency ?? 1);

/** In Node: without a cache of compiled code every thread strips the types of its modules anew, 150 ms instead of 50. */
export const threadEnvironment = (): NodeJS.ProcessEnv => ({
  NODE_COMPILE_CACHE: new URL(/* @vite-ignore */ '../../build/compile-cache', import.meta.url).pathname,
  ...process.env,
});

function openChannel(onMessage: (message: unknown) => void, onDeath: (reason: string) => void): Channel {
  if (isNode) {
    const { Worker: NodeWorker } = process.getBuiltinModule('node:worker_threads');
    const worker = new NodeWorker(new URL('./thread-main.ts', import.meta.url), {
      name: 'pow',
      env: threadEnvironment(),
    });
    let reason = 'exited';
    worker.on('message', onMessage);
    worker.on('error', (error) => {
      reason = error instanceof Error ? error.message : String(error);
    });
    worker.on('exit', () => onDeath(reason));
    return {
      post: (message, transfer) => worker.postMessage(message, transfer as never),
      end: async () => void (await worker.terminate()),
    };
  }
  const worker = new Worker(new URL('./thread-main.ts', import.meta.url), { type: 'module', name: 'pow' });
  worker.onmessage = (event) => onMessage(event.data);
  worker.onerror = (event) => {
    worker.terminate();
    onDeath(event.message);
  };
  return {
    post: (message, transfer) => worker.postMessage(message, transfer as never),
    end: async () => worker.terminate(),
  };
}

export class Thread {
  readonly #events: ThreadEvents;
  readonly #channel: Channel;
  readonly #open = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #next = 1;
  #ended = false;

  constructor(events: ThreadEvents = {}) {
    this.#events = events;
    this.#channel = openChannel(
      (message) => this.#take(message as ThreadAnswer | ThreadEvent),
      (reason) => this.#die(reason),
    );
  }

  ask<T>(task: ThreadTask, transfer: readonly Transferable[] = []): Promise<T> {
    if (this.#ended) return Promise.reject(new KernelError('kernel_closed', 'the worker has ended'));
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#open.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#channel.post({ id, task }, transfer);
    });
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#rejectAll(new KernelError('kernel_closed', 'the worker has ended'));
    await this.#channel.end();
  }

  #take(message: ThreadAnswer | ThreadEvent): void {
    if ('event' in message) {
      this.#events.onEvent?.(message);
      return;
    }
    const waiting = this.#open.get(message.id);
    this.#open.delete(message.id);
    if (message.error === undefined) waiting?.resolve(message.value);
    else waiting?.reject(new KernelError(message.error.code, message.error.message, message.error.fields));
  }

  #die(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#rejectAll(new KernelError('kernel_worker_failed', `a worker ended by itself: ${reason}`));
    this.#events.onDeath?.(reason);
  }

  #rejectAll(error: KernelError): void {
    for (const waiting of this.#open.values()) waiting.reject(error);
    this.#open.clear();
  }
}
