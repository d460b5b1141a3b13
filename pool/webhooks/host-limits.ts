/**
 * How many requests of miners' webhooks one host gets, however many miners name it. A webhook that has accepted nothing yet may be a stranger's host that nobody
 * asked: of those one is under way at a time, and the next one begins a while later.
 */

export const MOST_OF_A_HOST = 4;

type Host = { underWay: number; isTrying: boolean; nextTry: number };

export class HostLimits {
  readonly #restMillis: number;
  readonly #hosts = new Map<string, Host>();

  constructor({ restMillis }: { readonly restMillis: number }) {
    this.#restMillis = restMillis;
  }

  /** Undefined where the host has enough; else what ends the request. */
  begin(name: string, isNew: boolean, now: number): (() => void) | undefined {
    for (const [other, { underWay, nextTry }] of this.#hosts)
      if (underWay === 0 && nextTry <= now) this.#hosts.delete(other);
    const host = this.#hosts.get(name) ?? { underWay: 0, isTrying: false, nextTry: 0 };
    if (host.underWay >= MOST_OF_A_HOST || (isNew && (host.isTrying || now < host.nextTry))) return undefined;
    this.#hosts.set(name, host);
    host.underWay++;
    if (isNew) {
      host.isTrying = true;
      host.nextTry = now + this.#restMillis;
    }
    return () => {
      host.underWay--;
      if (isNew) host.isTrying = false;
    };
  }
}
