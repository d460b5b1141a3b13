/**
 * A session record as text while it is stored: it takes a fifth of the memory of its objects. Most are never read
 * again.
 */
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { hexSlice } from '../../runtime/native/native-hex.ts';
import type { BodyState, FarmState, TermsState } from './job-log.ts';
import type { HeldWork, SessionRecord } from './session-record.ts';

const hex = (bytes: Bytes): string => hexSlice.call(bytes, 0, bytes.length);

/** Values that JSON does not have are stored as text: bytes and large integers. */
export function packRecord(record: SessionRecord): string {
  const { vardiff, jobs } = record;
  return JSON.stringify({
    ...record,
    bootId: hex(record.bootId),
    owner: hex(record.owner),
    account: hex(record.account),
    work: String(record.work),
    vardiff: vardiff === null ? null : { ...vardiff, work: String(vardiff.work) },
    jobs:
      jobs === null
        ? null
        : {
            ...jobs,
            payout: hex(jobs.payout),
            log: { ...jobs.log, terms: jobs.log.terms.map(packTerms) },
            ...(jobs.held === undefined ? {} : { held: jobs.held.map(packHeld) }),
          },
  });
}

export function unpackRecord(packed: string): SessionRecord {
  const record = JSON.parse(packed);
  const { vardiff, jobs } = record;
  return {
    ...record,
    bootId: fromHex(record.bootId),
    owner: fromHex(record.owner),
    account: fromHex(record.account),
    work: BigInt(record.work),
    vardiff: vardiff === null ? null : { ...vardiff, work: BigInt(vardiff.work) },
    jobs:
      jobs === null
        ? null
        : {
            ...jobs,
            payout: fromHex(jobs.payout),
            log: { ...jobs.log, terms: jobs.log.terms.map(unpackTerms) },
            ...(jobs.held === undefined ? {} : { held: jobs.held.map(unpackHeld) }),
          },
  };
}

type PackedHeld = Omit<HeldWork, 'work'> & { readonly work: string };
const packHeld = ({ work, through }: HeldWork): PackedHeld => ({ work: String(work), through });
const unpackHeld = ({ work, through }: PackedHeld): HeldWork => ({ work: BigInt(work), through });

type PackedBody = Omit<BodyState, 'seen'> & { readonly seen: readonly (readonly [key: number, nonces: string])[] };
type PackedTerms = PackedBody & {
  readonly shareWork: string;
  readonly owner: string | null;
  /** Absent in records of before there were farms. */
  readonly farm?: (Omit<FarmState, 'spent' | 'seen'> & { readonly spent: string; readonly seen: string }) | null;
};

const packBody = ({ generation, isSpent, seen }: BodyState): PackedBody => ({
  generation,
  isSpent,
  seen: seen.map(([key, nonces]) => [key, packNumbers(nonces)]),
});
const unpackBody = ({ generation, isSpent, seen }: PackedBody): BodyState => ({
  generation,
  isSpent,
  seen: seen.map(([key, packed]) => [key, unpackNumbers(packed)]),
});

const packTerms = ({ shareWork, owner, farm, ...body }: TermsState): PackedTerms => ({
  ...packBody(body),
  shareWork: String(shareWork),
  owner: owner === null ? null : hex(owner),
  ...(farm === null ? {} : { farm: { ...farm, spent: packNumbers(farm.spent), seen: packNumbers(farm.seen) } }),
});
const unpackTerms = ({ shareWork, owner, farm, ...body }: PackedTerms): TermsState => ({
  ...unpackBody(body),
  shareWork: BigInt(shareWork),
  owner: owner === null ? null : fromHex(owner),
  farm: farm == null ? null : { ...farm, spent: unpackNumbers(farm.spent), seen: unpackNumbers(farm.seen) },
});

/** Stored as their bytes: 25,000 nonces as decimal numbers took 7 ms. */
const packNumbers = ({ buffer, byteOffset, byteLength }: Float64Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');
const unpackNumbers = (packed: string): Float64Array =>
  new Float64Array(new Uint8Array(Buffer.from(packed, 'base64')).buffer);
