/**
 * Recomputes hits in one worker thread, from the cache alone: used in a page instead of a Verifier, which needs shared
 * memory. Loads in browsers.
 */
import { buildCache } from '../../kernels/cpu/build-dataset.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { kernelModule } from '../../kernels/cpu/module.ts';
import { Thread } from '../../kernels/cpu/thread.ts';
import { VerifierClient } from '../../kernels/verifier-client.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { PowParameters } from '../../protocol/crypto/pow.ts';
import { monotonicMillis } from '../../runtime/clock/clock.ts';
import type { HitChecker } from './crew.ts';

/** A device that finds more than this at once has a target that is far too easy. */
const QUEUE_LIMIT = 4_096;

export class ThreadChecker implements HitChecker {
  readonly #parameters: PowParameters;
  readonly #thread = new Thread();
  readonly #client = new VerifierClient({ queueLimit: QUEUE_LIMIT });
  readonly #attached: Promise<unknown>;
  readonly #ready: number[] = [];
  readonly #building = new Map<number, Promise<void>>();

  constructor(parameters: PowParameters) {
    this.#parameters = parameters;
    const { port1, port2 } = new MessageChannel();
    this.#attached = this.#thread.ask({ kind: 'attach', port: port2 }, [port2]);
    this.#client.addLane(0, port1);
  }

  get epochs(): readonly number[] {
    return this.#ready;
  }

  prepare(epoch: number): Promise<void> {
    if (this.#ready.includes(epoch)) return Promise.resolve();
    let building = this.#building.get(epoch);
    if (building === undefined) {
      building = this.#build(epoch).finally(() => this.#building.delete(epoch));
      this.#building.set(epoch, building);
    }
    return building;
  }

  async #build(epoch: number): Promise<void> {
    await this.#attached;
    const layout = layoutOf(this.#parameters, 'light', 1);
    const module = await kernelModule(false);
    await this.#thread.ask({ kind: 'open', epoch, module, layout, slot: 0 });
    await buildCache(epoch, layout, this.#thread, { now: monotonicMillis });
    this.#ready.push(epoch);
    if (this.#ready.length > 2) await this.#thread.ask({ kind: 'close', epoch: this.#ready.shift() as number });
  }

  async hash(epoch: number, header: Bytes): Promise<Bytes> {
    const [hash] = await this.#client.hashMany(epoch, [header]);
    return hash as Bytes;
  }

  async close(): Promise<void> {
    this.#client.close();
    await this.#thread.end();
  }
}
