/**
 * Automatic moves, enabled at the start: `--auto-compound` merges every address that holds more than
 * N outputs, `--auto-sweep-to` forwards finalized payments to a cold address. Both use the same durable path as calls.
 */
import { toHex } from '../../protocol/bytes.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Book } from '../state/book.ts';
import type { OwnedOutput } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import type { Outgoing } from './outgoing.ts';
import { MAX_MOVES, type MoveOrder } from './planning.ts';

export type AutomationOptions = {
  readonly autoCompound?: number;
  readonly autoSweepTo?: string;
};

export type AutomationDependencies = {
  readonly book: Book;
  readonly outgoing: Outgoing;
  readonly log: Logger;
  readonly randomBytes: (length: number) => Uint8Array;
};

export class Automation {
  readonly #options: AutomationOptions;
  readonly #with: AutomationDependencies;
  #lastHeight = -1;

  constructor(options: AutomationOptions, dependencies: AutomationDependencies) {
    this.#options = options;
    this.#with = dependencies;
  }

  /** Once per cut: only finalized outputs move, and those change with a cut. */
  async run(): Promise<void> {
    const { autoCompound, autoSweepTo } = this.#options;
    const { book } = this.#with;
    if ((autoCompound === undefined && autoSweepTo === undefined) || book.meta.indexedHeight === this.#lastHeight)
      return;
    this.#lastHeight = book.meta.indexedHeight;
    if (autoSweepTo !== undefined) {
      const outputs = [...book.available]
        .filter(({ address }) => book.address(address)?.branch === 'receive')
        .reverse();
      if (outputs.length > 0) await this.#move('auto_sweep', autoSweepTo, outputs, true);
      return;
    }
    const byAddress = new Map<string, OwnedOutput[]>();
    for (const output of book.available) {
      const list = byAddress.get(output.address);
      if (list === undefined) byAddress.set(output.address, [output]);
      else list.push(output);
    }
    for (const [address, outputs] of byAddress)
      if (outputs.length > (autoCompound as number)) await this.#move('auto_compound', address, outputs, false);
  }

  async #move(kind: MoveOrder['kind'], to: string, outputs: readonly OwnedOutput[], single: boolean): Promise<void> {
    const { outgoing, randomBytes, log } = this.#with;
    const requestId = `${kind}-${toHex(randomBytes(12))}`;
    try {
      await outgoing.move({ requestId, kind, to, outputs: () => outputs, single, most: MAX_MOVES, params: { to } });
    } catch (error) {
      if (!(error instanceof WalletError)) throw error;
      // Not worth moving yet, or the node is unavailable: retried at the next cut; what was signed is sent by the loop.
      log.debug('automatic move postponed', { kind, to, code: error.code });
    }
  }
}
