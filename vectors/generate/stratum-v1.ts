/** Vectors of svc-mining-v1: value and canonical text of every message, other spellings, and what is refused. */
import { toHex } from '../../protocol/bytes.ts';
import { bannedReply, errorReply, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import { encodeError, encodeNotification, encodeResult, type ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { encodeRequest, type Request } from '../../protocol/stratum/v1-request.ts';
import * as sample from './stratum-session.ts';

const share = { jobId: sample.bridgeJob.jobId, nonce: sample.found.share };
const block = { jobId: sample.bridgeJob.jobId, nonce: sample.found.block };
const work = sample.shareWork;

const requests: [string, Request][] = [
  ['subscribe', { kind: 'request', id: 1, method: 'mining.subscribe', params: sample.subscribe }],
  ['subscribe, resuming a session', { kind: 'request', id: 1, method: 'mining.subscribe', params: sample.resume }],
  ['authorize', { kind: 'request', id: 2, method: 'mining.authorize', params: sample.authorize }],
  ['authorize, address alone', { kind: 'request', id: 'b', method: 'mining.authorize', params: sample.authorizeBare }],
  ['submit a share', { kind: 'request', id: 3, method: 'mining.submit', params: share }],
  ['submit a block', { kind: 'request', id: 4, method: 'mining.submit', params: block }],
  ['stats', { kind: 'request', id: 5, method: 'mining.stats' }],
  ['ping', { kind: 'request', id: 6, method: 'mining.ping' }],
  ['ask for receipts', { kind: 'request', id: 8, method: 'mining.receipts' }],
];

const answers: [string, ServerMessage][] = [
  ['subscribed to a bridge', { kind: 'result', id: 1, method: 'mining.subscribe', result: sample.onBridge }],
  ['subscribed to a pool', { kind: 'result', id: 1, method: 'mining.subscribe', result: sample.onPool }],
  ['authorized', { kind: 'result', id: 2, method: 'mining.authorize', result: sample.authorized }],
  [
    'authorized, no worker',
    { kind: 'result', id: 'b', method: 'mining.authorize', result: { address: sample.minerAddress, worker: '' } },
  ],
  ['share accepted', { kind: 'result', id: 3, method: 'mining.submit', result: { work, blockId: null } }],
  ['block found', { kind: 'result', id: 4, method: 'mining.submit', result: { work, blockId: sample.found.blockId } }],
  ['stats of a bridge', { kind: 'result', id: 5, method: 'mining.stats', result: sample.bridgeStats }],
  ['stats of a pool', { kind: 'result', id: 5, method: 'mining.stats', result: sample.poolStats }],
  ['pong', { kind: 'result', id: 6, method: 'mining.ping' }],
  ['no receipts here', { kind: 'result', id: 8, method: 'mining.receipts', result: null }],
  ['job of a bridge', { kind: 'notification', method: 'mining.notify', params: sample.bridgeJob }],
  ['job of a pool', { kind: 'notification', method: 'mining.notify', params: sample.poolJob }],
  ['reconnect', { kind: 'notification', method: 'mining.reconnect', params: sample.sameHost }],
  ['reconnect elsewhere', { kind: 'notification', method: 'mining.reconnect', params: sample.otherHost }],
  ...STRATUM_ERRORS.map(({ code, name }): [string, ServerMessage] => [
    `error ${name}`,
    { kind: 'error', id: code === -32700 ? null : 7, error: code === 28 ? bannedReply(600_000) : errorReply(code) },
  ]),
];

function answerText(message: ServerMessage): string {
  if (message.kind === 'result') return encodeResult(message.id, message);
  return message.kind === 'error' ? encodeError(message.id, message.error) : encodeNotification(message);
}

const submit = encodeRequest(3, { method: 'mining.submit', params: share });
const nonce = toHex(sample.found.share);

/** Other spellings of 'submit a share'. */
const spellings = [
  ` { "id" : 3 , "jsonrpc" : "2.0" , "params" : { "nonce" : "${nonce}", "job_id" : "0000001a" }, "method" : "mining.submit" } `,
  `${submit}\r`,
  submit.replace('mining.submit', 'mining\\u002esubmit'),
  submit.replace('"id":3', '"id":3.0'),
];

const subscribing = (agent: string, tag: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'mining.subscribe', params: { agent, tag } });

type Refused = { name: string; text: string; code: number; id: number | string | null };
const refused = (name: string, text: string, code: number, id: number | string | null): Refused => ({
  name,
  text,
  code,
  id,
});

/** What a server refuses, with the code and id of the answer it owes. */
const refusedRequests: Refused[] = [
  refused('not JSON', 'hello', -32700, null),
  refused('nothing', '', -32700, null),
  refused('cut short', submit.slice(0, -1), -32700, null),
  refused('a key twice', submit.replace('"id":3', '"id":3,"id":3'), -32700, null),
  refused('nested too deep', '[[[[[[[]]]]]]]', -32700, null),
  refused('too many values', `[${'0,'.repeat(200)}0]`, -32700, null),
  refused('half of a surrogate pair', submit.replace('"id":3', '"id":"\\ud800"'), -32700, null),
  refused('a batch', `[${submit}]`, -32600, null),
  refused('no id', submit.replace('"id":3,', ''), -32600, null),
  refused('id is null', submit.replace('"id":3', '"id":null'), -32600, null),
  refused('id is a fraction', submit.replace('"id":3', '"id":3.5'), -32600, null),
  refused('no version', submit.replace('"jsonrpc":"2.0",', ''), -32600, 3),
  refused('unknown field beside params', submit.replace('"id":3', '"id":3,"worker":"x"'), -32600, 3),
  refused('no method', '{"jsonrpc":"2.0","id":3}', -32600, 3),
  refused('unknown method', '{"jsonrpc":"2.0","id":"q","method":"mining.configure"}', -32601, 'q'),
  refused('params is an array', '{"jsonrpc":"2.0","id":3,"method":"mining.submit","params":["0000001a"]}', -32602, 3),
  refused('params missing', '{"jsonrpc":"2.0","id":3,"method":"mining.submit"}', -32602, 3),
  refused('unknown parameter', submit.replace('"job_id"', '"ntime":0,"job_id"'), -32602, 3),
  refused('parameter where none is', '{"jsonrpc":"2.0","id":6,"method":"mining.ping","params":{"a":1}}', -32602, 6),
  refused('job id in upper case', submit.replace('0000001a', '0000001A'), -32602, 3),
  refused('nonce too short', submit.replace(nonce, nonce.slice(2)), 26, 3),
  refused('nonce in upper case', submit.replace(nonce, 'AB'.repeat(8)), 26, 3),
  refused('nonce is a number', submit.replace(`"${nonce}"`, '1'), -32602, 3),
  refused('agent too long', subscribing('a'.repeat(65), ''), -32602, 1),
  refused('tag too long', subscribing('a', 't'.repeat(21)), 30, 1),
  refused('tag with markup', subscribing('a', '<b>'), 30, 1),
  refused(
    'username with a line feed',
    '{"jsonrpc":"2.0","id":2,"method":"mining.authorize","params":{"username":"a\\n"}}',
    -32602,
    2,
  ),
];

const job = encodeNotification({ method: 'mining.notify', params: sample.bridgeJob });
const distrusted = (name: string, text: string, error: string) => ({ name, text, error });

/** What a miner refuses. The codes are those of docs/errors.md. */
const refusedAnswers = [
  distrusted('a result nobody asked for', '{"jsonrpc":"2.0","id":99,"result":{}}', 'reply_unexpected'),
  distrusted('unknown notification', '{"jsonrpc":"2.0","method":"mining.show","params":{}}', 'unsupported_kind'),
  distrusted('unknown error code', '{"jsonrpc":"2.0","id":7,"error":{"code":99,"message":""}}', 'out_of_range'),
  distrusted(
    'result and error',
    '{"jsonrpc":"2.0","id":6,"result":{},"error":{"code":20,"message":""}}',
    'field_unknown',
  ),
  distrusted('target is not that of the header', job.replace('"target":"03', '"target":"04'), 'not_canonical'),
  distrusted('height is not that of the header', job.replace(':1234,', ':1235,'), 'not_canonical'),
  distrusted('seed of another epoch', job.replace('"epoch":0', '"epoch":1'), 'not_canonical'),
  distrusted('nonce not zeroed', job.replace('00","target"', '01","target"'), 'out_of_range'),
  distrusted('unknown field', job.replace('"clean"', '"dirty":true,"clean"'), 'field_unknown'),
  distrusted('field missing', job.replace(',"clean":true', ''), 'field_missing'),
];

export function stratumV1Vectors(): unknown {
  return sample.toPlain({
    to_server: requests.map(([name, value]) => ({ name, value, text: encodeRequest(value.id, value) })),
    to_server_spellings: spellings.map((text) => ({ same_as: 'submit a share', text })),
    to_server_refused: refusedRequests,
    to_miner: answers.map(([name, value]) => ({ name, value, text: answerText(value) })),
    to_miner_refused: refusedAnswers,
  });
}
