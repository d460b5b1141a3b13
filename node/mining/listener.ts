/**
 * The mining listener (specification, "Mining listener"; docs/protocol/mining.md): templates and candidates for bridges
 * and pools on the same machine, and the stream of finalized cuts. Remote clients and browser pages are refused,
 * whatever address the socket is bound to.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import { formatAddress } from '../../protocol/address.ts';
import { ANSWER_HEADERS } from '../../protocol/api/signed-answer.ts';
import { toHex } from '../../protocol/bytes.ts';
import { isSameMachine } from '../../runtime/clients/same-machine.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { hasBody, readBody } from '../../runtime/door/body.ts';
import { Door, type DoorErrorCode, type DoorLimits, refuseUpgrade } from '../../runtime/door/door.ts';
import type { Words } from '../../runtime/door/last-words.ts';
import type { Target } from '../../runtime/door/target.ts';
import { protocolsOf, WebSockets } from '../../runtime/door/web-sockets.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { NodeIdentity, SigningPlace } from '../api/identity.ts';
import { identityDocument, isNonce, NONCE_RULE, signedHeaders } from '../api/signed-headers.ts';
import type { FullNode } from '../full-node.ts';
import {
  errorDocument,
  type NodeError,
  type NodeErrorCode,
  nodeError,
  retryAfterMillis,
  statusOf,
} from '../node-error.ts';
import { AnswerRooms } from './answer-rooms.ts';
import { readCandidate, readTemplateRequest, writeTemplate } from './requests.ts';

export const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
export const EVENTS_PROTOCOL = 'svc.node-events.v1';
const PING_MILLIS = 30_000;

const LIMITS: DoorLimits = {
  connections: 1_024,
  // Other machines get only a refusal, and must not use up the connections of bridges.
  reserved: 992,
  headBytes: 8_192,
  bodyBytes: MAX_REQUEST_BYTES,
  headMillis: 10_000,
  requestMillis: 30_000,
  answerMillis: 60_000,
  stallMillis: 20_000,
  idleMillis: 120_000,
};

export type MiningListenerOptions = {
  readonly bind: ListenAddress;
  /** Host names it accepts, besides addresses and local names. */
  readonly hosts?: readonly string[];
};
export type MiningListenerDependencies = {
  readonly node: FullNode;
  readonly log: Logger;
  /** The documents that this listener shares with the public API. */
  syncDocument(): unknown;
  ratesDocument(): unknown;
  /** The node's peers; without it there is no such route. */
  readonly peersDocument?: (() => unknown) | undefined;
  /** Sends finalized cuts to a connected reader. */
  follow(socket: WebSocket, afterHeight: number | undefined): void;
  /** `answered`, or the code of a refusal. */
  onTemplate?(result: string): void;
  /** Signs the answers to requests with a nonce; without it none are signed. */
  readonly identity?: NodeIdentity;
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
  /** Of a request that was read completely: the data that a signature covers. */
  readonly requestBody?: Uint8Array;
  readonly signed?: readonly string[];
  readonly waitMillis?: number | undefined;
};

/** For all template answers of the process. */
const rooms = new AnswerRooms();

const ok = (json: string): Answer => ({ status: 200, json });
const refusal = (error: NodeError): Answer => ({
  status: statusOf(error),
  json: JSON.stringify(errorDocument(error)),
  waitMillis: retryAfterMillis(error),
});
const words = (error: NodeError): Words => ({
  status: statusOf(error),
  type: 'application/json',
  body: JSON.stringify(errorDocument(error)),
});

/** The node's error codes for refusals by the admission check. */
const DOOR_WORDS = {
  bad_request: 'request_malformed',
  origin_refused: 'origin_refused',
  request_timeout: 'request_timeout',
  host_refused: 'host_refused',
  headers_too_large: 'request_too_large',
  internal: 'internal',
} as const satisfies Record<DoorErrorCode, NodeErrorCode>;
const wordsOf = (code: DoorErrorCode, message: string): Words => words(nodeError(DOOR_WORDS[code], message));

type Route = (dependencies: MiningListenerDependencies, json: unknown) => Answer | Promise<Answer>;

const ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  '/v1/mining/templates': { POST: answerTemplate },
  '/v1/mining/candidates': { POST: answerCandidate },
  '/v1/node/sync': { GET: ({ syncDocument }) => ok(JSON.stringify(syncDocument())) },
  '/v1/chain/rates': { GET: ({ ratesDocument }) => ok(JSON.stringify(ratesDocument())) },
  '/v1/node/peers': { GET: answerPeers },
  '/v1/node/identity': { GET: answerIdentity },
  '/v1/events': {
    GET: () => refusal(nodeError('request_malformed', `connect by WebSocket, subprotocol ${EVENTS_PROTOCOL}`)),
  },
  '/health': { GET: answerHealth },
};

/** Plain text, as the public API answers it. */
function answerHealth({ node }: MiningListenerDependencies): Answer {
  const behind = notSynced(node);
  if (behind !== undefined) return refusal(behind);
  if (!node.chain.sync().synced) return refusal(nodeError('node_stopped', 'the node has stopped'));
  return { status: 200, json: '', text: 'ok' };
}

function answerIdentity({ node, identity }: MiningListenerDependencies): Answer {
  return identity === undefined ? refusal(unknownRoute()) : ok(JSON.stringify(identityDocument(node.chain, identity)));
}

function answerPeers({ peersDocument }: MiningListenerDependencies): Answer {
  return peersDocument === undefined ? refusal(unknownRoute()) : ok(JSON.stringify(peersDocument()));
}

/** Work on an old cut is wasted: a node that is behind its peers gives none. */
function notSynced(node: FullNode): NodeError | undefined {
  const { peers, height } = node.chain.sync();
  if (peers === undefined || peers.synced) return undefined;
  return nodeError('node_not_synced', 'the node is behind its peers: wait until it is synced', {
    finalized_height: height,
    behind_by: peers.behindBy,
  });
}

function answerTemplate({ node, onTemplate }: MiningListenerDependencies, json: unknown): Answer {
  const behind = notSynced(node);
  if (behind !== undefined) {
    onTemplate?.(behind.code);
    return refusal(behind);
  }
  const request = readTemplateRequest(json, node.chain.network.name);
  if ('error' in request) {
    onTemplate?.(request.error.code);
    return refusal(request.error);
  }
  onTemplate?.('answered');
  const { payout } = request.value;
  const template = node.template(request.value);
  const address = formatAddress(payout, node.chain.network.name);
  const answer = writeTemplate(template, node.chain.network.name, node.chain.chainId, address, (bytes) =>
    rooms.take(bytes),
  );
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
  const name = 'mining';
  const sockets = new WebSockets({ name, frameBytes: 1_024, pingMillis: PING_MILLIS }, { log });
  const door = new Door(
    { name, limits: LIMITS, hosts: options.hosts ?? [], origins: [] },
    {
      words: wordsOf,
      request: async (request, response, target) =>
        send(request, response, await signedAnswer(request, target, dependencies)),
      upgrade(request, socket, head, { path, query }) {
        const after = new URLSearchParams(query).get('after_height');
        const refused = refuseCaller(request) ?? (path === '/v1/events' ? checkEvents(after, request) : unknownRoute());
        if (refused !== undefined) {
          refuseUpgrade(socket, words(refused));
          return;
        }
        sockets.accept(request, socket, head, { client: name, protocol: EVENTS_PROTOCOL }, (opened) => {
          opened.on('message', (_data, binary) => {
            if (binary) opened.close(1003, 'binary frames are not used here');
          });
          dependencies.follow(opened, after === null ? undefined : Number(after));
        });
      },
    },
    { log },
  );
  const address = await door.listen(options.bind, { what: 'mining' });
  return {
    address,
    close: async () => {
      sockets.close(1001, 'the node is stopping');
      await door.close();
    },
  };
}

const unknownRoute = (): NodeError => nodeError('route_unknown', 'there is nothing at this path');

function checkEvents(after: string | null, request: IncomingMessage): NodeError | undefined {
  if (after !== null && !/^(0|[1-9]\d{0,14})$/.test(after))
    return nodeError('request_malformed', 'after_height is a height');
  return protocolsOf(request).includes(EVENTS_PROTOCOL)
    ? undefined
    : nodeError('request_malformed', `the subprotocol is ${EVENTS_PROTOCOL}`);
}

function refuseCaller(request: IncomingMessage): NodeError | undefined {
  if (!isSameMachine(request.socket.remoteAddress, request.socket.localAddress))
    return nodeError('peer_refused', 'the mining listener serves its own machine only');
  return undefined;
}

async function answer(
  request: IncomingMessage,
  { path }: Target,
  dependencies: MiningListenerDependencies,
): Promise<Answer> {
  const methods = ROUTES[path];
  if (methods === undefined) return refusal(unknownRoute());
  const route = methods[request.method ?? ''];
  if (route === undefined) return refusal(nodeError('method_not_allowed', `use ${Object.keys(methods).join(' or ')}`));
  if (request.method === 'GET') return await route(dependencies, undefined);
  const body = await readBody(request, MAX_REQUEST_BYTES);
  if (body === 'incomplete') return refusal(nodeError('request_malformed', 'the request did not arrive completely'));
  if (body === 'too_large')
    return refusal(nodeError('request_too_large', `a request has at most ${MAX_REQUEST_BYTES} bytes`));
  let json: unknown;
  try {
    json = JSON.parse(body.toString('utf8'));
  } catch {
    return refusal(nodeError('request_malformed', 'the request is not JSON'));
  }
  return { ...(await route(dependencies, json)), requestBody: body };
}

const bytesOf = ({ json, text }: Answer): Buffer => (typeof json === 'string' ? Buffer.from(text ?? json) : json);

/** What could keep the answer from being signed is refused before the request takes effect. */
async function signedAnswer(
  request: IncomingMessage,
  target: Target,
  dependencies: MiningListenerDependencies,
): Promise<Answer> {
  const refused = refuseCaller(request);
  if (refused !== undefined) return refusal(refused);
  const nonce = request.headers[ANSWER_HEADERS.nonce];
  const { identity } = dependencies;
  if (nonce === undefined || identity === undefined) return await answer(request, target, dependencies);
  if (!isNonce(nonce)) return refusal(nodeError('request_malformed', NONCE_RULE));
  const place = identity.place();
  if (place === undefined) return refusal(nodeError('too_busy', 'too many answers are waiting to be signed'));
  try {
    return await sign(request, nonce, await answer(request, target, dependencies), place, dependencies);
  } finally {
    place.leave();
  }
}

async function sign(
  request: IncomingMessage,
  nonce: string,
  answer: Answer,
  place: SigningPlace,
  { node, identity }: MiningListenerDependencies,
): Promise<Answer> {
  const asked = { method: request.method ?? '', target: request.url ?? '', status: answer.status };
  const body = { requestBody: answer.requestBody ?? new Uint8Array(0), answerBody: bytesOf(answer) };
  const signed = await signedHeaders({ ...asked, ...body }, nonce, identity as NodeIdentity, place, node.chain);
  return { ...answer, signed };
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const { status, text, written, waitMillis, signed = [] } = answer;
  const bytes = bytesOf(answer);
  const type = text === undefined ? 'application/json' : 'text/plain';
  const close = hasBody(request) && !request.complete ? { connection: 'close' } : {};
  for (let i = 0; i < signed.length; i += 2) response.setHeader(signed[i] as string, signed[i + 1] as string);
  if (waitMillis !== undefined) response.setHeader('retry-after', Math.ceil(waitMillis / 1000));
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.length, ...close }).end(bytes, written);
}
