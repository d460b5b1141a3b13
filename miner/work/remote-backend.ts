/**
 * A backend in another process or worker: a graphics card has a separate process in Node (so a driver that crashes or
 * hangs affects nothing else) and a worker in a page. Both ends exchange the messages below over a port. Loads in
 * browsers.
 */
import type {
  Backend,
  BackendEvents,
  BackendKind,
  DeviceUsage,
  Hit,
  Progress,
  SearchJob,
} from '../../kernels/backend.ts';
import { KernelError, type KernelErrorCode } from '../../kernels/kernel-error.ts';

/** How often the other end reports its counter. */
export const COUNT_MILLIS = 200;

export type ToDevice<S> =
  | { readonly kind: 'open'; readonly settings: S }
  | { readonly kind: 'prepare'; readonly call: number; readonly epoch: number }
  | { readonly kind: 'job'; readonly job: SearchJob | undefined }
  | { readonly kind: 'pause' | 'resume' | 'close' };

type Failure = { readonly name: string; readonly code: string | undefined; readonly message: string };

export type FromDevice =
  | { readonly kind: 'opened'; readonly name: string }
  | { readonly kind: 'refused'; readonly error: Failure }
  | { readonly kind: 'prepared'; readonly call: number; readonly epochs: readonly number[] }
  | { readonly kind: 'unprepared'; readonly call: number; readonly error: Failure }
  | {
      readonly kind: 'count';
      readonly hashes: number;
      readonly epochs: readonly number[];
      readonly usage: DeviceUsage | undefined;
      readonly isTuning: boolean;
    }
  | { readonly kind: 'hit'; readonly hit: Hit }
  | { readonly kind: 'exhausted'; readonly jobId: number }
  | { readonly kind: 'failure'; readonly error: Failure }
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'tuned'; readonly tuning: unknown }
  | { readonly kind: 'closed' };

/** One end of the connection. `onGone` gets the reason when the other end has gone. */
export interface DevicePort<S> {
  post(message: ToDevice<S>): void;
  listen(onMessage: (message: FromDevice) => void, onGone: (reason: string) => void): void;
  /** Kills the other end at once. */
  kill(): void;
}

function describe(error: unknown): Failure {
  const { name, message, code } = error as Error & { code?: unknown };
  return {
    name: name ?? 'Error',
    message: message ?? String(error),
    code: typeof code === 'string' ? code : undefined,
  };
}

function revive({ name, message, code }: Failure): Error {
  if (name === 'KernelError') return new KernelError(code as KernelErrorCode, message);
  return Object.assign(new Error(message), { name, ...(code === undefined ? {} : { code }) });
}

export type RemoteOptions<S> = { readonly kind: BackendKind; readonly settings: S; readonly closeMillis?: number };

export function openRemoteBackend<S>(
  options: RemoteOptions<S>,
  port: DevicePort<S>,
  events: BackendEvents & { onTuned?(tuning: unknown): void },
): Promise<Backend> {
  return new Promise((resolve, reject) => {
    const backend = new RemoteBackend(options, port, events, {
      opened: () => resolve(backend),
      refused: (error) => {
        port.kill();
        reject(error);
      },
    });
    port.post({ kind: 'open', settings: options.settings });
  });
}

class RemoteBackend<S> implements Backend {
  readonly kind: BackendKind;
  name = '';
  hashes = 0;
  epochs: readonly number[] = [];
  usage: DeviceUsage | undefined;
  isTuning = false;
  readonly #port: DevicePort<S>;
  readonly #closeMillis: number;
  readonly #calls = new Map<number, { resolve(): void; reject(error: Error): void }>();
  #call = 0;
  #closed: (() => void) | undefined;
  #over = false;

  constructor(
    options: RemoteOptions<S>,
    port: DevicePort<S>,
    events: BackendEvents & { onTuned?(tuning: unknown): void },
    opening: { opened(): void; refused(error: Error): void },
  ) {
    this.kind = options.kind;
    this.#port = port;
    this.#closeMillis = options.closeMillis ?? 3_000;
    const gone = (reason: string): void => {
      const error = new KernelError('kernel_worker_failed', `the device's process ended: ${reason}`);
      for (const call of this.#calls.values()) call.reject(error);
      this.#calls.clear();
      this.#closed?.();
      opening.refused(error);
      if (this.#over) return;
      this.#over = true;
      events.onFailure?.(error);
    };
    port.listen((message) => {
      switch (message.kind) {
        case 'opened':
          this.name = message.name;
          opening.opened();
          return;
        case 'refused':
          this.#over = true;
          opening.refused(revive(message.error));
          return;
        case 'prepared':
          this.epochs = message.epochs;
          this.#take(message.call)?.resolve();
          return;
        case 'unprepared':
          this.#take(message.call)?.reject(revive(message.error));
          return;
        case 'count':
          this.hashes = Math.max(this.hashes, message.hashes);
          this.epochs = message.epochs;
          this.usage = message.usage;
          this.isTuning = message.isTuning;
          return;
        case 'hit':
          events.onHit(message.hit);
          return;
        case 'exhausted':
          events.onExhausted?.(message.jobId);
          return;
        case 'failure':
          if (!this.#over) events.onFailure?.(revive(message.error));
          return;
        case 'progress':
          events.onProgress?.(message.progress);
          return;
        case 'tuned':
          events.onTuned?.(message.tuning);
          return;
        case 'closed':
          this.#closed?.();
          return;
      }
    }, gone);
  }

  #take(call: number): { resolve(): void; reject(error: Error): void } | undefined {
    const found = this.#calls.get(call);
    this.#calls.delete(call);
    return found;
  }

  prepare(epoch: number): Promise<void> {
    if (this.#over) return Promise.reject(new KernelError('kernel_closed', 'the device is closed'));
    const call = ++this.#call;
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.#port.post({ kind: 'prepare', call, epoch });
    });
  }

  setJob(job: SearchJob | undefined): void {
    if (!this.#over) this.#port.post({ kind: 'job', job });
  }

  pause(): void {
    if (!this.#over) this.#port.post({ kind: 'pause' });
  }

  resume(): void {
    if (!this.#over) this.#port.post({ kind: 'resume' });
  }

  /** A device that hangs does not answer: its process is killed. */
  async close(): Promise<void> {
    if (this.#over) {
      this.#port.kill();
      return;
    }
    this.#over = true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#closeMillis);
      this.#closed = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#port.post({ kind: 'close' });
    });
    this.#port.kill();
  }
}

/** The other end: opens the backend when asked to, and passes everything on. */
export function serveBackend<S>(
  post: (message: FromDevice) => void,
  open: (settings: S, events: BackendEvents, onTuned: (tuning: unknown) => void) => Promise<Backend>,
): (message: ToDevice<S>) => Promise<void> {
  let backend: Backend | undefined;
  let counting: ReturnType<typeof setInterval> | undefined;
  const events: BackendEvents = {
    onHit: (hit) => post({ kind: 'hit', hit }),
    onExhausted: (jobId) => post({ kind: 'exhausted', jobId }),
    onFailure: (error) => post({ kind: 'failure', error: describe(error) }),
    onProgress: (progress) => post({ kind: 'progress', progress }),
  };
  return async (message) => {
    switch (message.kind) {
      case 'open':
        try {
          const opened = await open(message.settings, events, (tuning) => post({ kind: 'tuned', tuning }));
          backend = opened;
          counting = setInterval(
            () =>
              post({
                kind: 'count',
                hashes: opened.hashes,
                epochs: opened.epochs,
                usage: opened.usage,
                isTuning: opened.isTuning ?? false,
              }),
            COUNT_MILLIS,
          );
          post({ kind: 'opened', name: opened.name });
        } catch (error) {
          post({ kind: 'refused', error: describe(error) });
        }
        return;
      case 'prepare':
        try {
          await backend?.prepare(message.epoch);
          post({ kind: 'prepared', call: message.call, epochs: backend?.epochs ?? [] });
        } catch (error) {
          post({ kind: 'unprepared', call: message.call, error: describe(error) });
        }
        return;
      case 'job':
        try {
          backend?.setJob(message.job);
        } catch (error) {
          // The epoch was just dropped, or the device was just lost: both are reported to the parent in other ways.
          if (!(error instanceof KernelError)) throw error;
        }
        return;
      case 'pause':
        backend?.pause();
        return;
      case 'resume':
        backend?.resume();
        return;
      case 'close':
        clearInterval(counting);
        await backend?.close().catch(() => undefined);
        post({ kind: 'closed' });
        return;
    }
  };
}
