/**
 * A number that all clients share, such as things that are kept for them: strangers may come from many addresses and open thousands of
 * connections. A network of clients may have an eighth of what the others leave, so that there is nearly always room for one more, and a
 * client as much of that as it leaves to its neighbours.
 */
import { clientNetwork } from './client-address.ts';

const PART = 8;

export class ClientParts {
  readonly #most: number;
  readonly #byClient = new Map<string, number>();
  readonly #byNetwork = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  take(client: string, count: number): boolean {
    const own = this.#byClient.get(client) ?? 0;
    const ofNetwork = this.#byNetwork.get(clientNetwork(client)) ?? 0;
    const room = (this.#most - this.#all + ofNetwork) / PART;
    if (count > 0 && own + ofNetwork + count > room) return false;
    this.#change(client, count);
    return true;
  }

  giveBack(client: string, count: number): void {
    this.#change(client, -count);
  }

  #change(client: string, by: number): void {
    this.#all += by;
    add(this.#byClient, client, by);
    add(this.#byNetwork, clientNetwork(client), by);
  }
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}
