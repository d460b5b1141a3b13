/** A rig that finds shares faster than its pool takes them: real crew and session, devices and pool played, minutes in virtual time. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Backend, BackendEvents, SearchJob } from '../../kernels/backend.ts';
import { Session } from '../../miner/client/session.ts';
import type { PoolJob, SessionAction, SessionEvent } from '../../miner/client/session-events.ts';
import { SUBMIT_PACE } from '../../miner/client/submit-pace.ts';
import { Crew } from '../../miner/work/crew.ts';
import { type Bytes, bigintFromBytesBE, toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { errorReply } from '../../protocol/stratum/errors.ts';
import { count, seed } from '../level.ts';
import { fractionsOf } from '../random.ts';
import { MINER_ADDRESS, PoolFixture } from './pool-fixture.ts';
import { sessionOptions } from './session-options.ts';

const SESSION = 'ab'.repeat(16);
const SHARE_WORK = 2_000n;
const TICK = 250;
const STEP = 10;
/** What a card brings home from a step at the most. */
const MOST_HITS = 100;
const JOB_GRACE = 30_000;

type Rig = {
  /** Hashes a second, as they are at a moment. */
  readonly rate: (now: number) => number;
  readonly jobMillis: number;
  /** Each job ends those before, and the card is so much behind. */
  readonly cleanBehind?: number;
  readonly minutes: number;
  readonly seed: number;
};

async function mine({ rate, jobMillis, cleanBehind = 0, minutes, seed: from }: Rig) {
  const draw = fractionsOf(from);
  const maker = new PoolFixture({ shareWork: SHARE_WORK });
  let now = 0;
  let hashes = 0;
  let nonces = 0n;
  let searched: SearchJob | undefined;
  let events: BackendEvents | undefined;
  const hashOf = new Map<string, Uint8Array<ArrayBuffer>>();
  const foundAt = new Map<string, number>();
  const superseded = new Map<number, number>();
  const result = {
    longestWait: 0,
    accepted: 0,
    lateAccepted: 0,
    lost: 0,
    stale: 0,
    refused: 0,
    end: '',
    notes: [] as string[],
  };
  const backend: Backend = {
    name: 'card',
    kind: 'webgpu',
    get hashes() {
      return Math.round(hashes);
    },
    epochs: [0],
    prepare: async () => undefined,
    setJob: (job) => {
      searched = job;
    },
    pause: () => undefined,
    resume: () => undefined,
    close: async () => undefined,
  };
  const session = new Session(sessionOptions(), 0);
  const crew = new Crew(
    {},
    {
      checker: {
        epochs: [0],
        prepare: async () => undefined,
        hash: async (_epoch: number, header: Bytes) =>
          hashOf.get(toHex(header.subarray(NONCE_OFFSET))) ?? new Uint8Array(32),
      },
      now: () => now,
      after: () => undefined,
      note: (level, message) => void result.notes.push(`${level} ${message}`),
      waiting: () => session.waiting,
      onShare: (share) => {
        foundAt.set(toHex(share.nonce), now);
        feed({ kind: 'share', share });
      },
      onStale: () => result.stale++,
      onNoDevice: () => undefined,
    },
  );
  const act = (action: SessionAction): void => {
    if (action.kind === 'job') crew.setJob(action.job as PoolJob);
    if (action.kind === 'end') result.end = action.refusal.message;
    if (action.kind === 'verdict' && action.verdict === 'lost') result.lost++;
    if (action.kind !== 'send') return;
    if (action.message.kind === 'ping')
      feed({ kind: 'received', message: { kind: 'pong', token: action.message.token } });
    if (action.message.kind !== 'submit') return;
    const { sequence, submit } = action.message;
    result.longestWait = Math.max(result.longestWait, now - (foundAt.get(toHex(submit.nonce)) as number));
    if (now - (superseded.get(submit.jobId) ?? now) > JOB_GRACE) {
      result.refused++;
      feed({ kind: 'received', message: { kind: 'rejected', sequence, error: errorReply(21) } });
      return;
    }
    result.accepted++;
    if (now > 10_000) result.lateAccepted++;
    feed({ kind: 'received', message: { kind: 'accepted', sequence, work: SHARE_WORK, blockId: null } });
  };
  const feed = (event: SessionEvent): void => session.handle(event, now).forEach(act);
  const nextJob = (): void => {
    const job = { ...maker.makeJob({ username: MINER_ADDRESS } as never), clean: cleanBehind > 0 };
    superseded.set(job.jobId - 1, now);
    feed({ kind: 'received', message: { kind: 'job', job } });
  };
  /** The hits of a step, at the target that the card has then. */
  const search = (): void => {
    const job = searched;
    if (job === undefined) return;
    hashes += (rate(now) * STEP) / 1_000;
    const target = bigintFromBytesBE(job.target);
    let millis = 0;
    for (let i = 0; i < MOST_HITS; i++) {
      millis += (-Math.log(draw()) * Number(workOfTarget(target)) * 1_000) / rate(now);
      if (millis > STEP) return;
      const nonce = new Uint8Array(8);
      new DataView(nonce.buffer).setBigUint64(0, nonces++ << 16n, false);
      nonce.set([7, 9], 6);
      const hash = targetToBytes((target * BigInt(Math.floor(draw() * 2 ** 32))) >> 32n);
      hashOf.set(toHex(nonce), hash);
      events?.onHit({ jobId: job.id - cleanBehind, nonce, hash });
    }
  };
  crew.add({ number: 0, kind: 'webgpu', name: 'card' }, async (on) => {
    events = on;
    return backend;
  });
  feed({ kind: 'opened' });
  const subscribed = { session: SESSION, noncePrefix: Uint8Array.of(7, 9), network: 4, server: 's', pool: null };
  feed({ kind: 'received', message: { kind: 'subscribed', subscribed } });
  feed({ kind: 'received', message: { kind: 'authorized', authorized: { address: MINER_ADDRESS, worker: '' } } });
  while (now < minutes * 60_000 && result.end === '') {
    if (now % jobMillis === 0) nextJob();
    search();
    // The checker answers.
    await new Promise(setImmediate);
    now += STEP;
    if (now % TICK === 0) feed({ kind: 'tick' });
    if (now % 1_000 === 0) crew.tick(now);
  }
  return result;
}

test('a share target that is far too easy is a remark while the server may still learn the rate, then a warning', async () => {
  const levelsAt = async (rate: Rig['rate']) => {
    const { notes } = await mine({ rate, jobMillis: 30_000, minutes: 1.25, seed });
    return new Set(notes.filter((note) => note.includes('far too easy')).map((note) => note.split(' ')[0]));
  };
  expect(await levelsAt((now) => (now < 20_000 ? 5e8 : 1e4))).toEqual(new Set(['info']));
  expect(await levelsAt(() => 5e8)).toEqual(new Set(['info', 'warn']));
});

/** A share waits for those before it and for the next tick. */
const BOUND = SUBMIT_PACE.longestWaitMillis + TICK + STEP;

test.each([
  ['a card at a target that is far too easy', 5e8, 30_000],
  ['a rig of nearly twice the pace, with a job for a minute', 3e5, 60_000],
])(
  '%s: no share waits for long, none is refused as late, and the pool is kept busy',
  async (_, perSecond, jobMillis) => {
    const rate = () => perSecond;
    const { longestWait, refused, lateAccepted, end } = await mine({ rate, jobMillis, minutes: 3, seed });
    expect(end).toBe('');
    expect(refused).toBe(0);
    expect(longestWait).toBeLessThanOrEqual(BOUND);
    expect(lateAccepted / 170).toBeGreaterThan(60);
  },
);

test('whatever the rate, and however it changes, no share waits for longer than the bound, and none is late', async () => {
  const rigs = fc.record({
    power: fc.double({ min: 4, max: 9, noNaN: true }),
    change: fc.constantFrom(0.1, 0.5, 1, 2, 10),
    jobMillis: fc.constantFrom(2_500, 10_000, 30_000, 60_000),
    seed: fc.integer({ min: 1, max: 1_000_000 }),
  });
  await fc.assert(
    fc.asyncProperty(rigs, async ({ power, change, jobMillis, seed: from }) => {
      const rate = (now: number): number => 10 ** power * (now > 30_000 ? change : 1);
      const { longestWait, refused, lateAccepted, end } = await mine({ rate, jobMillis, minutes: 1, seed: from });
      expect(end).toBe('');
      expect(refused).toBe(0);
      expect(longestWait).toBeLessThanOrEqual(BOUND);
      // What the pool takes is sent, and all of a rig that finds less; a slower rate is known after ten seconds.
      const taken = (at: number, seconds: number): number => seconds * Math.min(rate(at) / Number(SHARE_WORK), 35);
      const least = taken(0, 20) + taken(60_000, 18);
      expect(lateAccepted).toBeGreaterThan(least - 5 * Math.sqrt(least));
    }),
    { seed, numRuns: count({ quick: 5, full: 15, deep: 300 }) },
  );
});

test('hits on jobs that clean ones ended before the card took them up are not sent, and told: a pool may make all of them so', async () => {
  const { stale, accepted } = await mine({ rate: () => 1e5, jobMillis: 1_000, cleanBehind: 1, minutes: 1, seed });
  expect(accepted).toBe(0);
  expect(stale).toBeGreaterThan(1_000);
});
