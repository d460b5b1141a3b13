/**
 * Payment links (module rules 2 and 3): `svc:ADDRESS?amount=1.25&label=TEXT&message=TEXT`. One scheme for all networks; the address tells which one it is.
 */
import { parseAddress } from '../address.ts';
import { parseCoins } from '../amount.ts';
import { ProtocolError } from '../errors.ts';
import type { NetworkName } from '../network.ts';

const SCHEME = 'svc:';
export const MAX_PAYMENT_URI = 1024;
const TEXTS = ['label', 'message'];
const VALUE = /^(?:[A-Za-z0-9._~!$'()*+,;:@/?-]|%[0-9A-Fa-f]{2})*$/;

export type PaymentRequest = {
  readonly address: string;
  readonly network: NetworkName;
  readonly amount?: bigint;
  readonly label?: string;
  readonly message?: string;
};

function textOf(value: string): string {
  if (!VALUE.test(value)) throw new ProtocolError('not_canonical', 'a link has characters that must be escaped');
  try {
    return decodeURIComponent(value);
  } catch {
    throw new ProtocolError('bad_utf8', 'the text of a link is not valid UTF-8');
  }
}

/** Unknown fields are refused: one of them may change what is to be paid. */
export function parsePaymentUri(uri: string, expected?: NetworkName): PaymentRequest {
  if (uri.length > MAX_PAYMENT_URI)
    throw new ProtocolError('too_long', `a link has at most ${MAX_PAYMENT_URI} characters`);
  if (!uri.startsWith(SCHEME)) throw new ProtocolError('unsupported_kind', `a payment link begins with ${SCHEME}`);
  const [address = '', query, ...more] = uri.slice(SCHEME.length).split('?');
  if (more.length > 0) throw new ProtocolError('not_canonical', 'a link has one question mark');
  const { network } = parseAddress(address, expected);
  let request: PaymentRequest = { address, network };
  if (query === undefined) return request;
  const seen = new Set<string>();
  for (const field of query.split('&')) {
    const at = field.indexOf('=');
    const name = field.slice(0, Math.max(at, 0));
    if (at < 1) throw new ProtocolError('field_type', 'a field of a link is name=value');
    if (seen.has(name)) throw new ProtocolError('duplicate_entry', `${name.slice(0, 32)} occurs twice in the link`);
    seen.add(name);
    const value = textOf(field.slice(at + 1));
    if (name === 'amount') request = { ...request, amount: parseCoins(value) };
    else if (TEXTS.includes(name)) request = { ...request, [name]: value };
    else throw new ProtocolError('field_unknown', `${name.slice(0, 32)} is no field of a payment link`);
  }
  return request;
}
