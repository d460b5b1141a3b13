/**
 * What the typed client of the public API (protocol/api) needs from the outside, taken from the globals that Node and
 * browsers share. Nothing here is Node's own, so a page may import it.
 */
import type { ClientDependencies } from '../protocol/api/client.ts';
import type { SocketConstructor, StreamDependencies } from '../protocol/api/client-socket.ts';

export const apiClientDependencies = (): ClientDependencies & StreamDependencies => ({
  fetch: (url, init) => fetch(url, init),
  WebSocket: WebSocket as unknown as SocketConstructor,
  sleep: (millis) => new Promise((resolve) => setTimeout(resolve, millis)),
  deadline: (millis) => AbortSignal.timeout(millis),
  random: Math.random,
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
});
