/**
 * The PROXY header, versions 1 and 2 (docs/protocol/stratum.md, S5): the client address of a connection through a
 * proxy. It is read only from proxies that the operator listed, and they must send it.
 */
import { isIP } from 'node:net';
import { type Bytes, fromUtf8 } from '../../protocol/bytes.ts';

export type ProxyHeader =
  | { readonly kind: 'more' }
  | { readonly kind: 'invalid' }
  /** `address` is null for connections of the proxy itself (health checks). The header is `length` bytes long. */
  | { readonly kind: 'header'; readonly address: string | null; readonly length: number };

const SIGNATURE = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a);
const V1_START = Uint8Array.of(0x50, 0x52, 0x4f, 0x58, 0x59, 0x20);
const V1_MAX = 107;
/** Enough for the addresses and some extensions; a stratum proxy sends no more. */
const V2_MAX = 1_024;

const invalid: ProxyHeader = { kind: 'invalid' };
const more: ProxyHeader = { kind: 'more' };

/** Whether `bytes` and `start` agree as far as both go. */
function agrees(bytes: Bytes, start: Bytes): boolean {
  const length = Math.min(bytes.length, start.length);
  for (let i = 0; i < length; i++) if (bytes[i] !== start[i]) return false;
  return true;
}

export function readProxyHeader(bytes: Bytes): ProxyHeader {
  if (bytes.length === 0) return more;
  if (agrees(bytes, V1_START)) return readV1(bytes);
  if (agrees(bytes, SIGNATURE)) return readV2(bytes);
  return invalid;
}

function readV1(bytes: Bytes): ProxyHeader {
  const end = bytes.indexOf(0x0a);
  if (end < 0) return bytes.length > V1_MAX ? invalid : more;
  if (end >= V1_MAX || bytes[end - 1] !== 0x0d || bytes.subarray(0, end).some((byte) => byte > 0x7e)) return invalid;
  const words = fromUtf8(bytes.subarray(0, end - 1)).split(' ');
  const [, family, source = ''] = words;
  if (family === 'UNKNOWN') return { kind: 'header', address: null, length: end + 1 };
  const version = family === 'TCP4' ? 4 : family === 'TCP6' ? 6 : 0;
  if (version === 0 || words.length !== 6 || isIP(source) !== version) return invalid;
  return { kind: 'header', address: source, length: end + 1 };
}

function readV2(bytes: Bytes): ProxyHeader {
  if (bytes.length < 16) return more;
  const [versionAndCommand = 0, family = 0] = bytes.subarray(12, 14);
  const length = ((bytes[14] as number) << 8) | (bytes[15] as number);
  if (versionAndCommand >> 4 !== 2 || length > V2_MAX) return invalid;
  if (bytes.length < 16 + length) return more;
  const whole = 16 + length;
  const command = versionAndCommand & 15;
  if (command === 0) return { kind: 'header', address: null, length: whole };
  if (command !== 1) return invalid;
  if (family === 0x11 && length >= 12)
    return { kind: 'header', address: [...bytes.subarray(16, 20)].join('.'), length: whole };
  if (family === 0x21 && length >= 36)
    return { kind: 'header', address: ipv6Text(bytes.subarray(16, 32)), length: whole };
  return family === 0 ? { kind: 'header', address: null, length: whole } : invalid;
}

function ipv6Text(bytes: Bytes): string {
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((((bytes[i] as number) << 8) | (bytes[i + 1] as number)).toString(16));
  return groups.join(':');
}
