/**
 * Questions and answers of `/svc/sync/1`. An answer is bounded by what its question names; nothing in it is used before the hash chain and a certificate prove it (cut-proof.ts).
 */

import { ByteReader, type Bytes, ByteWriter } from '../../../protocol/bytes.ts';
import { type ProposedCut, readProposedCut } from '../../../protocol/consensus/proposal.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { MAX_BODY_BYTES } from '../../../protocol/ledger/body.ts';
import {
  type Certificate,
  CUT_HEADER_BYTES,
  cutId,
  decodeCertificate,
  decodeCutHeader,
  encodeCertificate,
  MAX_COMMITTEE,
} from '../../../protocol/ledger/cut.ts';
import { HEADER_BYTES } from '../../../protocol/ledger/header.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { SnapshotQuestion } from '../snapshots/snapshot-messages.ts';

export const MAX_CUTS = 96;
/** The last cut of the batch that this height is in. */
export const batchEnd = (height: number): number => height - (height % MAX_CUTS) + MAX_CUTS - 1;
export const MAX_BLOCKS = 64;
export const MAX_HEADERS = 1_024;
/** Maximum size of an answer without its last part, which may be one more body or certificate. */
export const ANSWER_BYTES = 2 * 1_024 * 1_024;

export type SyncQuestion =
  /** Final cuts from a height on, with their certificates as far as they are kept. */
  | {
      readonly type: 'cuts';
      readonly from: number;
      readonly count: number;
      /** Of the certificates only the last. */
      readonly isBrief?: boolean;
    }
  /** Blocks of cuts, header and body. */
  | { readonly type: 'blocks'; readonly ids: readonly Bytes[] }
  /** Bytes of a block, header and body, from a place on: one may be too long for a thin line. */
  | { readonly type: 'blockPart'; readonly id: Bytes; readonly from: number }
  /** Headers alone, up to a height: the way back from a certificate of an old epoch. */
  | { readonly type: 'headers'; readonly to: number; readonly count: number }
  | SnapshotQuestion;

const TYPES = { cuts: 1, blocks: 2, headers: 3, snapshots: 4, part: 5, briefCuts: 6, blockPart: 7 } as const;

const inRange = (value: number, least: number, most: number, what: string): number => {
  if (value < least || value > most) throw new ProtocolError('out_of_range', `${what}: ${least} to ${most}`);
  return value;
};

/** Duplicates are refused: a short request must not cause a long answer. */
export function distinctIds(ids: Bytes[]): Bytes[] {
  if (new Set(ids.map(nameOf)).size < ids.length)
    throw new ProtocolError('not_canonical', 'an identifier is named twice');
  return ids;
}

export function encodeSyncQuestion(question: SyncQuestion): Uint8Array<ArrayBuffer> {
  const isBrief = question.type === 'cuts' && question.isBrief === true;
  const writer = new ByteWriter(16).u8(TYPES[isBrief ? 'briefCuts' : question.type]);
  if (question.type === 'cuts') return writer.height(question.from).u8(question.count).done();
  if (question.type === 'headers') return writer.height(question.to).u16(question.count).done();
  if (question.type === 'snapshots') return writer.done();
  if (question.type === 'blockPart') return writer.raw(question.id).u32(question.from).done();
  if (question.type === 'part') return writer.height(question.height).u32(question.part).u32(question.from).done();
  writer.u8(question.ids.length);
  for (const id of question.ids) writer.raw(id);
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeSyncQuestion(bytes: Bytes): SyncQuestion {
  const reader = new ByteReader(bytes);
  const question = readQuestion(reader);
  reader.end();
  return question;
}

function readQuestion(reader: ByteReader): SyncQuestion {
  const type = reader.u8();
  switch (type) {
    case TYPES.cuts:
      return { type: 'cuts', ...readRange(reader) };
    case TYPES.briefCuts:
      return { type: 'cuts', ...readRange(reader), isBrief: true };
    case TYPES.headers:
      return { type: 'headers', to: reader.height(), count: inRange(reader.u16(), 1, MAX_HEADERS, 'headers') };
    case TYPES.blocks: {
      const count = inRange(reader.u8(), 1, MAX_BLOCKS, 'blocks');
      return { type: 'blocks', ids: distinctIds(Array.from({ length: count }, () => reader.take(ID_BYTES))) };
    }
    case TYPES.blockPart:
      return { type: 'blockPart', id: reader.take(ID_BYTES), from: reader.u32() };
    case TYPES.snapshots:
      return { type: 'snapshots' };
    case TYPES.part:
      return { type: 'part', height: reader.height(), part: reader.u32(), from: reader.u32() };
    default:
      throw new ProtocolError('unsupported_version', `question ${type}`);
  }
}

const readRange = (reader: ByteReader) => ({
  from: reader.height(),
  count: inRange(reader.u8(), 1, MAX_CUTS, 'cuts'),
});

export type CutsAnswer = {
  /** Of the answering peer: a claim. */
  readonly head: number;
  /** The lowest cut whose blocks it has: a claim too. */
  readonly bodiesFrom: number;
  readonly cuts: readonly ProposedCut[];
  /** By height. */
  readonly certificates: ReadonlyMap<number, Certificate>;
};

/** `cuts` are contents: header and block identifiers. */
export function encodeCutsAnswer(
  { head, bodiesFrom }: Pick<CutsAnswer, 'head' | 'bodiesFrom'>,
  cuts: readonly Bytes[],
  certificates: readonly { readonly index: number; readonly certificate: Certificate }[],
): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(4_096).height(head).height(bodiesFrom).u8(cuts.length);
  for (const cut of cuts) writer.raw(cut);
  writer.u8(certificates.length);
  for (const { index, certificate } of certificates) {
    const bytes = encodeCertificate(certificate);
    writer.u8(index).u32(bytes.length).raw(bytes);
  }
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeCutsAnswer(bytes: Bytes): CutsAnswer {
  const reader = new ByteReader(bytes);
  const head = reader.height();
  const bodiesFrom = reader.height();
  const count = inRange(reader.u8(), 0, MAX_CUTS, 'cuts');
  const cuts = Array.from({ length: count }, () => readProposedCut(reader));
  const certificates = new Map<number, Certificate>();
  let last = -1;
  for (let left = inRange(reader.u8(), 0, MAX_CUTS, 'certificates'); left > 0; left--) {
    // Each once: repeated, they would make a small answer large.
    last = inRange(reader.u8(), last + 1, MAX_CUTS, 'index of a certificate');
    const cut = cuts[last];
    const length = inRange(reader.u32(), 0, 5 + MAX_COMMITTEE * 4_096, 'certificate');
    if (cut === undefined) throw new ProtocolError('out_of_range', 'a certificate of no cut');
    certificates.set(cut.header.height, decodeCertificate(reader.take(length)));
  }
  reader.end();
  return { head, bodiesFrom, cuts, certificates };
}

export type AnsweredBlock = { readonly header: Bytes; readonly body: Bytes };

/** What an answer says, and the cut that it ends with: what is read of it before that cut is proven. */
export type CutsOutline = Pick<CutsAnswer, 'head' | 'bodiesFrom'> & {
  readonly count: number;
  readonly last: { readonly height: number; readonly cutId: Bytes } | undefined;
  /** Of the last cut. */
  readonly certificate: Certificate | undefined;
};

/** Throws a ProtocolError. */
export function readCutsOutline(bytes: Bytes): CutsOutline {
  const reader = new ByteReader(bytes);
  const head = reader.height();
  const bodiesFrom = reader.height();
  const count = inRange(reader.u8(), 0, MAX_CUTS, 'cuts');
  let last: CutsOutline['last'];
  for (let left = count; left > 0; left--) {
    const header = reader.view(CUT_HEADER_BYTES);
    const { height, blockCount } = decodeCutHeader(header);
    reader.view(blockCount * ID_BYTES);
    if (left === 1) last = { height, cutId: cutId(header) };
  }
  let certificate: Certificate | undefined;
  for (let left = inRange(reader.u8(), 0, MAX_CUTS, 'certificates'); left > 0; left--) {
    const index = reader.u8();
    const part = reader.view(reader.u32());
    if (left === 1 && index === count - 1) certificate = decodeCertificate(part);
  }
  reader.end();
  return { head, bodiesFrom, count, last, certificate };
}

/** In the order of the question; undefined for one that is not here, or for which there was no room. */
export function encodeBlocksAnswer(blocks: readonly (AnsweredBlock | undefined)[]): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(4_096).u8(blocks.length);
  for (const block of blocks)
    if (block === undefined) writer.u32(0);
    else
      writer
        .u32(HEADER_BYTES + block.body.length)
        .raw(block.header)
        .raw(block.body);
  return writer.done();
}

/** Throws a ProtocolError. */
export function decodeBlocksAnswer(bytes: Bytes): (AnsweredBlock | undefined)[] {
  const reader = new ByteReader(bytes);
  const count = inRange(reader.u8(), 0, MAX_BLOCKS, 'blocks');
  const blocks = Array.from({ length: count }, () => {
    const length = reader.u32();
    if (length === 0) return undefined;
    inRange(length, HEADER_BYTES, HEADER_BYTES + MAX_BODY_BYTES, 'bytes of a block');
    return { header: reader.take(HEADER_BYTES), body: reader.take(length - HEADER_BYTES) };
  });
  reader.end();
  return blocks;
}

export type HeadersAnswer = { readonly headers: readonly Bytes[]; readonly certificate: Certificate | undefined };

/** Headers in ascending order, and the certificate of the last one. */
export function encodeHeadersAnswer({ headers, certificate }: HeadersAnswer): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(4_096).u16(headers.length);
  for (const header of headers) writer.raw(header);
  const bytes = certificate === undefined ? new Uint8Array(0) : encodeCertificate(certificate);
  return writer.u32(bytes.length).raw(bytes).done();
}

/** Throws a ProtocolError. */
export function decodeHeadersAnswer(bytes: Bytes): HeadersAnswer {
  const reader = new ByteReader(bytes);
  const count = inRange(reader.u16(), 0, MAX_HEADERS, 'headers');
  const headers = Array.from({ length: count }, () => reader.take(CUT_HEADER_BYTES));
  const length = reader.u32();
  const certificate = length === 0 ? undefined : decodeCertificate(reader.take(length));
  reader.end();
  return { headers, certificate };
}
