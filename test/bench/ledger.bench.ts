/** How fast the ledger formats are read, written and named, on the values of vectors/, and what the costliest cuts take. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { concat, fromHex, utf8 } from '../../protocol/bytes.ts';
import { LABELS } from '../../protocol/crypto/identifier.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { decodeTransaction, encodeTransaction } from '../../protocol/transactions/transaction.ts';
import { type Costs, falseCut, paidCut } from './costliest-cuts.ts';
import { bench, median, rates } from './harness.ts';

const vectors = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), 'utf8')) as T;

export default bench(
  'encoding, decoding and identifiers of headers and transactions; the costliest cuts',
  async (b) => {
    const [header] = vectors<{ header: string }[]>('header').map((vector) => fromHex(vector.header));
    const transaction = vectors<{ wire: string }[]>('transaction')
      .map((vector) => fromHex(vector.wire))
      .sort((a, c) => c.length - a.length)[0];
    if (header === undefined || transaction === undefined) throw new Error('vectors/ has no header or no transaction');
    const headerValue = decodeHeader(header);
    const transactionValue = decodeTransaction(transaction);
    const labelled = concat(utf8(LABELS.block), new Uint8Array(1), header);
    b.note(`the largest transaction has ${transaction.length} bytes`);
    const measured = await rates({
      headerDecode: () => decodeHeader(header),
      headerEncode: () => encodeHeader(headerValue),
      transactionDecode: () => decodeTransaction(transaction),
      transactionEncode: () => encodeTransaction(transactionValue),
      blockId: () => blockId(header),
      digest: () => hash('sha384', labelled, 'buffer'),
    });
    b.figure('header-decode', measured.headerDecode, 'op/s');
    b.figure('header-encode', measured.headerEncode, 'op/s');
    b.figure('transaction-decode', measured.transactionDecode, 'op/s');
    b.figure('transaction-encode', measured.transactionEncode, 'op/s');
    b.figure('block-id', measured.blockId, 'op/s', {
      ratio: measured.blockId / measured.digest,
      yardstick: 'SHA-384 of node:crypto over the same bytes',
    });
    const cuts = { 'false-signatures': falseCut, 'payments-of-new-keys': paidCut } as const;
    for (const [name, execute] of Object.entries(cuts)) {
      const costs: Costs[] = Array.from({ length: 3 }, () => execute());
      b.note(`${name}: ${costs[0]?.signatures} signatures, none of them checked ahead`);
      b.figure(`${name}-first`, median(costs.map(({ first }) => first)), 'ms of one core');
      b.figure(`${name}-again`, median(costs.map(({ again }) => again)), 'ms of one core');
    }
  },
);
