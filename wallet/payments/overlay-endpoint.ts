/** The endpoint of a validator as entered by its operator: a line of hex. */
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { decodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { WalletError } from '../wallet-error.ts';

export function readEndpoint(hex: string): Bytes {
  try {
    const endpoint = fromHex(hex);
    decodeEndpoint(endpoint);
    return endpoint;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError(
      'endpoint_invalid',
      `this is not the endpoint of a validator (${error.message}): give the whole line of hex that 'svcd validator-endpoint' prints on the validator's machine`,
      { field: 'overlay_endpoint_hex', reason: error.code },
    );
  }
}
