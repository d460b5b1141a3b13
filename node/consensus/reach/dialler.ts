/** Outgoing connections. Each target is retried with growing delays until it is removed. */
import { connect, type LookupFunction } from 'node:net';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { Timers } from '../../../runtime/clock/timers.ts';
import type { ListenAddress } from '../../../runtime/command-line/command-line.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import { BARRED_MILLIS, CONNECT_MILLIS, FORGIVEN_MILLIS } from './overlay-limits.ts';
import type { OverlayQuic } from './overlay-quic.ts';

/** How a connection ended: whether messages had been exchanged, and which rule was broken. */
export type Ending = (wasReady: boolean, reason?: string) => void;

/** Over TCP where it names no way. */
export type DialAddress = ListenAddress & { readonly way?: 'quic' };

export type Target = {
  /** Where it is tried now; undefined while no connection is wanted. */
  next(): DialAddress | undefined;
  connected(socket: OverlaySocket, address: ListenAddress, ended: Ending): void;
  /** Delay after a good connection ended, and the maximum delay. */
  readonly firstRetryMillis: number;
  readonly lastRetryMillis: number;
  /** Resolves names, instead of the system. */
  readonly lookup?: LookupFunction | undefined;
};

/** Broken rules of a target, and when the last one was broken. */
type Faults = { readonly count: number; readonly at: number };

/** From a quarter of an address's bar up to all of it. Who has kept to the rules for long begins anew. */
const faultMillis = ({ count }: Faults): number => Math.min(BARRED_MILLIS, (BARRED_MILLIS / 4) * 2 ** (count - 1));

/** How often a target that is not wanted now is checked again. */
export const LOOK_MILLIS = 500;

export class Dialler {
  readonly #timers = new Timers();
  readonly #dialling = new Set<OverlaySocket>();
  readonly #targets = new Set<Target>();
  readonly #faults = new WeakMap<Target, Faults>();
  readonly #steady: SteadyClock;
  readonly #quic: OverlayQuic | undefined;

  constructor(steady: SteadyClock, quic?: OverlayQuic) {
    this.#steady = steady;
    this.#quic = quic;
  }

  keep(target: Target): void {
    this.#targets.add(target);
    this.#dial(target, target.firstRetryMillis);
  }

  /** An existing connection stays. */
  giveUp(target: Target): void {
    this.#targets.delete(target);
  }

  close(): void {
    this.#targets.clear();
    this.#timers.close();
    for (const socket of this.#dialling) socket.destroy();
  }

  #again(target: Target, millis: number): void {
    if (!this.#targets.has(target)) return;
    this.#timers.later(millis, () => this.#dial(target, Math.min(target.lastRetryMillis, 2 * millis)));
  }

  #dial(target: Target, retryMillis: number): void {
    if (!this.#targets.has(target)) return;
    const address = target.next();
    if (address === undefined) {
      this.#timers.later(LOOK_MILLIS, () => this.#dial(target, retryMillis));
      return;
    }
    const { host, port, way } = address;
    const { lookup } = target;
    const socket: OverlaySocket =
      way === 'quic' && this.#quic !== undefined
        ? this.#quic.connect(address, lookup)
        : connect({ host, port, timeout: CONNECT_MILLIS, ...(lookup && { lookup }) });
    this.#dialling.add(socket);
    const failed = () => {
      if (!this.#dialling.delete(socket)) return;
      socket.destroy();
      this.#again(target, retryMillis);
    };
    socket.once('timeout', failed);
    socket.on('error', failed);
    socket.once('connect', () => {
      if (!this.#dialling.delete(socket)) return;
      socket.setTimeout(0);
      target.connected(socket, address, (wasReady, reason) => {
        if (reason !== undefined) this.#again(target, Math.max(retryMillis, faultMillis(this.#fault(target))));
        else this.#again(target, wasReady ? target.firstRetryMillis : Math.max(retryMillis, BARRED_MILLIS / 4));
      });
    });
  }

  #fault(target: Target): Faults {
    const [before, at] = [this.#faults.get(target), this.#steady()];
    const count = before === undefined || at - before.at > FORGIVEN_MILLIS ? 1 : before.count + 1;
    const faults = { count, at };
    this.#faults.set(target, faults);
    return faults;
  }
}
