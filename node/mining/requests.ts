/**
 * The requests and answers of the mining listener (docs/protocol/mining.md). Unknown fields are refused: a misspelt option must not be
 * taken for its default.
 */
import { parseAddress } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { bodyBytes, encodeBodyHead } from '../../protocol/ledger/body.ts';
import { decodeExtranonce, MAX_EXTRANONCE } from '../../protocol/ledger/tag.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { fromNativeHex } from '../../runtime/native/native-hex.ts';
import type { Template, TemplateRequest } from '../full-node.ts';
import { type NodeError, nodeError } from '../node-error.ts';
import { ANCHOR_POLICIES, type AnchorPolicy } from './anchor-choice.ts';

const isAnchorPolicy = (value: unknown): value is AnchorPolicy => ANCHOR_POLICIES.includes(value as AnchorPolicy);

export const MAX_TEMPLATE_TRANSACTIONS = 65_536;
export const MAX_DRAW = 0xffff_ffff;

type Fields = Readonly<Record<string, unknown>>;
export type Read<T> = { readonly value: T } | { readonly error: NodeError };

const bad = (message: string): { error: NodeError } => ({ error: nodeError('request_malformed', message) });

function readFields(json: unknown, required: readonly string[], optional: readonly string[]): Read<Fields> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return bad('the request is no JSON object');
  for (const name of required) if (!(name in json)) return bad(`the field ${name} is missing`);
  for (const name of Object.keys(json))
    if (!required.includes(name) && !optional.includes(name)) return bad(`there is no field ${name.slice(0, 64)}`);
  return { value: json as Fields };
}

const isCount = (value: unknown, max: number): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;

function readHex(value: unknown): Bytes | undefined {
  try {
    return typeof value === 'string' ? fromNativeHex(value.toLowerCase()) : undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}

export function readTemplateRequest(json: unknown, network: NetworkName): Read<TemplateRequest> {
  const fields = readFields(json, ['payout', 'max_transactions'], ['draw', 'extranonce', 'anchors', 'api_version']);
  if ('error' in fields) return fields;
  const {
    payout,
    max_transactions: maxTransactions,
    draw = 0,
    anchors = 'newest',
    extranonce: extranonceHex,
  } = fields.value;
  if (typeof payout !== 'string') return bad('payout is an address');
  if (!isCount(maxTransactions, MAX_TEMPLATE_TRANSACTIONS))
    return { error: nodeError('template_limit', `max_transactions is from 0 to ${MAX_TEMPLATE_TRANSACTIONS}`) };
  if (!isCount(draw, MAX_DRAW)) return { error: nodeError('template_limit', `draw is from 0 to ${MAX_DRAW}`) };
  if (!isAnchorPolicy(anchors)) return bad(`anchors is one of ${ANCHOR_POLICIES.join(', ')}`);
  const request = { maxTransactions, draw, anchors };
  try {
    const address = parseAddress(payout, network).payload;
    if (extranonceHex === undefined) return { value: { payout: address, ...request } };
    const extranonce = readHex(extranonceHex);
    if (extranonce === undefined || extranonce.length > MAX_EXTRANONCE)
      return bad('extranonce is hex of at most 40 bytes');
    decodeExtranonce(extranonce);
    return { value: { payout: address, extranonce, ...request } };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { error: nodeError('payout_invalid', error.message, { reason: error.code }) };
  }
}

export function readCandidate(json: unknown): Read<{ header: Bytes; body: Bytes }> {
  const fields = readFields(json, ['header_hex', 'body_hex'], ['api_version']);
  if ('error' in fields) return fields;
  const header = readHex(fields.value.header_hex);
  const body = readHex(fields.value.body_hex);
  if (header === undefined) return bad('header_hex is no hex');
  if (body === undefined) return bad('body_hex is no hex');
  return { value: { header, body } };
}

/** Buffer's own methods, called on any bytes. */
const { hexSlice } = Buffer.prototype as unknown as { hexSlice(this: Uint8Array, from: number, to: number): string };

/**
 * The answer to a template request, written into memory from `room`. The body is written directly, in pieces: it is two
 * million hex characters that need no escaping. As one string it would cost more than the template and cause a full GC
 * every few requests.
 */
export function writeTemplate(
  template: Template,
  network: NetworkName,
  chainId: Bytes,
  payout: string,
  room: (bytes: number) => Buffer,
): Buffer {
  const { anchor, pow } = template;
  const document = JSON.stringify({
    api_version: 1,
    network,
    chain_id: toHex(chainId),
    anchor: {
      height: anchor.height,
      cut_id: toHex(anchor.cutId),
      state_root: toHex(anchor.stateRoot),
      timestamp_millis: anchor.timestampMillis,
    },
    registration_window_end: template.registrationWindowEnd,
    target: toHex(targetToBytes(template.target)),
    timestamp_millis: template.timestampMillis,
    parents_root: toHex(template.parentsRoot),
    transactions_root: toHex(template.transactionsRoot),
    reward_root: toHex(template.rewardRoot),
    header_hex: toHex(template.header),
    payout,
    extranonce: toHex(template.extranonce),
    draw: template.draw,
    transaction_count: template.transactionCount,
    fees: template.fees.toString(),
    pow: { epoch: pow.epoch, seed: toHex(pow.seed), epoch_length: pow.epochLength },
    valid_millis: template.validMillis,
  });
  const before = `${document.slice(0, -1)},"body_hex":"`;
  const bytes = room(before.length + 2 * bodyBytes(template) + 2);
  let at = bytes.write(before, 'latin1');
  const hex = (part: Bytes) => {
    at += bytes.write(hexSlice.call(part, 0, part.length), at, 'latin1');
  };
  const length = Buffer.alloc(4);
  hex(encodeBodyHead(template));
  for (const wire of template.transactions) {
    length.writeUInt32LE(wire.length);
    hex(length);
    hex(wire);
  }
  at += bytes.write('"}', at, 'latin1');
  return bytes.subarray(0, at);
}
