/** The calls of svc-mining-v1 as values (docs/protocol/stratum.md, S20 to S29); v1-request.ts reads and writes them. */
import type { Authorize, Submit, Subscribe } from './messages.ts';

/** An integer from 0 to 2^53 - 1, or text of at most 64 characters. */
export type RequestId = number | string;

export const METHODS = [
  'mining.subscribe',
  'mining.authorize',
  'mining.submit',
  'mining.stats',
  'mining.ping',
  'mining.receipts',
] as const;
export type Method = (typeof METHODS)[number];

export type Call =
  | { method: 'mining.subscribe'; params: Subscribe }
  | { method: 'mining.authorize'; params: Authorize }
  | { method: 'mining.submit'; params: Submit }
  | { method: 'mining.stats' }
  | { method: 'mining.ping' }
  | { method: 'mining.receipts' };

export type Request = { kind: 'request'; id: RequestId } & Call;
