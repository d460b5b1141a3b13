/**
 * What a pool paid to one address: its list of payments, and which of them the ledger has. A payment that the pool calls final counts when a node shows the output;
 * without a node the pool's word counts.
 */
import { parseAtoms } from './amount.ts';
import type { BooksSources } from './books-evidence.ts';
import { isWhole } from './books-slice.ts';
import { ProtocolError } from './errors.ts';

type PaymentRow = {
  readonly payout_id: string;
  readonly state: string;
  readonly address: string;
  readonly amount: string;
  readonly transaction_id: string | null;
  readonly final_height: number | null;
};

const PAGE = 200;
/** Pages that are read at most: a pool that names more than 4,000 payments which are not known yet is not followed. */
const MAX_PAGES = 20;
/** Payments that the ledger does not have, after which no more are read. */
const MAX_DENIED = 200;
const PAGE_CHANGES = 1_024;
const MAX_TEXT = 256;

export type PaymentSources = {
  readonly pool: BooksSources['pool'];
  readonly node: Pick<NonNullable<BooksSources['node']>, 'addressChanges'> | null;
};

/** Why payments cannot be added up; no fault of anybody. */
export class PaymentsUnread extends Error {}

function readRow(value: unknown, address: string): PaymentRow {
  const row = value as PaymentRow;
  const texts = [row?.payout_id, row?.state, row?.amount];
  const isForm =
    texts.every((text) => typeof text === 'string' && text.length <= MAX_TEXT) &&
    row.address === address &&
    (row.final_height === null || isWhole(row.final_height));
  if (!isForm) throw new ProtocolError('out_of_range', "the pool's payments have no such form");
  parseAtoms(row.amount);
  return row;
}

/** Outputs of one cut to the address, by transaction and amount. */
async function receivedAt(address: string, height: number, node: NonNullable<PaymentSources['node']>) {
  const asked = { addresses: [address], after_height: height - 1, limit: PAGE_CHANGES };
  const { changes, indexed_height: indexed } = await node.addressChanges(asked);
  if (indexed < height) return undefined;
  const at = changes.filter((change) => change.finalized_height === height);
  // Anybody can send so much dust that one page does not hold a cut.
  if (at.length === PAGE_CHANGES) throw new PaymentsUnread('the address received too many outputs in one cut');
  return at.filter(({ kind }) => kind === 'received').map((change) => `${change.transaction_id} ${change.amount}`);
}

export type NewPayments = {
  /** By payout id, newest first. */
  readonly found: ReadonlyMap<string, bigint>;
  /** Payments that the pool calls final and that the node, which has their cut, does not show. */
  readonly denied: number;
};

/**
 * Final payments to an address that are not in `known`, newest first: up to the first page with one that is known, or the newest page alone where none is. What the node does not
 * show is left out, and comes again the next time.
 */
export async function newPayments(
  address: string,
  known: ReadonlyMap<string, unknown> | null,
  { pool, node }: PaymentSources,
  /** Payments before this cut are left out. */
  fromHeight = 0,
): Promise<NewPayments> {
  const found = new Map<string, bigint>();
  let denied = 0;
  const received = new Map<number, string[] | undefined>();
  let cursor: string | undefined;
  for (let page = 0; ; page++) {
    const query = `payments?address=${address}&limit=${PAGE}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
    const answer = (await pool(query)) as { payments?: unknown; next_cursor?: unknown };
    if (!Array.isArray(answer?.payments) || answer.payments.length > PAGE)
      throw new ProtocolError('out_of_range', "the pool's payments have no such form");
    const rows = answer.payments.map((row) => readRow(row, address));
    const fresh = rows.filter(({ state, payout_id: id }) => state === 'finalized' && !known?.has(id) && !found.has(id));
    const isBefore = ({ final_height: height }: PaymentRow) => height !== null && height < fromHeight;
    for (const row of fresh.filter((each) => !isBefore(each))) {
      const { final_height: height, transaction_id: transaction, payout_id: id } = row;
      if (height === null || transaction === null) continue;
      if (node !== null) {
        if (!received.has(height)) received.set(height, await receivedAt(address, height, node));
        const outputs = received.get(height);
        const at = outputs?.indexOf(`${transaction} ${row.amount}`) ?? -1;
        if (outputs !== undefined && at === -1) denied++;
        if (at === -1) continue;
        // An output pays one payment.
        outputs?.splice(at, 1);
      }
      found.set(id, parseAtoms(row.amount));
    }
    const isLast = typeof answer.next_cursor !== 'string' || answer.next_cursor.length > MAX_TEXT;
    const isJoined = known === null || rows.some(({ payout_id: id }) => known.has(id));
    if (isLast || isJoined || rows.every(isBefore) || denied >= MAX_DENIED) return { found, denied };
    if (page + 1 >= MAX_PAGES) throw new PaymentsUnread('the pool lists too many payments');
    cursor = answer.next_cursor as string;
  }
}
