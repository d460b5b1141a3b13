/**
 * The sockets of the stratum server for the miner's tests (pool-fixture.ts): TCP with TLS told apart by the first byte, WebSocket plain
 * and over TLS. Splits what arrives into lines and frames.
 */
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { WebSocketServer } from 'ws';
import type { Bytes } from '../../protocol/bytes.ts';
import { FrameSplitter, sniff, V2_MAGIC } from '../../protocol/stratum/frame.ts';
import { LineSplitter } from '../../protocol/stratum/line.ts';
import { TEST_CERTIFICATE } from './certificate.ts';

export interface FixtureWire {
  send(data: Bytes | string): void;
  drop(): void;
  isOpen(): boolean;
  /** Bytes that the other side has not taken yet. */
  waiting(): number;
}

export type FixtureConnection = {
  onLine(line: Bytes): void;
  onFrame(type: number, body: Bytes): void;
  onClose(): void;
};

export type FixturePorts = {
  readonly port: number;
  readonly webSocketPort: number;
  readonly secureWebSocketPort: number;
};

type Dependencies = {
  /** A connection whose version is known. */
  onConnection(version: 1 | 2, encrypted: boolean, wire: FixtureWire): FixtureConnection;
  /** Any connection, also one that never sends a byte. */
  onSocket(): void;
};

const listenAt = (server: Server, port: number) =>
  new Promise<number>((resolve) =>
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  );

export class FixtureDoors {
  readonly #dependencies: Dependencies;
  readonly #sockets = new Set<Socket>();
  readonly #tcp = createServer((socket) => this.#onSocket(socket));
  readonly #http = createHttpServer();
  readonly #https = createHttpsServer(TEST_CERTIFICATE);
  readonly #webSockets = new WebSocketServer({
    server: this.#http,
    handleProtocols: (offered) => [...offered][0] ?? false,
  });

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    const webSockets = this.#webSockets;
    this.#https.on('upgrade', (request, socket, head) =>
      webSockets.handleUpgrade(request, socket, head, (opened) => webSockets.emit('connection', opened, request)),
    );
    webSockets.on('connection', (socket, request) => {
      this.#sockets.add(request.socket);
      dependencies.onSocket();
      const version = socket.protocol === 'svc-mining-v2' ? 2 : 1;
      const connection = dependencies.onConnection(version, request.socket instanceof TLSSocket, {
        send: (data) => socket.send(typeof data === 'string' ? data.replace(/\n$/, '') : data),
        drop: () => socket.terminate(),
        isOpen: () => socket.readyState === socket.OPEN,
        waiting: () => socket.bufferedAmount,
      });
      socket.on('message', (data: Buffer, binary) => {
        if (binary) connection.onFrame(data[2] as number, data.subarray(3));
        else connection.onLine(data);
      });
      socket.on('close', () => connection.onClose());
      socket.on('error', () => undefined);
    });
  }

  /** Returns the ports, which are chosen where 0 is given. */
  async listen(wanted: FixturePorts): Promise<FixturePorts> {
    return {
      port: await listenAt(this.#tcp, wanted.port),
      webSocketPort: await listenAt(this.#http, wanted.webSocketPort),
      secureWebSocketPort: await listenAt(this.#https, wanted.secureWebSocketPort),
    };
  }

  /** Resolves once no connection is left. */
  async close(): Promise<void> {
    const ends = [this.#tcp, this.#http, this.#https].map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    this.#webSockets.close();
    await Promise.all(ends);
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #onSocket(socket: Socket): void {
    this.#sockets.add(socket);
    this.#dependencies.onSocket();
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.once('data', (first) => {
      if (sniff(first) !== 'tls') return this.#serve(socket, first, false);
      socket.pause();
      socket.unshift(first);
      const secure = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(TEST_CERTIFICATE) });
      secure.on('error', () => undefined);
      secure.once('data', (decrypted: Buffer) => this.#serve(secure, decrypted, true));
    });
  }

  #serve(socket: Socket, first: Buffer, encrypted: boolean): void {
    const version = sniff(first) === 'v2' ? 2 : 1;
    const connection = this.#dependencies.onConnection(version, encrypted, {
      send: (data) => socket.write(data),
      drop: () => socket.destroy(),
      isOpen: () => !socket.destroyed,
      waiting: () => socket.writableLength,
    });
    socket.on('close', () => connection.onClose());
    const lines = new LineSplitter();
    const frames = new FrameSplitter();
    const take = (chunk: Bytes): void => {
      if (version === 1)
        lines.push(chunk, (line) => {
          connection.onLine(line);
          return true;
        });
      else
        frames.push(chunk, (type, body) => {
          connection.onFrame(type, body);
          return true;
        });
    };
    take(version === 2 ? first.subarray(V2_MAGIC.length) : first);
    socket.on('data', take);
  }
}
