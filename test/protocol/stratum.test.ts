/** Both wire forms against vectors/stratum-v1.json and stratum-v2.json, in both directions. */
import { expect, test } from 'vitest';
import { burnAddressPayload, formatAddress, keyAddressPayload, parseAddress } from '../../protocol/address.ts';
import { concat, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { attempt, ProtocolError } from '../../protocol/errors.ts';
import { blockId, decodeHeader, NONCE_OFFSET, REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { meetsTarget, targetFromBytes, targetToBytes } from '../../protocol/ledger/target.ts';
import { answerTo, errorReply, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import { jobOfFarm } from '../../protocol/stratum/farm.ts';
import { readFrame } from '../../protocol/stratum/frame.ts';
import { JobFrameTemplate, NotifyTemplate } from '../../protocol/stratum/job-template.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { composeNonce, hasPrefix, nonceCount } from '../../protocol/stratum/nonce.ts';
import { formatUsername, parsePassword, parseUsername, withRate } from '../../protocol/stratum/username.ts';
import {
  decodeServerMessage,
  encodeAccepted,
  encodeAuthorized,
  encodeError,
  encodeNotification,
  encodeResult,
  encodeSubscribed,
} from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, encodeRequest, matchSubmit } from '../../protocol/stratum/v1-request.ts';
import {
  decodeClientFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeServerFrame,
} from '../../protocol/stratum/v2.ts';
import { referenceHash } from '../pow-hash.ts';
import { methodOf, v1, v2 } from './stratum-vectors.ts';

const refusalOf = (decode: () => unknown): string => {
  const result = attempt(decode);
  return result.ok ? 'accepted' : result.error.code;
};

test.each(v1.toServer)('v1 to server: $name', ({ value, text }) => {
  expect(encodeRequest(value.id, value)).toBe(text);
  expect(decodeRequest(text)).toEqual(value);
  expect(decodeRequest(utf8(text))).toEqual(value);
});

test.each(v1.toServerSpellings)('v1 to server, another spelling: $text', ({ same_as, text }) => {
  const { value } = v1.toServer.find(({ name }) => name === same_as)!;
  expect(decodeRequest(utf8(text))).toEqual(value);
});

test.each(v1.toServerRefused)('v1 to server, refused: $name', ({ text, code, id }) => {
  expect(decodeRequest(utf8(text))).toMatchObject({ kind: 'invalid', code, id });
});

test.each(v1.toMiner)('v1 to miner: $name', ({ value, text }) => {
  if (value.kind === 'result') expect(encodeResult(value.id, value)).toBe(text);
  else if (value.kind === 'error') expect(encodeError(value.id, value.error)).toBe(text);
  else expect(encodeNotification(value)).toBe(text);
  expect(decodeServerMessage(text, methodOf)).toEqual(value);
  expect(decodeServerMessage(utf8(`${text}\n`), methodOf)).toEqual(value);
});

test.each(v1.toMinerRefused)('v1 to miner, refused: $name', ({ text, error }) => {
  expect(refusalOf(() => decodeServerMessage(text, methodOf))).toBe(error);
});

test.each(v2.toServer)('v2 to server: $name', ({ value, hex }) => {
  expect(toHex(encodeClientFrame(value))).toBe(hex);
  expect(decodeClientFrame(readFrame(fromHex(hex)))).toEqual(value);
});

test.each(v2.toServerRefused)('v2 to server, refused: $name', ({ hex, error }) => {
  expect(refusalOf(() => decodeClientFrame(readFrame(fromHex(hex))))).toBe(error);
});

test.each(v2.toMiner)('v2 to miner: $name', ({ value, hex }) => {
  expect(toHex(encodeServerFrame(value))).toBe(hex);
  expect(decodeServerFrame(readFrame(fromHex(hex)))).toEqual(value);
});

test.each(v2.toMinerRefused)('v2 to miner, refused: $name', ({ hex, error }) => {
  expect(refusalOf(() => decodeServerFrame(readFrame(fromHex(hex))))).toBe(error);
});

const jobNamed = (wanted: string): Job => {
  const { value } = v2.toMiner.find(({ name }) => name === wanted)!;
  if (value.type !== 'job') throw new Error('not a job');
  return value.job;
};

test('a v2 submit costs 19 bytes, a v2 job about 420', () => {
  expect(fromHex(v2.toServer.find(({ name }) => name === 'submit a share')!.hex)).toHaveLength(19);
  expect(fromHex(v2.toMiner.find(({ name }) => name === 'job of a bridge')!.hex).length).toBeLessThan(425);
});

test('the share of the vectors is a share, the block a block, and the jobs pay whom they should', () => {
  const job = jobNamed('job of a bridge');
  const hash = (nonce: Uint8Array) => referenceHash(job.epoch, concat(job.header.subarray(0, NONCE_OFFSET), nonce));
  const nonceOf = (wanted: string) => {
    const { value } = v2.toServer.find(({ name }) => name === wanted)!;
    if (value.type !== 'submit') throw new Error('not a submit');
    return value.submit.nonce as Uint8Array;
  };
  const target = decodeHeader(job.header).target;
  const [share, block] = [nonceOf('submit a share'), nonceOf('submit a block')];
  expect(meetsTarget(hash(share), targetToBytes(job.shareTarget))).toBe(true);
  expect(meetsTarget(hash(share), targetToBytes(target))).toBe(false);
  expect(targetFromBytes(hash(block))).toBeLessThanOrEqual(target);
  expect(hasPrefix(share, Uint8Array.of(0x0a, 0x01))).toBe(true);
  const found = v2.toMiner.find(({ value }) => value.type === 'block')!.value;
  expect(found).toMatchObject({ blockId: blockId(concat(job.header.subarray(0, NONCE_OFFSET), block)) });
  for (const each of [job, jobNamed('job of a pool')])
    expect(headerPays(each.header, each.payout, each.extranonce)).toBe(true);
  const authorize = v2.toServer.find(({ name }) => name === 'authorize')!.value;
  if (authorize.type !== 'authorize') throw new Error('not an authorize');
  expect(parseUsername(authorize.authorize.username, 'development').address.payload).toEqual(job.payout);
  const pool = v2.toMiner.find(({ name }) => name === 'subscribed to a pool')!.value;
  if (pool.type !== 'subscribed' || pool.subscribed.pool === null) throw new Error('not a pool');
  expect(parseAddress(pool.subscribed.pool.address).payload).toEqual(jobNamed('job of a pool').payout);
});

test('the headers of a farm job differ by generation, pay whom they should, and the share of a rig is a share', () => {
  const { value } = v2.toMiner.find(({ name }) => name === 'job of a farm')!;
  const submit = v2.toServer.find(({ name }) => name === 'submit a share of a rig')!.value;
  if (value.type !== 'farmJob' || submit.type !== 'farmSubmit') throw new Error('not the vectors expected');
  for (const { generation, extranonce, header } of v2.farmHeaders) {
    const job = jobOfFarm(value.job, generation);
    expect([toHex(job.extranonce), toHex(job.header)]).toEqual([extranonce, header]);
    expect(headerPays(job.header, job.payout, job.extranonce)).toBe(true);
  }
  expect(new Set(v2.farmHeaders.map(({ header }) => header)).size).toBe(v2.farmHeaders.length);
  const { header } = jobOfFarm(value.job, submit.submit.generation);
  const whole = concat(header.subarray(0, NONCE_OFFSET), submit.submit.nonce);
  expect(meetsTarget(referenceHash(0, whole), targetToBytes(value.job.shareTarget))).toBe(true);
});

test('job templates give the bytes of the plain encoders', () => {
  for (const job of [jobNamed('job of a bridge'), jobNamed('job of a pool')]) {
    const other: Job = {
      ...jobNamed('job of a pool'),
      jobId: 0xffffffff,
      header: Uint8Array.from(job.header),
      clean: true,
    };
    other.header.fill(0xee, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + 48);
    const part = {
      jobId: job.jobId,
      rewardRoot: job.header.slice(REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + 48),
      shareTarget: targetToBytes(job.shareTarget),
      payout: job.payout,
      extranonce: job.extranonce,
      clean: job.clean,
    };
    const line = new NotifyTemplate(other).fill(part);
    expect(new TextDecoder().decode(line)).toBe(`${encodeNotification({ method: 'mining.notify', params: job })}\n`);
    expect(toHex(new JobFrameTemplate(other).fill(part))).toBe(toHex(encodeServerFrame({ type: 'job', job })));
    expect(refusalOf(() => new NotifyTemplate(other).fill({ ...part, jobId: -1 }))).toBe('out_of_range');
    expect(refusalOf(() => new JobFrameTemplate(other).fill({ ...part, payout: new Uint8Array(48) }))).toBe(
      'out_of_range',
    );
  }
});

test('a filled job holds until the next one, and for ever when it is kept', () => {
  const base = jobNamed('job of a bridge');
  const partOf = (fill: number) => ({
    jobId: fill,
    rewardRoot: new Uint8Array(48).fill(fill),
    shareTarget: new Uint8Array(32).fill(fill >> 1),
    payout: new Uint8Array(49).fill(fill >> 2),
    extranonce: new Uint8Array(15).fill(fill),
    clean: false,
  });
  for (const make of [() => new NotifyTemplate(base), () => new JobFrameTemplate(base)]) {
    const template = make();
    const parts = Array.from({ length: 12 }, (_, i) => partOf(i + 1));
    const kept = parts.map((part, i) => {
      const bytes = template.fill(part);
      expect(toHex(bytes)).toBe(toHex(make().fill(part)));
      if (i % 3 === 0) template.keep();
      return bytes;
    });
    for (const [i, bytes] of kept.entries()) if (i % 3 === 0) expect(toHex(bytes)).toBe(toHex(make().fill(parts[i]!)));
    expect(new Set(kept).size).toBe(5);
  }
});

test('the quick answer to a share is the plain one', () => {
  for (const id of [0, 42, 'a"b'])
    expect(encodeAccepted(id, 123n)).toBe(
      encodeResult(id, { method: 'mining.submit', result: { work: 123n, blockId: null } }),
    );
});

test('the quick answers to a login are the plain ones', () => {
  const address = formatAddress(keyAddressPayload(new Uint8Array(32)), 'development');
  for (const id of [0, 42, 'a"b']) {
    for (const worker of ['', 'rig-7_a.b']) {
      const result = { address, worker };
      expect(encodeAuthorized(id, result)).toBe(encodeResult(id, { method: 'mining.authorize', result }));
    }
    for (const pool of [null, { address, name: 'A "pool" of \u20ac' }])
      for (const prefix of [0, 7, 0xfedc]) {
        const noncePrefix = Uint8Array.of(prefix >> 8, prefix & 255);
        const result = { session: '0a'.repeat(16), noncePrefix, network: 4, server: 'svc "x"\\/1', pool };
        expect(encodeSubscribed(id, result)).toBe(encodeResult(id, { method: 'mining.subscribe', result }));
      }
  }
});

test('the quick reader takes the canonical submit and leaves the rest alone', () => {
  for (const { name, value, text } of v1.toServer)
    expect(matchSubmit(utf8(text))).toEqual(name.startsWith('submit') ? value : null);
});

test('encoders refuse what decoders would', () => {
  const job = jobNamed('job of a bridge');
  const bad = (change: Partial<Job>) =>
    refusalOf(() => encodeNotification({ method: 'mining.notify', params: { ...job, ...change } }));
  expect(bad({ jobId: 2 ** 32 })).toBe('out_of_range');
  expect(bad({ shareTarget: 1n << 256n })).toBe('out_of_range');
  expect(bad({ extranonce: new Uint8Array(41) })).toBe('out_of_range');
  expect(bad({ header: new Uint8Array(311) })).toBe('unsupported_version');
  expect(refusalOf(() => encodeRequest(-1, { method: 'mining.ping' }))).toBe('out_of_range');
  expect(refusalOf(() => encodeError(1, { ...errorReply(20), retryAfterMillis: 1 }))).toBe('out_of_range');
  expect(refusalOf(() => encodeClientFrame({ type: 'ping', value: -1n }))).toBe('out_of_range');
});

test('usernames and passwords', () => {
  const { address, worker } = { address: v1Address(), worker: 'rig-1.gpu0' };
  expect(parseUsername(formatUsername(address, worker), 'development')).toMatchObject({ text: address, worker });
  expect(parseUsername(address, 'development').worker).toBe('');
  expect(refusalOf(() => parseUsername(address, 'mainnet'))).toBe('address_network');
  const burn = formatAddress(burnAddressPayload(), 'development');
  const anyBurn = formatAddress(Uint8Array.of(2, ...new Uint8Array(48).fill(9)), 'development');
  const multisig = formatAddress(Uint8Array.of(1, ...new Uint8Array(48).fill(9)), 'development');
  for (const gone of [burn, anyBurn, `${burn}.rig`])
    expect(refusalOf(() => parseUsername(gone, 'development'))).toBe('address_kind');
  expect(parseUsername(multisig, 'development').address.kind).toBe('multisig');
  expect(refusalOf(() => parseUsername(`${address}.`, 'development'))).toBe('username_text');
  expect(refusalOf(() => parseUsername(`${address}.<b>`, 'development'))).toBe('username_text');
  expect(refusalOf(() => parseUsername(`${address}.${'w'.repeat(65)}`, 'development'))).toBe('username_text');
  expect(refusalOf(() => parseUsername('', 'development'))).toBe('address_text');
  expect(parsePassword('')).toEqual({ fixedWork: null, minWork: null, rate: null });
  expect(parsePassword('x,min=10,d=2000')).toEqual({ fixedWork: 2000n, minWork: 10n, rate: null });
  expect(parsePassword('rate=554000000,x')).toEqual({ fixedWork: null, minWork: null, rate: 554_000_000n });
  for (const text of [
    'd=',
    'd=0',
    'd=-1',
    'd=1.5',
    'min=1e3',
    `d=${1n << 128n}`,
    'd=1,d=1',
    'rate=',
    'rate=0',
    'rate=fast',
  ])
    expect(refusalOf(() => parsePassword(text))).toBe('password_text');
});

test('a miner names its rate in its password, unless that says how fast or how hard itself', () => {
  expect(withRate('', 1234.4)).toBe('rate=1234');
  expect(withRate('x,min=9', 2 ** 60)).toBe(`x,min=9,rate=${2n ** 60n}`);
  for (const rate of [undefined, 0, 0.4, Number.NaN, Number.POSITIVE_INFINITY, -5])
    expect(withRate('x', rate)).toBe('x');
  for (const own of ['d=4', 'x,d=4', 'rate=5']) expect(withRate(own, 1e6)).toBe(own);
  const long = 'y'.repeat(250);
  expect(withRate(long, 1e6)).toBe(long);
  expect(parsePassword(withRate('', 2 ** 90)).rate).toBe(2n ** 90n);
});

function v1Address(): string {
  const answer = v1.toMiner.find(({ name }) => name === 'authorized')!.value;
  if (answer.kind !== 'result' || answer.method !== 'mining.authorize') throw new Error('not an authorization');
  return answer.result.address;
}

test('nonces carry the prefix last', () => {
  const prefix = Uint8Array.of(0xaa, 0xbb);
  expect(toHex(composeNonce(0x010203n, prefix))).toBe('030201000000aabb');
  expect(nonceCount(prefix)).toBe(1n << 48n);
  expect(refusalOf(() => composeNonce(1n << 48n, prefix))).toBe('out_of_range');
  expect(refusalOf(() => composeNonce(0n, new Uint8Array(5)))).toBe('out_of_range');
  expect(hasPrefix(fromHex('030201000000aabb'), prefix)).toBe(true);
  expect(hasPrefix(fromHex('aabb000000000000'), prefix)).toBe(false);
  expect(hasPrefix(new Uint8Array(7), prefix)).toBe(false);
});

test('error codes and bytes are distinct, and refusals have their answers', () => {
  expect(new Set(STRATUM_ERRORS.map(({ code }) => code)).size).toBe(STRATUM_ERRORS.length);
  expect(new Set(STRATUM_ERRORS.map(({ byte }) => byte)).size).toBe(STRATUM_ERRORS.length);
  expect(answerTo(new ProtocolError('address_checksum', ''))).toBe(29);
  expect(answerTo(new ProtocolError('tag_characters', ''))).toBe(30);
  expect(answerTo(new ProtocolError('unsupported_kind', ''))).toBe(-32601);
  expect(answerTo(new ProtocolError('truncated', ''))).toBe(-32602);
});
