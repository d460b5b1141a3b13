/**
 * How the programs of this project access a node: the client's dependencies (runtime/node-client/api-client.ts) over Node's HTTP
 * and WebSocket, with limits on all input, and signatures checked by node:crypto.
 */
import type { ClientDependencies } from '../../protocol/api/client.ts';
import type { SocketConstructor, StreamDependencies } from '../../protocol/api/client-socket.ts';
import { verifyMessage } from '../native/ml-dsa.ts';
import { apiClientDependencies } from './api-client.ts';
import { httpFetch } from './http-fetch.ts';
import { NodeSocket } from './node-socket.ts';

export type NodeTransport = ClientDependencies & StreamDependencies;

export const nodeTransport = (): NodeTransport => ({
  ...apiClientDependencies(),
  fetch: httpFetch(),
  WebSocket: NodeSocket as unknown as SocketConstructor,
  verify: (signature, message, publicKey) => verifyMessage(publicKey, message, signature),
});
