/** Routes that anybody may ask. Answers are JSON; worker names in them are data, to be escaped by whoever shows them. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AddressProof, AddressProofRequest } from '../../protocol/address-proof.ts';
import type { Sql } from '../database/connect.ts';
import { type Answer, type AnswerCache, jsonAnswer } from './answer-cache.ts';
import { ApiRefusal } from './api-error.ts';
import { CHART_RANGES, type ChartRange, type ChartView } from './chart-view.ts';
import { eventsAfter } from './event-follower.ts';
import type { LedgerView } from './ledger-view.ts';
import { eventFrame, type LiveHub, PUBLIC_EVENTS } from './live.ts';
import type { MinerView } from './miner-view.ts';
import type { PayoutThreshold } from './payout-threshold.ts';
import type { PoolView } from './pool-view.ts';
import type { ProofMaker } from './proofs.ts';
import {
  choiceOfRequest,
  PAGE,
  PARAMETERS,
  pageOfRequest,
  pathPart,
  type Route,
  serviceOfPath,
  serviceOfQuery,
  sliceOfPath,
} from './route.ts';

export type PublicDependencies = {
  readonly sql: Sql;
  readonly pool: PoolView;
  readonly ledger: LedgerView;
  readonly miners: MinerView;
  readonly charts: ChartView;
  readonly proofs: ProofMaker;
  readonly thresholds: PayoutThreshold;
  readonly live: LiveHub;
  readonly cache: AnswerCache;
};

const FIGURES_MILLIS = 5_000;
const CHART_MILLIS = 60_000;
/** What can no longer change may be kept by browsers and proxies for a day. */
const FOREVER = 'public, max-age=86400, immutable';

/** Sends finished bytes; a client that has them already gets 304. */
export function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  control: string,
): FastifyReply {
  reply.header('etag', answer.etag).header('cache-control', control);
  if (request.headers['if-none-match'] === answer.etag) return reply.code(304).send();
  return reply.header('content-type', 'application/json; charset=utf-8').send(answer.body);
}

export function publicRoutes(dependencies: PublicDependencies): Route[] {
  const { sql, pool, ledger, miners, charts, proofs, thresholds, live, cache } = dependencies;
  const cached =
    (millis: number, build: (request: FastifyRequest) => Promise<unknown>) =>
    async (request: FastifyRequest, reply: FastifyReply) =>
      sendAnswer(
        request,
        reply,
        await cache.get(request.url, millis, () => build(request)),
        `public, max-age=${Math.max(1, millis / 1000)}`,
      );
  const rangeOf = (request: FastifyRequest): ChartRange =>
    choiceOfRequest(request, 'range', Object.keys(CHART_RANGES) as ChartRange[]) ?? 'day';
  const workerOf = (request: FastifyRequest) => {
    const name = pathPart(request, 'worker');
    return name === '-' ? '' : name;
  };

  return [
    {
      method: 'GET',
      path: '/pool',
      group: 'Pool',
      summary: 'The pool: its terms, hash rates, blocks, effort and luck',
      handle: cached(1_000, async () => {
        if (pool.document === undefined) throw new ApiRefusal('unavailable', 'figures are being gathered', 2_000);
        return pool.document;
      }),
    },
    {
      method: 'GET',
      path: '/charts/pool',
      group: 'Pool',
      summary: 'Hash rate, workers and miners over time',
      parameters: [PARAMETERS.range, PARAMETERS.serviceQuery],
      handle: cached(CHART_MILLIS, (request) => charts.pool(rangeOf(request), serviceOfQuery(request))),
    },
    {
      method: 'GET',
      path: '/blocks',
      group: 'Blocks',
      summary: 'Blocks, newest first',
      parameters: [PARAMETERS.serviceQuery, PARAMETERS.state, ...PAGE],
      handle: cached(FIGURES_MILLIS, (request) =>
        ledger.blocks(pageOfRequest(request), {
          service: serviceOfQuery(request),
          state: choiceOfRequest(request, 'state', PARAMETERS.state.schema.enum as unknown as readonly string[]),
        }),
      ),
    },
    {
      method: 'GET',
      path: '/blocks/:id',
      group: 'Blocks',
      summary: 'One block',
      parameters: [PARAMETERS.blockId],
      handle: cached(FIGURES_MILLIS, async (request) => {
        const id = pathPart(request, 'id');
        if (!/^[0-9a-f]{96}$/.test(id)) throw new ApiRefusal('bad_request', 'a block id has 96 hex characters');
        const block = await ledger.block(id);
        if (block === undefined) throw new ApiRefusal('not_found', 'the pool has no such block');
        return block;
      }),
    },
    {
      method: 'GET',
      path: '/miners',
      group: 'Miners',
      summary: 'Miners by hash rate of the last hour',
      parameters: PAGE,
      handle: cached(FIGURES_MILLIS, (request) => miners.miners(pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/miners/:address',
      group: 'Miners',
      summary: 'Balances, hash rates and settings of a miner',
      parameters: [PARAMETERS.address],
      handle: cached(FIGURES_MILLIS, (request) => miners.miner(pathPart(request, 'address'))),
    },
    {
      method: 'GET',
      path: '/miners/:address/workers',
      group: 'Miners',
      summary: "A miner's workers",
      parameters: [PARAMETERS.address, ...PAGE],
      handle: cached(FIGURES_MILLIS, (request) => miners.workers(pathPart(request, 'address'), pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/miners/:address/payments',
      group: 'Miners',
      summary: 'Payments to a miner, newest first',
      parameters: [PARAMETERS.address, ...PAGE],
      handle: cached(FIGURES_MILLIS, (request) =>
        miners.payments(pathPart(request, 'address'), pageOfRequest(request)),
      ),
    },
    {
      method: 'GET',
      path: '/miners/:address/credits',
      group: 'Miners',
      summary: 'What a miner got of each credit list; each can be proven',
      parameters: [PARAMETERS.address, PARAMETERS.cursor],
      handle: cached(FIGURES_MILLIS, (request) => miners.credits(pathPart(request, 'address'), pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/miners/:address/chart',
      group: 'Miners',
      summary: "A miner's hash rate by hour",
      parameters: [PARAMETERS.address, PARAMETERS.range],
      handle: cached(CHART_MILLIS, async (request) => {
        const account = await miners.account(pathPart(request, 'address'));
        return charts.account(account.id, rangeOf(request));
      }),
    },
    {
      method: 'GET',
      path: '/miners/:address/workers/:service/:worker/chart',
      group: 'Miners',
      summary: "A worker's hash rate by hour",
      parameters: [PARAMETERS.address, PARAMETERS.service, PARAMETERS.worker, PARAMETERS.range],
      handle: cached(CHART_MILLIS, async (request) => {
        const id = await miners.workerId(pathPart(request, 'address'), serviceOfPath(request), workerOf(request));
        return charts.worker(id, rangeOf(request));
      }),
    },
    {
      method: 'POST',
      path: '/miners/:address/payout-threshold/request',
      group: 'Miners',
      summary: "Asks for what the address's key must sign to change its payout threshold",
      parameters: [PARAMETERS.address],
      body: { type: 'object', required: ['threshold_atoms'], properties: { threshold_atoms: { type: 'string' } } },
      handle: async (request) => {
        const { threshold_atoms } = bodyOf(request);
        return thresholds.request(pathPart(request, 'address'), threshold_atoms);
      },
    },
    {
      method: 'POST',
      path: '/miners/:address/payout-threshold',
      group: 'Miners',
      summary: 'Changes the payout threshold of an address, proven by its key (svc-wallet prove)',
      parameters: [PARAMETERS.address],
      body: {
        type: 'object',
        required: ['threshold_atoms', 'request', 'proof'],
        properties: { threshold_atoms: { type: 'string' }, request: { type: 'object' }, proof: { type: 'object' } },
      },
      handle: async (request) => {
        const { threshold_atoms, request: asked, proof } = bodyOf(request);
        const account = await miners.account(pathPart(request, 'address'));
        return thresholds.change(account, threshold_atoms, asked as AddressProofRequest, proof as AddressProof);
      },
    },
    {
      method: 'GET',
      path: '/payments',
      group: 'Payments',
      summary: 'Payouts, newest first',
      parameters: PAGE,
      handle: cached(FIGURES_MILLIS, (request) => ledger.payments(pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/slices/:service',
      group: 'Proofs',
      summary: 'Slices with their roots and credits, newest first',
      parameters: [PARAMETERS.service, ...PAGE],
      handle: cached(FIGURES_MILLIS, (request) => ledger.slices(serviceOfPath(request), pageOfRequest(request))),
    },
    {
      method: 'GET',
      path: '/proofs/:service/:slice/:address',
      group: 'Proofs',
      summary: "The proof of a miner's credit of a slice's rewards (protocol/pool-proof.ts checks it)",
      parameters: [PARAMETERS.service, PARAMETERS.slice, PARAMETERS.address],
      handle: async (request, reply) => {
        const account = await miners.account(pathPart(request, 'address'));
        const proof = await proofs.proof(
          serviceOfPath(request),
          sliceOfPath(request),
          account.payload,
          account.address,
        );
        if (proof === undefined) throw new ApiRefusal('not_found', 'this slice has no credit list yet');
        return sendAnswer(request, reply, jsonAnswer(proof), FOREVER);
      },
    },
    {
      method: 'GET',
      path: '/proofs/:service/:slice',
      group: 'Proofs',
      summary: "The whole credit list of a slice's rewards, with every leaf of its window",
      parameters: [PARAMETERS.service, PARAMETERS.slice],
      handle: async (request, reply) => {
        const list = await proofs.list(serviceOfPath(request), sliceOfPath(request));
        if (list === undefined) throw new ApiRefusal('not_found', 'this slice has no credit list yet');
        return sendAnswer(request, reply, jsonAnswer(list), FOREVER);
      },
    },
    {
      method: 'GET',
      path: '/events',
      group: 'Live',
      summary: `Live events as a server-sent stream: pool, ${PUBLIC_EVENTS.join(', ')}`,
      handle: async (request, reply) => {
        if (live.full) throw new ApiRefusal('unavailable', 'too many live pages', 30_000);
        const last = Number(request.headers['last-event-id'] ?? Number.NaN);
        const missed = Number.isSafeInteger(last) && last >= 0 ? await eventsAfter(sql, last, 200) : [];
        const figures = pool.document === undefined ? '' : `event: pool\ndata: ${JSON.stringify(pool.document)}\n\n`;
        const shown = missed.filter((event) => (PUBLIC_EVENTS as readonly string[]).includes(event.kind));
        reply.hijack();
        reply.raw.writeHead(200, {
          'content-type': 'text/event-stream; charset=utf-8',
          'cache-control': 'no-store',
          'x-accel-buffering': 'no',
        });
        live.add(reply.raw, shown.map(eventFrame).join('') + figures);
        return reply;
      },
    },
  ];
}

const bodyOf = (request: FastifyRequest): Record<string, unknown> => {
  const { body } = request;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ApiRefusal('bad_request', 'the body is a JSON object');
  return body as Record<string, unknown>;
};
