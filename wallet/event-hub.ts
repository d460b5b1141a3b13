/**
 * Events of the wallet (specification: Wallet daemon events). They are prompts, not a ledger: a listener that missed some
 * catches up with `received`.
 */
export const EVENT_NAMES = [
  'unconfirmed',
  'removed',
  'finalized',
  'confirmations',
  'settled',
  'resync_required',
  // Beyond the specification.
  'staking',
  'multisig',
] as const;
export type EventName = (typeof EVENT_NAMES)[number];
export type WalletEvent = { readonly name: EventName; readonly params: Readonly<Record<string, unknown>> };

export class EventHub {
  readonly #listeners = new Map<(event: WalletEvent) => void, (name: EventName) => boolean>();

  /** Returns a function that unsubscribes. Listeners must not throw; `wants` tells which events this one needs now. */
  listen(listener: (event: WalletEvent) => void, wants: (name: EventName) => boolean = () => true): () => void {
    this.#listeners.set(listener, wants);
    return () => this.#listeners.delete(listener);
  }

  /** Whether there is a listener: an event of hundreds of payments is not built without one. */
  wanted(name: EventName): boolean {
    for (const wants of this.#listeners.values()) if (wants(name)) return true;
    return false;
  }

  emit(name: EventName, params: WalletEvent['params']): void {
    for (const listener of this.#listeners.keys()) listener({ name, params });
  }
}
