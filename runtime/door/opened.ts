/**
 * The WebSockets of a door, by networks of clients. They wait for nobody and may stay for ever: where all places are taken,
 * a network that holds many gives one to another that holds few, or strangers with some addresses would keep all others out.
 */
import { clientNetwork } from '../clients/client-address.ts';

/** So many times as many as the one that comes would have. */
const MANY = 4;
/** Networks looked at for one that comes: strangers may come faster than all could be looked at. */
const LOOKED_AT = 64;

export class Opened<T extends { readonly isNear: boolean }> {
  readonly #byNetwork = new Map<string, Set<T>>();
  readonly #networks = new Map<T, string>();

  add(one: T, client: string): void {
    const network = clientNetwork(client);
    this.#networks.set(one, network);
    this.#byNetwork.set(network, (this.#byNetwork.get(network) ?? new Set()).add(one));
  }

  delete(one: T): void {
    const network = this.#networks.get(one);
    if (network === undefined) return;
    this.#networks.delete(one);
    const left = this.#byNetwork.get(network);
    left?.delete(one);
    if (left?.size === 0) this.#byNetwork.delete(network);
  }

  /** The oldest of a network with many; `comes`: the client that needs a place. Other machines never displace a program of this machine. */
  ofMany(comes: string, forNear: boolean): T | undefined {
    let most = MANY * ((this.#byNetwork.get(clientNetwork(comes))?.size ?? 0) + 1);
    let found: T | undefined;
    // Those that were looked at are the last for the next one that comes.
    for (const [network, own] of [...this.#byNetwork.entries().take(LOOKED_AT)]) {
      this.#byNetwork.delete(network);
      this.#byNetwork.set(network, own);
      const [oldest] = own;
      if (oldest === undefined || (oldest.isNear && !forNear) || own.size <= most) continue;
      most = own.size;
      found = oldest;
    }
    return found;
  }
}
