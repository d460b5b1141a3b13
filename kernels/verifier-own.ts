/**
 * The verifier that owns the workers: starts and replaces them, prepares epochs, and gives handles to other threads.
 * Node only.
 */
import type { Bytes } from '../protocol/bytes.ts';
import { powParameters } from '../protocol/crypto/pow.ts';
import { monotonicMillis } from '../runtime/clock/clock.ts';
import { kernelModule } from './cpu/module.ts';
import { assertEpoch, epochToDrop, type PreparedEpoch, prepareEpoch } from './cpu/prepare-epoch.ts';
import { coreCount, Thread } from './cpu/thread.ts';
import { DatasetFiles } from './dataset-file.ts';
import { KernelError } from './kernel-error.ts';
import type { ControlNews, ControlQuestion } from './verifier-attached.ts';
import { VerifierClient } from './verifier-client.ts';
import type {
  Verifier,
  VerifierDependencies,
  VerifierMode,
  VerifierOptions,
  VerifierTicket,
} from './verifier-types.ts';

/** Headers a handle may have waiting at once. */
export const QUEUE_LIMIT = 16_384;
/** A worker that dies again soon is started again later and later. */
const RESTART_MILLIS = { first: 50, most: 5_000, calmAfter: 10_000 };

const wrongEpochs = (epoch: number): KernelError =>
  new KernelError('kernel_epoch_not_allowed', `epoch ${epoch} is not one this program may prepare`, { epoch });

export class OwnVerifier implements Verifier {
  readonly mode: VerifierMode;
  readonly #options: VerifierOptions;
  readonly #dependencies: VerifierDependencies;
  readonly #queueLimit: number;
  readonly #client: VerifierClient;
  readonly #files: DatasetFiles | undefined;
  readonly #workers: Thread[];
  readonly #controls = new Set<MessagePort>();
  readonly #held = new Map<number, PreparedEpoch>();
  readonly #preparing = new Map<number, Promise<void>>();
  readonly #ending = new AbortController();
  #closed = false;
  #deaths = { count: 0, at: 0 };

  constructor(options: VerifierOptions, dependencies: VerifierDependencies) {
    this.mode = options.mode;
    this.#options = options;
    this.#dependencies = dependencies;
    this.#queueLimit = options.queueLimit ?? QUEUE_LIMIT;
    this.#client = new VerifierClient({ queueLimit: this.#queueLimit });
    const log = dependencies.log ?? (() => {});
    this.#files =
      options.dataDir === undefined || options.mode === 'light'
        ? undefined
        : new DatasetFiles({ directory: options.dataDir }, { log });
    this.#workers = Array.from({ length: options.threads ?? coreCount() }, (_, index) => this.#startWorker(index));
  }

  get queued(): number {
    return this.#client.queued;
  }

  get epochs(): readonly number[] {
    return [...this.#held.keys()];
  }

  hash(epoch: number, header: Bytes): Promise<Uint8Array<ArrayBuffer>> {
    return this.#client.hashMany(epoch, [header]).then(([hash]) => hash as Uint8Array<ArrayBuffer>);
  }

  hashMany(epoch: number, headers: readonly Bytes[]): Promise<Uint8Array<ArrayBuffer>[]> {
    return this.#client.hashMany(epoch, headers);
  }

  async prepare(epoch: number): Promise<void> {
    if (this.#closed) throw new KernelError('kernel_closed', 'the verifier is closed');
    assertEpoch(epoch);
    if (this.#held.has(epoch)) return;
    if (this.#options.isEpochAllowed?.(epoch) === false) throw wrongEpochs(epoch);
    let preparing = this.#preparing.get(epoch);
    if (preparing === undefined) {
      preparing = this.#prepare(epoch).finally(() => this.#preparing.delete(epoch));
      this.#preparing.set(epoch, preparing);
    }
    await preparing;
  }

  share(): VerifierTicket {
    const { port1: control, port2: kept } = new MessageChannel();
    this.#controls.add(kept);
    kept.onmessage = (event: MessageEvent<ControlQuestion>) => void this.#answer(kept, event.data);
    kept.addEventListener('close', () => this.#controls.delete(kept));
    const lanes = this.#workers.map((worker) => this.#openLane(worker));
    const transfer = [control, ...lanes];
    return { mode: this.mode, queueLimit: this.#queueLimit, epochs: this.epochs, control, lanes, transfer };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#ending.abort();
    this.#client.close();
    for (const control of this.#controls) control.close();
    await Promise.all([...this.#workers.map((worker) => worker.end()), this.#files?.close()]);
  }

  #startWorker(index: number): Thread {
    const worker = new Thread({ onDeath: (reason) => void this.#replaceWorker(index, reason) });
    this.#client.addLane(index, this.#openLane(worker));
    return worker;
  }

  #openLane(worker: Thread): MessagePort {
    const { port1, port2 } = new MessageChannel();
    // A worker that dies before it took the port closes it, which is how the other end learns.
    worker.ask({ kind: 'attach', port: port1 }, [port1]).catch(() => {});
    return port2;
  }

  /** The new worker knows every epoch before it gets a lane, so no header meets a worker that cannot hash it. */
  async #replaceWorker(index: number, reason: string): Promise<void> {
    if (this.#closed) return;
    this.#dependencies.log?.('verification worker died, starting another', { worker: index, reason });
    await this.#pauseBeforeRestart();
    if (this.#closed) return;
    const worker = new Thread({ onDeath: (again) => void this.#replaceWorker(index, again) });
    this.#workers[index] = worker;
    try {
      await Promise.all([...this.#held.values()].map((held) => this.#open(worker, index, held)));
    } catch {
      return; // died as well: its own onDeath goes on from there
    }
    this.#client.addLane(index, this.#openLane(worker));
    for (const control of this.#controls) {
      const port = this.#openLane(worker);
      control.postMessage({ lane: index, port } satisfies ControlNews, [port]);
    }
  }

  async #pauseBeforeRestart(): Promise<void> {
    const now = performance.now();
    const count = now - this.#deaths.at > RESTART_MILLIS.calmAfter ? 0 : this.#deaths.count;
    this.#deaths = { count: count + 1, at: now };
    const pause = Math.min(RESTART_MILLIS.most, RESTART_MILLIS.first * 2 ** count);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }

  async #open(worker: Thread, slot: number, { epoch, layout, memory }: PreparedEpoch): Promise<void> {
    await worker.ask({ kind: 'open', epoch, module: await kernelModule(true), memory, layout, slot });
  }

  async #prepare(epoch: number): Promise<void> {
    const drop = epochToDrop(this.epochs, epoch);
    if (drop !== undefined) await this.#drop(drop);
    const { network, mode } = this.#options;
    const slots = this.#workers.length;
    const held = await prepareEpoch(powParameters(network), mode, epoch, slots, coreCount(), {
      now: monotonicMillis,
      random: Math.random,
      signal: this.#ending.signal,
      store: this.#files,
      availableMemory: this.#dependencies.availableMemory ?? (() => process.availableMemory()),
      onProgress: this.#dependencies.onProgress,
    });
    this.#held.set(epoch, held);
    // A worker that dies meanwhile is replaced by one that opens every held epoch, this one too.
    await Promise.allSettled(this.#workers.map((worker, slot) => this.#open(worker, slot, held)));
    this.#announce();
  }

  async #drop(epoch: number): Promise<void> {
    this.#held.delete(epoch);
    this.#announce();
    await Promise.allSettled(this.#workers.map((worker) => worker.ask({ kind: 'close', epoch })));
  }

  #announce(): void {
    for (const control of this.#controls) control.postMessage({ epochs: this.epochs } satisfies ControlNews);
  }

  async #answer(control: MessagePort, { prepare: epoch }: ControlQuestion): Promise<void> {
    try {
      await this.prepare(epoch);
      control.postMessage({ prepared: epoch } satisfies ControlNews);
    } catch (error) {
      if (!(error instanceof KernelError)) throw error;
      const { code, message } = error;
      control.postMessage({ prepared: epoch, error: { code, message } } satisfies ControlNews);
    }
  }
}
