/**
 * Calls over a MessagePort: the methods of an object on one side, a proxy with the same methods on the other. A `call` is
 * answered (its promise), a `tell` is not: one that fails is passed to `failed`. Messages keep their order, so
 * calls do too.
 */
import type { MessagePort } from 'node:worker_threads';

type Message =
  | { readonly kind: 'call'; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'tell'; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly message: string };

/** A MessagePort, or a Worker, which has one inside. */
export interface CallPort {
  postMessage(message: unknown, transfer: Transfer): void;
  on(event: 'message', listener: (message: Message) => void): unknown;
}

type Transfer = NonNullable<Parameters<MessagePort['postMessage']>[1]>;
export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>;

export class PortCalls {
  readonly #port: CallPort;
  readonly #waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>();
  #next = 0;
  #closed = false;

  /** `methods` may be called by the other side; `failed` is called for a `tell` that threw or rejected. */
  constructor(port: CallPort, methods: Methods, failed: (name: string, error: unknown) => void) {
    this.#port = port;
    port.on('message', (message: Message) => {
      if (message.kind === 'result') this.#settle(message.id)?.resolve(message.value as never);
      else if (message.kind === 'error') this.#settle(message.id)?.reject(new Error(message.message));
      else if (message.kind === 'call') void this.#answer(methods, message);
      else void run(methods, message).catch((error: unknown) => failed(message.name, error));
    });
  }

  async #answer(methods: Methods, message: Extract<Message, { kind: 'call' }>): Promise<void> {
    try {
      this.#post({ kind: 'result', id: message.id, value: await run(methods, message) });
    } catch (error) {
      this.#post({ kind: 'error', id: message.id, message: error instanceof Error ? error.message : String(error) });
    }
  }

  #settle(id: number) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  #post(message: Message, transfer: Transfer = []): void {
    if (!this.#closed) this.#port.postMessage(message, transfer);
  }

  call<T>(name: string, args: readonly unknown[], transfer: Transfer = []): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('the other thread is gone'));
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ kind: 'call', id, name, args }, transfer);
    });
  }

  tell(name: string, args: readonly unknown[], transfer: Transfer = []): void {
    this.#post({ kind: 'tell', name, args }, transfer);
  }

  /** Rejects calls that are still waiting: they will not be answered. */
  close(): void {
    this.#closed = true;
    for (const { reject } of this.#waiting.values()) reject(new Error('the other thread is gone'));
    this.#waiting.clear();
  }
}

async function run(methods: Methods, { name, args }: Extract<Message, { kind: 'call' | 'tell' }>): Promise<unknown> {
  const method = methods[name];
  if (method === undefined) throw new Error(`there is no method ${name}`);
  return await method(...(args as never[]));
}
