/**
 * Statistics for the main thread: counts of this listener, refused shares, and workers that connected or left. Sent
 * once per tick: one message per event cost 10 % of a login.
 */
import type { RefusalCode } from '../../protocol/stratum/errors.ts';
import type { RefusedShare, WorkerEvent } from '../shares/sink.ts';
import type { Hub, Member } from '../threads/hub.ts';

type Counts = Record<string, number>;

export const bump = (counts: Counts, key: string): void => {
  counts[key] = (counts[key] ?? 0) + 1;
};

export class Reports {
  readonly #hub: Pick<Hub, 'refused' | 'worker'>;
  readonly #thread: number;
  #refused: RefusedShare[] = [];
  #events: WorkerEvent[] = [];
  /** Connections that ended, by reason. */
  readonly closed: Counts = {};
  /** Refused submits, by code. */
  readonly answers: Counts = {};

  constructor(hub: Pick<Hub, 'refused' | 'worker'>, thread: number) {
    this.#hub = hub;
    this.#thread = thread;
  }

  ended(reason: string): void {
    bump(this.closed, reason);
  }

  refused(
    { service, account, worker }: Pick<Member, 'service' | 'account' | 'worker'>,
    refusal: { readonly code: RefusalCode; readonly isOfWorker: boolean },
    atMillis: number,
  ): void {
    bump(this.answers, String(refusal.code));
    this.#refused.push({ service, account, worker, ...refusal, atMillis: Math.floor(atMillis) });
  }

  worker(kind: 'joined' | 'left', { service, account, worker, agent, handle }: Member, atMillis: number): void {
    const connection = `${this.#thread}-${handle}`;
    this.#events.push({ kind, service, account, worker, agent, connection, atMillis: Math.floor(atMillis) });
  }

  send(): void {
    const [refused, events] = [this.#refused, this.#events];
    this.#refused = [];
    this.#events = [];
    if (refused.length > 0) this.#hub.refused(refused);
    if (events.length > 0) this.#hub.worker(events);
  }
}
