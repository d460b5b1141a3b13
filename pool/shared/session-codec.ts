/**
 * A session that waits in Redis to be resumed. Its key there is derived from its id, which is not in the value. Jobs sent
 * and shares judged stay with the process that served it.
 */
import type { Score } from '../../bridge/session/ban-score.ts';
import { BOOT_ID_BYTES } from '../../bridge/session/extranonce.ts';
import type { SessionRecord } from '../../bridge/session/session-record.ts';
import type { Vardiff } from '../../bridge/session/vardiff.ts';
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import {
  bytes,
  bytesUpTo,
  type Codec,
  choice,
  count,
  dictionary,
  float,
  nullable,
  struct,
  text,
  u16,
  u128,
} from './codec.ts';

type Sums = Vardiff['long'];
const sums = struct<Sums>({ work: float, shares: float, seconds: float });
const vardiff = struct<Vardiff>({
  work: u128,
  atMillis: float,
  long: sums,
  short: sums,
  phase: choice(['new', 'placed', 'settled']),
});
const score = struct<Score>({ points: float, atMillis: float });

export type WaitingSession = Omit<SessionRecord, 'id' | 'jobs'>;

export const waitingSession: Codec<WaitingSession> = struct<WaitingSession>({
  bootId: bytes(BOOT_ID_BYTES),
  service: text(16),
  owner: bytesUpTo(32),
  prefix: u16,
  tag: text(64),
  account: bytes(ADDRESS_PAYLOAD_BYTES),
  worker: text(255),
  vardiff: nullable(vardiff),
  accepted: count,
  stale: count,
  rejected: dictionary(count, 64),
  work: u128,
  score,
  bannedUntilMillis: float,
});
