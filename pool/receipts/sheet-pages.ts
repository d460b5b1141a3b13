/**
 * A sheet of receipts as stored in the database: pages of a few leaves, each with the common part of their branches. An
 * account's receipts are then made from the pages that contain it, however many others there are. A page is a whole
 * subtree of the sheet's tree, because its size is a power of two.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { type ReceiptEntry, type ReceiptLeaf, readReceiptLeaf, receiptSheet } from '../../protocol/books/receipt.ts';
import { ByteReader, type Bytes, concat, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';

/** Leaves of a page: about a millisecond of hashing. */
const PAGE_LEAVES = 32;

export type SheetPage = {
  readonly firstAccount: Bytes;
  readonly lastAccount: Bytes;
  readonly leaves: Bytes;
  /** Siblings above the page. */
  readonly above: Bytes;
};

type Sheet = { readonly leaves: readonly Bytes[]; readonly entries: readonly Bytes[] };

export function pagesOf(sheet: Sheet): SheetPage[] {
  const pages: SheetPage[] = [];
  for (let at = 0; at < sheet.leaves.length; at += PAGE_LEAVES) {
    const leaves = sheet.leaves.slice(at, at + PAGE_LEAVES);
    const accountOf = (leaf: Bytes): Bytes => leaf.subarray(0, ADDRESS_PAYLOAD_BYTES);
    // The first leaf of a page has a sibling in it on every level.
    const inside = Math.ceil(Math.log2(leaves.length));
    pages.push({
      firstAccount: accountOf(leaves[0] as Bytes),
      lastAccount: accountOf(leaves.at(-1) as Bytes),
      leaves: concat(...leaves),
      above: entryOfBytes(sheet.entries[at] as Bytes).siblings.subarray(inside * ID_BYTES),
    });
  }
  return pages;
}

function leavesOf({ leaves: bytes }: Pick<SheetPage, 'leaves'>): ReceiptLeaf[] {
  const reader = new ByteReader(bytes);
  const leaves: ReceiptLeaf[] = [];
  while (reader.left > 0) leaves.push(readReceiptLeaf(reader));
  return leaves;
}

/** What all workers of an account together have open, by the leaves of a page. */
export const openOfPage = (page: Pick<SheetPage, 'leaves'>, account: Bytes): bigint =>
  leavesOf(page).reduce((sum, leaf) => (equalBytes(leaf.account, account) ? sum + leaf.open : sum), 0n);

/** The entries of an account in a page, or of one of its workers; `built` leaves were hashed for it. */
export function entriesOfPage(
  page: { readonly page: number; readonly leaves: Bytes; readonly above: Bytes },
  account: Bytes,
  worker?: string,
): { readonly entries: readonly ReceiptEntry[]; readonly built: number } {
  const leaves = leavesOf(page);
  const isOwn = (leaf: ReceiptLeaf) =>
    equalBytes(leaf.account, account) && (worker === undefined || leaf.worker === worker);
  const made = leaves.some(isOwn) ? receiptSheet(leaves).entries : [];
  const entries: ReceiptEntry[] = [];
  for (const bytes of made) {
    const { leaf, index, siblings } = entryOfBytes(bytes);
    if (!isOwn(leaf)) continue;
    entries.push({ leaf, index: page.page * PAGE_LEAVES + index, siblings: concat(siblings, page.above) });
  }
  return { entries, built: made.length };
}
