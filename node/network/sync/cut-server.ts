/** Answers of this node to peers that sync: cuts with the certificates that are kept, blocks, and headers for the way back through old epochs. */
import { type Bytes, concat } from '../../../protocol/bytes.ts';
import { type Certificate, encodeCertificate } from '../../../protocol/ledger/cut.ts';
import { epochOf } from '../../../protocol/staking/limits.ts';
import type { Chain } from '../../full-node.ts';
import { CHUNK_BYTES, encodeChunk, NO_CHUNK, type SnapshotQuestion } from '../snapshots/snapshot-messages.ts';
import {
  ANSWER_BYTES,
  type AnsweredBlock,
  encodeBlocksAnswer,
  encodeCutsAnswer,
  encodeHeadersAnswer,
  type SyncQuestion,
} from './sync-messages.ts';

type CutsQuestion = Extract<SyncQuestion, { readonly type: 'cuts' }>;

export type CutSource = Pick<Chain, 'head' | 'cut' | 'certificate' | 'block' | 'blockBody' | 'bodiesFrom' | 'genesis'>;

export function answerSync(node: CutSource, question: Exclude<SyncQuestion, SnapshotQuestion>): Uint8Array {
  switch (question.type) {
    case 'cuts':
      return answerCuts(node, question);
    case 'blocks':
      return answerBlocks(node, question.ids);
    case 'blockPart':
      return answerBlockPart(node, question.id, question.from);
    case 'headers':
      return answerHeaders(node, question.to, question.count);
  }
}

/**
 * Cut 0 needs no certificate: it follows from the genesis document. A certificate that was deleted, or never was here,
 * is left out.
 */
function certificateOf(node: CutSource, height: number): Certificate | undefined {
  const certificate = height === 0 ? undefined : node.certificate(height);
  return certificate !== undefined && certificate.signatures.length > 0 ? certificate : undefined;
}

/**
 * Up to the last cut with a stored certificate that the request, the epoch and the size of an answer allow. If there is
 * none, the cuts are sent without: the requesting node has the identifiers from the epoch's last certificate.
 */
function answerCuts(node: CutSource, { from, count, isBrief }: CutsQuestion): Uint8Array {
  const head = node.head().height;
  const bodiesFrom = node.bodiesFrom();
  // Pruned cuts are not sent: their blocks could not be delivered.
  if (from < bodiesFrom) return encodeCutsAnswer({ head, bodiesFrom }, [], []);
  const { intervalCuts } = node.genesis;
  const epochEnd = (epochOf(from, intervalCuts) + 1) * intervalCuts - 1;
  const last = Math.min(head, from + count - 1, epochEnd);
  const cuts: Bytes[] = [];
  const certificates: { readonly index: number; readonly certificate: Certificate }[] = [];
  let bytes = 0;
  for (let height = from; height <= last && bytes < ANSWER_BYTES; height++) {
    const cut = node.cut(height);
    if (cut === undefined) break;
    const content = concat(cut.headerBytes, ...cut.blockIds);
    const certificate = isBrief ? undefined : certificateOf(node, height);
    bytes += content.length + (certificate === undefined ? 0 : encodeCertificate(certificate).length);
    if (certificate !== undefined) certificates.push({ index: cuts.length, certificate });
    cuts.push(content);
  }
  for (let index = cuts.length - 1; isBrief && index >= 0 && certificates.length === 0; index--) {
    const certificate = certificateOf(node, from + index);
    if (certificate !== undefined) certificates.push({ index, certificate });
  }
  const proven = certificates.at(-1)?.index;
  const sent = proven === undefined ? cuts : cuts.slice(0, proven + 1);
  return encodeCutsAnswer({ head, bodiesFrom }, sent, certificates);
}

function answerBlocks(node: CutSource, ids: readonly Bytes[]): Uint8Array {
  let bytes = 0;
  const blocks = ids.map((id): AnsweredBlock | undefined => {
    if (bytes >= ANSWER_BYTES) return undefined;
    const [record, body] = [node.block(id), node.blockBody(id)];
    if (record === undefined || body === undefined) return undefined;
    bytes += record.header.length + body.length;
    return { header: record.header, body };
  });
  return encodeBlocksAnswer(blocks);
}

function answerBlockPart(node: CutSource, id: Bytes, from: number): Uint8Array {
  const [record, body] = [node.block(id), node.blockBody(id)];
  if (record === undefined || body === undefined) return encodeChunk(NO_CHUNK);
  const block = concat(record.header, body);
  return encodeChunk({ length: block.length, bytes: block.subarray(from, from + CHUNK_BYTES) });
}

function answerHeaders(node: CutSource, to: number, count: number): Uint8Array {
  const headers: Bytes[] = [];
  for (let height = to; height > to - count && height >= 0; height--) {
    const cut = node.cut(height);
    if (cut === undefined) break;
    headers.unshift(cut.headerBytes);
  }
  return encodeHeadersAnswer({ headers, certificate: certificateOf(node, to) });
}
