/**
 * The one HTTP client of all programs, over node:http with connections that stay open. No redirects, no compression, no
 * repetition: the server must answer itself. Size and parts of an answer are limited, and interim ones before it: a server
 * may send without end. The global fetch has none of these limits, and is for pages alone.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { getCACertificates, type TLSSocket } from 'node:tls';
import type { Fetch, FetchAnswer } from '../../protocol/api/client-calls.ts';
import { BodyParts, endBody } from '../clients/body-parts.ts';

/** The largest answer that a node of this release gives is a page of changes or a template: about 3 MiB. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

export type HttpFetchOptions = {
  readonly maxBytes?: number;
  /** How the certificates of servers are judged; without it, by the system's authorities. */
  readonly tls?: {
    /** Authorities beside the system's, as PEM. */
    readonly authorities: readonly string[];
    /** Why the certificate of a connection is refused: no answer of it is used then. */
    readonly refuses: (socket: TLSSocket) => string | undefined;
  };
};

const MOST = 8;

/** A server may send answers of status 1xx before the one that counts, each without end and with no byte of a body to be counted. */
export function limitInterim(request: ClientRequest): void {
  let count = 0;
  request.on('information', () => {
    if (++count > MOST) request.destroy(new Error('the server sends interim answers without end'));
  });
}

export function httpFetch({ maxBytes = MAX_ANSWER_BYTES, tls }: HttpFetchOptions = {}): Fetch {
  const trust =
    tls === undefined
      ? {}
      : // A resumed TLS session shows no certificate to judge.
        { ca: [...getCACertificates(), ...tls.authorities], rejectUnauthorized: false, maxCachedSessions: 0 };
  // Idle connections do not keep the process alive, and the agent gives them up before the server does.
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true, ...trust }) };
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
      sent.on('error', reject);
      limitInterim(sent);
      sent.once('response', (response) => {
        const wrong = secure ? tls?.refuses(response.socket as TLSSocket) : undefined;
        if (wrong === undefined) return resolve(answerOf(response, maxBytes));
        sent.destroy();
        reject(new Error(wrong));
      });
      // An answer that switches protocols is neither a response nor an error, and no signal ends what has ended.
      sent.once('close', () => reject(new Error('the connection ended without an answer')));
      sent.end(body);
    });
}

/** For calls without any options of their own. */
export const plainFetch: Fetch = httpFetch();

/** An answer's body as text. */
export const textOf = async (answer: FetchAnswer): Promise<string> =>
  new TextDecoder().decode(await answer.arrayBuffer());

/** The body is taken at once: an answer that nobody reads would hold its connection. */
function answerOf(response: IncomingMessage, maxBytes: number): FetchAnswer {
  const parts: Buffer[] = [];
  let length = 0;
  const read = new Promise<ArrayBuffer>((resolve, reject) => {
    const giveUp = () => response.destroy(new Error(`the answer is larger than ${maxBytes} bytes`));
    response.once('error', reject);
    const admitted = response.headers['transfer-encoding'] === undefined ? undefined : new BodyParts();
    response.on('data', (part: Buffer) => {
      if (response.destroyed) return;
      length += part.length;
      if (length > maxBytes) giveUp();
      else if (admitted?.admit(part.length) !== false) parts.push(part);
      else {
        response.destroy(new Error('the answer comes in chunks that are too small'));
        endBody(response.socket);
      }
    });
    response.once('close', () => {
      if (!response.complete) return reject(new Error('the connection ended in the middle of the answer'));
      const whole = new Uint8Array(length);
      let place = 0;
      for (const part of parts) {
        whole.set(part, place);
        place += part.length;
      }
      resolve(whole.buffer);
    });
    if (Number(response.headers['content-length'] ?? 0) > maxBytes) giveUp();
  });
  // The error goes to callers that read the body; for others it must not be an unhandled rejection.
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
