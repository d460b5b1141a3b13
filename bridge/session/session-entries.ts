/**
 * The entries of the session log (session-log.ts), as bytes: `u32 length | u32 CRC of the length | u32 CRC of the rest | u8
 * kind | payload`. So an end that is missing and a length that is damaged are two things. A session is named by the digest of its id: whoever reads the file cannot resume it. Its jobs and shares are named by the
 * connection's part of the extranonce, which is no secret.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { HEADER_DIGEST_BYTES, SHARE_IDENTITY_BYTES, shareIdentity } from '../../protocol/books/share-identity.ts';
import { ByteReader, type Bytes, ByteWriter, fromUtf8, utf8 } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { HEADER_BYTES } from '../../protocol/ledger/header.ts';
import type { KeptTemplate, TemplateBody } from '../nodes/template-store.ts';
import type { AcceptedShare } from '../shares/sink.ts';
import type { JudgedShare, Publication, PublishedTemplate } from '../threads/hub.ts';
import { BOOT_ID_BYTES, OWNER_BYTES } from './extranonce.ts';
import { revisionOf, serialOf } from './job-book.ts';
import type { Terms } from './job-log.ts';
import { packRecord } from './packed-record.ts';
import type { SessionRecord } from './session-record.ts';

const KINDS = {
  session: 1,
  run: 2,
  templates: 4,
  spent: 5,
  shares: 6,
  refused: 7,
  settled: 8,
  block: 9,
  sent: 10,
} as const;
const FRAME_BYTES = 13;
const CHECKED_FROM = 12;
const SHARE_BYTES = OWNER_BYTES + 4 + 4 + SHARE_IDENTITY_BYTES;

/** Where a session is: it has a connection, or waits in this process, or where other instances find it. */
export const PLACES = ['connected', 'here', 'shared'] as const;
export type Place = (typeof PLACES)[number];

export type SessionEntry = {
  readonly kind: 'session';
  readonly place: Place;
  readonly atMillis: number;
  readonly digest: string;
  readonly owner: Bytes;
  /** packed-record.ts, with the digest for the id and without nonces. */
  readonly packed: string;
};
export type RunEntry = {
  readonly kind: 'run';
  readonly owner: Bytes;
  readonly generation: number;
  readonly shareWork: bigint;
  readonly revision: number;
  readonly serial: number;
  /** That of a farm's jobs (job-log.ts), or null. */
  readonly room: number | null;
};
/** A body that had its block. */
export type SpentEntry = { readonly kind: 'spent'; readonly owner: Bytes; readonly generation: number };
export type ShareEntry = {
  readonly owner: Bytes;
  readonly generation: number;
  readonly serial: number;
  /** As the sink knows it (protocol/books/share-identity.ts). */
  readonly identity: Bytes;
};
/** Shares on their way to the sink. */
export type SharesEntry = {
  readonly kind: 'shares';
  /** The process that took them. */
  readonly bootId: Bytes;
  /** Counts the entries of this kind of a process. */
  readonly batch: number;
  /** The sink has all those before this one, or refused them. */
  readonly oldestOpen: number;
  readonly shares: readonly ShareEntry[];
};
/** The sink did not take them: whether it has them nevertheless, only it can say. */
export type RefusedEntry = { readonly kind: 'refused'; readonly batch: number };
/** Of all shares of before that were on their way, the sink has these. */
export type SettledEntry = { readonly kind: 'settled'; readonly shares: readonly ShareEntry[] };
/** A block on its way to the nodes. */
export type NotedBlock = {
  /** That of its template. */
  readonly serial: number;
  readonly share: AcceptedShare;
  readonly payout: Bytes;
  readonly header: Bytes;
};
export type BlockNote = NotedBlock & { readonly kind: 'block' };
/** A node answered. */
export type SentEntry = { readonly kind: 'sent'; readonly blockId: Bytes };
export type KeptPublication = Omit<Publication, 'earlier' | 'templates'> & {
  readonly kind: 'templates';
  readonly atMillis: number;
  readonly templates: readonly (PublishedTemplate & TemplateBody)[];
};
export type Entry =
  | SpentEntry
  | SessionEntry
  | RunEntry
  | SharesEntry
  | RefusedEntry
  | SettledEntry
  | BlockNote
  | SentEntry
  | KeptPublication;

export const digestOf = (id: string): string => createHash('sha256').update(id, 'latin1').digest('hex').slice(0, 32);

function frame(kind: number, payload: Bytes): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(FRAME_BYTES + payload.length).u32(payload.length).u32(0).u32(0);
  const bytes = writer.u8(kind).raw(payload).done();
  const view = new DataView(bytes.buffer);
  view.setUint32(4, crc32(bytes.subarray(0, 4)), true);
  view.setUint32(8, crc32(bytes.subarray(CHECKED_FROM)), true);
  return bytes;
}

export function sessionEntry(record: SessionRecord, atMillis: number, place: Place = 'connected'): Bytes {
  const digest = digestOf(record.id);
  const packed = utf8(packRecord({ ...record, id: digest }));
  return frame(
    KINDS.session,
    new ByteWriter(packed.length + 64)
      .u8(PLACES.indexOf(place))
      .height(Math.floor(atMillis))
      .text(digest)
      .raw(record.owner)
      .u32(packed.length)
      .raw(packed)
      .done(),
  );
}

/** The first job of a run (job-log.ts). */
export function runEntry(owner: Bytes, { generation, shareWork, farm }: Terms, jobId: number): Bytes {
  const writer = new ByteWriter(OWNER_BYTES + 32)
    .raw(owner)
    .u32(generation)
    .u128(shareWork)
    .u8(revisionOf(jobId))
    .u32(serialOf(jobId));
  return frame(KINDS.run, (farm === null ? writer : writer.u32(farm.room)).done());
}

export const spentEntry = (owner: Bytes, { generation }: Terms): Bytes =>
  frame(KINDS.spent, new ByteWriter(OWNER_BYTES + 4).raw(owner).u32(generation).done());

export function sharesEntry(
  { bootId, batch, oldestOpen }: Pick<SharesEntry, 'bootId' | 'batch' | 'oldestOpen'>,
  shares: readonly JudgedShare[],
): Bytes {
  const writer = new ByteWriter(32 + SHARE_BYTES * shares.length).raw(bootId).height(batch).height(oldestOpen);
  for (const { member, generation, serial, headerDigest, nonce } of shares)
    writer.raw(member.owner).u32(generation).u32(serial).raw(shareIdentity(headerDigest, nonce));
  return frame(KINDS.shares, writer.done());
}

export const refusedEntry = (batch: number): Bytes => frame(KINDS.refused, new ByteWriter(8).height(batch).done());

export function settledEntry(shares: readonly ShareEntry[]): Bytes {
  const writer = new ByteWriter(SHARE_BYTES * shares.length);
  for (const { owner, generation, serial, identity } of shares)
    writer.raw(owner).u32(generation).u32(serial).raw(identity);
  return frame(KINDS.settled, writer.done());
}

export const blockEntry = ({ serial, share, payout, header }: NotedBlock): Bytes =>
  frame(
    KINDS.block,
    new ByteWriter(640)
      .u32(serial)
      .text(share.service)
      .raw(share.account)
      .text(share.worker)
      .u128(share.work)
      .height(share.hashWork)
      .height(share.cutHeight)
      .short(share.extranonce)
      .raw(share.headerDigest)
      .raw(share.nonce)
      .height(Math.floor(share.atMillis))
      .raw(payout)
      .raw(header)
      .done(),
  );

export const sentEntry = (blockId: Bytes): Bytes => frame(KINDS.sent, blockId);

export function templatesEntry(
  { templates, headHeight, clean }: Publication,
  kept: readonly KeptTemplate[],
  atMillis: number,
): Bytes {
  const writer = new ByteWriter(4_096)
    .height(Math.floor(atMillis))
    .height(headHeight)
    .u8(clean ? 1 : 0);
  writer.u8(templates.length);
  for (const [i, { serial, header, epoch, draw, draws, isFresh, cutHeight }] of templates.entries()) {
    const { epochLength, fees, parents, transactions } = kept[i] as KeptTemplate;
    writer
      .u32(serial)
      .raw(header)
      .u32(epoch)
      .u8(draw)
      .u8(draws)
      .u8(isFresh ? 1 : 0)
      .height(cutHeight);
    writer
      .height(epochLength ?? 0)
      .u64(fees)
      .u8(parents.length);
    for (const parent of parents) writer.raw(parent);
    writer.u32(transactions.length);
    for (const { wire } of transactions) writer.u32(wire.length).raw(wire);
  }
  return frame(KINDS.templates, writer.done());
}

/**
 * The entries of a file up to its end or to the first one that is damaged; `damaged` is called for the latter. The end of
 * a file may be missing: its writer was killed, and nothing of it was answered.
 */
export function* entriesOf(bytes: Bytes, damaged: () => void): Generator<Entry> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + FRAME_BYTES <= bytes.length; ) {
    const end = at + FRAME_BYTES + view.getUint32(at, true);
    const isLength = crc32(bytes.subarray(at, at + 4)) === view.getUint32(at + 4, true);
    if (isLength && end > bytes.length) return;
    const isWhole = isLength && crc32(bytes.subarray(at + CHECKED_FROM, end)) === view.getUint32(at + 8, true);
    const kind = bytes[at + CHECKED_FROM] as number;
    const entry = isWhole ? readable(kind, bytes.subarray(at + FRAME_BYTES, end)) : undefined;
    if (entry === undefined) {
      damaged();
      return;
    }
    yield entry;
    at = end;
  }
}

/** One of another release may be whole and not what this one writes: it counts as damaged. */
function readable(kind: number, payload: Bytes): Entry | undefined {
  try {
    return readEntry(kind, payload);
  } catch {
    return undefined;
  }
}

function readEntry(kind: number, payload: Bytes): Entry | undefined {
  const reader = new ByteReader(payload);
  if (kind === KINDS.session) return readSession(reader);
  if (kind === KINDS.run)
    return {
      kind: 'run',
      owner: reader.take(OWNER_BYTES),
      generation: reader.u32(),
      shareWork: reader.u128(),
      revision: reader.u8(),
      serial: reader.u32(),
      room: reader.left > 0 ? reader.u32() : null,
    };
  if (kind === KINDS.spent) return { kind: 'spent', owner: reader.take(OWNER_BYTES), generation: reader.u32() };
  if (kind === KINDS.shares)
    return {
      kind: 'shares',
      bootId: reader.take(BOOT_ID_BYTES),
      batch: reader.height(),
      oldestOpen: reader.height(),
      shares: readShares(reader),
    };
  if (kind === KINDS.refused) return { kind: 'refused', batch: reader.height() };
  if (kind === KINDS.settled) return { kind: 'settled', shares: readShares(reader) };
  if (kind === KINDS.block) return readBlock(reader);
  if (kind === KINDS.sent) return { kind: 'sent', blockId: reader.take(ID_BYTES) };
  return kind === KINDS.templates ? readTemplates(reader) : undefined;
}

function readSession(reader: ByteReader): SessionEntry {
  const place = PLACES[reader.u8()] ?? 'here';
  const atMillis = reader.height();
  const digest = reader.text();
  const owner = reader.take(OWNER_BYTES);
  return { kind: 'session', place, atMillis, digest, owner, packed: fromUtf8(reader.view(reader.u32())) };
}

function readShares(reader: ByteReader): ShareEntry[] {
  const shares: ShareEntry[] = [];
  while (reader.left > 0)
    shares.push({
      owner: reader.take(OWNER_BYTES),
      generation: reader.u32(),
      serial: reader.u32(),
      identity: reader.view(SHARE_IDENTITY_BYTES),
    });
  return shares;
}

function readBlock(reader: ByteReader): BlockNote {
  return {
    kind: 'block',
    serial: reader.u32(),
    share: {
      service: reader.text(),
      account: reader.take(ADDRESS_PAYLOAD_BYTES),
      worker: reader.text(),
      work: reader.u128(),
      hashWork: reader.height(),
      cutHeight: reader.height(),
      extranonce: reader.short(),
      headerDigest: reader.take(HEADER_DIGEST_BYTES),
      nonce: reader.take(SHARE_IDENTITY_BYTES - HEADER_DIGEST_BYTES),
      atMillis: reader.height(),
    },
    payout: reader.take(ADDRESS_PAYLOAD_BYTES),
    header: reader.take(HEADER_BYTES),
  };
}

function readTemplates(reader: ByteReader): KeptPublication {
  const atMillis = reader.height();
  const headHeight = reader.height();
  const clean = reader.u8() === 1;
  const templates: (PublishedTemplate & TemplateBody)[] = [];
  for (let left = reader.u8(); left > 0; left--) {
    const published = {
      serial: reader.u32(),
      header: reader.take(HEADER_BYTES),
      epoch: reader.u32(),
      draw: reader.u8(),
      draws: reader.u8(),
      isFresh: reader.u8() === 1,
      cutHeight: reader.height(),
      // No job is on it any more.
      told: 0,
    };
    const epochLength = reader.height() || undefined;
    const fees = reader.u64();
    const parents = Array.from({ length: reader.u8() }, () => reader.take(ID_BYTES));
    const transactions = Array.from({ length: reader.u32() }, () => reader.take(reader.u32()));
    templates.push({ ...published, epochLength, fees, parents, transactions });
  }
  return { kind: 'templates', atMillis, headHeight, clean, templates };
}
