/**
 * A pool that lies in every field, before the proxy's client, its jobs and a rig: nothing throws, each share that was passed on gets one
 * verdict, and the rig, which is honest, is neither refused for good nor banned.
 */
import { expect, test } from 'vitest';
import type { TemplateSet } from '../../bridge/nodes/upstream.ts';
import { EpochAllowance } from '../../miner/client/epoch-allowance.ts';
import { PoolClient } from '../../miner/client/pool-client.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import type { Share } from '../../miner/client/session-events.ts';
import type { TransportEvents } from '../../miner/client/transport.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { bigintFromBytesBE } from '../../protocol/bytes.ts';
import { NONCE_OFFSET, REWARD_ROOT_OFFSET, TARGET_OFFSET } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { targetOfWork, workOfTarget } from '../../protocol/ledger/target.ts';
import { CODE, errorReply } from '../../protocol/stratum/errors.ts';
import { extranonceOfGeneration } from '../../protocol/stratum/farm.ts';
import { FrameSplitter } from '../../protocol/stratum/frame.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { decodeClientFrame, encodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import { PoolJobs } from '../../proxy/pool-jobs.ts';
import { EASY } from '../bridge/bed.ts';
import { deskBed } from '../bridge/desk-bed.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { accountOf, addressOf } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { count } from '../level.ts';
import { randomOf } from '../random.ts';

const MINUTE = 60_000;

async function play(
  seed: number,
): Promise<{ passed: number; verdicts: Record<string, number>; jobs: number; banned: number; connections: number }> {
  const random = randomOf(seed);
  const some = <T>(...list: readonly T[]): T => list[random(list.length)] as T;
  const lies = (): boolean => random(30) === 0;
  let clock = 1_000_000;
  const source = new TemplateSource();
  source.blockWork = 64n;
  let jobId = 0;
  let session = 1;
  let line: TransportEvents | undefined;
  let work = 0n;
  let through = 0;
  let generation = 0;
  const waiting: number[] = [];
  const say = (frame: ServerFrame): void => {
    let bytes: Uint8Array;
    try {
      bytes = encodeServerFrame(frame);
    } catch {
      // A value that no frame can hold.
      return;
    }
    if (random(40) === 0) bytes[random(bytes.length)] = random(256);
    line?.onData(bytes);
  };
  const jobOf = async () => {
    const height = lies() ? some(0, 1, 2 ** 40, 2 ** 52, 999, 5_000) : 1_000 + random(4);
    source.height = height;
    const { header } = await source.template(0);
    if (lies())
      header.set(some(new Uint8Array(32), new Uint8Array(32).fill(255), new Uint8Array(32).fill(1)), TARGET_OFFSET);
    const payout = lies() ? accountOf(8) : accountOf(9);
    const target = bigintFromBytesBE(header.subarray(TARGET_OFFSET, TARGET_OFFSET + 32));
    const shareTarget = lies()
      ? some(0n, 1n, (1n << 256n) - 1n, target - 1n, target)
      : target > targetOfWork(8n)
        ? target
        : targetOfWork(8n);
    return {
      jobId: lies() ? some(0, 1, 0xffff_ffff, jobId) : ++jobId,
      header,
      shareTarget,
      epoch: lies() ? some(0, 1, 7, 0xffff_ffff) : 0,
      payout,
      clean: random(8) === 0,
    };
  };
  const sayJob = async (isFarm: boolean): Promise<void> => {
    const job = await jobOf();
    const head = new Uint8Array(lies() ? some(0, 1, 36) : 14).fill(session);
    // No tag.
    head[0] = lies() ? random(256) : 0;
    if (isFarm) {
      if (!lies()) job.header.fill(0, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + 48);
      const firstGeneration = lies() ? some(0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, random(1_000)) : generation;
      say({ type: 'farmJob', job: { ...job, extranonceHead: head, firstGeneration } });
      return;
    }
    const extranonce = extranonceOfGeneration(head, 1);
    job.header.set(rewardRoot(job.payout, extranonce), REWARD_ROOT_OFFSET);
    say({ type: 'job', job: { ...job, extranonce } });
  };
  let isFarm = false;
  const anything = async (): Promise<void> => {
    const last = waiting.at(-1) ?? through;
    switch (random(14)) {
      case 0:
        return say({
          type: 'rejected',
          sequence: lies() ? random(50) : (waiting.shift() ?? 1),
          code: some(CODE.duplicate, CODE.above_target, CODE.unknown_job, CODE.banned, CODE.internal, CODE.not_ready),
        });
      case 1:
        return say({
          type: 'error',
          error: errorReply(some(CODE.not_ready, CODE.internal, CODE.invalid_params), some('', 'no', '\u202e')),
        });
      case 2:
        return say({
          type: 'reconnect',
          reconnect: {
            host: some('', 'other.example', '127.0.0.1'),
            port: some(0, 1, 65_535),
            waitMillis: some(0, 1, 0xffff_ffff),
          },
        });
      case 3:
        return say({ type: 'farmOffer', offer: { rigs: random(4_097), submitsPerSecond: some(0, 1, 0xffff_ffff) } });
      case 4:
        return say({ type: 'ping', value: BigInt(random(9)) });
      case 5:
        return say({ type: 'pong', value: (1n << 64n) - 1n });
      case 6:
        return say({ type: 'block', sequence: random(9), blockId: new Uint8Array(48) });
      case 7:
        return say({
          type: 'accepted',
          through: lies() ? some(0, 0xffff_ffff, random(9)) : last,
          count: some(0, 1, waiting.length, 0xffff_ffff),
          work: some(0n, work, (1n << 128n) - 1n),
        });
      case 8:
        return line?.onClose({ code: 'pool_closed', message: 'closed' } as never);
      case 9:
        return line?.onData(Uint8Array.from({ length: random(60) }, () => random(256)));
      case 10:
        return say({
          type: 'subscribed',
          subscribed: {
            session: 'ab'.repeat(16),
            noncePrefix: new Uint8Array(2),
            network: 4,
            server: '<b>',
            pool: null,
          },
        });
      default:
        return await sayJob(isFarm);
    }
  };
  const answer = async (data: Bytes): Promise<void> => {
    const frames: ReturnType<typeof decodeClientFrame>[] = [];
    new FrameSplitter().push(Uint8Array.from(data), (type, payload) => {
      frames.push(decodeClientFrame({ type, payload: payload.slice() }));
      return true;
    });
    for (const frame of frames)
      if (frame.type === 'subscribe') {
        if (frame.subscribe.session === null || lies()) session++;
        [through, isFarm] = [0, false];
        waiting.length = 0;
        const pool = lies()
          ? some(null, { address: addressOf(8), name: '\u202e<script>' })
          : { address: addressOf(9), name: 'P' };
        say({
          type: 'subscribed',
          subscribed: {
            session: String(session).padStart(32, '0'),
            noncePrefix: new Uint8Array(lies() ? some(1, 3, 4) : 2).fill(1),
            network: lies() ? 1 : 4,
            server: 's/1',
            pool,
          },
        });
      } else if (frame.type === 'authorize') {
        const [address = ''] = frame.authorize.username.split('.');
        say({ type: 'authorized', authorized: { address: lies() ? addressOf(3) : address, worker: '' } });
        await sayJob(false);
      } else if (frame.type === 'farm') {
        isFarm = random(5) > 0;
        say(
          random(9) === 0
            ? { type: 'error', error: errorReply(CODE.unknown_method) }
            : {
                type: 'farmOffer',
                offer: { rigs: isFarm ? some(1, 100, 4_096) : 0, submitsPerSecond: some(0, 1, 500) },
              },
        );
        await sayJob(isFarm);
      } else if (frame.type === 'ping') say({ type: 'pong', value: lies() ? 3n : frame.value });
      else if (frame.type === 'submit' || frame.type === 'farmSubmit') {
        waiting.push(frame.sequence);
        if (random(3) === 0) return;
        work += 8n;
        through = frame.sequence;
        say({ type: 'accepted', through, count: waiting.splice(0).length, work });
      }
  };
  const said: Promise<void>[] = [];
  const verdicts: Record<string, number> = { accepted: 0, stale: 0, rejected: 0, lost: 0 };
  let jobs = 0;
  const bed = await deskBed({
    limits: { ...EASY, idleMillis: 1e12 },
    hash: (header) => new Uint8Array(32).fill(header[NONCE_OFFSET] as number),
  });
  const poolJobs = new PoolJobs('development', () => clock);
  const allowance = new EpochAllowance('development', { steady: clock, wall: clock });
  let tick = (): void => {};
  const endpoint = parsePoolUrl('stratum2+tcp://pool.example:1');
  const client = new PoolClient(
    {
      pools: [endpoint as never],
      session: {
        network: 'development',
        address: addressOf(1),
        own: accountOf(1),
        worker: 'hall',
        password: 'd=8',
        agent: 'x/1',
        tag: '',
        pinned: undefined,
        farmRigs: 100,
      } as never,
    },
    {
      onJob: (job) => {
        jobs++;
        poolJobs.set(job);
      },
      onVerdict: (_share, verdict) => {
        verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
      },
    },
    {
      now: () => clock,
      random: () => random(1_000) / 1_000,
      note: () => {},
      every: (_millis, act) => {
        tick = act;
        return () => {};
      },
      connect: (_endpoint, events) => {
        line = events;
        said.push(Promise.resolve().then(() => (line === events ? events.onOpen() : undefined)));
        return {
          send: (data) => {
            const bytes = data as Bytes;
            if (bytes.length === 4 && bytes[0] === 0x53) return;
            said.push(Promise.resolve().then(() => answer(bytes)));
          },
          close: () => {
            if (line === events) line = undefined;
          },
        };
      },
      refusesJob: (_pool, { job: { epoch }, height }) =>
        allowance.refuses({ pool: 'p', epoch, height }, [0], { steady: clock, wall: clock }),
    },
  );
  let serial = 100;
  const origins = new Map<
    number,
    { session: string; jobId: number; firstGeneration: number | null; shareTarget: Bytes }
  >();
  poolJobs.start({
    templates: ({ templates, headHeight, clean }: TemplateSet) => {
      const [template] = templates;
      if (template?.origin === undefined) return;
      origins.set(++serial, template.origin);
      bed.desk.publish({
        templates: [
          {
            serial,
            header: template.headerBytes,
            epoch: template.epoch,
            draw: 0,
            draws: 1,
            isFresh: false,
            cutHeight: headHeight,
            told: headHeight,
            origin: template.origin,
          },
        ],
        headHeight,
        clean,
      });
    },
    told: () => {},
    cut: () => {},
    healthy: (isHealthy: boolean) => {
      bed.desk.ready = isHealthy;
    },
  } as never);
  bed.desk.ready = false;
  client.start();
  let rig: DeskMiner | undefined;
  let newest: Job | undefined;
  let [passed, banned, seen] = [0, 0, 0];
  const settle = async (): Promise<void> => {
    for (let next = said.shift(); next !== undefined; next = said.shift()) await next;
    await bed.settle();
  };
  for (let step = 0; step < 300; step++) {
    await settle();
    if (random(3) > 0) await anything();
    await settle();
    clock += some(1, 50, 300, 1_000, 3_000);
    bed.clock += 500;
    if (random(60) === 0 || line === undefined) clock += MINUTE;
    tick();
    poolJobs.tick();
    bed.desk.tick();
    if (bed.desk.ready && (rig === undefined || rig.conversation.isEnding)) {
      rig?.end();
      rig = new DeskMiner(bed);
      newest = undefined;
      await rig.login({ password: '' }).catch(() => undefined);
    }
    // Not read again and again.
    newest = rig?.jobs.at(-1) ?? newest;
    if (rig?.codes.includes(CODE.banned)) banned++;
    rig?.peer.written.splice(0);
    if (rig !== undefined && newest !== undefined && !rig.conversation.isEnding && bed.desk.ready) {
      rig.send({ method: 'mining.submit', params: { jobId: newest.jobId, nonce: rig.nonce(0) } });
      await settle();
    }
    for (const share of bed.shares.slice(seen)) {
      const origin = origins.get(share.serial);
      if (origin === undefined || !share.isPassed) continue;
      passed++;
      const plain = {
        session: origin.session,
        jobId: origin.jobId,
        nonce: share.nonce,
        work: workOfTarget(bigintFromBytesBE(origin.shareTarget)),
        device: 0,
      };
      const sent: Share =
        origin.firstGeneration === null ? plain : { ...plain, farm: { generation: share.generation, rig: 'a' } };
      client.submit(sent);
    }
    seen = bed.shares.length;
    generation = Math.max(generation, ...bed.shares.slice(-1).map((share) => share.generation + 1));
  }
  await settle();
  for (let i = 0; i < 400; i++) {
    clock += 1_000;
    tick();
    line?.onClose({ code: 'pool_closed', message: 'closed' } as never);
    said.length = 0;
  }
  const { connections } = client;
  client.stop();
  return { passed, verdicts, jobs, banned, connections };
}

test.each(Array.from({ length: count({ full: 4, deep: 200 }) }, (_, i) => i + 1))('of number %i', async (seed) => {
  const { passed, verdicts, jobs, banned } = await play(seed);
  expect(passed).toBeGreaterThan(20);
  expect(verdicts.accepted).toBeGreaterThan(20);
  expect(jobs).toBeGreaterThan(0);
  expect(banned).toBe(0);
  expect(Object.values(verdicts).reduce((sum, each) => sum + each, 0)).toBe(passed);
});
