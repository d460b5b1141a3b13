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
] as const;
export type EventName = (typeof EVENT_NAMES)[number];
export type WalletEvent = { readonly name: EventName; readonly params: Readonly<Record<string, unknown>> };

export class EventHub {
  readonly #listeners = new Set<(event: WalletEvent) => void>();

  /** Returns how to stop listening. Listeners must not throw. */
  listen(listener: (event: WalletEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(name: EventName, params: WalletEvent['params']): void {
    for (const listener of this.#listeners) listener({ name, params });
  }
}
