/**
 * State that several instances of a pool share (docs/pool.md, many instances): bans, sessions to be resumed, live
 * statistics and news of blocks. A single instance keeps it in its own process. None of it is money; losing it costs a
 * reconnect or a moment of stale statistics.
 */
import { BAN_DEFAULTS } from '../../bridge/session/ban-score.ts';
import { KeptBans } from '../../bridge/session/kept-bans.ts';
import { LocalSessionShelf, type SessionShelf, type SessionShelfOptions } from '../../bridge/session/session-shelf.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { count, dictionary, flag, struct, text } from './codec.ts';

export type Ban = { readonly key: string; readonly untilMillis: number };

/** Published by each instance every few seconds. All of it may be shown to the operator. */
export type InstanceFigures = {
  /** Boot id in hex. */
  readonly instance: string;
  readonly name: string;
  readonly version: string;
  readonly startedMillis: number;
  readonly atMillis: number;
  readonly accountant: boolean;
  readonly ready: boolean;
  readonly height: number;
  readonly connections: Readonly<Record<string, number>>;
  readonly accepted: number;
  readonly rejected: number;
  /** Entries in the journal that the books have not taken. */
  readonly waiting: number;
};

/** Of all services, by the name of the instance. Two of one name are one machine's before and after a restart, or on one machine. */
export function connectionsByName(instances: readonly InstanceFigures[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const { name, connections } of instances)
    all.set(
      name,
      Object.values(connections).reduce((sum, count) => sum + count, all.get(name) ?? 0),
    );
  return all;
}

export const instanceFigures = struct<InstanceFigures>({
  instance: text(64),
  name: text(255),
  version: text(64),
  startedMillis: count,
  atMillis: count,
  accountant: flag,
  ready: flag,
  height: count,
  connections: dictionary(count, 16),
  accepted: count,
  rejected: count,
  waiting: count,
});

export type News =
  | { readonly kind: 'ban'; readonly key: string; readonly untilMillis: number }
  | { readonly kind: 'unban'; readonly key: string }
  | { readonly kind: 'block'; readonly service: string; readonly blockId: string; readonly anchorHeight: number };

export interface SharedState {
  readonly sessions: SessionShelf;
  ban(ban: Ban): Promise<void>;
  unban(key: string): Promise<boolean>;
  /** Those of operators first. */
  bans(): Promise<readonly Ban[]>;
  report(figures: InstanceFigures): Promise<void>;
  /** Instances that reported recently, including this one. */
  instances(): Promise<readonly InstanceFigures[]>;
  publish(news: News): Promise<void>;
  /** News of other instances, and of this one. */
  subscribe(listener: (news: News) => void): void;
  close(): Promise<void>;
}

/** An instance that has not reported for this long is no longer shown. */
export const INSTANCE_SILENT_MILLIS = 15_000;

export class LocalSharedState implements SharedState {
  readonly sessions: SessionShelf;
  readonly #now: SteadyClock;
  readonly #bans = new KeptBans(BAN_DEFAULTS.capacity);
  readonly #listeners: ((news: News) => void)[] = [];
  #figures: InstanceFigures | undefined;

  constructor(options: SessionShelfOptions, now: SteadyClock) {
    this.sessions = new LocalSessionShelf(options, now);
    this.#now = now;
  }

  async ban({ key, untilMillis }: Ban): Promise<void> {
    this.#bans.set(key, untilMillis);
    await this.publish({ kind: 'ban', key, untilMillis });
  }

  async unban(key: string): Promise<boolean> {
    const known = this.#bans.delete(key);
    await this.publish({ kind: 'unban', key });
    return known;
  }

  async bans(): Promise<readonly Ban[]> {
    return this.#bans.list(this.#now());
  }

  async report(figures: InstanceFigures): Promise<void> {
    this.#figures = figures;
  }

  async instances(): Promise<readonly InstanceFigures[]> {
    return this.#figures === undefined ? [] : [this.#figures];
  }

  async publish(news: News): Promise<void> {
    for (const listener of this.#listeners) listener(news);
  }

  subscribe(listener: (news: News) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {}
}
