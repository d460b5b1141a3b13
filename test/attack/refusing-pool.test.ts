/**
 * A pool that keeps a part of the shares, or all: it takes the blocks among them, and credits nothing. It hides that behind an
 * accepted share now and then, behind answers that are no verdict, behind silence, or behind connections that it ends. An
 * honest pool is second in the list. However the first one does it, the client is with the second one within minutes.
 */
import { expect, test } from 'vitest';
import { PoolClient } from '../../miner/client/pool-client.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import { type PoolJob, SESSION_DEFAULTS } from '../../miner/client/session-events.ts';
import type { TransportEvents } from '../../miner/client/transport.ts';
import { refusal } from '../../miner/miner-error.ts';
import { toHex, utf8 } from '../../protocol/bytes.ts';
import { CODE, errorReply, type RefusalCode } from '../../protocol/stratum/errors.ts';
import { encodeError, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest } from '../../protocol/stratum/v1-request.ts';
import { count as countAt, seed } from '../level.ts';
import { MINER_ADDRESS, PoolFixture } from '../miner/pool-fixture.ts';
import { sessionOptions } from '../miner/session-options.ts';
import { type Random, randomOf } from '../random.ts';

const STEP = 1_000;
const JOB_MILLIS = 5_000;
const MINUTE = 60_000;
/** Shares a second. */
const RATE = countAt({ quick: 1, full: 2, deep: 2 });
/** How long the other pool is looked at. */
const AFTER_MINUTES = countAt({ quick: 2, full: 7, deep: 7 });

type Answer = 'take' | 'nothing' | RefusalCode;
type Pool = {
  /** What it does with the share that is its n-th; `again`: one that it had before, or that was found before the connection was made. */
  readonly answer: (n: number, random: Random, again: boolean) => Answer;
  readonly cleanOneIn?: number;
  readonly jobMillis?: number;
  /** It ends each connection after so long. */
  readonly closesMillis?: number;
  /** It knows no session of before. */
  readonly forgets?: boolean;
  /** Jobs that came since, when the rig finds a share. */
  readonly behind?: number;
  /** Its clean jobs come faster than the rig takes them up. */
  readonly outruns?: boolean;
  /** It cannot be reached for so long after each connection. */
  readonly awayMillis?: number;
};
const HONEST: Pool = { answer: () => 'take' };

/** For how long each pool was the one in use, and how many shares each took. */
function play(
  first: Pool,
  millis: number,
  pools = [first, HONEST],
): { readonly used: number[]; taken: number[]; why: string[] } {
  const random = randomOf(seed);
  const why: string[] = [];
  const maker = new PoolFixture();
  const open: {
    readonly pool: number;
    readonly number: number;
    readonly events: TransportEvents;
    since: number;
    endedMillis: number;
    isOver: boolean;
  }[] = [];
  let later: (() => void)[] = [];
  let tick = (): void => undefined;
  let [now, nonce, due] = [0, 0, 0];
  const jobs: PoolJob[] = [];
  const known = new Set<string>();
  const [used, taken, sent] = [
    [0, 0],
    [0, 0],
    [0, 0],
  ];
  const count = (of: number[], pool: number, by = 1): number => {
    of[pool] = (of[pool] ?? 0) + by;
    return of[pool];
  };
  const client = new PoolClient(
    {
      pools: ['a', 'b'].slice(0, pools.length).map((host) => parsePoolUrl(`stratum+tcp://${host}:1`)),
      session: sessionOptions(),
    },
    { onJob: (news) => (news === undefined ? jobs.splice(0) : jobs.push(news)), onVerdict: () => undefined },
    {
      now: () => now,
      random: () => 0.5,
      note: (_level, _message, { code }) => void why.push(String(code)),
      every: (_millis, act) => {
        tick = act;
        return () => undefined;
      },
      connect: ({ host }, events) => {
        const link = {
          pool: host === 'a' ? 0 : 1,
          number: open.length % 9,
          events,
          since: now,
          endedMillis: 0,
          isOver: false,
        };
        const { awayMillis = 0 } = pools[link.pool] as Pool;
        const before = open.findLast((each) => each.pool === link.pool);
        if (before !== undefined && now - before.endedMillis < awayMillis) {
          later.push(() => events.onClose(refusal('pool_unreachable', 'no way')));
          return { send: () => undefined, close: () => undefined };
        }
        open.push(link);
        const put = (text: string) => later.push(() => link.isOver || events.onData(utf8(`${text}\n`)));
        later.push(() => events.onOpen());
        return {
          send(data) {
            const request = decodeRequest(data as Uint8Array);
            if (request.kind === 'invalid') throw new Error(request.reason);
            const { id, method } = request;
            if (method === 'mining.subscribe') {
              const session = `${link.pool}${pools[link.pool]?.forgets ? link.number : 'a'}`.repeat(16);
              const named = { session, noncePrefix: Uint8Array.of(1, link.pool), network: 4, server: 's', pool: null };
              put(encodeResult(id, { method, result: named }));
            } else if (method === 'mining.authorize') {
              put(encodeResult(id, { method, result: { address: MINER_ADDRESS, worker: '' } }));
              put(newJob(true));
            } else if (method === 'mining.ping') put(encodeResult(id, { method }));
            else if (method === 'mining.submit') {
              const { nonce } = request.params;
              const answer = (pools[link.pool] as Pool).answer(
                count(sent, link.pool),
                random,
                known.has(toHex(nonce)) || now === link.since,
              );
              known.add(toHex(nonce));
              if (answer === 'nothing') return;
              if (answer !== 'take') put(encodeError(id, errorReply(answer)));
              else put(encodeResult(id, { method, result: { work: jobs.at(-1)?.work ?? 1n, blockId: null } }));
              if (answer === 'take') count(taken, link.pool);
            }
          },
          close: () => {
            link.isOver = true;
          },
        };
      },
    },
  );
  const newJob = (clean: boolean): string =>
    encodeNotification({
      method: 'mining.notify',
      params: { ...maker.makeJob({ username: MINER_ADDRESS } as never), clean },
    });
  const settle = (): void => {
    while (later.length > 0) {
      const runs = later;
      later = [];
      for (const run of runs) run();
    }
  };
  client.start();
  for (; now < millis; now += STEP) {
    for (const link of open.filter(({ isOver }) => !isOver)) {
      const {
        closesMillis = Number.POSITIVE_INFINITY,
        cleanOneIn = 1e9,
        jobMillis = JOB_MILLIS,
      } = pools[link.pool] as Pool;
      if (now - link.since >= closesMillis) {
        [link.isOver, link.endedMillis] = [true, now];
        link.events.onClose(refusal('pool_closed', 'gone'));
      } else if (now % jobMillis === 0 && now > link.since)
        link.events.onData(utf8(`${newJob(random(cleanOneIn) === 0)}\n`));
    }
    settle();
    for (due += (RATE * STEP) / 1_000; due >= 1; due--) {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setUint32(0, ++nonce);
      const job = jobs.at(-1 - (client.state?.pool === 0 ? (first.behind ?? 0) : 0));
      if (client.state?.pool === 0 && first.outruns) client.missed();
      else if (job !== undefined)
        client.submit({ session: job.session, jobId: job.job.jobId, nonce: bytes, work: job.work, device: 0 });
    }
    settle();
    tick();
    settle();
    if (client.state !== undefined) count(used, client.state.pool, STEP);
  }
  client.stop();
  return { used, taken, why };
}

const percent = (refused: number, code: Answer) => (_: number, random: Random) =>
  random(100) < refused ? code : 'take';

test.each<[string, Pool]>([
  ['refuses all but one in forty as late', { answer: (n) => (n % 40 === 0 ? 'take' : CODE.unknown_job) }],
  ['refuses all but one in forty as duplicates', { answer: (n) => (n % 40 === 0 ? 'take' : CODE.duplicate) }],
  ['refuses two thirds as late', { answer: percent(67, CODE.unknown_job) }],
  ['refuses a third as above the target', { answer: percent(33, CODE.above_target) }],
  ['is always busy', { answer: () => CODE.too_many_requests }],
  ['has an internal error with each share', { answer: () => CODE.internal }],
  ['is not ready for any share, and gives jobs', { answer: () => CODE.not_ready }],
  ['is busy, but for one share in thirty', { answer: (n) => (n % 30 === 0 ? 'take' : CODE.too_many_requests) }],
  ['answers nothing', { answer: () => 'nothing' }],
  ['answers one share in five', { answer: (n) => (n % 5 === 0 ? 'take' : 'nothing') }],
  [
    'refuses as late behind clean jobs, but for one share in ten',
    { answer: (n) => (n % 10 === 0 ? 'take' : CODE.unknown_job), cleanOneIn: 1 },
  ],
  ['refuses forty, and ends the connection', { answer: () => CODE.duplicate, closesMillis: 40_000 }],
  ['is busy, and ends the connection', { answer: () => CODE.too_many_requests, closesMillis: 2 * MINUTE }],
  ['answers nothing, and begins sessions anew', { answer: () => 'nothing', closesMillis: 65_000, forgets: true }],
  [
    'answers nothing, ends the connection, and refuses as late what comes again',
    { answer: (_, __, again) => (again ? CODE.unknown_job : 'nothing'), closesMillis: 61_000 },
  ],
  [
    'makes each share late by clean jobs without end',
    { answer: () => CODE.unknown_job, cleanOneIn: 1, jobMillis: STEP, behind: 1 },
  ],
  ['ends each job before a hit on it is known', { answer: () => 'take', outruns: true }],
])('a pool that %s is left within ten minutes and a little', (_, pool) => {
  const left = SESSION_DEFAULTS.jobMillis + 2 * MINUTE;
  const { used, taken } = play(pool, left + AFTER_MINUTES * MINUTE);
  expect(used[0]).toBeLessThan(left);
  expect(taken[1]).toBeGreaterThan(RATE * (AFTER_MINUTES - 1) * 60);
});

test('an honest pool that refuses a share now and then, is busy for minutes and ends connections is not left', () => {
  const pool: Pool = {
    answer: (n, random) => {
      if (n % (1_000 * RATE) < 200 * RATE) return CODE.not_ready;
      return random(100) < 3 ? CODE.unknown_job : 'take';
    },
    closesMillis: 7 * MINUTE,
  };
  const { used } = play(pool, 60 * MINUTE);
  expect(used[1]).toBeLessThan(2 * MINUTE);
});

test('an honest pool that cannot be reached half of the time, and then finds the shares of meanwhile late, is not left for that', () => {
  const pool: Pool = {
    answer: (_, __, again) => (again ? CODE.unknown_job : 'take'),
    closesMillis: 25_000,
    awayMillis: 45_000,
  };
  expect(play(pool, 30 * MINUTE, [pool]).why).not.toContain('pool_rejects');
});
