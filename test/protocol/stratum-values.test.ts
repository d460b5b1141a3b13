/**
 * Arbitrary values of every stratum message survive both wire forms, and v1 messages with one field replaced by any JSON
 * are read or refused: mutations of whole values reach the checks that mutations of bytes rarely get to.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, concat, toHex, utf8 } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { NETWORK_NAMES, networkById } from '../../protocol/network.ts';
import { bannedReply, type ErrorReply, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import type { FarmJob } from '../../protocol/stratum/farm.ts';
import { readFrame } from '../../protocol/stratum/frame.ts';
import { JobFrameTemplate, NotifyTemplate } from '../../protocol/stratum/job-template.ts';
import { type Job, REJECT_REASONS, WORK_MAX } from '../../protocol/stratum/messages.ts';
import {
  decodeServerMessage,
  encodeError,
  encodeNotification,
  encodeResult,
  type ServerMessage,
} from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, encodeRequest, type Request } from '../../protocol/stratum/v1-request.ts';
import {
  type ClientFrame,
  decodeClientFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeServerFrame,
  type ServerFrame,
} from '../../protocol/stratum/v2.ts';
import { count, seed } from '../level.ts';
import { methodOf, v1 } from './stratum-vectors.ts';

const runs = count({ quick: 300, full: 2000, deep: 100_000 });

const bytes = (length: number): fc.Arbitrary<Bytes> => fc.uint8Array({ minLength: length, maxLength: length });
const u32 = fc.nat({ max: 0xffffffff });
const u64 = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
const work = fc.bigInt({ min: 0n, max: WORK_MAX });
const safe = fc.maxSafeNat();
const agent = fc.stringMatching(/^[ -~]{0,64}$/);
const tag = fc.stringMatching(/^[A-Za-z0-9 ._/:+@#()!-]{0,20}$/);
const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const session = bytes(16).map(toHex);
const worker = fc.stringMatching(/^[A-Za-z0-9_.-]{0,64}$/);
const payout = bytes(48).map((hash) => concat(Uint8Array.of(0), hash));
const networkId = fc.integer({ min: 1, max: 4 });
const id = fc.oneof(safe, fc.string({ unit: 'grapheme', maxLength: 8 }));

const subscribe = fc.record({ agent, tag, session: fc.option(session) });
const authorize = fc.record({ username: text, password: text });
const submit = fc.record({ jobId: u32, nonce: bytes(8) });
const subscribed = fc
  .record({
    session,
    noncePrefix: fc.uint8Array({ minLength: 1, maxLength: 2 }) as fc.Arbitrary<Bytes>,
    network: networkId,
    server: agent,
    pool: fc.option(fc.record({ payout, name: text })),
  })
  .map(({ pool, ...rest }) => {
    const network = networkById(rest.network).name;
    return { ...rest, pool: pool && { address: formatAddress(pool.payout, network), name: pool.name } };
  });
const authorized = fc
  .record({ payout, network: fc.constantFrom(...NETWORK_NAMES), worker })
  .map(({ payout: payload, network, worker: name }) => ({ address: formatAddress(payload, network), worker: name }));
const root = bytes(48);
const target = fc.bigInt({ min: 0n, max: (1n << 256n) - 1n });
const header = fc
  .record({
    networkId,
    anchorHeight: fc.nat({ max: 2 ** 40 }),
    timestampMillis: fc.nat({ max: 2 ** 45 }),
    anchorId: root,
    parentsRoot: root,
    transactionsRoot: root,
    rewardRoot: root,
    stateRoot: root,
    target,
    nonce: fc.constant(new Uint8Array(8)),
  })
  .map(encodeHeader);
const job: fc.Arbitrary<Job> = fc.record({
  jobId: u32,
  header,
  shareTarget: target,
  epoch: u32,
  payout,
  extranonce: fc.uint8Array({ maxLength: 40 }) as fc.Arbitrary<Bytes>,
  clean: fc.boolean(),
});
const farmJob = fc.tuple(job, u32).map(
  ([{ extranonce, ...plain }, firstGeneration]): FarmJob => ({
    ...plain,
    header: Uint8Array.from(plain.header).fill(0, 176, 224),
    extranonceHead: extranonce.subarray(0, 36),
    firstGeneration,
  }),
);
const reconnect = fc.record({
  host: fc.stringMatching(/^[A-Za-z0-9._:-]{0,40}$/),
  port: fc.nat({ max: 0xffff }),
  waitMillis: u32,
});
const error: fc.Arbitrary<ErrorReply> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...STRATUM_ERRORS.map(({ code }) => code).filter((code) => code !== 28)), text)
    .map(([code, message]): ErrorReply => ({ code, message, retryAfterMillis: null })),
  u32.map(bannedReply),
);
const stats = fc.record({
  accepted: safe,
  rejected: fc.record(Object.fromEntries(REJECT_REASONS.map((reason) => [reason, safe])), { requiredKeys: [] }),
  stale: safe,
  work,
  hashRate: work,
  shareWork: work,
  pool: fc.option(fc.record({ pendingAtoms: work, paidAtoms: work })),
});

const requests = fc.oneof(
  fc.record({ kind: fc.constant('request'), id, method: fc.constant('mining.subscribe'), params: subscribe }),
  fc.record({ kind: fc.constant('request'), id, method: fc.constant('mining.authorize'), params: authorize }),
  fc.record({ kind: fc.constant('request'), id, method: fc.constant('mining.submit'), params: submit }),
  fc.record({ kind: fc.constant('request'), id, method: fc.constantFrom('mining.stats', 'mining.ping') }),
) as fc.Arbitrary<Request>;

const answers = fc.oneof(
  fc.record({ kind: fc.constant('result'), id, method: fc.constant('mining.subscribe'), result: subscribed }),
  fc.record({ kind: fc.constant('result'), id, method: fc.constant('mining.authorize'), result: authorized }),
  fc.record({
    kind: fc.constant('result'),
    id,
    method: fc.constant('mining.submit'),
    result: fc.record({ work, blockId: fc.option(root) }),
  }),
  fc.record({ kind: fc.constant('result'), id, method: fc.constant('mining.stats'), result: stats }),
  fc.record({ kind: fc.constant('result'), id, method: fc.constant('mining.ping') }),
  fc.record({ kind: fc.constant('notification'), method: fc.constant('mining.notify'), params: job }),
  fc.record({ kind: fc.constant('notification'), method: fc.constant('mining.reconnect'), params: reconnect }),
  fc.record({ kind: fc.constant('error'), id: fc.option(id), error }),
) as fc.Arbitrary<ServerMessage>;

const pings = [
  fc.record({ type: fc.constant('ping'), value: u64 }),
  fc.record({ type: fc.constant('pong'), value: u64 }),
];
const clientFrames = fc.oneof(
  fc.record({ type: fc.constant('subscribe'), subscribe }),
  fc.record({ type: fc.constant('authorize'), authorize }),
  fc.record({ type: fc.constant('submit'), sequence: u32, submit }),
  fc.record({ type: fc.constant('farm'), rigs: fc.integer({ min: 1, max: 4096 }) }),
  fc.record({ type: fc.constant('rig'), rig: fc.record({ index: fc.nat({ max: 4095 }), worker }) }),
  fc.record({
    type: fc.constant('farmSubmit'),
    sequence: u32,
    submit: fc.record({ jobId: u32, generation: u32, rig: fc.nat({ max: 0xffff }), nonce: bytes(8) }),
  }),
  ...pings,
) as fc.Arbitrary<ClientFrame>;
const serverFrames = fc.oneof(
  fc.record({ type: fc.constant('subscribed'), subscribed }),
  fc.record({ type: fc.constant('authorized'), authorized }),
  fc.record({ type: fc.constant('job'), job }),
  fc.record({ type: fc.constant('farmJob'), job: farmJob }),
  fc.record({
    type: fc.constant('farmOffer'),
    offer: fc.record({ rigs: fc.nat({ max: 4096 }), submitsPerSecond: u32 }),
  }),
  fc.record({ type: fc.constant('accepted'), through: u32, count: u32, work }),
  fc.record({
    type: fc.constant('rejected'),
    sequence: u32,
    code: fc.constantFrom(...STRATUM_ERRORS.map(({ code }) => code)),
  }),
  fc.record({ type: fc.constant('block'), sequence: u32, blockId: root }),
  fc.record({ type: fc.constant('error'), error }),
  fc.record({ type: fc.constant('reconnect'), reconnect }),
  ...pings,
) as fc.Arbitrary<ServerFrame>;

function answerText(message: ServerMessage): string {
  if (message.kind === 'result') return encodeResult(message.id, message);
  return message.kind === 'error' ? encodeError(message.id, message.error) : encodeNotification(message);
}

/** fast-check's text may hold control characters, which encoders refuse: then there is nothing to carry. */
function carry<T>(value: T, encode: () => Bytes | string, decode: (encoded: Bytes | string) => T): boolean {
  const encoded = attempt(encode);
  if (!encoded.ok) {
    expect(encoded.error.code).toBe('out_of_range');
    return false;
  }
  expect(decode(encoded.value)).toEqual(value);
  return true;
}

function carryAll<T>(name: string, values: fc.Arbitrary<T>, check: (value: T) => boolean): void {
  let carried = 0;
  fc.assert(
    fc.property(values, (value) => {
      if (check(value)) carried++;
    }),
    { seed, numRuns: runs },
  );
  console.log(`round trip ${name}: ${runs} values, ${carried} carried`);
  expect(carried).toBeGreaterThan(runs / 2);
}

test('v1 requests', () =>
  carryAll('v1 requests', requests, (value) =>
    carry<unknown>(value, () => utf8(encodeRequest(value.id, value)), decodeRequest),
  ));

test('v1 answers', () =>
  carryAll('v1 answers', answers, (value) =>
    carry(
      value,
      () => answerText(value),
      (encoded) => decodeServerMessage(encoded, () => (value.kind === 'result' ? value.method : undefined)),
    ),
  ));

test('v2 client frames', () =>
  carryAll('v2 client frames', clientFrames, (value) =>
    carry(
      value,
      () => encodeClientFrame(value),
      (encoded) => decodeClientFrame(readFrame(encoded as Bytes)),
    ),
  ));

test('v2 server frames', () =>
  carryAll('v2 server frames', serverFrames, (value) =>
    carry(
      value,
      () => encodeServerFrame(value),
      (encoded) => decodeServerFrame(readFrame(encoded as Bytes)),
    ),
  ));

test('job templates equal the plain encoders for any job', () => {
  fc.assert(
    fc.property(job, job, (wanted, other) => {
      const root48 = rewardRoot(wanted.payout, wanted.extranonce);
      const whole = { ...wanted, header: Uint8Array.from(other.header), epoch: other.epoch };
      whole.header.set(root48, 176);
      const part = { ...wanted, rewardRoot: root48, shareTarget: targetToBytes(wanted.shareTarget) };
      const line = `${encodeNotification({ method: 'mining.notify', params: whole })}\n`;
      expect(new TextDecoder().decode(new NotifyTemplate(other).fill(part))).toBe(line);
      const frame = encodeServerFrame({ type: 'job', job: whole });
      expect(toHex(new JobFrameTemplate(other).fill(part))).toBe(toHex(frame));
    }),
    { seed, numRuns: count({ quick: 100, full: 500, deep: 20_000 }) },
  );
});

type Tree = { [key: string]: unknown };

/** Sets, removes or adds one field somewhere in a message. */
function meddle(message: string, pick: number, depth: number, value: unknown, act: 'set' | 'remove' | 'add'): string {
  const tree = JSON.parse(message) as Tree;
  let place = tree;
  for (let i = 0; i < depth; i++) {
    const inner = Object.values(place).filter((item) => typeof item === 'object' && item !== null) as Tree[];
    if (inner.length > 0) place = inner[pick % inner.length] as Tree;
  }
  const keys = Object.keys(place);
  const key = act === 'add' || keys.length === 0 ? `x${pick}` : (keys[pick % keys.length] as string);
  if (act === 'remove') delete place[key];
  else place[key] = value;
  return JSON.stringify(tree);
}

test('v1 messages with a field changed are read or refused with the right id', () => {
  const sameIds = (textOf: string) => (JSON.parse(textOf) as Tree).id;
  const samples = [...v1.toServer, ...v1.toMiner].map((entry) => entry.text);
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.bigInt({ min: 0n, max: WORK_MAX }).map(String),
    session,
    text,
  );
  const outcomes = { read: 0, refused: 0 };
  fc.assert(
    fc.property(
      fc.constantFrom(...samples),
      fc.nat({ max: 1000 }),
      fc.nat({ max: 2 }),
      value,
      fc.constantFrom('set', 'remove', 'add') as fc.Arbitrary<'set' | 'remove' | 'add'>,
      (sample, pick, depth, replacement, act) => {
        const changed = meddle(sample, pick, depth, replacement, act);
        const request = decodeRequest(utf8(changed));
        if (request.kind === 'request') expect(decodeRequest(encodeRequest(request.id, request))).toEqual(request);
        if (request.id !== null) expect(request.id).toBe(sameIds(changed));
        const answer = attempt(() => decodeServerMessage(changed, methodOf));
        if (answer.ok) expect(decodeServerMessage(answerText(answer.value), methodOf)).toEqual(answer.value);
        if (answer.ok || request.kind === 'request') outcomes.read++;
        else outcomes.refused++;
      },
    ),
    { seed, numRuns: runs },
  );
  console.log(`fuzz v1 fields: ${runs} messages, ${outcomes.read} read, ${outcomes.refused} refused`);
  expect(outcomes.read).toBeGreaterThan(0);
});
