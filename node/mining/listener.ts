/**
 * The mining listener (specification, "Mining listener"; docs/protocol/mining.md): templates and candidates for bridges and pools on the same machine,
 * and the stream of finalized cuts. A foreign peer and a browser page are refused whatever address the socket is bound to.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { ListenAddress } from '../../protocol/command-line.ts';
import type { Logger } from '../../runtime/log.ts';
import { isSameMachine } from '../../runtime/same-machine.ts';
import type { FullNode } from '../full-node.ts';
import { errorDocument, type NodeError, nodeError, statusOf } from '../node-error.ts';
import { AnswerRooms } from './answer-rooms.ts';
import { readCandidate, readTemplateRequest, writeTemplate } from './requests.ts';

export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
export const EVENTS_PROTOCOL = 'svc.node-events.v1';
const MAX_CONNECTIONS = 1_024;

export type MiningListenerOptions = { readonly bind: ListenAddress };
export type MiningListenerDependencies = {
  readonly node: FullNode;
  readonly log: Logger;
  /** The documents that this listener shares with the public API. */
  syncDocument(): unknown;
  ratesDocument(): unknown;
  /** Sends finalized cuts to a connected reader. */
  follow(socket: WebSocket, afterHeight: number | undefined): void;
  /** `answered`, or the code of a refusal. */
  onTemplate?(result: string): void;
};

export interface MiningListener {
  readonly address: ListenAddress;
  close(): Promise<void>;
}

type Answer = {
  readonly status: number;
  readonly json: string | Buffer;
  readonly text?: string;
  /** Call when the answer has been written. */
  readonly written?: () => void;
};

/** For all template answers of the process. */
const rooms = new AnswerRooms();

const ok = (json: string): Answer => ({ status: 200, json });
const refusal = (error: NodeError): Answer & { readonly json: string } => ({
  status: statusOf(error),
  json: JSON.stringify(errorDocument(error)),
});

type Route = (dependencies: MiningListenerDependencies, json: unknown) => Answer | Promise<Answer>;

const ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  '/v1/mining/templates': { POST: answerTemplate },
  '/v1/mining/candidates': { POST: answerCandidate },
  '/v1/node/sync': { GET: ({ syncDocument }) => ok(JSON.stringify(syncDocument())) },
  '/v1/chain/rates': { GET: ({ ratesDocument }) => ok(JSON.stringify(ratesDocument())) },
  '/v1/events': {
    GET: () => refusal(nodeError('request_malformed', `connect by WebSocket, subprotocol ${EVENTS_PROTOCOL}`)),
  },
  '/health': { GET: answerHealth },
};

/** Plain text, as the public API answers it. */
function answerHealth({ node }: MiningListenerDependencies): Answer {
  if (!node.sync().synced) return refusal(nodeError('node_stopped', 'the node has stopped'));
  return { status: 200, json: '', text: 'ok' };
}

function answerTemplate({ node, onTemplate }: MiningListenerDependencies, json: unknown): Answer {
  const request = readTemplateRequest(json, node.network.name);
  if ('error' in request) {
    onTemplate?.(request.error.code);
    return refusal(request.error);
  }
  onTemplate?.('answered');
  const { payout } = request.value;
  const template = node.template(request.value);
  const address = formatAddress(payout, node.network.name);
  const answer = writeTemplate(template, node.network.name, node.chainId, address, (bytes) => rooms.take(bytes));
  return { status: 200, json: answer, written: () => rooms.giveBack(answer) };
}

async function answerCandidate({ node }: MiningListenerDependencies, json: unknown): Promise<Answer> {
  const candidate = readCandidate(json);
  if ('error' in candidate) return refusal(candidate.error);
  const outcome = await node.submitBlock(candidate.value.header, candidate.value.body);
  if (outcome.status === 'refused') return refusal(outcome.error);
  return ok(JSON.stringify({ api_version: 1, status: outcome.status, block_id: toHex(outcome.id) }));
}

export async function listenForMining(
  options: MiningListenerOptions,
  dependencies: MiningListenerDependencies,
): Promise<MiningListener> {
  const { log } = dependencies;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: 1_024,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(EVENTS_PROTOCOL) ? EVENTS_PROTOCOL : false),
  });
  const server = createServer(
    { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 120_000, maxHeaderSize: 8_192 },
    (request, response) => {
      answer(request, dependencies).then(
        (result) => send(response, result),
        (error) => {
          log.error('a request failed', { path: request.url, error });
          send(response, refusal(nodeError('internal', 'the node failed to answer')));
        },
      );
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const refused =
      refuseCaller(request) ?? (url.pathname === '/v1/events' ? checkEvents(url, request) : unknownRoute());
    if (refused !== undefined) {
      const { status, json } = refusal(refused);
      socket.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${json.length}\r\nconnection: close\r\n\r\n${json}`,
      );
      return;
    }
    const after = url.searchParams.get('after_height');
    sockets.handleUpgrade(request, socket, head, (connected) => {
      connected.on('error', () => connected.terminate());
      connected.on('message', (_data, binary) => {
        if (binary) connected.close(1003, 'binary frames are not used here');
      });
      dependencies.follow(connected, after === null ? undefined : Number(after));
    });
  });
  const { port } = await new Promise<AddressInfo>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.bind.port, options.bind.host, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
  return {
    address: { host: options.bind.host, port },
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

const unknownRoute = (): NodeError => nodeError('route_unknown', 'there is nothing at this path');

function checkEvents(url: URL, request: IncomingMessage): NodeError | undefined {
  const after = url.searchParams.get('after_height');
  if (after !== null && !/^(0|[1-9]\d{0,14})$/.test(after))
    return nodeError('request_malformed', 'after_height is a height');
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  return offered.includes(EVENTS_PROTOCOL)
    ? undefined
    : nodeError('request_malformed', `the subprotocol is ${EVENTS_PROTOCOL}`);
}

function refuseCaller(request: IncomingMessage): NodeError | undefined {
  if (!isSameMachine(request.socket.remoteAddress, request.socket.localAddress))
    return nodeError('peer_refused', 'the mining listener serves its own machine only');
  if (request.headers.origin !== undefined) return nodeError('origin_refused', 'browsers are not served here');
  return undefined;
}

async function answer(request: IncomingMessage, dependencies: MiningListenerDependencies): Promise<Answer> {
  const refused = refuseCaller(request);
  if (refused !== undefined) return refusal(refused);
  const [path = ''] = (request.url ?? '').split('?');
  const methods = ROUTES[path];
  if (methods === undefined) return refusal(unknownRoute());
  const route = methods[request.method ?? ''];
  if (route === undefined) return refusal(nodeError('method_not_allowed', `use ${Object.keys(methods).join(' or ')}`));
  if (request.method === 'GET') return await route(dependencies, undefined);
  const body = await readBody(request);
  if (body === undefined)
    return refusal(nodeError('request_too_large', `a request has at most ${MAX_REQUEST_BYTES} bytes`));
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    return refusal(nodeError('request_malformed', 'the request is not JSON'));
  }
  return await route(dependencies, json);
}

/** Undefined when it is too large; nothing above the limit is ever held. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_REQUEST_BYTES) return undefined;
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MAX_REQUEST_BYTES) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts, length);
}

function send(response: ServerResponse, { status, json, text, written }: Answer): void {
  const bytes = typeof json === 'string' ? Buffer.from(text ?? json) : json;
  const type = text === undefined ? 'application/json' : 'text/plain';
  const close = status === 413 ? { connection: 'close' } : {};
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.length, ...close }).end(bytes, written);
}
