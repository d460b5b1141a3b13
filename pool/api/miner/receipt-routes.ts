/** The route for receipts that a miner missed, with its account's leaves in the same slices. */
import { integer, object, optional } from '../../../protocol/api/schema.ts';
import * as b from '../books/books-documents.ts';
import { COSTS, FIELDS, type Route, readMinerAddress, route } from '../route.ts';
import { BEFORE_ALL, type ReceiptView } from './receipt-view.ts';

const MILLIS = 2_000;
/** To learn only the newest slice, a miner asks for receipts after the largest number. */
const MAX_AFTER = 2_147_483_647;

export function receiptRoutes({ receipts }: { receipts: ReceiptView }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/miners/:address/receipts',
      group: 'Proofs',
      summary: 'Receipts of the last day, oldest first, each slice with its leaf of the account',
      params: object({ address: FIELDS.address }),
      query: object({
        after: optional(integer({ maximum: MAX_AFTER, description: 'only slices after this one' })),
        cursor: FIELDS.cursor,
      }),
      answer: b.receipts,
      cost: 5,
      isDear: true,
      keep: MILLIS,
      handle: ({ params, query }, { charge }) => {
        const { payload } = readMinerAddress(params.address, receipts.network);
        const { after = BEFORE_ALL, cursor } = query;
        return receipts.ofAccount({ payload, after, cursor, onBuilt: (leaves) => charge(leaves / COSTS.leaves) });
      },
    }),
    route({
      method: 'GET',
      path: '/miners/:address/receipt-sheets',
      group: 'Proofs',
      summary: 'The same, each signature once, and of one worker alone where it is named',
      params: object({ address: FIELDS.address }),
      query: object({
        after: optional(integer({ maximum: MAX_AFTER, description: 'only slices after this one' })),
        worker: optional(FIELDS.worker),
        cursor: FIELDS.cursor,
      }),
      answer: b.receiptSheets,
      cost: 5,
      isDear: true,
      keep: MILLIS,
      handle: ({ params, query }, { charge }) => {
        const { payload } = readMinerAddress(params.address, receipts.network);
        const { after = BEFORE_ALL, cursor, worker } = query;
        const onBuilt = (leaves: number) => charge(leaves / COSTS.leaves);
        return receipts.sheets({ payload, after, cursor, worker: worker === '-' ? '' : worker, onBuilt });
      },
    }),
  ];
}
