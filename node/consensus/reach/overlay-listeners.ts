/** The listening ports of an overlay node. */
import { lookup } from 'node:dns/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { type BindAddress, type ListenAddress, listenHost } from '../../../runtime/listen-address.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { listenError } from '../../../runtime/runtime-error.ts';

export class OverlayListeners {
  readonly #log: Logger;
  readonly #accept: (socket: Socket) => void;
  readonly #servers: Server[] = [];

  constructor(log: Logger, accept: (socket: Socket) => void) {
    this.#log = log;
    this.#accept = accept;
  }

  /** Returns its address. */
  async open(bind: BindAddress): Promise<ListenAddress> {
    const { host, port, family } = bind;
    const address = family === undefined ? host : await this.#resolve(bind, family);
    const server = createServer((socket) => this.#accept(socket));
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error) => reject(listenError('the validator overlay', bind, error));
      server.once('error', failed);
      server.listen({ ...listenHost(address), port }, () => {
        server.off('error', failed);
        resolve();
      });
    });
    server.on('error', (error) => this.#log.error('the overlay listener failed', { error }));
    const bound = server.address();
    return typeof bound === 'object' && bound !== null ? { host: bound.address, port: bound.port } : bind;
  }

  async #resolve(bind: BindAddress, family: 4 | 6): Promise<string> {
    try {
      return (await lookup(bind.host, { family })).address;
    } catch (error) {
      throw listenError('the validator overlay', bind, error as Error);
    }
  }

  /** Existing connections stay open; their owners close them. */
  async close(): Promise<void> {
    for (const server of this.#servers)
      if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
