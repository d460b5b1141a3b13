/** Errors of the network that stop a start (docs/errors.md, Network). */
import { CodedError } from '../../protocol/coded-error.ts';

export const NETWORK_ERROR_CODES = ['peer_key_damaged', 'p2p_config', 'p2p_listen'] as const;

/** Why the peer-to-peer network of a node cannot start. */
export class NetworkError extends CodedError<(typeof NETWORK_ERROR_CODES)[number]> {
  override readonly name = 'NetworkError';
}
