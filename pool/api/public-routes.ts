/** Routes that anybody may ask. Answers are JSON; worker names in them are data: a page must escape them. */
import type { FastifyRequest } from 'fastify';
import type { AddressProof, AddressProofRequest } from '../../protocol/address-proof.ts';
import { type AnswerCache, jsonAnswer } from './answer-cache.ts';
import { ApiRefusal } from './api-error.ts';
import { CHART_HOURS, type ChartView } from './chart-view.ts';
import type { ConnectDocument } from './documents.ts';
import type { LedgerView } from './ledger-view.ts';
import type { MinerView } from './miner-view.ts';
import type { PayoutThreshold } from './payout-threshold.ts';
import type { PoolView } from './pool-view.ts';
import type { ProofMaker } from './proofs.ts';
import {
  addressOfQuery,
  bodyObject,
  COSTS,
  choiceOfRequest,
  numberOfRequest,
  PAGE,
  PARAMETERS,
  pageOfRequest,
  pathPart,
  type Route,
  readMinerAddress,
  serviceOfPath,
  serviceOfQuery,
  sliceOfPath,
} from './route.ts';
import { cachedIn, sendAnswer } from './send-answer.ts';

export type PublicDependencies = {
  readonly pool: PoolView;
  readonly ledger: LedgerView;
  readonly miners: MinerView;
  readonly charts: ChartView;
  readonly proofs: ProofMaker;
  readonly thresholds: PayoutThreshold;
  readonly connect: () => ConnectDocument;
  readonly cache: AnswerCache;
};

const FIGURES_MILLIS = 5_000;
const CHART_MILLIS = 60_000;
/** What can no longer change may be kept by browsers and proxies for a day. */
const FOREVER = 'public, max-age=86400, immutable';

export function publicRoutes(dependencies: PublicDependencies): Route[] {
  const { pool, ledger, miners, charts, proofs, thresholds, connect, cache } = dependencies;
  const cached = cachedIn(cache);
  const hoursOf = (request: FastifyRequest): number => numberOfRequest(request, 'hours', { ...CHART_HOURS, min: 1 });
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
      path: '/pool/chart',
      group: 'Pool',
      summary: 'Hash rate and workers over time',
      parameters: [PARAMETERS.hours, PARAMETERS.serviceQuery],
      cost: COSTS.chart,
      handle: cached(CHART_MILLIS, (request) => charts.pool(hoursOf(request), serviceOfQuery(request))),
    },
    {
      method: 'GET',
      path: '/connect',
      group: 'Pool',
      summary: 'Where miners connect',
      handle: cached(FIGURES_MILLIS, async () => connect()),
    },
    {
      method: 'GET',
      path: '/blocks',
      group: 'Blocks',
      summary: 'Blocks, newest first',
      parameters: [PARAMETERS.serviceQuery, PARAMETERS.state, PARAMETERS.finder, ...PAGE],
      cost: COSTS.search,
      handle: cached(FIGURES_MILLIS, (request) =>
        ledger.blocks(pageOfRequest(request), {
          service: serviceOfQuery(request),
          state: choiceOfRequest(request, 'state', PARAMETERS.state.schema.enum as unknown as readonly string[]),
          finder: addressOfQuery(request, 'finder'),
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
      cost: COSTS.search,
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
      path: '/miners/:address/credits',
      group: 'Miners',
      summary: 'What a miner got of each credit list; each can be proven',
      parameters: [PARAMETERS.address, ...PAGE],
      cost: COSTS.search,
      isDear: true,
      handle: cached(FIGURES_MILLIS, (request, charge) =>
        miners.credits(pathPart(request, 'address'), pageOfRequest(request), (rows) => charge(rows / COSTS.rows)),
      ),
    },
    {
      method: 'GET',
      path: '/miners/:address/chart',
      group: 'Miners',
      summary: "A miner's hash rate by hour",
      parameters: [PARAMETERS.address, PARAMETERS.hours],
      cost: COSTS.chart,
      handle: cached(CHART_MILLIS, async (request) => {
        const account = await miners.account(pathPart(request, 'address'));
        return charts.account(account.id, hoursOf(request));
      }),
    },
    {
      method: 'GET',
      path: '/miners/:address/workers/:service/:worker/chart',
      group: 'Miners',
      summary: "A worker's hash rate by hour",
      parameters: [PARAMETERS.address, PARAMETERS.service, PARAMETERS.worker, PARAMETERS.hours],
      cost: COSTS.chart,
      handle: cached(CHART_MILLIS, async (request) => {
        const id = await miners.workerId(pathPart(request, 'address'), serviceOfPath(request), workerOf(request));
        return charts.worker(id, hoursOf(request));
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
        const { threshold_atoms } = bodyObject(request);
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
      cost: COSTS.signature,
      handle: async (request) => {
        const { threshold_atoms, request: asked, proof } = bodyObject(request);
        const account = await miners.account(pathPart(request, 'address'));
        return thresholds.change(account, threshold_atoms, asked as AddressProofRequest, proof as AddressProof);
      },
    },
    {
      method: 'GET',
      path: '/payments',
      group: 'Payments',
      summary: 'Payments, newest first; all, or those to one address',
      parameters: [PARAMETERS.addressQuery, ...PAGE],
      cost: COSTS.search,
      handle: cached(FIGURES_MILLIS, (request) =>
        ledger.payments(pageOfRequest(request), addressOfQuery(request, 'address')),
      ),
    },
    {
      method: 'GET',
      path: '/proofs/:service/:slice',
      group: 'Proofs',
      summary: "The proof of a miner's credit of a slice's rewards (protocol/pool-proof.ts checks it)",
      parameters: [PARAMETERS.service, PARAMETERS.slice, { ...PARAMETERS.addressQuery, description: 'whose proof' }],
      cost: COSTS.proof,
      isDear: true,
      handle: async (request, reply, charge) => {
        const address = addressOfQuery(request, 'address');
        if (address === undefined) throw new ApiRefusal('bad_request', 'address says whose proof is wanted');
        // An address that has not mined here gets proofs of absence.
        const { payload } = readMinerAddress(address, miners.network);
        const proof = await proofs.proof(serviceOfPath(request), sliceOfPath(request), payload, address, (leaves) =>
          charge(leaves / COSTS.leaves),
        );
        if (proof === undefined) throw new ApiRefusal('not_found', 'this slice has no credit list yet');
        return sendAnswer(request, reply, jsonAnswer(proof), FOREVER);
      },
    },
    {
      method: 'GET',
      path: '/proofs/:service/:slice/list',
      group: 'Proofs',
      summary: "Everybody's credits of a slice's rewards, page by page, with the roots of its window",
      parameters: [PARAMETERS.service, PARAMETERS.slice, ...PAGE],
      cost: COSTS.search,
      handle: async (request, reply) => {
        const list = await proofs.list(serviceOfPath(request), sliceOfPath(request), pageOfRequest(request));
        if (list === undefined) throw new ApiRefusal('not_found', 'this slice has no credit list yet');
        return sendAnswer(request, reply, jsonAnswer(list), FOREVER);
      },
    },
  ];
}
