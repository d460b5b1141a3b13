/**
 * A number that all clients share, such as things that are kept for them: strangers may come from many addresses and open thousands of
 * connections. A client may have an eighth of what the others leave, so that there is nearly always room for one more.
 */
const PART = 8;

export class ClientParts {
  readonly #most: number;
  readonly #byClient = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  take(client: string, count: number): boolean {
    const own = this.#byClient.get(client) ?? 0;
    if (count > 0 && own + count > (this.#most - this.#all + own) / PART) return false;
    this.#change(client, count);
    return true;
  }

  giveBack(client: string, count: number): void {
    this.#change(client, -count);
  }

  #change(client: string, by: number): void {
    const own = (this.#byClient.get(client) ?? 0) + by;
    this.#all += by;
    if (own > 0) this.#byClient.set(client, own);
    else this.#byClient.delete(client);
  }
}
