/**
 * Receipts (books rules 17 to 19): the work that a front end of a pool accepted from a worker in a slice, signed by the
 * pool. One signature covers all receipts of a front end and a slice: it is over a head that names the closed slice and
 * the root of a Merkle tree of the receipts. So a receipt is the pool's signed statement of the work and of the books
 * that the work must be in.
 */
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { ADDRESS_PAYLOAD_BYTES, formatAddress, parseAddress } from '../address.ts';
import type { VerifySignature } from '../api/signed-answer.ts';
import { type ByteReader, type Bytes, ByteWriter, compareBytes, concat, fromHex, toHex, utf8 } from '../bytes.ts';
import { ID_BYTES, id, LABELS } from '../crypto/identifier.ts';
import { merkleLeaf, merkleParent, verifyMerkleBranch } from '../crypto/merkle.ts';
import { ProtocolError } from '../errors.ts';
import { NETWORK_NAMES, NETWORKS, type NetworkName, networkById } from '../network.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../transactions/transaction.ts';
import { type BooksService, readWork } from './books-slice.ts';

/** Identifies one start of a front end; also the first unique bytes of its extranonces. */
export const BOOT_BYTES = 8;
const SERVICES = ['pplns', 'solo'] as const;
export const WORKER_MAX = 64;
/** Workers of an account with receipts of their own in one sheet; all others have one together, with a name that no worker can have. */
export const OWN_RECEIPTS = 4_096;
export const OTHERS = '(others)';
/** A tree of 2^32 leaves has no longer branches. */
const MAX_SIBLINGS = 32;

/** The common, signed part of all receipts of a front end and a slice. */
export type ReceiptHead = {
  readonly network: NetworkName;
  readonly service: BooksService;
  readonly slice: number;
  readonly boot: string;
  /** Of the slice's record (rule 12): its chain, root, number of accounts and total. */
  readonly chain: string;
  readonly root: string;
  readonly accounts: number;
  readonly total_work: string;
  /** Number of receipts, and the root of their tree. */
  readonly receipts: number;
  readonly receipts_root: string;
};

export type ReceiptLeaf = {
  readonly account: Bytes;
  readonly worker: string;
  /** Shares and work that this front end accepted of the worker and that are in the slice. */
  readonly shares: number;
  readonly work: bigint;
  /** Work that it accepted of the worker and that is in no closed slice yet, when the receipt was made. */
  readonly open: bigint;
  /** As `work`, of all workers of the account. */
  readonly accountWork: bigint;
};

/** A receipt as it is kept and shown. The siblings of its branch are in one text, from the leaf upwards. */
export type Receipt = ReceiptHead & {
  readonly signature: string;
  readonly address: string;
  readonly worker: string;
  readonly shares: number;
  readonly work: string;
  readonly open: string;
  readonly account_work: string;
  readonly index: number;
  readonly siblings: string;
};

/** The slice record according to receipts. */
export type SignedBooks = Pick<ReceiptHead, 'chain' | 'root' | 'accounts' | 'total_work'>;

/** The same for the same record. Two good receipts of one slice that differ in it convict the pool (rule 20). */
export const booksText = ({ chain, root, accounts, total_work }: SignedBooks): string =>
  `${chain} ${root} ${accounts} ${total_work}`;

const boot = (text: string): Bytes => fromHex(text, BOOT_BYTES);
const hash = (text: string): Bytes => fromHex(text, ID_BYTES);

export function encodeReceiptHead(head: ReceiptHead): Uint8Array<ArrayBuffer> {
  return new ByteWriter(256)
    .u32(NETWORKS[head.network].id)
    .u8(SERVICES.indexOf(head.service))
    .height(head.slice)
    .raw(boot(head.boot))
    .raw(hash(head.chain))
    .raw(hash(head.root))
    .u32(head.accounts)
    .u128(readWork(head.total_work))
    .u32(head.receipts)
    .raw(hash(head.receipts_root))
    .done();
}

export function readReceiptHead(reader: ByteReader): ReceiptHead {
  const network = networkById(reader.u32()).name;
  const service = SERVICES[reader.u8()];
  if (service === undefined) throw new ProtocolError('out_of_range', 'no such service');
  return {
    network,
    service,
    slice: reader.height(),
    boot: toHex(reader.take(BOOT_BYTES)),
    chain: toHex(reader.take(ID_BYTES)),
    root: toHex(reader.take(ID_BYTES)),
    accounts: reader.u32(),
    total_work: String(reader.u128()),
    receipts: reader.u32(),
    receipts_root: toHex(reader.take(ID_BYTES)),
  };
}

/** The bytes that the pool signs. */
export const receiptMessage = (head: ReceiptHead): Uint8Array<ArrayBuffer> =>
  id(LABELS.receipts, encodeReceiptHead(head));

export function encodeReceiptLeaf(leaf: ReceiptLeaf): Uint8Array<ArrayBuffer> {
  if (leaf.account.length !== ADDRESS_PAYLOAD_BYTES)
    throw new ProtocolError('out_of_range', `an account has ${ADDRESS_PAYLOAD_BYTES} bytes`);
  return new ByteWriter(160)
    .raw(leaf.account)
    .text(leaf.worker, WORKER_MAX)
    .u32(leaf.shares)
    .u128(leaf.work)
    .u128(leaf.open)
    .u128(leaf.accountWork)
    .done();
}

export const readReceiptLeaf = (reader: ByteReader): ReceiptLeaf => ({
  account: reader.take(ADDRESS_PAYLOAD_BYTES),
  worker: reader.text(WORKER_MAX),
  shares: reader.u32(),
  work: reader.u128(),
  open: reader.u128(),
  accountWork: reader.u128(),
});

type Named = Pick<ReceiptLeaf, 'account' | 'worker'>;

/** The order of receipts in their tree: by account, then by the bytes of the worker's name. */
export const compareReceipts = (a: Named, b: Named): number =>
  compareBytes(a.account, b.account) || compareBytes(utf8(a.worker), utf8(b.worker));

/** A receipt of a sheet as it goes over the wire: `leaf | u32 index | u8 siblings | siblings`. */
export type ReceiptEntry = { readonly leaf: ReceiptLeaf; readonly index: number; readonly siblings: Bytes };

export function readReceiptEntry(reader: ByteReader): ReceiptEntry {
  const leaf = readReceiptLeaf(reader);
  const index = reader.u32();
  const count = reader.u8();
  if (count > MAX_SIBLINGS) throw new ProtocolError('too_long', `a branch has at most ${MAX_SIBLINGS} siblings`);
  return { leaf, index, siblings: reader.take(count * ID_BYTES) };
}

export const encodeReceiptEntry = ({ leaf, index, siblings }: ReceiptEntry): Uint8Array<ArrayBuffer> =>
  new ByteWriter(1024)
    .raw(encodeReceiptLeaf(leaf))
    .u32(index)
    .u8(siblings.length / ID_BYTES)
    .raw(siblings)
    .done();

/** All receipts of a front end and a slice, in their order. */
export type ReceiptSheet = {
  readonly root: Bytes;
  readonly leaves: readonly Uint8Array<ArrayBuffer>[];
  readonly entries: readonly Uint8Array<ArrayBuffer>[];
};

/** The tree over leaves in their order, and each leaf with its branch. */
export function receiptSheet(leaves: readonly ReceiptLeaf[]): ReceiptSheet {
  if (leaves.length === 0) throw new ProtocolError('out_of_range', 'a sheet has at least one receipt');
  for (let i = 1; i < leaves.length; i++)
    if (compareReceipts(leaves[i - 1] as ReceiptLeaf, leaves[i] as ReceiptLeaf) >= 0)
      throw new ProtocolError('not_canonical', 'receipts are in ascending order without repetition');
  const encoded = leaves.map(encodeReceiptLeaf);
  const rows: Bytes[][] = [encoded.map(merkleLeaf)];
  for (let row = rows[0] as Bytes[]; row.length > 1; row = rows.at(-1) as Bytes[]) {
    const next: Bytes[] = [];
    for (let i = 0; i < row.length; i += 2) {
      const [left, right] = [row[i] as Bytes, row[i + 1]];
      next.push(right === undefined ? left : merkleParent(left, right));
    }
    rows.push(next);
  }
  const entries = leaves.map((leaf, index) => {
    const siblings: Bytes[] = [];
    for (let at = index, level = 0; level < rows.length - 1; at >>= 1, level++) {
      const sibling = rows[level]?.[at ^ 1];
      if (sibling !== undefined) siblings.push(sibling);
    }
    return encodeReceiptEntry({ leaf, index, siblings: concat(...siblings) });
  });
  return { root: (rows.at(-1) as Bytes[])[0] as Bytes, leaves: encoded, entries };
}

export function receiptDocument(head: ReceiptHead, signature: Bytes, { leaf, index, siblings }: ReceiptEntry): Receipt {
  return {
    ...head,
    signature: toHex(signature),
    address: formatAddress(leaf.account, head.network),
    worker: leaf.worker,
    shares: leaf.shares,
    work: String(leaf.work),
    open: String(leaf.open),
    account_work: String(leaf.accountWork),
    index,
    siblings: toHex(siblings),
  };
}

export function receiptLeafOf(receipt: Receipt): ReceiptLeaf {
  return {
    account: parseAddress(receipt.address, receipt.network).payload,
    worker: receipt.worker,
    shares: receipt.shares,
    work: readWork(receipt.work),
    open: readWork(receipt.open),
    accountWork: readWork(receipt.account_work),
  };
}

export const RECEIPT_REFUSALS = ['malformed', 'signature', 'branch'] as const;
export type ReceiptRefusal = (typeof RECEIPT_REFUSALS)[number];

const nobleVerify: VerifySignature = (signature, message, publicKey) => ml_dsa65.verify(signature, message, publicKey);

/** Why a receipt was not signed by the pool that has this key; undefined when it is, even where it contradicts itself. */
export function receiptRefusal(
  receipt: Receipt,
  publicKey: Bytes,
  verify: VerifySignature = nobleVerify,
): ReceiptRefusal | undefined {
  try {
    if (!(NETWORK_NAMES as readonly string[]).includes(receipt.network)) return 'malformed';
    if (!(SERVICES as readonly string[]).includes(receipt.service)) return 'malformed';
    if (publicKey.length !== PUBLIC_KEY_BYTES) return 'signature';
    if (!verify(fromHex(receipt.signature, SIGNATURE_BYTES), receiptMessage(receipt), publicKey)) return 'signature';
    const leaf = receiptLeafOf(receipt);
    const bytes = fromHex(receipt.siblings);
    const siblings = Array.from({ length: Math.ceil(bytes.length / ID_BYTES) }, (_, i) =>
      bytes.subarray(i * ID_BYTES, (i + 1) * ID_BYTES),
    );
    const branch = { index: receipt.index, count: receipt.receipts, siblings };
    return verifyMerkleBranch(hash(receipt.receipts_root), encodeReceiptLeaf(leaf), branch) ? undefined : 'branch';
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError) return 'malformed';
    throw error;
  }
}

/** The short name of a pool's key, for people to compare. */
export const poolKeyName = (publicKey: Bytes): string => toHex(id(LABELS.poolKey, publicKey)).slice(0, 32);
