/**
 * The WebSockets of a door, by client. They wait for nobody and may stay for ever: where all places are taken, a client
 * that holds many gives one to a client that holds few, or strangers with some addresses would keep all others out.
 */

/** So many times as many as the one that comes would have. */
const MANY = 4;
/** Clients looked at for one that comes: strangers may come faster than all could be looked at. */
const LOOKED_AT = 64;

export class Opened<T extends { readonly isNear: boolean }> {
  readonly #byClient = new Map<string, Set<T>>();
  readonly #clients = new Map<T, string>();

  add(one: T, client: string): void {
    this.#clients.set(one, client);
    this.#byClient.set(client, (this.#byClient.get(client) ?? new Set()).add(one));
  }

  delete(one: T): void {
    const client = this.#clients.get(one);
    if (client === undefined) return;
    this.#clients.delete(one);
    const left = this.#byClient.get(client);
    left?.delete(one);
    if (left?.size === 0) this.#byClient.delete(client);
  }

  /** The oldest of a client with many. Other machines never displace a program of this machine. */
  ofMany(comes: string, forNear: boolean): T | undefined {
    let most = MANY * ((this.#byClient.get(comes)?.size ?? 0) + 1);
    let found: T | undefined;
    // Those that were looked at are the last for the next one that comes.
    for (const [client, own] of [...this.#byClient.entries().take(LOOKED_AT)]) {
      this.#byClient.delete(client);
      this.#byClient.set(client, own);
      const [oldest] = own;
      if (oldest === undefined || (oldest.isNear && !forNear) || own.size <= most) continue;
      most = own.size;
      found = oldest;
    }
    return found;
  }
}
