/**
 * A pool is left for refusals only where they show something against it. Here an honest pool is at the other end of a link that
 * delays and stands still; it changes the chain, holds jobs back from a reader that does not read, and refuses what comes late. Shares
 * come at any rate, some of them kept back. Whatever happens, it is not left; one that refuses good shares is, within the bound.
 */
import { expect, test } from 'vitest';
import { Session } from '../../miner/client/session.ts';
import { SESSION_DEFAULTS, type SessionAction, type SessionEvent } from '../../miner/client/session-events.ts';
import type { FromServer } from '../../miner/client/wire.ts';
import { CODE, errorReply } from '../../protocol/stratum/errors.ts';
import { seed as chosen, count } from '../level.ts';
import { MINER_ADDRESS, PoolFixture } from '../miner/pool-fixture.ts';
import { sessionOptions } from '../miner/session-options.ts';
import { type Random, randomOf } from '../random.ts';

const STEP = 50;
const TICK = 250;
const SESSION = 'ab'.repeat(16);
const { maxRefused, lateMillis, jobMillis: LONGEST } = SESSION_DEFAULTS;
const JOB = new PoolFixture().makeJob({ username: MINER_ADDRESS } as never);

type Pool = {
  readonly jobMillis: number;
  readonly graceMillis: number;
  /** How much later than others this connection has its jobs, and answers to its shares. */
  readonly jobLag: number;
  readonly answerLag: number;
  /** One of so many jobs is clean. */
  readonly cleanOneIn: number;
  readonly isHonest: boolean;
  readonly refuses: number;
};
type Link = {
  readonly delay: number;
  /** It stands still once in so many milliseconds, both ways or one, for so long at the most. */
  readonly stallEvery: number;
  readonly stallMillis: number;
};
type Rig = {
  /** Shares a second, and the same while it finds many. */
  readonly rate: number;
  readonly burstRate: number;
  /** One share in so many is on a job of a while ago. */
  readonly keptBackOneIn: number;
};

/** One way of a link: all comes in order, and nothing while it stands still. */
class Way<T> {
  readonly #delay: number;
  #queue: { readonly at: number; readonly item: T }[] = [];
  #until = 0;

  constructor(delay: number) {
    this.#delay = delay;
  }
  stall(until: number): void {
    this.#until = Math.max(this.#until, until);
  }
  isStalled(now: number): boolean {
    return now < this.#until;
  }
  put(item: T, now: number): void {
    this.#queue.push({ at: now + this.#delay, item });
  }
  take(now: number): T[] {
    if (this.isStalled(now)) return [];
    const due = this.#queue.filter(({ at }) => at <= now);
    this.#queue = this.#queue.filter(({ at }) => at > now);
    return due.map(({ item }) => item);
  }
}

type Sent = { readonly sequence: number; readonly jobId: number } | { readonly token: number };
type Outcome = { end: string; atMillis: number; sent: number; accepted: number; refused: number };

function play(pool: Pool, link: Link, rig: Rig, millis: number, random: Random): Outcome {
  const [up, down] = [new Way<Sent>(link.delay), new Way<FromServer>(link.delay)];
  const session = new Session(sessionOptions(), 0);
  const outcome: Outcome = { end: '', atMillis: 0, sent: 0, accepted: 0, refused: 0 };
  /** When each job was superseded; those of before a change of the chain are gone. */
  const jobs = new Map<number, number>();
  /** Jobs and answers on their way out of the pool. */
  let leaving: { readonly at: number; readonly message: FromServer }[] = [];
  const known: number[] = [];
  let [now, newest, nextJobAt, nonce] = [0, 0, 0, 0];
  let heldBack: FromServer | undefined;
  let burstUntil = 0;
  const act = (action: SessionAction): void => {
    if (action.kind === 'job') known.push(action.job.job.jobId);
    if (action.kind === 'end') [outcome.end, outcome.atMillis] = [action.refusal.code, now];
    if (action.kind === 'verdict' && action.verdict === 'accepted') outcome.accepted++;
    if (action.kind === 'verdict' && (action.verdict === 'stale' || action.verdict === 'rejected')) outcome.refused++;
    if (action.kind !== 'send') return;
    if (action.message.kind === 'ping') up.put({ token: action.message.token }, now);
    if (action.message.kind !== 'submit') return;
    outcome.sent++;
    up.put({ sequence: action.message.sequence, jobId: action.message.submit.jobId }, now);
  };
  const feed = (event: SessionEvent): void => session.handle(event, now).forEach(act);
  const receive = (message: FromServer): void => feed({ kind: 'received', message });
  const publish = (): void => {
    const clean = random(pool.cleanOneIn) === 0;
    if (clean) jobs.clear();
    else jobs.set(newest, now);
    jobs.set(++newest, Number.POSITIVE_INFINITY);
    const message: FromServer = { kind: 'job', job: { ...JOB, jobId: newest, clean } };
    if (down.isStalled(now) && random(2) === 0) heldBack = message;
    else leaving.push({ at: now + random(pool.jobLag + 1), message });
  };
  const judge = (sent: Sent): void => {
    if ('token' in sent) {
      leaving.push({ at: now, message: { kind: 'pong', token: sent.token } });
      return;
    }
    const { sequence, jobId } = sent;
    const superseded = jobs.get(jobId);
    const isGood = superseded !== undefined && now - superseded <= pool.graceMillis;
    const isTaken = isGood && (pool.isHonest || random(100) >= pool.refuses);
    const message: FromServer = isTaken
      ? { kind: 'accepted', sequence, work: 200n, blockId: null }
      : { kind: 'rejected', sequence, error: errorReply(CODE.unknown_job) };
    leaving.push({ at: now + pool.answerLag, message });
  };
  const find = (): void => {
    if (random(20_000 / STEP) === 0) burstUntil = now + random(10_000);
    const perStep = ((now < burstUntil ? rig.burstRate : rig.rate) * STEP) / 1_000;
    const shares = Math.floor(perStep) + (random(1_000) < (perStep % 1) * 1_000 ? 1 : 0);
    for (let i = 0; i < shares; i++) {
      const jobId = known.at(random(rig.keptBackOneIn) === 0 ? -1 - random(Math.min(known.length, 20)) : -1);
      if (jobId === undefined) return;
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setUint32(0, ++nonce);
      feed({ kind: 'share', share: { session: SESSION, jobId, nonce: bytes, work: 200n, device: 0 } });
    }
  };
  feed({ kind: 'opened' });
  const named = { session: SESSION, noncePrefix: new Uint8Array(2), network: 4, server: 's', pool: null };
  receive({ kind: 'subscribed', subscribed: named });
  receive({ kind: 'authorized', authorized: { address: MINER_ADDRESS, worker: '' } });
  for (; now < millis && outcome.end === ''; now += STEP) {
    if (random(link.stallEvery / STEP) === 0) {
      const until = now + random(link.stallMillis);
      const which = random(3);
      if (which !== 0) up.stall(until);
      if (which !== 1) down.stall(until);
    }
    if (now >= nextJobAt) {
      publish();
      nextJobAt = now + pool.jobMillis;
    }
    up.take(now).forEach(judge);
    const out = leaving.filter(({ at }) => at <= now);
    leaving = leaving.filter(({ at }) => at > now);
    for (const { message } of out) down.put(message, now);
    if (heldBack !== undefined && !down.isStalled(now)) {
      down.put(heldBack, now);
      heldBack = undefined;
    }
    for (const message of down.take(now)) if (outcome.end === '') receive(message);
    if (outcome.end === '') find();
    if (outcome.end === '' && now % TICK === 0) feed({ kind: 'tick' });
  }
  return outcome;
}

const STEADY: Link = { delay: 50, stallEvery: 1e12, stallMillis: 1 };
const HONEST: Pool = {
  jobMillis: 2_500,
  graceMillis: 5_000,
  jobLag: 0,
  answerLag: 0,
  cleanOneIn: 1e9,
  isHonest: true,
  refuses: 0,
};
const FAST: Rig = { rate: 30, burstRate: 30, keptBackOneIn: 1e9 };

test.each<[string, Partial<Pool>, Partial<Link>, Partial<Rig>]>([
  ['changes of the chain, with shares on their way', { cleanOneIn: 4, jobMillis: 20_000 }, { delay: 2_000 }, {}],
  [
    'changes of the chain, of which this connection hears late',
    { cleanOneIn: 4, jobMillis: 20_000, jobLag: 4_000 },
    {},
    {},
  ],
  ['a link that stands still', {}, { stallEvery: 60_000, stallMillis: 15_000 }, {}],
  ['a rig that keeps all shares back', {}, {}, { rate: 1, keptBackOneIn: 1 }],
  ['a rig that finds more than it may send', { graceMillis: 5_000 }, {}, { burstRate: 300 }],
])('an honest pool is not left for %s', (_, pool, link, rig) => {
  let refused = 0;
  for (let i = 0; i < 10; i++) {
    const outcome = play(
      { ...HONEST, ...pool },
      { ...STEADY, ...link },
      { ...FAST, ...rig },
      300_000,
      randomOf(chosen + i),
    );
    expect(outcome.end).not.toBe('pool_rejects');
    refused = Math.max(refused, outcome.refused);
  }
  if (rig.burstRate === undefined) expect(refused).toBeGreaterThan(maxRefused);
});

const pick = <T>(random: Random, all: readonly T[]): T => all[random(all.length)] as T;
const poolOf = (random: Random): Pool => ({
  jobMillis: pick(random, [1_000, 2_500, 10_000, 30_000]),
  graceMillis: pick(random, [5_000, 10_000, 30_000]),
  jobLag: pick(random, [0, 500, 4_000]),
  answerLag: pick(random, [0, 300, 2_000]),
  cleanOneIn: pick(random, [2, 10, 100, 1e9]),
  isHonest: true,
  refuses: 0,
});
const linkOf = (random: Random): Link => ({
  delay: pick(random, [0, 100, 1_000, 4_000]),
  stallEvery: pick(random, [10_000, 60_000, 600_000]),
  stallMillis: pick(random, [1_000, 5_000, 10_000, 25_000]),
});
const rigOf = (random: Random): Rig => ({
  rate: pick(random, [0.1, 1, 10, 70]),
  burstRate: pick(random, [0.1, 70, 300]),
  keptBackOneIn: pick(random, [2, 10, 1e9]),
});

test('whatever its link, its jobs and its rigs do, an honest pool is not left', () => {
  let refused = 0;
  for (let i = 0; i < count({ quick: 20, full: 60, deep: 5_000 }); i++) {
    const random = randomOf(chosen + i);
    const [pool, link, rig] = [poolOf(random), linkOf(random), rigOf(random)];
    const outcome = play(pool, link, rig, 180_000, random);
    expect(outcome.end, JSON.stringify({ seed: chosen + i, pool, link, rig })).not.toBe('pool_rejects');
    if (outcome.refused >= maxRefused) refused++;
  }
  expect(refused).toBeGreaterThan(0);
});

test('a pool that refuses good shares is left after fifty of them and seconds', () => {
  for (let i = 0; i < count({ quick: 5, full: 20, deep: 200 }); i++) {
    const random = randomOf(chosen + i);
    const pool = { ...poolOf(random), isHonest: false, refuses: 100, cleanOneIn: 1e9, answerLag: 0 };
    const rig = { ...FAST, rate: pick(random, [1, 10, 30]), burstRate: 30 };
    const { end, atMillis } = play(pool, { ...STEADY, delay: random(500) }, rig, LONGEST, random);
    expect(end, JSON.stringify(pool)).toBe('pool_rejects');
    expect(atMillis).toBeLessThan((3_000 * maxRefused) / rig.rate + 2 * lateMillis);
  }
});

test('however it hides it, behind late answers and clean jobs: one that takes nothing is left after ten minutes', () => {
  for (let i = 0; i < count({ quick: 3, full: 10, deep: 100 }); i++) {
    const random = randomOf(chosen + i);
    const hiding = { answerLag: pick(random, [0, 3_000, 8_000]), cleanOneIn: pick(random, [1, 2, 1e9]) };
    const pool = { ...poolOf(random), ...hiding, isHonest: false, refuses: 100 };
    const { end } = play(pool, { ...STEADY, delay: random(2_000) }, FAST, LONGEST + 60_000, random);
    expect(end, JSON.stringify(pool)).toBe('pool_rejects');
  }
});
