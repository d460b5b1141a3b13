/** The listening ports of an overlay node. */
import { lookup } from 'node:dns/promises';
import { createServer, type Server } from 'node:net';
import { type BindAddress, isHostName, type ListenAddress, listenHost } from '../../../runtime/listen-address.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { listenError } from '../../../runtime/runtime-error.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import type { OverlayQuic } from './overlay-quic.ts';

export type OverlayAddress = ListenAddress & { readonly way: 'tcp' | 'quic' };

export class OverlayListeners {
  readonly #log: Logger;
  readonly #accept: (socket: OverlaySocket) => void;
  readonly #quic: OverlayQuic | undefined;
  readonly #servers: Server[] = [];

  constructor(log: Logger, accept: (socket: OverlaySocket) => void, quic?: OverlayQuic) {
    this.#log = log;
    this.#accept = accept;
    this.#quic = quic;
  }

  /** Returns its addresses: one that names no way is listened on over TCP, and over QUIC where the machine has it. */
  async open(bind: BindAddress): Promise<OverlayAddress[]> {
    const isLookedUp = bind.family !== undefined || (this.#quic !== undefined && isHostName(bind.host));
    const host = isLookedUp ? await this.#resolve(bind) : bind.host;
    if (bind.way === 'quic') return [this.#openQuic(bind, { host, port: bind.port })];
    const tcp: OverlayAddress = { ...(await this.#openTcp(bind, host)), way: 'tcp' };
    if (bind.way === 'tcp' || this.#quic === undefined) return [tcp];
    try {
      return [tcp, this.#openQuic(bind, { host, port: tcp.port })];
    } catch (error) {
      this.#log.warn('validators reach this one over TCP only', { error });
      return [tcp];
    }
  }

  #openQuic(bind: BindAddress, at: ListenAddress): OverlayAddress {
    if (this.#quic === undefined) throw new Error('this machine has no QUIC');
    try {
      return { ...this.#quic.listen(at, this.#accept), way: 'quic' };
    } catch (error) {
      throw listenError('the validator overlay over QUIC', { ...bind, port: at.port }, error as Error);
    }
  }

  async #openTcp(bind: BindAddress, address: string): Promise<ListenAddress> {
    const { port } = bind;
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

  async #resolve(bind: BindAddress): Promise<string> {
    try {
      return (await lookup(bind.host, { family: bind.family ?? 0 })).address;
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
