/** Vectors of svc-mining-v2: value and whole frame of every message, and what is refused. */
import { toHex } from '../../protocol/bytes.ts';
import { bannedReply, errorReply, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import { jobOfFarm } from '../../protocol/stratum/farm.ts';
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
  ['ask for a farm', { type: 'farm', rigs: 2000 }],
  ['name a rig', { type: 'rig', rig: { index: 3, worker: 'hall-2.gpu0' } }],
  ['a rig is gone', { type: 'rig', rig: { index: 3, worker: '' } }],
  [
    'submit a share of a rig',
    {
      type: 'farmSubmit',
      sequence: 1,
      submit: { jobId: sample.farmJob.jobId, generation: sample.farmGeneration, rig: 3, nonce: sample.foundByRig },
    },
  ],
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
  ['a farm is offered', { type: 'farmOffer', offer: { rigs: 2000, submitsPerSecond: 4000 } }],
  ['no farms here', { type: 'farmOffer', offer: { rigs: 0, submitsPerSecond: 0 } }],
  ['job of a farm', { type: 'farmJob', job: sample.farmJob }],
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
  refused('a farm of no rigs', '0200070000', 'out_of_range'),
  refused('a farm of 4,097 rigs', '0200070110', 'out_of_range'),
  refused('rig 4,096', '04000900100161', 'out_of_range'),
  refused('rig with a space in its name', '0500090300022061', 'username_text'),
];

const farmJob = toHex(encodeServerFrame({ type: 'farmJob', job: sample.farmJob }));
const REWARD_ROOT_DIGIT = 2 * (3 + 4 + 1 + 176);

const refusedServerFrames = [
  refused('unknown job flags', `${job.slice(0, 14)}02${job.slice(16)}`, 'out_of_range'),
  refused('header of version 2', `${job.slice(0, 16)}02${job.slice(18)}`, 'unsupported_version'),
  refused('unknown error code', '02003e6300', 'out_of_range'),
  refused('a ban without its time', '02003e1c00', 'not_canonical'),
  refused(
    'a farm job with a reward root',
    `${farmJob.slice(0, REWARD_ROOT_DIGIT)}01${farmJob.slice(REWARD_ROOT_DIGIT + 2)}`,
    'not_canonical',
  ),
  refused('an offer of 4,097 rigs', '060008011000000000', 'out_of_range'),
  refused('a type only clients send', '000001', 'unsupported_kind'),
];

export function stratumV2Vectors(): unknown {
  return sample.toPlain({
    to_server: clientFrames.map(([name, value]) => ({ name, value, hex: toHex(encodeClientFrame(value)) })),
    to_server_refused: refusedClientFrames,
    to_miner: serverFrames.map(([name, value]) => ({ name, value, hex: toHex(encodeServerFrame(value)) })),
    to_miner_refused: refusedServerFrames,
    farm_headers: [5, sample.farmGeneration, 0xffff_ffff].map((generation) => {
      const { extranonce, header } = jobOfFarm(sample.farmJob, generation);
      return { generation, extranonce: toHex(extranonce), header: toHex(header) };
    }),
  });
}
