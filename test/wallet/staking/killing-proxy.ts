/** Between a daemon and its node: ends the daemon at one of its requests, before the node has it or before the answer comes back. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type KillPoint = { readonly request: number; readonly when: 'before' | 'after' };

export class KillingProxy {
  readonly #node: string;
  readonly #server: Server;
  #point: KillPoint | undefined;
  #kill: () => void = () => undefined;
  #seen = 0;

  private constructor(node: string) {
    this.#node = node;
    this.#server = createServer((request, response) => {
      this.#pass(request, response).catch(() => request.socket.destroy());
    });
  }

  static async open(node: string): Promise<KillingProxy> {
    const proxy = new KillingProxy(node);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Requests count from now on, from 0. */
  arm(point: KillPoint, kill: () => void): void {
    this.#point = point;
    this.#kill = kill;
    this.#seen = 0;
  }

  /** Whether the point was reached; from now on everything passes. */
  disarm(): boolean {
    const struck = this.#point === undefined;
    this.#point = undefined;
    return struck;
  }

  #strikes(when: KillPoint['when'], request: number): boolean {
    if (this.#point?.when !== when || this.#point.request !== request) return false;
    this.#point = undefined;
    this.#kill();
    return true;
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const number = this.#seen++;
    if (this.#strikes('before', number)) return void request.socket.destroy();
    const body = Buffer.concat(parts);
    const answer = await fetch(`${this.#node}${request.url}`, {
      method: request.method as string,
      headers: { 'content-type': request.headers['content-type'] ?? 'application/json' },
      ...(body.length === 0 ? {} : { body }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    if (this.#strikes('after', number)) return void request.socket.destroy();
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
    response.end(bytes);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
