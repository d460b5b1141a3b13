/** The route for receipts that a miner missed, with its account's leaves in the same slices. */
import { integer, object, oneOf, optional } from '../../../protocol/api/schema.ts';
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
      summary: 'The same, each signature once; of one worker alone where it is named, or one receipt of each sheet',
      params: object({ address: FIELDS.address }),
      query: object({
        after: optional(integer({ maximum: MAX_AFTER, description: 'only slices after this one' })),
        worker: optional(FIELDS.worker),
        of: optional(oneOf(['account'], 'of each sheet one receipt alone, with account_open; worker is ignored')),
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
        const asked = { payload, after, cursor, onBuilt };
        if (query.of === 'account') return receipts.sheetsOfAccount(asked);
        return receipts.sheets({ ...asked, worker: worker === '-' ? '' : worker });
      },
    }),
  ];
}
