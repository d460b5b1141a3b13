/**
 * Limits of webhook requests per host, however many miners use it. A webhook that has accepted nothing yet may point to
 * a stranger's host: of those, one request at a time is sent, with a pause before the next.
 */

export const MOST_OF_A_HOST = 4;

type Host = { underWay: number; isTrying: boolean; nextTry: number };

export class HostLimits {
  readonly #restMillis: number;
  readonly #hosts = new Map<string, Host>();

  constructor({ restMillis }: { readonly restMillis: number }) {
    this.#restMillis = restMillis;
  }

  /** Undefined if the host's limit is reached; else a function to call when the request has ended. */
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
