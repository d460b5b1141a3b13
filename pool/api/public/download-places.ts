/**
 * Downloads under way, the oldest first. A client has few at a time. Where all places are taken, a new one ends the oldest of those who
 * have most, which is the slowest reader's if any: strangers with several each cannot end that of a client that has one.
 */
const MOST = 256;
export const DOWNLOADS_OF_CLIENT = 4;

export class DownloadPlaces<A> {
  readonly #clients = new Map<A, string>();

  hasRoom(client: string): boolean {
    return [...this.#clients.values()].filter((other) => other === client).length < DOWNLOADS_OF_CLIENT;
  }

  /** Returns the one that has to end for it. */
  take(answer: A, client: string): A | undefined {
    const ends = this.#clients.size < MOST ? undefined : this.#oldestOfMost();
    if (ends !== undefined) this.#clients.delete(ends);
    this.#clients.set(answer, client);
    return ends;
  }

  giveBack(answer: A): void {
    this.#clients.delete(answer);
  }

  #oldestOfMost(): A | undefined {
    const counts = new Map<string, number>();
    for (const client of this.#clients.values()) counts.set(client, (counts.get(client) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return [...this.#clients].find(([, client]) => counts.get(client) === most)?.[0];
  }
}
