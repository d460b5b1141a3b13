/**
 * The `fetch` of the typed API client over node:http with connections that stay open, for programs that call one node
 * many times a second: a call costs about half the processor time of the global fetch. No redirects, no compression, no
 * repetition: the node answers for itself.
 */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Fetch, FetchAnswer } from '../protocol/api/client-calls.ts';

export function httpFetch(): Fetch {
  // Idle connections do not keep the process alive, and the agent gives them up before the server does.
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const secure = url.startsWith('https:');
      const options = {
        method,
        headers: body === undefined ? headers : { ...headers, 'content-length': body.length },
        signal,
      };
      const sent = secure
        ? requestHttps(url, { ...options, agent: agents.https })
        : requestHttp(url, { ...options, agent: agents.http });
      sent.once('error', reject);
      sent.once('response', (response) => resolve(answerOf(response)));
      sent.end(body);
    });
}

/** The body is taken at once: an answer that nobody reads would hold its connection. */
function answerOf(response: IncomingMessage): FetchAnswer {
  const parts: Buffer[] = [];
  const read = new Promise<ArrayBuffer>((resolve, reject) => {
    response.on('data', (part: Buffer) => parts.push(part));
    response.once('error', reject);
    response.once('close', () => {
      if (!response.complete) return reject(new Error('the connection ended in the middle of the answer'));
      const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
      let place = 0;
      for (const part of parts) {
        whole.set(part, place);
        place += part.length;
      }
      resolve(whole.buffer);
    });
  });
  // Whoever asks for the body is told; whoever does not must not be surprised.
  read.catch(() => undefined);
  return {
    status: response.statusCode as number,
    headers: {
      get(name) {
        const value = response.headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    },
    arrayBuffer: () => read,
  };
}
