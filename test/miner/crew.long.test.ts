/** The devices at work: real WebAssembly backends, some of them made to misbehave on the way. */
import { expect, onTestFinished, test } from 'vitest';
import type { Backend, BackendEvents, Hit, SearchJob } from '../../kernels/backend.ts';
import { memoryInsufficient } from '../../kernels/cpu/kernel.ts';
import { layoutOf } from '../../kernels/cpu/layout.ts';
import { createWasmBackend } from '../../kernels/cpu/wasm-backend.ts';
import type { PoolJob, Share } from '../../miner/client/session-events.ts';
import { Crew } from '../../miner/work/crew.ts';
import type { DeviceTimes } from '../../miner/work/device.ts';
import { ThreadChecker } from '../../miner/work/thread-checker.ts';
import { Throttle } from '../../miner/work/throttle.ts';
import { concat, toHex } from '../../protocol/bytes.ts';
import { powParameters } from '../../protocol/crypto/pow.ts';
import { NONCE_OFFSET, TARGET_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetOfWork, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { referenceHash } from '../pow-hash.ts';
import { until } from '../until.ts';
import { MINER_ADDRESS, PoolFixture } from './pool-fixture.ts';

const maker = new PoolFixture({ shareWork: 2_000n });
let session = 0;

function poolJob(over: Partial<PoolJob['job']> = {}): PoolJob {
  const job = { ...maker.makeJob({ username: MINER_ADDRESS } as never), ...over };
  return {
    job,
    session: `session ${session}`,
    pool: null,
    prefix: Uint8Array.of(3, 4),
    height: 100,
    work: workOfTarget(job.shareTarget),
  };
}

type Misbehaviour = {
  /** Changes what the backend reports. */
  hit?: (hit: Hit) => Hit;
  /** Never tells of progress in its counter. */
  frozen?: () => boolean;
  prepare?: () => Promise<void>;
};

const wasm =
  (bad: Misbehaviour = {}, opened: Backend[] = []) =>
  async (events: BackendEvents): Promise<Backend> => {
    const backend = createWasmBackend(
      { network: NETWORKS.development, mode: 'full', threads: 1, builders: 1 },
      { ...events, onHit: (hit) => events.onHit(bad.hit?.(hit) ?? hit) },
    );
    let seen = 0;
    const wrapped: Backend = {
      name: backend.name,
      kind: backend.kind,
      get hashes() {
        if (!bad.frozen?.()) seen = backend.hashes;
        return seen;
      },
      get epochs() {
        return backend.epochs;
      },
      prepare: async (epoch) => {
        await bad.prepare?.();
        await backend.prepare(epoch);
      },
      setJob: (job) => backend.setJob(job),
      pause: () => backend.pause(),
      resume: () => backend.resume(),
      close: () => backend.close(),
    };
    opened.push(wrapped);
    return wrapped;
  };

function crewOf(
  opens: readonly ((events: BackendEvents) => Promise<Backend>)[],
  times: Partial<DeviceTimes> = {},
  now = () => performance.now(),
) {
  session++;
  const shares: Share[] = [];
  const notes: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[] = [];
  let idle = 0;
  const checker = new ThreadChecker(powParameters(NETWORKS.development));
  const crew = new Crew(
    {},
    {
      checker,
      now,
      after: (millis, act) => void setTimeout(act, millis),
      note: (level, message, fields) => notes.push({ level, message, fields }),
      onShare: (share) => shares.push(share),
      onStale: () => undefined,
      waiting: () => 0,
      onNoDevice: () => {
        idle++;
      },
    },
  );
  for (const [number, open] of opens.entries())
    crew.add({ number, kind: 'wasm', name: `device ${number}`, times }, open);
  const ticks = setInterval(() => crew.tick(now()), 50);
  onTestFinished(async () => {
    clearInterval(ticks);
    await crew.close();
    await checker.close();
  });
  return { crew, shares, notes, idle: () => idle };
}

const isRight = (job: PoolJob, share: Share): boolean =>
  meetsTarget(
    referenceHash(job.job.epoch, concat(job.job.header.subarray(0, NONCE_OFFSET), share.nonce)),
    targetToBytes(job.job.shareTarget),
  );

test('devices share the nonces of a job; every share is right and carries the prefix', async () => {
  const { crew, shares } = crewOf([wasm(), wasm()]);
  const job = poolJob();
  crew.setJob(job);
  await until(() => new Set(shares.map(({ device }) => device)).size === 2 && shares.length >= 10);
  const seen = new Set(shares.map(({ nonce }) => toHex(nonce)));
  expect(seen.size).toBe(shares.length);
  for (const share of shares.slice(0, 10)) {
    expect([...share.nonce.subarray(6)]).toEqual([3, 4]);
    expect(isRight(job, share)).toBe(true);
  }
  // The second device begins in the middle of the free nonces.
  expect(shares.filter(({ device }) => device === 1).every(({ nonce }) => (nonce[5] as number) >= 0x80)).toBe(true);
});

test('a new job reaches every device at once; hits of an old one count until a clean job comes', async () => {
  const { crew, shares } = crewOf([wasm()]);
  crew.setJob(poolJob());
  await until(() => shares.length > 0);
  const next = poolJob();
  crew.setJob(next);
  await until(() => shares.some(({ jobId }) => jobId === next.job.jobId));
  const clean = poolJob({ clean: true });
  crew.setJob(clean);
  const before = shares.length;
  // Hits that were already being checked still count.
  await until(() => shares.length > before + 5 && shares.slice(-3).every(({ jobId }) => jobId === clean.job.jobId));
});

test('a job that a resumed session repeats does not start the search anew', async () => {
  const { crew, shares } = crewOf([wasm()]);
  const job = poolJob();
  crew.setJob(job);
  await until(() => shares.length >= 3);
  crew.setJob({ ...job, job: { ...job.job } });
  await until(() => shares.length >= 8);
  expect(new Set(shares.map(({ nonce }) => toHex(nonce))).size).toBe(shares.length);
});

test('after a block the search goes on at once on the spare job of the same anchor, and then on a new one', async () => {
  const { crew, shares } = crewOf([wasm(), wasm()]);
  const easy = targetToBytes(targetOfWork(2_000n));
  // Every share is a block: the block target is the share target.
  const older = poolJob();
  const current = poolJob();
  const spare = poolJob();
  for (const { job } of [older, current, spare]) job.header.set(easy, TARGET_OFFSET);
  spare.job.header.set(current.job.header.subarray(32, 80), 32);
  crew.setJob(older);
  crew.setJob(spare);
  crew.setJob(current);
  const on = ({ job }: PoolJob): Share[] => shares.filter(({ jobId }) => jobId === job.jobId);
  await until(() => on(spare).length >= 5);
  expect(on(current).length).toBeGreaterThan(0);
  // All bodies of this anchor are spent: what is found is still a share, and no nonce is searched twice.
  const before = on(spare).length;
  await until(() => on(spare).length >= before + 5);
  const seen = new Set(on(spare).map(({ nonce }) => toHex(nonce)));
  expect(seen.size).toBe(on(spare).length);
  expect(on(spare).every((share) => isRight(spare, share))).toBe(true);
  const next = poolJob();
  crew.setJob(next);
  await until(() => on(next).length >= 3);
});

test('a device with bad hits is named and stopped; nothing wrong is sent; the others go on', async () => {
  const flip = (hit: Hit): Hit => {
    const nonce = Uint8Array.from(hit.nonce);
    nonce[0] = (nonce[0] as number) ^ 1;
    return { ...hit, nonce };
  };
  const { crew, shares, notes } = crewOf([wasm({ hit: flip }), wasm()]);
  const job = poolJob();
  crew.setJob(job);
  await until(() => crew.devices[0]?.state === 'stopped');
  const stopped = notes.find(({ message }) => message === 'device stopped');
  expect(stopped).toMatchObject({ level: 'error', fields: { device: '0: CPU, 1 thread', code: 'device_bad_hits' } });
  await until(() => shares.length >= 3);
  expect(shares.every(({ device }) => device === 1)).toBe(true);
  expect(shares.every((share) => isRight(job, share))).toBe(true);
});

test('a hash that was altered on its way is a bad hit too', async () => {
  const alter = (hit: Hit): Hit => ({ ...hit, hash: new Uint8Array(32) });
  const { crew, shares, idle } = crewOf([wasm({ hit: alter })]);
  crew.setJob(poolJob());
  await until(() => idle() === 1);
  expect(crew.devices[0]?.stopped).toMatchObject({ code: 'device_bad_hits' });
  expect(shares).toEqual([]);
});

/** Time passes while the device is frozen: one that works is never silent for too long, however busy the machine is. */
function clockOf(isFrozen: () => boolean): () => number {
  let before = performance.now();
  let passed = 0;
  return () => {
    const at = performance.now();
    if (isFrozen()) passed += at - before;
    before = at;
    return passed;
  };
}

test('the watchdog restarts a silent device, and gives it up when that does not help', async () => {
  let frozen = true;
  const opened: Backend[] = [];
  const now = clockOf(() => frozen);
  const times = { silentMillis: 300, restartMillis: 20, restarts: 2 };
  const { crew, notes, shares, idle } = crewOf([wasm({ frozen: () => frozen }, opened)], times, now);
  crew.setJob(poolJob());
  await until(() => opened.length === 2);
  frozen = false;
  const before = shares.length;
  await until(() => shares.length > before + 2);
  expect(notes.filter(({ message }) => message === 'device is restarted')).toMatchObject([
    { fields: { code: 'device_silent' } },
  ]);
  frozen = true;
  await until(() => idle() === 1);
  expect(crew.devices[0]?.stopped).toMatchObject({ code: 'device_silent' });
  expect(opened.length).toBe(3);
});

test('a throttled device: works in its turns only, is resumed by the caller that paused it, and the watchdog sees it', async () => {
  let frozen = false;
  const opened: Backend[] = [];
  const calls: string[] = [];
  const open = async (events: BackendEvents): Promise<Backend> => {
    const backend = await wasm({ frozen: () => frozen }, opened)(events);
    const { pause, resume } = backend;
    return Object.assign(backend, {
      pause: () => {
        calls.push('pause');
        pause();
      },
      resume: () => {
        calls.push('resume');
        resume();
      },
    });
  };
  const now = clockOf(() => frozen);
  const { crew, shares, notes } = crewOf([open], { silentMillis: 300, restartMillis: 20 }, now);
  const throttle = new Throttle(crew, 0.2, { periodMillis: 50, lagMillis: 0 });
  onTestFinished(() => throttle.stop());
  throttle.start();
  crew.setJob(poolJob());
  await until(() => shares.length > 2);
  expect(crew.devices[0]?.state).toBe('searching');
  crew.pause();
  calls.length = 0;
  await until(() => calls.filter((call) => call === 'pause').length >= 3);
  expect(calls).not.toContain('resume');
  expect(crew.devices[0]?.state).toBe('paused');
  crew.resume();
  const before = shares.length;
  await until(() => shares.length > before);
  expect(calls).toContain('resume');
  frozen = true;
  await until(() => opened.length === 2);
  expect(notes.filter(({ message }) => message === 'device is restarted')).toMatchObject([
    { fields: { code: 'device_silent' } },
  ]);
});

test('a device lost in the middle of a search is opened again and takes up the job of that moment', async () => {
  const opened: Backend[] = [];
  let fail: ((error: Error) => void) | undefined;
  const open = async (events: BackendEvents): Promise<Backend> => {
    fail = events.onFailure;
    return await wasm({}, opened)(events);
  };
  const { crew, shares } = crewOf([open], { restartMillis: 20 });
  crew.setJob(poolJob());
  await until(() => shares.length > 0);
  fail?.(new Error('the device was lost'));
  const job = poolJob();
  crew.setJob(job);
  await until(() => shares.some(({ jobId }) => jobId === job.job.jobId));
  expect(opened.length).toBe(2);
});

test('too little memory for the dataset stops the device, with what light mode would need', async () => {
  const prepare = () =>
    Promise.reject(memoryInsufficient(layoutOf(powParameters(NETWORKS.mainnet), 'full', 1), 1 << 30));
  const { crew, idle } = crewOf([wasm({ prepare })]);
  crew.setJob(poolJob());
  await until(() => idle() === 1);
  expect(crew.devices[0]?.stopped?.message).toContain('light mode needs');
});

test('pause stops the counting, resume goes on', async () => {
  const { crew, shares } = crewOf([wasm()]);
  crew.setJob(poolJob());
  await until(() => shares.length > 0);
  crew.pause();
  expect(crew.devices[0]?.state).toBe('paused');
  // What is under way comes to its end, then nothing moves.
  let before = -1;
  await until(async () => {
    const then = before;
    await new Promise((resolve) => setTimeout(resolve, 300));
    before = crew.devices[0]?.hashes as number;
    return before === then;
  });
  crew.resume();
  await until(() => (crew.devices[0]?.hashes as number) > before);
});

test('an epoch change is prepared first, and its hits verify', async () => {
  const { crew, shares } = crewOf([wasm()]);
  crew.setJob(poolJob());
  await until(() => shares.length > 0);
  const job = poolJob({ epoch: 1 });
  crew.setJob(job);
  await until(() => shares.some(({ jobId }) => jobId === job.job.jobId));
  const share = shares.find(({ jobId }) => jobId === job.job.jobId) as Share;
  expect(isRight(job, share)).toBe(true);
});

/** A backend that only notes what it is given: the parts of the nonces are plain data. */
test('one byte of prefix leaves 2^56 nonces to share', async () => {
  const jobs: SearchJob[] = [];
  const noting = async (): Promise<Backend> => ({
    name: 'notes',
    kind: 'wasm',
    hashes: 0,
    epochs: [0],
    prepare: async () => undefined,
    setJob: (job) => job !== undefined && void jobs.push(job),
    pause: () => undefined,
    resume: () => undefined,
    close: async () => undefined,
  });
  const { crew } = crewOf([noting, noting, noting]);
  await until(() => crew.devices.every(({ state }) => state === 'idle'));
  crew.setJob({ ...poolJob(), prefix: Uint8Array.of(9) });
  expect(jobs.map(({ prefixBytes, header }) => [prefixBytes, header[311]])).toEqual([
    [1, 9],
    [1, 9],
    [1, 9],
  ]);
  expect(jobs[0]?.nonces.from).toBe(0n);
  expect(jobs[0]?.nonces.to).toBe(jobs[1]?.nonces.from);
  expect(jobs[2]?.nonces.to).toBe(1n << 56n);
});
