/**
 * Limits on connections of a listener, in total and per client, counted before anything is read. A part can be kept for
 * the programs of this machine, so that other clients cannot shut them out by filling the rest.
 */
import { clientKey, type TrustedProxies } from '../clients/client-address.ts';
import { isSameMachine } from '../clients/same-machine.ts';
import { roomForConnections } from '../files/open-files.ts';

export type PlaceLimits = {
  readonly connections: number;
  /** Of one client; a listed proxy speaks for many and has no such limit. Without it one client may use all free places. */
  readonly perClient?: number;
  /** Of all, those that only this machine gets. */
  readonly reserved?: number;
};

/** Called when a connection arrives. Several threads that share a port share the counts behind this. */
export interface Places {
  /** The key that the connection is counted under; undefined if a limit is reached. */
  take(remote: string, local: string): string | undefined;
  giveBack(name: string): void;
  /**
   * Whether a connection is refused because all places are taken, and not because of its client's limit; then another
   * can be closed for it.
   */
  isFull?(remote: string, local: string): boolean;
}

export class ClientPlaces implements Places {
  readonly #limits: PlaceLimits;
  readonly #proxies: TrustedProxies | undefined;
  readonly #byClient = new Map<string, number>();
  #all = 0;

  constructor(limits: PlaceLimits, proxies?: TrustedProxies, room = roomForConnections().door) {
    this.#limits = { ...limits, connections: Math.min(limits.connections, room) };
    this.#proxies = proxies;
  }

  take(remote: string, local: string): string | undefined {
    if (this.#lacksPlace(remote, local) || this.#hasTooMany(remote)) return undefined;
    const name = clientKey(remote);
    this.#all++;
    this.#byClient.set(name, (this.#byClient.get(name) ?? 0) + 1);
    return name;
  }

  isFull(remote: string, local: string): boolean {
    return this.#lacksPlace(remote, local) && !this.#hasTooMany(remote);
  }

  #lacksPlace(remote: string, local: string): boolean {
    const { connections, reserved = 0 } = this.#limits;
    return this.#all >= connections - reserved && (this.#all >= connections || !isSameMachine(remote, local));
  }

  #hasTooMany(remote: string): boolean {
    const { perClient } = this.#limits;
    if (perClient === undefined || this.#proxies?.has(remote) === true) return false;
    return (this.#byClient.get(clientKey(remote)) ?? 0) >= perClient;
  }

  giveBack(name: string): void {
    this.#all--;
    const left = (this.#byClient.get(name) ?? 1) - 1;
    if (left === 0) this.#byClient.delete(name);
    else this.#byClient.set(name, left);
  }
}
