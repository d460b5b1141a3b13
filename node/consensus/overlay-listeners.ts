/** The listening ports of an overlay node. */
import { createServer, type Server, type Socket } from 'node:net';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import type { Logger } from '../../runtime/log.ts';
import { listenError } from '../../runtime/runtime-error.ts';

export class OverlayListeners {
  readonly #log: Logger;
  readonly #accept: (socket: Socket) => void;
  readonly #servers: Server[] = [];

  constructor(log: Logger, accept: (socket: Socket) => void) {
    this.#log = log;
    this.#accept = accept;
  }

  /** Returns its address. */
  async open(bind: ListenAddress): Promise<ListenAddress> {
    const server = createServer((socket) => this.#accept(socket));
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error) => reject(listenError('the validator overlay', bind, error));
      server.once('error', failed);
      server.listen({ host: bind.host, port: bind.port }, () => {
        server.off('error', failed);
        resolve();
      });
    });
    server.on('error', (error) => this.#log.error('the overlay listener failed', { error }));
    const address = server.address();
    return typeof address === 'object' && address !== null ? { host: address.address, port: address.port } : bind;
  }

  /** Existing connections stay open; their owners close them. */
  async close(): Promise<void> {
    for (const server of this.#servers)
      if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
