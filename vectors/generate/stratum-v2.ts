/** Vectors of svc-mining-v2: value and whole frame of every message, and what is refused. */
import { toHex } from '../../protocol/bytes.ts';
import { bannedReply, errorReply, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import { type ClientFrame, encodeClientFrame, encodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import * as sample from './stratum-session.ts';

const jobId = sample.bridgeJob.jobId;

const clientFrames: [string, ClientFrame][] = [
  ['subscribe', { type: 'subscribe', subscribe: sample.subscribe }],
  ['subscribe, resuming a session', { type: 'subscribe', subscribe: sample.resume }],
  ['authorize', { type: 'authorize', authorize: sample.authorize }],
  ['authorize, address alone', { type: 'authorize', authorize: sample.authorizeBare }],
  ['submit a share', { type: 'submit', sequence: 1, submit: { jobId, nonce: sample.found.share } }],
  ['submit a block', { type: 'submit', sequence: 2, submit: { jobId, nonce: sample.found.block } }],
  ['ping', { type: 'ping', value: 1n }],
  ['ask for receipts', { type: 'receipts' }],
  ['pong', { type: 'pong', value: 0xffff_ffff_ffff_ffffn }],
];

const serverFrames: [string, ServerFrame][] = [
  ['subscribed to a bridge', { type: 'subscribed', subscribed: sample.onBridge }],
  ['subscribed to a pool', { type: 'subscribed', subscribed: sample.onPool }],
  ['authorized', { type: 'authorized', authorized: sample.authorized }],
  ['job of a bridge', { type: 'job', job: sample.bridgeJob }],
  ['job of a pool', { type: 'job', job: sample.poolJob }],
  ['accepted', { type: 'accepted', through: 2, count: 2, work: 2n * sample.shareWork }],
  ['rejected', { type: 'rejected', sequence: 3, code: 22 }],
  ['block', { type: 'block', sequence: 2, blockId: sample.found.blockId }],
  ['ping', { type: 'ping', value: 2n }],
  ['no receipts here', { type: 'receiptsOffer', offer: null }],
  ['pong', { type: 'pong', value: 1n }],
  ['reconnect', { type: 'reconnect', reconnect: sample.sameHost }],
  ['reconnect elsewhere', { type: 'reconnect', reconnect: sample.otherHost }],
  ...STRATUM_ERRORS.map(({ code, name }): [string, ServerFrame] => [
    `error ${name}`,
    { type: 'error', error: code === 28 ? bannedReply(600_000) : errorReply(code) },
  ]),
];

const job = toHex(encodeServerFrame({ type: 'job', job: sample.bridgeJob }));
const refused = (name: string, hex: string, error: string) => ({ name, hex, error });

const refusedClientFrames = [
  refused('empty', '', 'truncated'),
  refused('payload cut short', '100020000000', 'truncated'),
  refused('bytes after the frame', `080030${'00'.repeat(9)}`, 'trailing_bytes'),
  refused('bytes after the value', `090030${'00'.repeat(9)}`, 'trailing_bytes'),
  refused('payload too long', '011030', 'too_long'),
  refused('unknown type', '00007f', 'unsupported_kind'),
  refused('a type only servers send', '00003f', 'unsupported_kind'),
  refused('session of 15 bytes', `12000100000f${'00'.repeat(15)}`, 'out_of_range'),
  refused('agent is not UTF-8', '04000101ff0000', 'bad_utf8'),
  refused('tag with markup', '06000100033c623e00', 'tag_characters'),
];

const refusedServerFrames = [
  refused('unknown job flags', `${job.slice(0, 14)}02${job.slice(16)}`, 'out_of_range'),
  refused('header of version 2', `${job.slice(0, 16)}02${job.slice(18)}`, 'unsupported_version'),
  refused('unknown error code', '02003e6300', 'out_of_range'),
  refused('a ban without its time', '02003e1c00', 'not_canonical'),
  refused('a type only clients send', '000001', 'unsupported_kind'),
];

export function stratumV2Vectors(): unknown {
  return sample.toPlain({
    to_server: clientFrames.map(([name, value]) => ({ name, value, hex: toHex(encodeClientFrame(value)) })),
    to_server_refused: refusedClientFrames,
    to_miner: serverFrames.map(([name, value]) => ({ name, value, hex: toHex(encodeServerFrame(value)) })),
    to_miner_refused: refusedServerFrames,
  });
}
