/** The session machine: its rules one by one, and properties over random conversations. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Session } from '../../miner/client/session.ts';
import {
  SESSION_DEFAULTS,
  type SessionAction,
  type SessionEvent,
  type SessionMemory,
  type SessionOptions,
  type Share,
} from '../../miner/client/session-events.ts';
import type { FromServer } from '../../miner/client/wire.ts';
import { WireV2 } from '../../miner/client/wire-v2.ts';
import { parseAddress } from '../../protocol/address.ts';
import type { Receipt } from '../../protocol/books/receipt.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { errorReply } from '../../protocol/stratum/errors.ts';
import type { FarmJob } from '../../protocol/stratum/farm.ts';
import type { Job, Subscribed } from '../../protocol/stratum/messages.ts';
import { encodeServerFrame } from '../../protocol/stratum/v2.ts';
import { SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import { count, seed } from '../level.ts';
import { MINER_ADDRESS, POOL_ADDRESS, PoolFixture, THIEF_ADDRESS } from './pool-fixture.ts';
import { sessionOptions } from './session-options.ts';

const options = sessionOptions({ worker: 'rig', tag: 'tag' });

const SESSION = 'ab'.repeat(16);
const subscribed = (over: Partial<Subscribed> = {}): Subscribed => ({
  session: SESSION,
  noncePrefix: Uint8Array.of(7, 9),
  network: 4,
  server: 'fixture/1',
  pool: null,
  ...over,
});

const maker = new PoolFixture();
const jobPaying = (address: string, over: Partial<Job> = {}): Job => {
  maker.options.payTo = address;
  return { ...maker.makeJob({ username: MINER_ADDRESS } as never), ...over };
};

const received = (message: FromServer): SessionEvent => ({ kind: 'received', message });
const share = (n: number, session = SESSION): Share => ({
  session,
  jobId: 1,
  nonce: Uint8Array.of(n & 255, n >> 8, 0, 0, 0, 0, 7, 9),
  work: 200n,
  device: 0,
});
const kinds = (actions: readonly SessionAction[]): string[] =>
  actions.map((action) => (action.kind === 'send' ? action.message.kind : action.kind));
const ended = (actions: readonly SessionAction[]) => actions.find((action) => action.kind === 'end');

function loggedIn(
  over: Partial<SessionOptions> = {},
  server: Partial<Subscribed> = {},
  memory?: SessionMemory,
): Session {
  const session = new Session({ ...options, ...over }, 0, memory);
  session.handle({ kind: 'opened' }, 0);
  session.handle(received({ kind: 'subscribed', subscribed: subscribed(server) }), 0);
  session.handle(received({ kind: 'authorized', authorized: { address: MINER_ADDRESS, worker: 'rig' } }), 0);
  return session;
}

test('logs in and takes work', () => {
  const session = new Session(options, 0);
  expect(kinds(session.handle({ kind: 'opened' }, 0))).toEqual(['subscribe']);
  expect(kinds(session.handle(received({ kind: 'subscribed', subscribed: subscribed() }), 1))).toEqual(['authorize']);
  const authorized = { kind: 'authorized', authorized: { address: MINER_ADDRESS, worker: 'rig' } } as const;
  expect(kinds(session.handle(received(authorized), 2))).toEqual(['ready', 'ping']);
  expect(kinds(session.handle(received({ kind: 'job', job: jobPaying(MINER_ADDRESS) }), 3))).toEqual(['job']);
  expect(kinds(session.handle({ kind: 'share', share: share(1) }, 4))).toEqual(['submit']);
  const answer = session.handle(received({ kind: 'accepted', sequence: 1, work: 200n, blockId: null }), 5);
  expect(answer).toMatchObject([{ kind: 'verdict', verdict: 'accepted' }]);
});

test('a block of v2 is told with the answer to its share, and one of no share is not', () => {
  const session = loggedIn();
  session.handle(received({ kind: 'job', job: jobPaying(MINER_ADDRESS) }), 1);
  for (const nonce of [1, 2]) session.handle({ kind: 'share', share: share(nonce) }, 2);
  const blockId = new Uint8Array(48).fill(7);
  for (const sequence of [2, 99])
    expect(kinds(session.handle(received({ kind: 'block', sequence, blockId }), 3))).not.toContain('verdict');
  const answer = session.handle(received({ kind: 'acknowledged', through: 2, count: 2, work: 400n }), 4);
  const verdicts = answer.filter((action) => action.kind === 'verdict');
  expect(verdicts.map((verdict) => verdict.blockId)).toEqual([undefined, blockId]);
});

test.each([
  ['a bridge that pays somebody else', null, THIEF_ADDRESS, undefined],
  ['a pool that pays another than it named', { address: POOL_ADDRESS, name: 'p' }, THIEF_ADDRESS, undefined],
  [
    'a pool that pays the miner, who asked for another',
    { address: POOL_ADDRESS, name: 'p' },
    POOL_ADDRESS,
    MINER_ADDRESS,
  ],
])('refuses %s', (_, pool, paid, pin) => {
  const session = loggedIn({ pinned: pin === undefined ? undefined : parseAddress(pin).payload }, { pool });
  const actions = session.handle(received({ kind: 'job', job: jobPaying(paid) }), 1);
  expect(ended(actions)).toMatchObject({ refusal: { code: 'job_pays_other' } });
});

test('a payout field that the header does not hold is refused too', () => {
  const job = jobPaying(THIEF_ADDRESS, { payout: parseAddress(MINER_ADDRESS).payload });
  expect(ended(loggedIn().handle(received({ kind: 'job', job }), 1))).toMatchObject({
    refusal: { code: 'job_pays_other' },
  });
});

test.each([
  ['a target of zero', { shareTarget: 0n }, 'job_target_zero'],
  ['a share target harder than the block target', { shareTarget: targetOfWork(1n << 200n) }, 'job_share_target'],
  ['an epoch beyond its height', { epoch: 101 }, 'job_epoch'],
] as const)('refuses %s', (_, over, code) => {
  const actions = loggedIn().handle(received({ kind: 'job', job: jobPaying(MINER_ADDRESS, over) }), 1);
  expect(ended(actions)).toMatchObject({ refusal: { code } });
});

test.each([
  ['a rig kept back until their job was dead: the pool is not left', 30_000, undefined],
  ['are on a job of a moment ago: the pool is left', 1_000, 'pool_rejects'],
])('shares that are refused as late, fifty in a row, and %s', (_, millis, code) => {
  const session = loggedIn();
  session.handle(received({ kind: 'pong', token: 1 }), 0);
  for (const jobId of [1, 2]) session.handle(received({ kind: 'job', job: jobPaying(MINER_ADDRESS, { jobId }) }), 1);
  const answers = Array.from({ length: SESSION_DEFAULTS.maxRefused }, (_, i) => {
    session.handle({ kind: 'share', share: share(i) }, millis);
    return session.handle(received({ kind: 'rejected', sequence: i + 1, error: errorReply(21) }), millis);
  });
  expect(answers.flat().filter((action) => action.kind === 'verdict' && action.verdict === 'stale')).toHaveLength(
    SESSION_DEFAULTS.maxRefused,
  );
  // A clean job may still come.
  expect(ended(answers.flat())).toBeUndefined();
  const later = millis + SESSION_DEFAULTS.lateMillis + 1;
  expect(ended(session.handle({ kind: 'tick' }, later))?.refusal.code).toBe(code);
});

/** The reward root of its header is made anew for each generation. */
const farmJobOf = ({ extranonce, ...job }: Job): FarmJob => ({
  ...job,
  extranonceHead: extranonce.slice(0, -4),
  firstGeneration: 1,
});

test('a pool that takes fewer shares of a farm than it finds at the target that the pool set is left after ten minutes', () => {
  const session = loggedIn({ farmRigs: 8 });
  session.handle(received({ kind: 'farmOffer', offer: { rigs: 8, submitsPerSecond: 1 } }), 0);
  session.handle(received({ kind: 'pong', token: 1 }), 0);
  let now = 0;
  let [sequence, end]: [number, ReturnType<typeof ended>] = [0, undefined];
  for (let n = 0; end === undefined && now < 2 * SESSION_DEFAULTS.jobMillis; n++) {
    now += 200;
    const of = { ...share(n & 0xffff), farm: { generation: 1, rig: 'a' } };
    const actions = [...session.handle({ kind: 'share', share: of }, now), ...session.handle({ kind: 'tick' }, now)];
    for (const action of actions)
      if (action.kind === 'send' && action.message.kind === 'farmSubmit') ({ sequence } = action.message);
      else if (action.kind === 'send' && action.message.kind === 'ping')
        session.handle(received({ kind: 'pong', token: action.message.token }), now);
    session.handle(received({ kind: 'acknowledged', through: sequence, count: 0, work: 0n }), now);
    if (n % 50 === 0) session.handle(received({ kind: 'farmJob', job: farmJobOf(jobPaying(MINER_ADDRESS)) }), now);
    end = ended(actions);
  }
  expect(end?.refusal.code).toBe('pool_rejects');
  expect(now).toBeLessThan(SESSION_DEFAULTS.jobMillis + 60_000);
});

test('a server that offers a farm of more rigs than were asked for gets the names of as many as were asked for', () => {
  const session = loggedIn({ farmRigs: 2 });
  session.handle(received({ kind: 'farmOffer', offer: { rigs: 4_096, submitsPerSecond: 500 } }), 0);
  const indexes = new Set<number>();
  for (let n = 0; n < 6; n++)
    for (const action of session.handle(
      { kind: 'share', share: { ...share(n), farm: { generation: 1, rig: `rig-${n}` } } },
      n * 600_000,
    ))
      if (action.kind === 'send' && action.message.kind === 'rig') indexes.add(action.message.rig.index);
  expect([...indexes]).toEqual([0, 1]);
});

test('a server of another network, or one that takes another address for ours, is left', () => {
  const wrongNetwork = new Session(options, 0);
  wrongNetwork.handle({ kind: 'opened' }, 0);
  const answer = wrongNetwork.handle(received({ kind: 'subscribed', subscribed: subscribed({ network: 1 }) }), 0);
  expect(ended(answer)).toMatchObject({ refusal: { code: 'pool_network' } });
  const wrongAddress = new Session(options, 0);
  wrongAddress.handle({ kind: 'opened' }, 0);
  wrongAddress.handle(received({ kind: 'subscribed', subscribed: subscribed() }), 0);
  const authorized = { address: THIEF_ADDRESS, worker: '' };
  expect(ended(wrongAddress.handle(received({ kind: 'authorized', authorized }), 0))).toMatchObject({
    refusal: { code: 'pool_refused_login' },
  });
});

test('a tag that is not allowed is left out, a server that is not ready is asked again, a ban is respected', () => {
  const tagged = new Session(options, 0);
  tagged.handle({ kind: 'opened' }, 0);
  const again = tagged.handle(received({ kind: 'refused', error: errorReply(30) }), 0);
  expect(again.at(-1)).toMatchObject({ message: { kind: 'subscribe', subscribe: { tag: '' } } });
  tagged.handle(received({ kind: 'subscribed', subscribed: subscribed() }), 0);
  tagged.handle(received({ kind: 'refused', error: errorReply(31) }), 0);
  expect(kinds(tagged.handle({ kind: 'tick' }, 4_000))).toEqual([]);
  expect(kinds(tagged.handle({ kind: 'tick' }, 6_000))).toEqual(['authorize']);
  const banned = { code: 28, message: 'banned', retryAfterMillis: 123_000 } as const;
  expect(ended(tagged.handle(received({ kind: 'refused', error: banned }), 7_000))).toMatchObject({
    retryAfterMillis: 123_000,
    refusal: { code: 'pool_banned' },
  });
});

test('one acknowledgement answers a run of shares, but not those named as rejected before', () => {
  const session = loggedIn();
  for (let n = 1; n <= 4; n++) session.handle({ kind: 'share', share: share(n) }, 1);
  session.handle(received({ kind: 'rejected', sequence: 2, error: errorReply(21) }), 2);
  const actions = session.handle(received({ kind: 'acknowledged', through: 3, count: 3, work: 400n }), 3);
  expect(actions.map((action) => action.kind === 'verdict' && action.verdict)).toEqual(['accepted', 'accepted']);
  expect(session.unanswered).toBe(1);
  const beyond = session.handle(received({ kind: 'acknowledged', through: 9, count: 1, work: 1n }), 4);
  expect(ended(beyond)).toMatchObject({ refusal: { code: 'pool_garbage' } });
});

test('work that was accepted but not credited in full is reported', () => {
  const short = (actions: readonly SessionAction[]) =>
    actions.some((action) => action.kind === 'note' && /credited less/.test(action.message));
  const v1 = loggedIn();
  v1.handle({ kind: 'share', share: share(1) }, 1);
  v1.handle({ kind: 'share', share: share(2) }, 1);
  expect(short(v1.handle(received({ kind: 'accepted', sequence: 1, work: 200n, blockId: null }), 2))).toBe(false);
  expect(short(v1.handle(received({ kind: 'accepted', sequence: 2, work: 199n, blockId: null }), 2))).toBe(true);
  const v2 = loggedIn();
  for (let n = 1; n <= 6; n++) v2.handle({ kind: 'share', share: share(n) }, 1);
  const acknowledge = (through: number, count: number, work: bigint) =>
    short(v2.handle(received({ kind: 'acknowledged', through, count, work }), 2));
  expect(acknowledge(2, 2, 9_400n)).toBe(false);
  expect(acknowledge(4, 2, 9_800n)).toBe(false);
  expect(acknowledge(5, 1, 9_900n)).toBe(true);
  expect(acknowledge(6, 0, 10_100n)).toBe(true);
});

test('unanswered shares go to the resumed session once more, and a duplicate there is an acceptance', () => {
  const first = loggedIn();
  first.handle({ kind: 'share', share: share(1) }, 1);
  first.handle({ kind: 'closed', refusal: { code: 'pool_closed', message: '' } }, 2);
  const memory = first.memory(2) as SessionMemory;
  const next = new Session(options, 3, memory);
  expect(next.handle({ kind: 'opened' }, 3)[0]).toMatchObject({ message: { subscribe: { session: SESSION } } });
  next.handle({ kind: 'share', share: share(2) }, 3);
  next.handle(received({ kind: 'subscribed', subscribed: subscribed() }), 4);
  const authorized = { address: MINER_ADDRESS, worker: 'rig' };
  expect(kinds(next.handle(received({ kind: 'authorized', authorized }), 5))).toEqual([
    'ready',
    'submit',
    'submit',
    'ping',
  ]);
  const answer = next.handle(received({ kind: 'rejected', sequence: 1, error: errorReply(22) }), 6);
  expect(answer).toMatchObject([{ verdict: 'accepted' }]);
});

test('a session that was not resumed loses the shares of the one before', () => {
  const memory = {
    session: 'cd'.repeat(16),
    prefix: Uint8Array.of(1, 1),
    brokenAt: 0,
    unanswered: [share(1, 'cd'.repeat(16))],
  };
  const session = new Session(options, 1, memory);
  session.handle({ kind: 'opened' }, 1);
  // Its jobs are dead from here on, however long the login takes.
  expect(session.handle(received({ kind: 'subscribed', subscribed: subscribed() }), 1)).toContainEqual({
    kind: 'forgotten',
  });
  const authorized = { address: MINER_ADDRESS, worker: 'rig' };
  const actions = session.handle(received({ kind: 'authorized', authorized }), 1);
  expect(actions).toContainEqual(expect.objectContaining({ kind: 'verdict', verdict: 'lost' }));
});

test('measures the latency, and ends when a ping stays unanswered', () => {
  const session = loggedIn();
  session.handle(received({ kind: 'pong', token: 1 }), 40);
  expect(session.latencyMillis).toBe(40);
  let now = 40;
  let last: readonly SessionAction[] = [];
  const seen: string[] = [];
  session.handle(received({ kind: 'job', job: jobPaying(MINER_ADDRESS) }), 41);
  while (ended(last) === undefined && now < 100_000) {
    now += 1_000;
    last = session.handle({ kind: 'tick' }, now);
    seen.push(...kinds(last));
  }
  expect(seen).toEqual(['ping', 'end']);
  expect(ended(last)).toMatchObject({ refusal: { code: 'pool_silent' } });
  expect(now).toBeLessThanOrEqual(42_000);
});

test('a clock that jumps ends nothing: the server is asked first', () => {
  for (const jump of [3_600_000, -3_600_000]) {
    const session = loggedIn();
    session.handle(received({ kind: 'job', job: jobPaying(MINER_ADDRESS) }), 1);
    const actions = session.handle({ kind: 'tick' }, jump);
    expect(kinds(actions)).toEqual(['note', 'ping']);
    session.handle(received({ kind: 'pong', token: 2 }), jump + 30);
    expect(session.latencyMillis).toBe(30);
  }
});

const error = fc.constantFrom(20, 21, 22, 23, 24, 26, 27, 29, 30, 31).map((code) => errorReply(code as 21));
const number = fc.integer({ min: 0, max: 6 });
const anyEvent: fc.Arbitrary<SessionEvent> = fc.oneof(
  fc.constant<SessionEvent>({ kind: 'opened' }),
  fc.constant<SessionEvent>({ kind: 'tick' }),
  fc.constant<SessionEvent>({ kind: 'garbage', reason: 'x' }),
  fc.constant<SessionEvent>({ kind: 'closed', refusal: { code: 'pool_closed', message: 'x' } }),
  number.map((n): SessionEvent => ({ kind: 'share', share: share(n) })),
  fc
    .constantFrom(SESSION, 'cd'.repeat(16))
    .map((id) => received({ kind: 'subscribed', subscribed: subscribed({ session: id }) })),
  fc
    .constantFrom(MINER_ADDRESS, THIEF_ADDRESS)
    .map((address) => received({ kind: 'authorized', authorized: { address, worker: 'rig' } })),
  fc.constantFrom(jobPaying(MINER_ADDRESS), jobPaying(THIEF_ADDRESS)).map((job) => received({ kind: 'job', job })),
  number.map((sequence) => received({ kind: 'accepted', sequence, work: 1n, blockId: null })),
  number.map((through) => received({ kind: 'acknowledged', through, count: 1, work: 1n })),
  fc.tuple(number, error).map(([sequence, reply]) => received({ kind: 'rejected', sequence, error: reply })),
  error.map((reply) => received({ kind: 'refused', error: reply })),
  number.map((token) => received({ kind: 'pong', token })),
);

/** A conversation that got through the login, so that the properties are not only about refusals. */
const conversation = fc.tuple(
  fc.boolean(),
  fc.array(fc.tuple(anyEvent, fc.integer({ min: 0, max: 30_000 })), { maxLength: 40 }),
);

test('every share gets exactly one verdict, nothing is said after the end, no job of a thief gets through', () => {
  let jobs = 0;
  let ends = 0;
  fc.assert(
    fc.property(conversation, ([login, events]) => {
      const session = login ? loggedIn() : new Session(options, 0);
      let now = 0;
      let given = 0;
      let answered = 0;
      let over = false;
      for (const [event, step] of events) {
        now += step;
        if (event.kind === 'share') given++;
        const actions = session.handle(event, now);
        if (over) expect(actions.every(({ kind }) => kind === 'verdict')).toBe(true);
        for (const action of actions) {
          if (action.kind === 'verdict') answered++;
          if (action.kind === 'job') {
            jobs++;
            expect(action.job.job.payout).toEqual(options.own);
          }
          if (action.kind === 'send' && action.message.kind === 'submit') expect(session.phase).not.toBe('opening');
          if (action.kind === 'end') {
            expect(over).toBe(false);
            over = true;
            ends++;
          }
        }
        expect(session.phase === 'ended').toBe(over);
      }
      expect(answered + (session.memory(now)?.unanswered.length ?? 0)).toBe(given);
    }),
    { seed, numRuns: count({ quick: 300, full: 3_000, deep: 100_000 }) },
  );
  expect(jobs).toBeGreaterThan(0);
  expect(ends).toBeGreaterThan(0);
  expect(SESSION_DEFAULTS.maxPending).toBeGreaterThan(40);
});

test('answers to what was sent are no flood, however many come at once', () => {
  const session = loggedIn();
  const { maxPending } = SESSION_DEFAULTS;
  for (let n = 0; n < maxPending; n++) session.handle({ kind: 'share', share: share(n) }, n * 20);
  const now = maxPending * 20;
  for (let sequence = 1; sequence <= maxPending; sequence++)
    expect(ended(session.handle(received({ kind: 'rejected', sequence, error: errorReply(31) }), now))).toBeUndefined();
});

test('the receipts of all rigs of a farm are no flood, those without end are', () => {
  const RIGS = 4_096;
  const session = loggedIn({ farmRigs: RIGS, receipts: true });
  session.handle(received({ kind: 'farmOffer', offer: { rigs: RIGS, submitsPerSecond: 1_000 } }), 1);
  const receipt = received({ kind: 'receipt', receipt: {} as Receipt });
  for (let n = 0; n < 2 * RIGS; n++) expect(ended(session.handle(receipt, 1))).toBeUndefined();
  let more = 0;
  while (ended(session.handle(receipt, 1)) === undefined) expect(more++).toBeLessThan(4 * RIGS);
});

test('heads of receipts without end are a flood as all messages are', () => {
  const session = loggedIn({ receipts: true });
  const wire = new WireV2(true);
  const root = '00'.repeat(48);
  const sheet = { slice: 1, boot: '00'.repeat(8), chain: root, root, accounts: 1, total_work: '1' };
  const head = { network: 'development', service: 'pplns', ...sheet, receipts: 1, receipts_root: root } as const;
  const signature = new Uint8Array(SIGNATURE_BYTES);
  const frame = encodeServerFrame({ type: 'receiptHead', signed: { head, signature } });
  let end: ReturnType<typeof ended>;
  const take = (message: FromServer) => {
    end ??= ended(session.handle(received(message), 1));
  };
  for (let n = 0; n < 5_000 && end === undefined; n++) wire.receive(frame, take);
  expect(end?.refusal.code).toBe('pool_flood');
});

const OFFER = received({ kind: 'farmOffer', offer: { rigs: 9, submitsPerSecond: 500 } });
test.each([
  ['a plain session', 80, {}, undefined],
  ['a farm', 500, { farmRigs: 9 }, OFFER],
])(
  '%s sends no more shares than the server takes, %i a second; what comes sooner waits, and none is forgotten',
  (_, perSecond, over, offer) => {
    const session = loggedIn(over);
    if (offer !== undefined) session.handle(offer, 0);
    const farm = offer === undefined ? {} : { farm: { generation: 1, rig: 'a' } };
    let [sent, lost, given] = [0, 0, 0];
    const note = (actions: readonly SessionAction[]) => {
      for (const kind of kinds(actions)) if (kind === 'submit' || kind === 'farmSubmit') sent++;
      for (const action of actions) if (action.kind === 'verdict' && action.verdict === 'lost') lost++;
      expect(ended(actions)).toBeUndefined();
    };
    for (let now = 0; now <= 2_000; now += 250) {
      note(session.handle({ kind: 'tick' }, now));
      for (let i = 0; i < perSecond; i++)
        note(session.handle({ kind: 'share', share: { ...share(given++ % 65_536), ...farm } }, now));
      expect(sent).toBeLessThanOrEqual(perSecond * (5 + now / 1_000));
    }
    expect(sent).toBe(7 * perSecond);
    expect(lost + (session.memory(2_000)?.unanswered.length ?? 0)).toBe(given);
  },
);
