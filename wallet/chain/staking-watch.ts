/**
 * Changes of this wallet's stake that it did not cause (docs/wallet.md, Events): unbonding that ended, and validators
 * that are jailed, lapse, exit, are slashed or come back. Reads once per cut, and only while there is a listener; the
 * first state to compare with is read when a listener subscribes.
 */
import { formatCoins } from '../../protocol/amount.ts';
import type { StakingPosition, ValidatorDocument } from '../../protocol/api/staking-documents.ts';
import type { EventHub } from '../event-hub.ts';
import type { Book } from '../state/book.ts';
import { WalletError } from '../wallet-error.ts';
import { ownersOf, positionsOf, readValidator, type StakingClient } from './staking-reads.ts';

export type StakingView = {
  readonly height: number;
  readonly positions: readonly StakingPosition[];
  /** The validators of the positions. */
  readonly validators: readonly Pick<ValidatorDocument, 'validator_id' | 'state' | 'jailed_until_epoch'>[];
};

export type StakingNews = Readonly<Record<string, unknown>> & { readonly kind: 'released' | 'validator_state' };

/** The changes from the first view to the second. Pure. */
export function stakingNews(before: StakingView, after: StakingView): StakingNews[] {
  const waiting = new Set(before.positions.filter(({ withdrawable }) => !withdrawable).map((one) => one.position_id));
  const released = after.positions
    .filter(({ position_id, withdrawable }) => withdrawable && waiting.has(position_id))
    .map(({ position_id: position, validator, principal }) => ({
      kind: 'released' as const,
      position,
      validator,
      amount: formatCoins(BigInt(principal)),
    }));
  const states = new Map(before.validators.map((one) => [one.validator_id, one.state]));
  const changed = after.validators.flatMap(({ validator_id: validator, state, jailed_until_epoch }) => {
    const was = states.get(validator);
    if (was === undefined || was === state) return [];
    return [{ kind: 'validator_state' as const, validator, state, was, jailed_until_epoch }];
  });
  return [...released, ...changed];
}

export type StakingWatchDependencies = {
  readonly client: StakingClient;
  readonly book: Book;
  readonly events: EventHub;
};

export class StakingWatch {
  readonly #with: StakingWatchDependencies;
  #seen: StakingView | undefined;

  constructor(dependencies: StakingWatchDependencies) {
    this.#with = dependencies;
  }

  /** For a new listener: it gets all changes after this resolves. If the node does not answer, those after the next poll. */
  async begin(): Promise<void> {
    if (this.#seen !== undefined) return;
    const view = await this.#view();
    // A poll meanwhile has read it as well.
    this.#seen ??= view;
  }

  /** After the newest cut was read. */
  async look(): Promise<void> {
    const { book, events } = this.#with;
    if (!events.wanted('staking')) {
      this.#seen = undefined;
      return;
    }
    if (this.#seen?.height === book.meta.indexedHeight) return;
    const view = await this.#view();
    if (view === undefined) return;
    const news = this.#seen === undefined ? [] : stakingNews(this.#seen, view);
    this.#seen = view;
    for (const one of news) events.emit('staking', { indexed_height: view.height, ...one });
  }

  /** A node that does not answer now does so at the next cut. */
  async #view(): Promise<StakingView | undefined> {
    try {
      return await this.#read();
    } catch (error) {
      if (error instanceof WalletError) return undefined;
      throw error;
    }
  }

  async #read(): Promise<StakingView> {
    const { client, book } = this.#with;
    const height = book.meta.indexedHeight;
    const { positions } = await positionsOf(client, ownersOf(book));
    const ids = new Set(positions.map(({ validator }) => validator));
    const validators: ValidatorDocument[] = [];
    for (const id of ids) {
      const found = await readValidator(client, id);
      if (found !== undefined) validators.push(found.validator);
    }
    return { height, positions, validators };
  }
}
