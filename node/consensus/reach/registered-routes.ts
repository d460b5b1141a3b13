/** Connections to registered validators: each by its routes in turn, over TCP and then over QUIC, while no connection has proved its key. */
import type { LookupFunction } from 'node:net';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { type ListenAddress, showListenAddress } from '../../../runtime/command-line/command-line.ts';
import type { DialOrder } from '../../validator/dial-plan.ts';
import { FIRST_ROUTE_RETRY_MILLIS, LAST_ROUTE_RETRY_MILLIS } from '../../validator/dial-plan.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import type { DialAddress, Dialler, Ending, Target } from './dialler.ts';

export type RouteDependencies = {
  readonly dialler: Dialler;
  readonly steady: SteadyClock;
  /** Whether a connection has proved this key. */
  isConnected(key: Bytes): boolean;
  /** Called with a new connection: it is kept only if the other end proves this key. */
  connected(socket: OverlaySocket, address: ListenAddress, key: Bytes, ended: Ending): void;
  readonly lookup?: LookupFunction | undefined;
  /** Whether this machine has QUIC: a route stands for both. */
  readonly hasQuic: boolean;
};

const nameOf = ({ validator: { publicKey, routes }, afterMillis }: DialOrder): string =>
  [afterMillis, toHex(publicKey), ...routes.map(showListenAddress)].join(' ');

export class RegisteredRoutes {
  readonly #with: RouteDependencies;
  readonly #targets = new Map<string, Target>();

  constructor(dependencies: RouteDependencies) {
    this.#with = dependencies;
  }

  /** Replaces the list. Unchanged entries keep their state. */
  set(orders: readonly DialOrder[]): void {
    const wanted = new Map(orders.map((order) => [nameOf(order), order]));
    for (const [name, target] of this.#targets)
      if (!wanted.has(name)) {
        this.#with.dialler.giveUp(target);
        this.#targets.delete(name);
      }
    for (const [name, order] of wanted) {
      if (this.#targets.has(name)) continue;
      const target = this.#target(order);
      this.#targets.set(name, target);
      this.#with.dialler.keep(target);
    }
  }

  #target({ validator: { publicKey, routes }, afterMillis }: DialOrder): Target {
    const { steady, isConnected, connected, lookup, hasQuic } = this.#with;
    const ways: readonly DialAddress[] = routes.flatMap((route) =>
      hasQuic ? [route, { ...route, way: 'quic' as const }] : [route],
    );
    let missingSince: number | undefined;
    let tries = 0;
    return {
      next: () => {
        if (isConnected(publicKey)) {
          missingSince = undefined;
          return undefined;
        }
        missingSince ??= steady();
        return steady() - missingSince < afterMillis ? undefined : ways[tries++ % ways.length];
      },
      connected: (socket, address, ended) => connected(socket, address, publicKey, ended),
      firstRetryMillis: FIRST_ROUTE_RETRY_MILLIS,
      lastRetryMillis: LAST_ROUTE_RETRY_MILLIS,
      lookup,
    };
  }
}
