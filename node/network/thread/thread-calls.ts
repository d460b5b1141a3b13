/**
 * Calls between two threads over a message port: each side offers functions by name, an answer comes back under the
 * number of its call. Byte arrays among the arguments are copied once and transferred, so the sides share no memory.
 */
import type { MessagePort, Worker } from 'node:worker_threads';

/** Functions of any shape; each side knows its own. */
export type Offered = { readonly [name: string]: (...words: never[]) => unknown };

type Packet =
  | { readonly call: number; readonly name: string; readonly words: unknown[] }
  | { readonly answer: number; readonly value?: unknown; readonly error?: string; readonly code?: string };

/** Proxies for the functions of the other side. */
export type Remote<T extends Offered> = {
  readonly [K in keyof T]: (...words: Parameters<T[K]>) => Promise<Awaited<ReturnType<T[K]>>>;
};

export class ThreadCalls<T extends Offered> {
  readonly #port: MessagePort | Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #count = 0;
  #ended: Error | undefined;
  readonly remote: Remote<T>;

  constructor(port: MessagePort | Worker, offered: Offered) {
    this.#port = port;
    (port as MessagePort).on('message', (packet: Packet) => this.#receive(packet, offered));
    this.remote = new Proxy({} as Remote<T>, {
      get:
        (_, name) =>
        (...words: unknown[]) =>
          this.#call(String(name), words),
    });
  }

  /** The other side has ended: pending calls fail. */
  end(error: Error): void {
    this.#ended = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #call(name: string, words: unknown[]): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const call = this.#count++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(call, waiting);
    this.#post((own) => ({ call, name, words: words.map(own) }));
    return waiting.promise;
  }

  #post(make: (own: (word: unknown) => unknown) => Packet): void {
    const moved: ArrayBuffer[] = [];
    const packet = make((word) => {
      if (!(word instanceof Uint8Array)) return word;
      const copy = new Uint8Array(word);
      moved.push(copy.buffer);
      return copy;
    });
    this.#port.postMessage(packet, moved);
  }

  #receive(packet: Packet, offered: Offered): void {
    if ('answer' in packet) {
      const waiting = this.#waiting.get(packet.answer);
      this.#waiting.delete(packet.answer);
      if (packet.error === undefined) waiting?.resolve(packet.value);
      else waiting?.reject(Object.assign(new Error(packet.error), { code: packet.code }));
      return;
    }
    const { call, name, words } = packet;
    void (async () => offered[name]?.(...(words as never[])))().then(
      (value) => this.#post((own) => ({ answer: call, value: own(value) })),
      (error: Error & { readonly code?: unknown }) =>
        this.#post(() => ({ answer: call, error: error.message, code: String(error.code ?? '') })),
    );
  }
}
