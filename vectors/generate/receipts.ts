/** Books rules 17 to 20 and stratum S33 to S36: a key, the receipts of one front end for one slice, their messages, and evidence. */
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { formatAddress } from '../../protocol/address.ts';
import { branchDocument } from '../../protocol/books/pool-proof.ts';
import {
  compareReceipts,
  encodeReceiptHead,
  poolKeyName,
  type Receipt,
  type ReceiptHead,
  type ReceiptLeaf,
  receiptDocument,
  receiptMessage,
  receiptSheet,
} from '../../protocol/books/receipt.ts';
import { compareBytes, toHex } from '../../protocol/bytes.ts';
import { sumBranch, sumTree } from '../../protocol/crypto/sum-tree.ts';
import { EVIDENCE_FORMAT, type Evidence } from '../../protocol/evidence/receipt-evidence.ts';
import { entryOfBytes } from '../../protocol/stratum/receipt-messages.ts';
import { encodeNotification } from '../../protocol/stratum/v1-answer.ts';
import { encodeServerFrame } from '../../protocol/stratum/v2.ts';

const account = (number: number): Uint8Array => new Uint8Array(49).fill(number).fill(0, 0, 1);
const leaf = (number: number, worker: string, work: bigint, accountWork: bigint, open = 0n): ReceiptLeaf => ({
  account: account(number),
  worker,
  shares: Number(work / 100n),
  work,
  open,
  accountWork,
});

export function receiptVectors() {
  const keys = ml_dsa65.keygen(new Uint8Array(32).fill(0x51));
  // The books of the slice: account 1 has less than was accepted of it, account 2 what is due.
  const booked = [
    { key: account(1), value: 950n },
    { key: account(2), value: 2_000n },
    { key: account(9), value: 70n },
  ].sort((a, b) => compareBytes(a.key, b.key));
  const tree = sumTree(booked);
  const leaves = [
    leaf(1, '', 400n, 1_000n),
    leaf(1, 'rig1', 600n, 1_000n, 300n),
    leaf(2, 'rig1', 2_000n, 2_000n),
    leaf(3, 'late', 0n, 0n, 100n),
  ].sort(compareReceipts);
  const sheet = receiptSheet(leaves);
  const head: ReceiptHead = {
    network: 'development',
    service: 'pplns',
    slice: 77,
    boot: '0011223344556677',
    chain: 'c4'.repeat(48),
    root: toHex(tree.root.hash),
    accounts: tree.root.count,
    total_work: String(tree.root.sum),
    receipts: leaves.length,
    receipts_root: toHex(sheet.root),
  };
  const signature = ml_dsa65.sign(receiptMessage(head), keys.secretKey, { extraEntropy: false });
  const receipts = sheet.entries.map((entry) => receiptDocument(head, signature, entryOfBytes(entry)));
  // A pool that names too little for the account: its workers' receipts add up to more, and one says more than the account's.
  const small = receiptSheet([leaf(2, 'rig1', 1_200n, 1_200n), leaf(2, 'rig2', 900n, 1_200n)]);
  const odd = receiptSheet([leaf(9, '', 100n, 0n)]);
  const signedAs = (made: typeof sheet) => {
    const own = { ...head, receipts: made.entries.length, receipts_root: toHex(made.root) };
    const by = ml_dsa65.sign(receiptMessage(own), keys.secretKey, { extraEntropy: false });
    return made.entries.map((entry) => receiptDocument(own, by, entryOfBytes(entry)));
  };
  const evidenceOf = (number: number, of: readonly Receipt[] = receipts): Evidence => {
    const address = formatAddress(account(number), 'development');
    const at = booked.findIndex((row) => compareBytes(row.key, account(number)) === 0);
    return {
      format: EVIDENCE_FORMAT,
      pool_key: toHex(keys.publicKey),
      receipts: of.filter((receipt) => receipt.address === address),
      leaf: { value: String(booked[at]?.value), branch: branchDocument(sumBranch(tree, at)) },
      record: null,
    };
  };
  return {
    pool_key: toHex(keys.publicKey),
    pool_key_name: poolKeyName(keys.publicKey),
    head: toHex(encodeReceiptHead(head)),
    signed_message: toHex(receiptMessage(head)),
    leaves: sheet.leaves.map(toHex),
    receipts,
    v1_notification: encodeNotification({ method: 'mining.receipt', params: receipts[1] as Receipt }),
    v2_frames: [
      toHex(encodeServerFrame({ type: 'receiptHead', signed: { head, signature } })),
      toHex(encodeServerFrame({ type: 'receipt', entry: entryOfBytes(sheet.entries[1] as Uint8Array) })),
    ],
    evidence: [
      { evidence: evidenceOf(1), verdict: 'convicts', signed: '1000', booked: '950' },
      { evidence: evidenceOf(2), verdict: 'does_not', signed: '2000', booked: '2000' },
      { evidence: evidenceOf(2, signedAs(small)), verdict: 'convicts', signed: '2100', booked: '2000' },
      { evidence: evidenceOf(9, signedAs(odd)), verdict: 'convicts', signed: '100', booked: '70' },
    ],
  };
}
