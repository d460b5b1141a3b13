/** A proxy at a pool with farm sessions: each rig has its own headers and its own name, and what is passed on arrives once. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { proxyMetrics } from '../../proxy/proxy-figures.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { accountOf, addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { until } from '../until.ts';
import { PlayedPool } from './played-pool.ts';
import { FARM_ADDRESS, startProxy, theVerifier } from './proxy-bed.ts';

type Rig = V1Client | V2Client;

const newest = (rig: Rig): Job => rig.jobs.at(-1)!;
const generationOf = ({ extranonce }: Job): number =>
  new DataView(Uint8Array.from(extranonce).buffer).getUint32(extranonce.length - 4, true);

/** Finds and submits a share on a job; the answer's code. */
const share = async (rig: Rig, job = newest(rig), from = 0n): Promise<{ code: number; nonce: Bytes; next: bigint }> => {
  const { nonce, next } = mine(job, rig.prefix, from);
  return { code: await rig.submitCode(job.jobId, nonce), nonce, next };
};

test('each rig has a header of its own and its name, and only what meets the target of the pool is passed on', async () => {
  const pool = await PlayedPool.start();
  const proxy = await startProxy([pool.url], theVerifier());
  const one = await V1Client.open(proxy.port());
  await one.login('hall-1.rig-1');
  const two = await V2Client.open(proxy.port());
  await two.login(`${FARM_ADDRESS}.rig-2`);
  const three = await V2Client.open(proxy.port());
  await three.login(FARM_ADDRESS);
  const rigs: Rig[] = [one, two, three];
  expect(new Set(rigs.map((rig) => toHex(newest(rig).header))).size).toBe(3);
  expect(new Set(rigs.map((rig) => generationOf(newest(rig)))).size).toBe(3);
  for (const rig of rigs) {
    const { header, payout, extranonce } = newest(rig);
    expect(headerPays(header, payout, extranonce)).toBe(true);
    expect(toHex(payout)).toBe(toHex(pool.payout));
  }
  // The local work is 4, the pool's 8: about every second share goes on.
  const counts = { local: 0, passed: 0 };
  for (const rig of rigs)
    for (let i = 0, from = 0n; i < 8; i++) {
      const found = await share(rig, newest(rig), from);
      from = found.next;
      expect(found.code).toBe(0);
      counts.local++;
    }
  await until(() => proxy.relay.figures.waiting === 0);
  const { figures } = proxy.relay;
  counts.passed = figures.sent;
  expect(counts.passed).toBeGreaterThan(0);
  expect(counts.passed).toBeLessThan(counts.local);
  expect(pool.booked.length).toBe(counts.passed);
  expect(pool.refused).toEqual([]);
  expect(figures.accepted).toBe(counts.passed);
  expect(
    [...new Set(pool.booked.map(({ worker }) => worker))].every((name) =>
      ['hall-1.rig-1', 'rig-2', 'rig'].includes(name),
    ),
  ).toBe(true);
  expect(pool.usernames).toEqual([FARM_ADDRESS]);
  for (const rig of rigs) rig.close();
});

test('an address of its own is refused in words, and no hostile share of a rig reaches the pool', async () => {
  const pool = await PlayedPool.start();
  const proxy = await startProxy([pool.url], theVerifier());
  const stranger = await V1Client.open(proxy.port());
  await expect(stranger.login(`${addressOf(5)}.mine`)).rejects.toThrow(
    /everyone here works for .*: log in with that address, or with the name of the rig alone/,
  );
  const hostile = await V1Client.open(proxy.port());
  await hostile.login('bad');
  const job = newest(hostile);
  const { nonce } = mine(job, hostile.prefix);
  expect(await hostile.submitCode(job.jobId, nonce)).toBe(0);
  expect(await hostile.submitCode(job.jobId, nonce)).toBe(22);
  expect(await hostile.submitCode(job.jobId + 1, nonce)).toBe(21);
  expect(await hostile.submitCode(job.jobId, new Uint8Array(8).fill(0xee))).toBe(26);
  const junk = Uint8Array.from([...new Uint8Array(6).fill(0xee), ...hostile.prefix]);
  const code = await hostile.submitCode(job.jobId, junk);
  expect([0, 23]).toContain(code);
  await until(() => proxy.relay.figures.waiting === 0);
  expect(pool.refused).toEqual([]);
  stranger.close();
  hostile.close();
});

test('another share target of the pool comes with generations above all that were used, and older shares still count', async () => {
  const pool = await PlayedPool.start();
  const proxy = await startProxy([pool.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  const old = newest(rig);
  expect((await share(rig)).code).toBe(0);
  await until(() => pool.booked.length === 1);
  const late = mine(old, rig.prefix, 1_000n);
  for (const shareWork of [4n, 2n, 8n]) {
    const before = rig.jobs.length;
    await pool.job({ shareWork });
    await until(() => rig.jobs.length > before && workOfTarget(newest(rig).shareTarget) === shareWork);
    expect(generationOf(newest(rig))).toBeGreaterThan(pool.highest);
    expect((await share(rig)).code).toBe(0);
  }
  expect(await rig.submitCode(old.jobId, late.nonce)).toBe(0);
  await until(() => proxy.relay.figures.waiting === 0);
  expect(pool.refused).toEqual([]);
  expect(pool.booked.map(({ work }) => work)).toEqual([8n, 4n, 2n, 8n, 8n]);
  rig.close();
});

/** A link without message boundaries: what comes is held until the next comes or a moment has passed, and goes on cut in its middle. */
async function seamlessLink(port: number): Promise<number> {
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      const held: Buffer[] = [];
      let halves = Promise.resolve();
      const goOn = (): void => {
        const all = Buffer.concat(held.splice(0));
        const middle = all.length >> 1;
        if (all.length > 0)
          halves = halves.then(async () => {
            to.write(all.subarray(0, middle));
            await setImmediate();
            to.write(all.subarray(middle));
          });
      };
      from.setNoDelay();
      from.on('data', (data: Buffer) => {
        if (held.push(data) === 2) goOn();
        else setTimeout(goOn, 10);
      });
      from.on('error', () => undefined).on('close', () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('a link that joins two messages and cuts others in their middle loses nothing, at a pool that changes the share target with every job', async () => {
  const pool = await PlayedPool.start();
  const port = await seamlessLink(Number(new URL(pool.url).port));
  const proxy = await startProxy([`stratum2+tcp://127.0.0.1:${port}`], theVerifier(), ['--start-work', '8']);
  const rigs = await Promise.all(
    ['rig-1', 'rig-2'].map(async (name) => {
      const rig = await V2Client.open(proxy.port());
      await rig.login(name);
      return rig;
    }),
  );
  for (let round = 0; round < 12; round++) {
    const before = rigs.map(({ jobs }) => jobs.length);
    await pool.job({ shareWork: round % 2 === 0 ? 4n : 8n });
    await until(() => rigs.every(({ jobs }, i) => jobs.length > (before[i] as number)));
    const codes = await Promise.all(rigs.map((rig) => share(rig)));
    expect(codes.map(({ code }) => code)).toEqual([0, 0]);
  }
  await until(() => proxy.relay.figures.waiting === 0);
  expect(pool.refused).toEqual([]);
  expect(pool.booked.length).toBe(24);
  expect(proxy.relay.figures).toMatchObject({ accepted: 24, lost: 0 });
  for (const rig of rigs) rig.close();
});

test('while the link is away shares wait, and are sent once after the resume', async () => {
  const pool = await PlayedPool.start();
  const proxy = await startProxy([pool.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  const job = newest(rig);
  pool.answers = false;
  const first = await share(rig, job);
  expect(first.code).toBe(0);
  await until(() => proxy.relay.figures.sent === 1);
  pool.cut();
  await until(() => !pool.isConnected);
  const second = await share(rig, job, first.next);
  expect(second.code).toBe(0);
  pool.answers = true;
  await until(() => pool.booked.length === 2);
  await until(() => proxy.relay.figures.accepted === 2);
  expect(pool.refused).toEqual([]);
  expect(pool.booked.map(({ worker }) => worker)).toEqual(['rig-1', 'rig-1']);
  // The next job comes on the connection that the rig had all the time.
  await until(() => newest(rig).jobId !== job.jobId);
  expect((await share(rig)).code).toBe(0);
  rig.close();
});

test('where the pool has forgotten the session, what waited is counted as lost and the rig works on', async () => {
  const pool = await PlayedPool.start();
  const proxy = await startProxy([pool.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  pool.answers = false;
  expect((await share(rig)).code).toBe(0);
  await until(() => proxy.relay.figures.sent === 1);
  pool.resumes = false;
  const before = rig.jobs.length;
  pool.cut();
  await until(() => rig.jobs.length > before);
  pool.answers = true;
  expect(newest(rig).clean).toBe(true);
  expect((await share(rig)).code).toBe(0);
  await until(() => pool.booked.length === 1);
  expect(proxy.relay.figures).toMatchObject({ sent: 2, lost: 1 });
  rig.close();
});

test('a server that does not know farms serves rigs by nonces; a job that pays another address is never given to a rig', async () => {
  const pool = await PlayedPool.start();
  pool.farm = 'unknown';
  const proxy = await startProxy([pool.url], theVerifier());
  const rig = await V1Client.open(proxy.port());
  await rig.login('rig-1');
  expect(rig.prefix.length).toBe(4);
  expect(toHex(rig.prefix).endsWith('0102')).toBe(true);
  const jobs = rig.jobs.length;
  pool.payout = Uint8Array.from(pool.payout).fill(3, 1);
  await pool.job();
  await until(() => proxy.link().client.lastRefusal?.code === 'job_pays_other');
  expect(rig.jobs.length).toBe(jobs);
  rig.close();
});

test.each(['0', '1'])(
  'at a pool of another address rigs log in again, at once and at a port that stays open, so that they check the address that jobs now pay; with %s threads',
  async (threads) => {
    const [first, second] = [await PlayedPool.start(), await PlayedPool.start()];
    second.pool = { address: addressOf(11), name: 'Second' };
    second.payout = accountOf(11);
    const proxy = await startProxy([first.url, second.url], theVerifier(), ['--threads', threads]);
    const server = proxy.rigs.current;
    const rig = await V2Client.open(proxy.port());
    await rig.login('rig-1');
    first.close();
    await rig.closed;
    const again = await V2Client.open(proxy.port());
    await again.login('rig-1');
    expect(proxy.rigs.current).toBe(server);
    // None of them had a job that pays another address than it was told.
    expect(new Set(rig.jobs.map(({ payout }) => toHex(payout)))).toEqual(new Set([toHex(first.payout)]));
    expect(toHex(newest(again).payout)).toBe(toHex(second.payout));
    expect((await share(again)).code).toBe(0);
    again.close();
  },
);

test('at a pool of the same address rigs stay connected, whatever its name', async () => {
  const [first, second] = [await PlayedPool.start(), await PlayedPool.start()];
  second.pool = { ...second.pool, name: 'Second' };
  const proxy = await startProxy([first.url, second.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  const before = rig.jobs.length;
  first.close();
  await until(() => rig.jobs.length > before);
  expect((await share(rig)).code).toBe(0);
  await until(() => second.booked.length === 1);
  const news = await V2Client.open(proxy.port());
  await news.login('rig-2');
  expect(news.pool?.name).toBe('Second');
  for (const each of [rig, news]) each.close();
});

test('a block is counted by the word of the pool, for the rig that found it', async () => {
  const pool = await PlayedPool.start();
  pool.blockId = new Uint8Array(48).fill(7);
  const proxy = await startProxy([pool.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  expect((await share(rig)).code).toBe(0);
  await until(() => proxy.relay.figures.accepted === 1);
  expect(proxy.relay.figures.blocks).toBe(1);
  expect(proxy.relay.counters.list(1)).toMatchObject([{ worker: 'rig-1', blocks: 1 }]);
  const metrics = new Metrics('svc_proxy');
  await proxyMetrics(metrics, proxy)();
  expect(await metrics.text()).toContain('svc_proxy_blocks_total{state="found"} 1');
  rig.close();
});

test.each([
  ['pays another address', 'job_pays_other', { payout: accountOf(12) }],
  ['leaves no generations', 'job_generation', { first: 0xfffffffe }],
])('a farm job that %s is refused, and rigs go on at the next pool', async (_, code, lie) => {
  const [liar, honest] = [await PlayedPool.start(), await PlayedPool.start()];
  const proxy = await startProxy([liar.url, honest.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  const before = rig.jobs.length;
  Object.assign(liar, lie);
  await liar.job();
  await until(() => rig.jobs.length > before);
  expect(proxy.link().client.lastRefusal?.code).toBe(code);
  expect(newest(rig).clean).toBe(true);
  expect(toHex(newest(rig).payout)).toBe(toHex(honest.payout));
  expect((await share(rig)).code).toBe(0);
  await until(() => honest.booked.length === 1);
  expect(liar.booked).toEqual([]);
  rig.close();
});

test('pools of a changed config file are used at once, and rigs stay connected; the address of the proxy needs a restart', async () => {
  const [first, second] = [await PlayedPool.start(), await PlayedPool.start()];
  const proxy = await startProxy([first.url], theVerifier(), ['--start-work', '8']);
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  const before = rig.jobs.length;
  await proxy.apply(proxy.values);
  expect(first.isConnected).toBe(true);
  await expect(proxy.apply({ ...proxy.values, pool: [] })).rejects.toThrow('name no pool');
  const pool = [{ text: second.url, endpoint: parsePoolUrl(second.url) }];
  await proxy.apply({ ...proxy.values, pool, user: undefined });
  await until(() => rig.jobs.length > before);
  await until(() => !first.isConnected);
  expect((await share(rig)).code).toBe(0);
  await until(() => second.booked.length === 1);
  expect(second.usernames).toEqual([FARM_ADDRESS]);
  expect(first.booked).toEqual([]);
  rig.close();
});
