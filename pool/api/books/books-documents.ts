/**
 * Documents from which anybody can recompute the books (docs/protocol/books.md). Their types are those of protocol/,
 * which page, miner and audit share; here they are schemas for the API's description.
 */
import {
  described,
  either,
  exactly,
  flag,
  type Infer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  text,
} from '../../../protocol/api/schema.ts';
import {
  address,
  amount,
  bigNumber,
  count,
  height,
  hex,
  identifier,
  network,
  version,
} from '../../../protocol/api/values.ts';
import type { SliceRecord } from '../../../protocol/books/books-slice.ts';
import type { CommitmentRow } from '../../../protocol/books/ledger-payouts.ts';
import type { MembershipDocument, PoolProof } from '../../../protocol/books/pool-proof.ts';
import type { Receipt } from '../../../protocol/books/receipt.ts';
import { nextCursor, page, service } from '../documents.ts';

const target = text({ pattern: '^[0-9a-f]{64}$', description: 'target of work in hex' });

const sliceTerms = { slice_cuts: count, window_thousandths: count, fee_ppm: count } as const;
const termsFrom = list(object({ from_slice: count, ...sliceTerms }));
export const terms = object(
  {
    api_version: version,
    network,
    address,
    pool_key: optional(hex),
    height: optional(height),
    window_fee_from: optional(described(count, 'the first slice whose list has the lowest fee of its window')),
    terms: object({ pplns: termsFrom, solo: termsFrom }),
  },
  'Terms',
);
/** The terms, and the newest finalized cut in the books: absent before the first. */
export type TermsDocument = Infer<typeof terms>;

const recordFields = {
  network,
  service,
  slice: count,
  ...sliceTerms,
  target,
  window_work: bigNumber,
  accounts: count,
  total_work: bigNumber,
  root: identifier,
  previous: identifier,
  chain: identifier,
} as const;
const sliceRecord: Schema<SliceRecord> = object(recordFields, 'SliceRecord');

export const slices = page(
  'slices',
  object(
    {
      ...recordFields,
      credits: nullable(object({ reward_atoms: amount, fee_atoms: amount, credited_atoms: amount, root: identifier })),
    },
    'Slice',
  ),
  'Slices',
);

export const leaves = object(
  {
    api_version: version,
    service,
    slice: count,
    accounts: count,
    leaves: list(object({ address, work: bigNumber })),
    next_cursor: nextCursor,
  },
  'Leaves',
);

export const sliceBlocks = object(
  {
    api_version: version,
    service,
    slice: count,
    blocks: list(object({ block_id: identifier, state: oneOf(['paid', 'held']), credited_with: nullable(count) })),
  },
  'SliceBlocks',
);

const commitment: Schema<CommitmentRow> = object(
  {
    number: count,
    state: oneOf(['pending', 'finalized', 'void']),
    transaction_id: nullable(identifier),
    final_height: nullable(height),
    slice: nullable(count),
    head: nullable(identifier),
  },
  'Commitment',
);
export const commitments = page('commitments', commitment, 'Commitments');

const branch = object({ index: count, siblings: list(object({ hash: identifier, sum: bigNumber })) }, 'Branch');
const neighbour = nullable(object({ address, value: bigNumber, branch }, 'Neighbour'));
const membership: Schema<MembershipDocument> = either(
  object({ value: bigNumber, branch }, 'Leaf'),
  object({ absent: object({ before: neighbour, after: neighbour }) }, 'Absence'),
);

const part = { slice: count, accounts: count, total: bigNumber, counted: bigNumber, root: identifier } as const;
const creditHead = {
  version: exactly(2),
  list_id: identifier,
  network,
  service,
  slice: count,
  blocks: list(
    object({
      block_id: identifier,
      reward: amount,
      transaction_id: identifier,
      output_index: count,
      finder: address,
    }),
  ),
  reward: amount,
  fee_ppm: count,
  fee: amount,
  credited: amount,
  window_work: bigNumber,
  credit_accounts: count,
  credit_root: identifier,
} as const;
export const proof: Schema<PoolProof> = object(
  { ...creditHead, address, window: list(object({ ...part, leaf: membership })), credit: membership },
  'Proof',
);
export const creditList = object(
  {
    ...creditHead,
    window: list(object(part)),
    credits: list(object({ address, amount })),
    next_cursor: nextCursor,
  },
  'CreditList',
);

const sheetHead = {
  network,
  service,
  slice: count,
  boot: hex,
  chain: identifier,
  root: identifier,
  accounts: count,
  total_work: bigNumber,
  receipts_root: identifier,
  signature: hex,
} as const;
const receiptFields = {
  address,
  worker: text(),
  shares: count,
  work: bigNumber,
  open: bigNumber,
  account_work: bigNumber,
  index: count,
  siblings: hex,
} as const;
const receipt: Schema<Receipt> = object({ ...sheetHead, receipts: count, ...receiptFields }, 'Receipt');
const receiptSheet = object(
  {
    ...sheetHead,
    count: described(count, 'receipts of the whole sheet: `receipts` of what is signed'),
    receipts: list(object(receiptFields, 'SheetReceipt')),
    account_open: optional(
      described(bigNumber, '`open` of all workers of the account together, where of=account was asked'),
    ),
  },
  'ReceiptSheet',
);
const receiptSlice = object(
  { service, slice: count, receipts: list(receipt), leaf: membership, record: sliceRecord },
  'ReceiptSlice',
);
/** An account's leaf in a closed slice, or its absence, with its receipts and the slice's record. */
export type ReceiptSlice = Infer<typeof receiptSlice>;
const receiptsHead = {
  api_version: version,
  pool_key: nullable(hex),
  kept_from: nullable(count),
  newest: nullable(count),
  through: count,
  more: flag('whether there are later slices, or more of this one'),
  next_cursor: nextCursor,
} as const;
export const receipts = object({ ...receiptsHead, slices: list(receiptSlice) }, 'Receipts');
export type ReceiptsDocument = Infer<typeof receipts>;

export const receiptSheets = object(
  {
    ...receiptsHead,
    slices: list(
      object(
        { service, slice: count, sheets: list(receiptSheet), leaf: membership, record: sliceRecord },
        'ReceiptSheetsSlice',
      ),
    ),
  },
  'ReceiptSheets',
);
export type ReceiptSheetsDocument = Infer<typeof receiptSheets>;
