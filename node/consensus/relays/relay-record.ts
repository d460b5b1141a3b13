/**
 * The relays of a validator without an open port (consensus rule 24): `chain_id 48 | validator 48 | u64 sequence | u64
 * expiry | u8 count | 48 bytes each`, then the Ed25519 signature of `id("SVC_RELAY_RECORD_V1", those bytes)` by its
 * overlay key. An address is the validator identifier of a relay, whose route is on the chain: so a record cannot point
 * to a made-up address.
 */
import { createPublicKey, verify } from 'node:crypto';
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { RECORD } from './relay-limits.ts';

const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const SIGNATURE_BYTES = 64;
const HEAD_BYTES = 2 * ID_BYTES + 8 + 8 + 1;
export const MAX_RECORD_BYTES = HEAD_BYTES + RECORD.relays * ID_BYTES + SIGNATURE_BYTES;

export type RelayRecord = {
  readonly chainId: Bytes;
  readonly validator: Bytes;
  /** Increases with each record of a validator: its time, in milliseconds since 1970. */
  readonly sequence: bigint;
  /** Milliseconds since 1970. */
  readonly expiry: bigint;
  readonly relays: readonly Bytes[];
};

export type SignedRecord = { readonly record: RelayRecord; readonly bytes: Bytes };

function bodyOf({ chainId, validator, sequence, expiry, relays }: RelayRecord): Bytes {
  if (relays.length < 1 || relays.length > RECORD.relays)
    throw new ProtocolError('out_of_range', `a record names 1 to ${RECORD.relays} relays`);
  const writer = new ByteWriter(HEAD_BYTES + relays.length * ID_BYTES).raw(chainId).raw(validator);
  writer.u64(sequence).u64(expiry).u8(relays.length);
  for (const relay of relays) writer.raw(relay);
  return writer.done();
}

const signedText = (body: Bytes): Bytes => id(LABELS.relayRecord, body);

/** `sign` has the overlay key. */
export function signRecord(record: RelayRecord, sign: (message: Bytes) => Bytes): SignedRecord {
  const body = bodyOf(record);
  return { record, bytes: concat(body, sign(signedText(body))) };
}

/** Throws a ProtocolError if malformed. Its validity is checked later. */
export function decodeRecord(bytes: Bytes): SignedRecord {
  if (bytes.length > MAX_RECORD_BYTES) throw new ProtocolError('too_long', `a record of ${bytes.length} bytes`);
  const reader = new ByteReader(bytes);
  const [chainId, validator] = [reader.take(ID_BYTES), reader.take(ID_BYTES)];
  const [sequence, expiry, count] = [reader.u64(), reader.u64(), reader.u8()];
  if (count < 1 || count > RECORD.relays)
    throw new ProtocolError('out_of_range', `a record names 1 to ${RECORD.relays} relays`);
  const relays = Array.from({ length: count }, () => reader.take(ID_BYTES));
  if (relays.some((relay, i) => relays.findIndex((each) => equalBytes(each, relay)) < i))
    throw new ProtocolError('duplicate_entry', 'a record names a relay twice');
  reader.take(SIGNATURE_BYTES);
  reader.end();
  return { record: { chainId, validator, sequence, expiry, relays }, bytes };
}

/** Whether the overlay key signed it. */
export function isSigned({ bytes }: SignedRecord, overlayKey: Bytes): boolean {
  const at = bytes.length - SIGNATURE_BYTES;
  try {
    const key = createPublicKey({ key: Buffer.concat([ED25519_PREFIX, overlayKey]), format: 'der', type: 'spki' });
    return verify(null, signedText(bytes.subarray(0, at)), key, bytes.subarray(at));
  } catch {
    // Registered bytes need not be a key.
    return false;
  }
}

export type RecordVerdict =
  | 'take'
  | 'wrong_chain'
  | 'not_newer'
  | 'too_early'
  | 'expired'
  | 'lasts_too_long'
  | 'forged';

/**
 * `held` is the known record of the same validator, `overlayKeys` its keys on the chain, now and in the next epoch. The
 * signature is checked last: it costs the most.
 */
export function judgeRecord(
  signed: SignedRecord,
  held: RelayRecord | undefined,
  {
    chainId,
    now,
    overlayKeys,
  }: { readonly chainId: Bytes; readonly now: number; readonly overlayKeys: readonly Bytes[] },
): RecordVerdict {
  const { record } = signed;
  if (!equalBytes(record.chainId, chainId)) return 'wrong_chain';
  if (held !== undefined && record.sequence <= held.sequence) return 'not_newer';
  // No later record could replace it.
  if (record.sequence > BigInt(now + RECORD.longestMillis)) return 'too_early';
  if (record.expiry <= BigInt(now)) return 'expired';
  if (record.expiry > BigInt(now + RECORD.longestMillis)) return 'lasts_too_long';
  return overlayKeys.some((overlayKey) => isSigned(signed, overlayKey)) ? 'take' : 'forged';
}
