/** A verifier's handle in another thread: its own queue and lanes, and a control port to the creator. */
import type { Bytes } from '../protocol/bytes.ts';
import { KernelError } from './kernel-error.ts';
import { VerifierClient } from './verifier-client.ts';
import type { Verifier, VerifierMode, VerifierTicket } from './verifier-types.ts';

/** What goes over a ticket's control port: the attached thread asks, the creator answers and brings news. */
export type ControlQuestion = { readonly prepare: number };
export type ControlNews =
  | { readonly epochs: readonly number[] }
  | { readonly lane: number; readonly port: MessagePort }
  | { readonly prepared: number; readonly error?: { code: KernelError['code']; message: string } };

export class AttachedVerifier implements Verifier {
  readonly mode: VerifierMode;
  readonly #control: MessagePort;
  readonly #client: VerifierClient;
  readonly #preparing = new Map<number, { resolve(): void; reject(error: Error): void; promise: Promise<void> }>();
  #epochs: readonly number[];

  constructor(ticket: VerifierTicket) {
    this.mode = ticket.mode;
    this.#epochs = ticket.epochs;
    this.#control = ticket.control;
    this.#client = new VerifierClient({ queueLimit: ticket.queueLimit });
    ticket.lanes.forEach((port, index) => void this.#client.addLane(index, port));
    this.#control.onmessage = (event: MessageEvent<ControlNews>) => this.#take(event.data);
    this.#control.addEventListener('close', () => void this.close());
  }

  get queued(): number {
    return this.#client.queued;
  }

  get epochs(): readonly number[] {
    return this.#epochs;
  }

  prepare(epoch: number): Promise<void> {
    const running = this.#preparing.get(epoch);
    if (running !== undefined) return running.promise;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#preparing.set(epoch, { resolve, reject, promise });
    this.#control.postMessage({ prepare: epoch } satisfies ControlQuestion);
    return promise;
  }

  hash(epoch: number, header: Bytes): Promise<Uint8Array<ArrayBuffer>> {
    return this.#client.hashMany(epoch, [header]).then(([hash]) => hash as Uint8Array<ArrayBuffer>);
  }

  hashMany(epoch: number, headers: readonly Bytes[]): Promise<Uint8Array<ArrayBuffer>[]> {
    return this.#client.hashMany(epoch, headers);
  }

  share(): VerifierTicket {
    throw new Error('only the verifier that owns the workers can be shared');
  }

  async close(): Promise<void> {
    this.#client.close();
    this.#control.close();
    const error = new KernelError('kernel_closed', 'the verifier is closed');
    for (const { reject } of this.#preparing.values()) reject(error);
    this.#preparing.clear();
  }

  #take(news: ControlNews): void {
    if ('epochs' in news) this.#epochs = news.epochs;
    else if ('lane' in news) this.#client.addLane(news.lane, news.port);
    else {
      const waiting = this.#preparing.get(news.prepared);
      this.#preparing.delete(news.prepared);
      if (news.error === undefined) waiting?.resolve();
      else waiting?.reject(new KernelError(news.error.code, news.error.message));
    }
  }
}
