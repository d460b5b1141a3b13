/**
 * Records of the share journal (docs/pool.md, journal). One encoding for the file on disk and for the stream between
 * instances. A record is named by (boot id, sequence), so a replay into the books counts it once.
 */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from '../../protocol/address.ts';
import { WORKER_MAX } from '../../protocol/books/receipt.ts';
import { SHARE_IDENTITY_BYTES } from '../../protocol/books/share-identity.ts';
import { ByteReader, type Bytes, ByteWriter } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { attempt, ProtocolError } from '../../protocol/errors.ts';

export const SERVICES = ['pplns', 'solo'] as const;
export type Service = (typeof SERVICES)[number];

/**
 * The account behind an extranonce. `owner` identifies the connection; it is part of every extranonce of the
 * connection.
 */
export type OwnershipRecord = {
  readonly kind: 'ownership';
  readonly owner: Bytes;
  readonly service: Service;
  readonly account: Bytes;
  readonly worker: string;
};

export type ShareRecord = {
  readonly kind: 'share';
  readonly service: Service;
  readonly account: Bytes;
  readonly worker: string;
  readonly work: bigint;
  readonly atMillis: number;
  /** Null in records from before shares had one: those are identified by (boot id, sequence) alone. */
  readonly identity: ShareIdentity | null;
};

/** Header and nonce of a share (protocol/books/share-identity.ts), and the newest cut when its job's template was published (books rule 2), where the books look for it. */
export type ShareIdentity = { readonly anchorHeight: number; readonly bytes: Bytes };

export type BlockRecord = {
  readonly kind: 'block';
  readonly service: Service;
  readonly account: Bytes;
  readonly worker: string;
  readonly blockId: Bytes;
  readonly anchorHeight: number;
  readonly target: bigint;
  readonly extranonce: Bytes;
  readonly atMillis: number;
  /** Fees and mass of its body. Absent if the block is known only from the chain. */
  readonly carried?: { readonly fees: bigint; readonly mass: number };
};

/** The terms of a range of slices, as read from the books at a time by the database's clock. Not related to a miner. */
export type TermsRecord = {
  readonly kind: 'terms';
  readonly service: Service;
  readonly from: number;
  readonly through: number;
  readonly windowThousandths: number;
  readonly feePpm: number;
  readonly atMillis: number;
};

/** The kinds that belong to a miner. */
export type MinerRecord = OwnershipRecord | ShareRecord | BlockRecord;
export type JournalRecord = MinerRecord | TermsRecord;

/** `plainShare` is a share without an identity. It is still read, for journals and instances of an earlier version; none is written. */
const KINDS = { ownership: 1, plainShare: 2, block: 3, share: 4, terms: 5 } as const;

const HEIGHT_BYTES = 8;

/**
 * Limits of the database columns (pool/database/migrations). A record beyond them is damaged or forged: decoding
 * refuses it, so that one bad record never makes the database refuse a batch.
 */
const END_OF_INTEGERS = 2 ** 31;
const END_OF_BIGINTS = 1n << 63n;
/** Far above any share's work, and low enough that sums fit into u128. */
const END_OF_WORK = 1n << 96n;
/** The year 10000: names of days have ten characters. */
const END_OF_TIME = 253_402_300_800_000;
const ALL_PPM = 1_000_000;

function insist(isInRange: boolean, what: string): void {
  if (!isInRange) throw new ProtocolError('out_of_range', `journal record: ${what} is out of range`);
}

const kindOf = (record: JournalRecord): number =>
  record.kind === 'share' && record.identity === null ? KINDS.plainShare : KINDS[record.kind];

export function encodeRecord(record: JournalRecord): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(160).u8(kindOf(record)).u8(SERVICES.indexOf(record.service));
  if (record.kind === 'terms')
    return writer
      .u32(record.from)
      .u32(record.through)
      .u32(record.windowThousandths)
      .u32(record.feePpm)
      .height(record.atMillis)
      .done();
  writer.raw(record.account).text(record.worker);
  if (record.kind === 'ownership') return writer.short(record.owner).done();
  if (record.kind === 'share') {
    writer.u128(record.work).height(record.atMillis);
    if (record.identity !== null) writer.height(record.identity.anchorHeight).raw(record.identity.bytes);
    return writer.done();
  }
  writer
    .raw(record.blockId)
    .height(record.anchorHeight)
    .u128(record.target >> 128n)
    .u128(record.target & ((1n << 128n) - 1n))
    .short(record.extranonce)
    .height(record.atMillis);
  const { carried } = record;
  return (carried === undefined ? writer.u8(0) : writer.u8(1).u64(carried.fees).u32(carried.mass)).done();
}

export function decodeRecord(bytes: Bytes): JournalRecord {
  const reader = new ByteReader(bytes);
  const kind = reader.u8();
  const service = SERVICES[reader.u8()];
  if (service === undefined) throw new ProtocolError('unsupported_kind', 'journal record of an unknown service');
  const record = kind === KINDS.terms ? decodeTerms(reader, service) : decodeOfMiner(kind, reader, service);
  reader.end();
  return record;
}

function decodeTerms(reader: ByteReader, service: Service): TermsRecord {
  const record = {
    kind: 'terms' as const,
    service,
    from: reader.u32(),
    through: reader.u32(),
    windowThousandths: reader.u32(),
    feePpm: reader.u32(),
    atMillis: timeOf(reader),
  };
  const { from, through, windowThousandths, feePpm } = record;
  insist(from <= through && through < END_OF_INTEGERS, 'the slices');
  insist(windowThousandths > 0 && windowThousandths < END_OF_INTEGERS, 'the window');
  insist(feePpm <= ALL_PPM, 'the fee');
  return record;
}

/** The cut in a share, read without decoding the rest; undefined if it has none. */
export function anchorOfShare(bytes: Bytes): number | undefined {
  if (bytes[0] !== KINDS.share) return undefined;
  const anchor = attempt(() => new ByteReader(bytes.subarray(-SHARE_IDENTITY_BYTES - HEIGHT_BYTES)).height());
  return anchor.ok ? anchor.value : undefined;
}

/** The identity of a share, read without decoding the rest; undefined if it has none. */
export const identityOfShare = (bytes: Bytes): Bytes | undefined =>
  bytes[0] === KINDS.share ? bytes.subarray(-SHARE_IDENTITY_BYTES) : undefined;

function timeOf(reader: ByteReader): number {
  const millis = reader.height();
  insist(millis < END_OF_TIME, 'the time');
  return millis;
}

function workOf(reader: ByteReader): bigint {
  const work = reader.u128();
  insist(work > 0n && work < END_OF_WORK, 'the work');
  return work;
}

/** PostgreSQL keeps no text with a zero byte. */
function workerOf(reader: ByteReader): string {
  const worker = reader.text(WORKER_MAX);
  insist(!worker.includes('\0'), 'the worker');
  return worker;
}

function decodeOfMiner(kind: number, reader: ByteReader, service: Service): MinerRecord {
  const common = { service, account: reader.take(ADDRESS_PAYLOAD_BYTES), worker: workerOf(reader) };
  payloadKind(common.account);
  if (kind === KINDS.ownership) return { kind: 'ownership', ...common, owner: reader.short() };
  if (kind === KINDS.share || kind === KINDS.plainShare)
    return {
      kind: 'share',
      ...common,
      work: workOf(reader),
      atMillis: timeOf(reader),
      identity:
        kind === KINDS.plainShare ? null : { anchorHeight: reader.height(), bytes: reader.take(SHARE_IDENTITY_BYTES) },
    };
  if (kind !== KINDS.block) throw new ProtocolError('unsupported_kind', `journal record of kind ${kind}`);
  const block = {
    kind: 'block' as const,
    ...common,
    blockId: reader.take(ID_BYTES),
    anchorHeight: reader.height(),
    target: (reader.u128() << 128n) | reader.u128(),
    extranonce: reader.short(),
    atMillis: timeOf(reader),
  };
  insist(block.anchorHeight < END_OF_INTEGERS, 'the anchor');
  const marker = reader.u8();
  if (marker > 1) throw new ProtocolError('not_canonical', 'the marker of what a block carried is 0 or 1');
  if (marker === 0) return block;
  const carried = { fees: reader.u64(), mass: reader.u32() };
  insist(carried.fees < END_OF_BIGINTS && carried.mass < END_OF_INTEGERS, 'what the block carried');
  return { ...block, carried };
}
