/**
 * Whether a mining.reconnect is obeyed (docs/protocol/stratum.md). An attacker who can write into a plain connection could send
 * a miner away with it, so another host is followed only when the connection is encrypted. Pure.
 */
import type { Reconnect } from '../../protocol/stratum/messages.ts';
import { type Refusal, refusal } from '../miner-error.ts';
import { type Endpoint, isEncrypted } from './pool-url.ts';

export function followReconnect(from: Endpoint, wish: Reconnect): Endpoint | Refusal {
  const host = wish.host === '' ? from.host : wish.host;
  if (host !== from.host && !isEncrypted(from))
    return refusal(
      'reconnect_refused',
      `the server wants to send this miner to ${host}, but the connection is not encrypted`,
    );
  return { ...from, host, port: wish.port === 0 ? from.port : wish.port };
}
