/**
 * Dependencies of the typed client of the public API (protocol/api), from the globals that Node and browsers share.
 * Nothing here is specific to Node, so a page may import it.
 */
import type { ClientDependencies } from '../../protocol/api/client.ts';
import type { FetchAnswer } from '../../protocol/api/client-calls.ts';
import type { SocketConstructor, StreamDependencies } from '../../protocol/api/client-socket.ts';

/** The same limit as in runtime/node-client/http-fetch.ts. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

async function readAnswer(response: Response): Promise<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > MAX_ANSWER_BYTES) throw new Error(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return new Blob(parts as BlobPart[]).arrayBuffer();
}

/** Redirects are not followed: a redirect is a failed call. */
async function boundedFetch(url: string, init: RequestInit): Promise<FetchAnswer> {
  const response = await fetch(url, { ...init, redirect: 'error' });
  return { status: response.status, headers: response.headers, arrayBuffer: () => readAnswer(response) };
}

export const apiClientDependencies = (): ClientDependencies & StreamDependencies => ({
  fetch: boundedFetch,
  WebSocket: WebSocket as unknown as SocketConstructor,
  sleep: (millis) => new Promise((resolve) => setTimeout(resolve, millis)),
  deadline: (millis) => AbortSignal.timeout(millis),
  random: Math.random,
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
});
