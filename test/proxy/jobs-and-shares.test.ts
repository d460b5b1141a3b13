/** What lies between server and client of a proxy: jobs of a pool as templates, shares as submits. */
import { expect, test } from 'vitest';
import { Farm } from '../../bridge/farms/farm.ts';
import type { OriginJob } from '../../bridge/nodes/origin-job.ts';
import type { UpstreamEvents } from '../../bridge/nodes/upstream.ts';
import { LIMIT_DEFAULTS } from '../../bridge/options.ts';
import type { AcceptedShare, FoundBlock } from '../../bridge/shares/sink.ts';
import { FarmRigs } from '../../miner/client/farm-rigs.ts';
import type { PoolJob, Share } from '../../miner/client/session-events.ts';
import { REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { CODE, errorReply } from '../../protocol/stratum/errors.ts';
import { type FarmJob, jobOfFarm } from '../../protocol/stratum/farm.ts';
import { PoolJobs, templateOf } from '../../proxy/pool-jobs.ts';
import { ShareRelay } from '../../proxy/share-relay.ts';
import { accountOf } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';

async function farmJob(over: Partial<FarmJob> = {}, session = 'one'): Promise<PoolJob> {
  const { header } = await new TemplateSource().template(0);
  const farm: FarmJob = {
    jobId: 7,
    header: Uint8Array.from(header).fill(0, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + 48),
    shareTarget: targetOfWork(8n),
    epoch: 0,
    payout: accountOf(9),
    extranonceHead: new Uint8Array(14),
    clean: false,
    firstGeneration: 5,
    ...over,
  };
  const common = { session, pool: null, prefix: Uint8Array.of(1, 2), height: 1_000, work: 8n };
  return { job: jobOfFarm(farm, farm.firstGeneration), farm, ...common };
}

const accepted = (over: Partial<AcceptedShare>): AcceptedShare => ({
  service: 'proxy',
  account: accountOf(1),
  worker: 'a',
  work: 4n,
  hashWork: 9,
  cutHeight: 0,
  extranonce: new Uint8Array(18),
  headerDigest: new Uint8Array(16),
  nonce: new Uint8Array(8),
  atMillis: 0,
  ...over,
});
const passedOn = (origin: OriginJob | undefined) => ({ passed: { origin: origin as OriginJob, generation: 6 } });

const recorder = () => {
  const told: { clean: boolean; head: number }[] = [];
  const healthy: boolean[] = [];
  const events: UpstreamEvents = {
    templates: ({ clean, headHeight }) => void told.push({ clean, head: headHeight }),
    told: () => {},
    cut: () => {},
    healthy: (isHealthy) => void healthy.push(isHealthy),
  };
  return { told, healthy, events };
};

test('a farm job is a template without its reward root; a plain one keeps its whole extranonce', async () => {
  const farm = await farmJob();
  const { origin, headerBytes, epochLength } = templateOf(farm, 'development');
  expect(origin).toMatchObject({ session: 'one', jobId: 7, firstGeneration: 5 });
  expect(origin?.shareTarget).toEqual(targetToBytes(targetOfWork(8n)));
  expect(headerBytes.subarray(REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + 48).every((byte) => byte === 0)).toBe(true);
  expect(epochLength).toBeUndefined();
  const { farm: _, ...plain } = farm;
  expect(templateOf(plain, 'mainnet').origin).toMatchObject({
    firstGeneration: null,
    extranonceHead: farm.job.extranonce,
  });
});

test('jobs of another session are clean, those of a resumed one are not; without a job rigs wait', async () => {
  const jobs = new PoolJobs('development', () => 0);
  const { told, healthy, events } = recorder();
  jobs.set(await farmJob());
  jobs.start(events);
  jobs.set(await farmJob({ jobId: 8 }));
  jobs.set(undefined);
  expect(jobs.current).toBeUndefined();
  jobs.set(await farmJob({ jobId: 9 }));
  jobs.set(await farmJob({ jobId: 1 }, 'two'));
  jobs.set(await farmJob({ jobId: 2, clean: true }, 'two'));
  expect(told.map(({ clean }) => clean)).toEqual([true, false, false, true, true]);
  expect(healthy).toEqual([true, true, false, true, true, true]);
  await jobs.close();
  jobs.set(await farmJob({ jobId: 3 }, 'two'));
  expect(told.length).toBe(5);
});

test('of a pool that sends jobs without end rigs get two a second and in the end the newest; that one of them was clean is not forgotten', async () => {
  let now = 0;
  const jobs = new PoolJobs('development', () => now);
  const told: { jobId: number | undefined; clean: boolean }[] = [];
  const { events } = recorder();
  const templates: UpstreamEvents['templates'] = ({ templates: [template], clean }) =>
    void told.push({ jobId: template?.origin?.jobId, clean });
  jobs.start({ ...events, templates });
  for (let jobId = 1; jobId <= 6_000; jobId++, now += 10) {
    jobs.set(await farmJob({ jobId, clean: jobId === 5_999 }));
    if (now % 1_000 === 0) jobs.tick();
    expect(jobs.current?.job.jobId).toBe(jobId);
  }
  expect(told.length).toBeLessThanOrEqual(20 + 2 * 60);
  now += 1_000;
  jobs.tick();
  expect(told.at(-1)).toEqual({ jobId: 6_000, clean: true });
  jobs.tick();
  expect(told.filter(({ jobId }) => jobId === 6_000).length).toBe(1);
});

test.each<[string, (n: number) => Partial<FarmJob>]>([
  ['another head', (n) => ({ extranonceHead: new Uint8Array(14).fill(n & 0xff) })],
  ['a higher first generation', (n) => ({ firstGeneration: 5 + n })],
])(
  'of a pool whose every job has %s, so that each is kept for each rig, rigs get one in four seconds',
  async (_, over) => {
    let now = 0;
    const jobs = new PoolJobs('development', () => now);
    let told = 0;
    const { events } = recorder();
    jobs.start({ ...events, templates: () => void told++ });
    for (let jobId = 1; now < 150_000; jobId++, now += 500) {
      jobs.set(await farmJob({ jobId, ...over(jobId) }));
      jobs.tick();
    }
    expect(told).toBeGreaterThan(40);
    expect(told).toBeLessThanOrEqual(20 + 150 / 4 + 1);
  },
);

test('shares that meet the target of the pool are sent under the name of their rig, and its answers are counted', async () => {
  const sent: Share[] = [];
  let work = 0n;
  const relay = new ShareRelay('hall', {
    isServed: () => true,
    send: (share) => sent.push(share),
    onWork: (w) => (work += w),
  });
  const { origin } = templateOf(await farmJob(), 'development');
  const found = (worker: string, nonce: number, isPassed: boolean): AcceptedShare =>
    accepted({ worker, nonce: new Uint8Array(8).fill(nonce), ...(isPassed ? passedOn(origin) : {}) });
  await relay.shares([found('a', 1, true), found('a', 2, false), found('', 3, true)]);
  expect(work).toBe(12n);
  expect(sent).toMatchObject([
    { session: 'one', jobId: 7, work: 8n, farm: { generation: 6, rig: 'a' } },
    { farm: { rig: 'hall' } },
  ]);
  expect(relay.figures).toMatchObject({ sent: 2, waiting: 2 });
  // Its hash meets the block target, and the pool says so too: one block.
  await relay.block(found('a', 1, true) as FoundBlock);
  relay.verdict(sent[0]!, 'accepted', undefined, true);
  relay.verdict(sent[1]!, 'rejected', errorReply(CODE.above_target));
  relay.verdict(sent[1]!, 'lost', undefined);
  expect(relay.figures).toMatchObject({ accepted: 1, lost: 1, rejected: { above_target: 1 }, work: 8n, blocks: 1 });
  expect(relay.counters.list(3).map(({ worker, blocks }) => [worker, blocks])).toEqual([
    ['a', 1],
    ['', 0],
  ]);
  expect(relay.counters.totals.accepted).toBe(3);
});

test('a share goes to the pool once, whichever of two connections with one header and one prefix sent it', async () => {
  const sent: Share[] = [];
  const relay = new ShareRelay('hall', { isServed: () => true, send: (share) => sent.push(share), onWork: () => {} });
  const { origin } = templateOf(await farmJob(), 'development');
  const found = (nonce: number, header: number): AcceptedShare =>
    accepted({
      headerDigest: new Uint8Array(16).fill(header),
      nonce: new Uint8Array(8).fill(nonce),
      ...passedOn(origin),
    });
  await relay.shares([found(1, 1), found(1, 1), found(1, 2)]);
  await relay.shares([found(1, 1), found(2, 1)]);
  expect(sent.length).toBe(3);
  expect(relay.figures).toMatchObject({ sent: 3, waiting: 3 });
});

test('a rig keeps its index; with more rigs than indexes, the one that was silent for longest gives its own', () => {
  const rigs = new FarmRigs(2);
  expect(rigs.of('a', 0)).toEqual({ index: 0, news: { index: 0, worker: 'a' } });
  expect(rigs.of('b', 0)).toEqual({ index: 1, news: { index: 1, worker: 'b' } });
  expect(rigs.of('a', 0)).toEqual({ index: 0, news: undefined });
  expect(rigs.of('c', 0)).toEqual({ index: 1, news: { index: 1, worker: 'c' } });
  expect(rigs.of('b', 0)).toEqual({ index: 0, news: { index: 0, worker: 'b' } });
});

test.each([
  [1, 10],
  [50, 7],
  [300, 20],
])(
  'with many more rigs than its %i indexes, a farm with %i shares a second never changes names more often than it may',
  (rigs, perSecond) => {
    const [names, server] = [new FarmRigs(rigs), new Farm(rigs, LIMIT_DEFAULTS)];
    const known = new Set<number>();
    let changes = 0;
    for (let i = 0; i < 600 * perSecond; i++) {
      const now = (i * 1_000) / perSecond;
      const { index, news } = names.of(`rig-${i}`, now);
      if (news !== undefined) {
        if (!server.name(news, now)) throw new Error(`share ${i} is not named`);
        known.add(news.index);
        changes++;
      }
      // One that could not be named goes under a name that there is.
      if (!known.has(index)) throw new Error(`share ${i} is of nobody`);
    }
    expect(changes).toBeGreaterThan(600 * 4);
  },
);
