/** A session that waits in Redis to be resumed. Its id is its name there, hidden, and stands nowhere in the value. */
import { BOOT_ID_BYTES } from '../../bridge/extranonce.ts';
import type { SessionRecord } from '../../bridge/hub.ts';
import type { JobLogState, Terms } from '../../bridge/job-book.ts';
import type { Vardiff } from '../../bridge/vardiff.ts';
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import {
  bytes,
  bytesUpTo,
  type Codec,
  choice,
  count,
  dictionary,
  float,
  list,
  nullable,
  pair,
  struct,
  text,
  u16,
  u32,
  u128,
} from './codec.ts';

/** More than any session has that keeps to its share work; one with more is not kept. */
const MAX_TERMS = 4_096;
const MAX_JOBS = 16_384;
const MAX_NONCES = 16_384;

type Sums = Vardiff['long'];
const sums = struct<Sums>({ work: float, shares: float, seconds: float });
const vardiff = struct<Vardiff>({
  work: u128,
  atMillis: float,
  long: sums,
  short: sums,
  phase: choice(['new', 'placed', 'settled']),
});
const terms = struct<Terms>({ fromJobId: count, generation: u32, shareWork: u128 });
const log = struct<JobLogState>({
  terms: list(terms, MAX_TERMS),
  seen: list(pair(count, list(count, MAX_NONCES)), MAX_JOBS),
});

export type WaitingSession = Omit<SessionRecord, 'id'>;

export const waitingSession: Codec<WaitingSession> = struct<WaitingSession>({
  bootId: bytes(BOOT_ID_BYTES),
  service: text(16),
  owner: bytesUpTo(32),
  prefix: u16,
  tag: text(64),
  generation: u32,
  spare: nullable(u32),
  account: nullable(bytes(ADDRESS_PAYLOAD_BYTES)),
  worker: text(255),
  vardiff: nullable(vardiff),
  log,
  accepted: count,
  stale: count,
  rejected: dictionary(count, 64),
  work: u128,
  lastJobId: count,
});
