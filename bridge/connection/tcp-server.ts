/** Listens for TCP connections and hands them on as streams: on handles where this Node allows it, else as sockets of node:net. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { listenError } from '../../runtime/runtime-error.ts';
import { HandleStream, type StreamEvents } from './handle-stream.ts';
import { takeHandles } from './handles.ts';

export const BACKLOG = 16_384;

export type TcpServerOptions = {
  /** Several threads listen on the same port. */
  readonly sharePorts: boolean;
  /** `handles` is faster; where this version of Node does not support it, sockets are used. */
  readonly streams: 'handles' | 'sockets';
};

export type TcpServerEvents = StreamEvents & {
  readonly accept: (stream: Socket | HandleStream) => void;
  /** A connection could not be accepted. */
  readonly refused: () => void;
};

export async function listenTcp(
  address: ListenAddress,
  { sharePorts, streams }: TcpServerOptions,
  { accept, refused, ...events }: TcpServerEvents,
): Promise<{ readonly server: Server; readonly bound: ListenAddress }> {
  const server = createServer({ noDelay: true }, accept);
  server.on('drop', refused);
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: Error): void => reject(listenError('miners', address, error));
    server.once('error', refuse);
    server.listen({ port: address.port, host: address.host, reusePort: sharePorts, backlog: BACKLOG }, () => {
      server.off('error', refuse);
      server.on('error', refused);
      if (streams === 'handles') takeHandles(server, (handle) => accept(new HandleStream(handle, events)), refused);
      resolve();
    });
  });
  return { server, bound: { host: address.host, port: (server.address() as AddressInfo).port } };
}
