/** The route by which a miner gets the receipts that it missed, with what the books hold of it in the same slices. */
import type { AnswerCache } from './answer-cache.ts';
import type { ReceiptView } from './receipt-view.ts';
import {
  COSTS,
  numberOfRequest,
  PARAMETERS,
  type Parameter,
  pageOfRequest,
  pathPart,
  type Route,
  readMinerAddress,
} from './route.ts';
import { cachedIn } from './send-answer.ts';

const MILLIS = 2_000;
const AFTER: Parameter = {
  name: 'after',
  in: 'query',
  description: 'only slices after this one',
  schema: { type: 'integer', minimum: 0 },
};

export function receiptRoutes({ receipts, cache }: { receipts: ReceiptView; cache: AnswerCache }): Route[] {
  return [
    {
      method: 'GET',
      path: '/miners/:address/receipts',
      group: 'Proofs',
      summary: 'Receipts of the last day, oldest first, each slice with its leaf of the account',
      parameters: [PARAMETERS.address, AFTER, PARAMETERS.cursor],
      cost: 5,
      isDear: true,
      handle: cachedIn(cache)(MILLIS, (request, charge) => {
        const after = numberOfRequest(request, 'after', { default: 0, min: 0, max: 2_000_000_000 });
        const { payload } = readMinerAddress(pathPart(request, 'address'), receipts.network);
        const { cursor } = pageOfRequest(request);
        return receipts.ofAccount(payload, after, (leaves) => charge(leaves / COSTS.leaves), cursor);
      }),
    },
  ];
}
