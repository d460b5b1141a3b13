/** A proxy at the stratum server of this project: in a farm session, and without one. */
import { expect, test } from 'vitest';
import { PoolClient, systemClock } from '../../miner/client/pool-client.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import { connectFromBrowser } from '../../miner/client/transport-browser.ts';
import { toHex } from '../../protocol/bytes.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { BRIDGE, EASY, startBed } from '../bridge/bed.ts';
import { accountOf, addressOf, mine, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { until } from '../until.ts';
import { FARM_ADDRESS, startProxy } from './proxy-bed.ts';

const POOL = { ...BRIDGE, name: 'pplns', pool: { payout: accountOf(9), address: addressOf(9), name: 'Example' } };

test.each([
  ['at a pool without farms', 'protocol=v2', 0],
  ['over v1', 'protocol=v1', 100],
])(
  '%s rigs of both wires have one header and longer prefixes, and their shares arrive once',
  async (_, version, farmRigs) => {
    const pool = await startBed({ services: [POOL], limits: { ...EASY, farmRigs } });
    const proxy = await startProxy([`stratum+tcp://127.0.0.1:${pool.port}?${version}`], pool.verifier);
    const first = await V1Client.open(proxy.port());
    await first.login('rig-1');
    const second = await V2Client.open(proxy.port());
    await second.login(`${FARM_ADDRESS}.rig-2`);
    const job = first.jobs[0]!;
    expect(first.prefix.length).toBe(4);
    expect(toHex(first.prefix)).not.toBe(toHex(second.prefix));
    expect(toHex(second.jobs[0]!.header)).toBe(toHex(job.header));
    expect(workOfTarget(job.shareTarget)).toBeLessThanOrEqual(proxy.link().job!.work);
    const one = mine(job, first.prefix);
    expect(await first.submitCode(job.jobId, one.nonce)).toBe(0);
    expect(await first.submitCode(job.jobId, one.nonce)).toBe(22);
    const other = second.jobs[0]!;
    expect(await second.submitCode(other.jobId, mine(other, second.prefix).nonce)).toBe(0);
    expect(await second.submitCode(other.jobId, mine(other, first.prefix).nonce)).toBe(26);
    await until(() => pool.sink.accepted.length === 2);
    expect(new Set(pool.sink.accepted.map(({ nonce }) => toHex(nonce))).size).toBe(2);
    expect(pool.sink.rejected).toEqual([]);
    await until(() => proxy.relay.figures.accepted === 2);
    first.close();
    second.close();
  },
);

test('in a farm session shares of many rigs are accepted under their names, over new templates, blocks and a lost link', async () => {
  const pool = await startBed({ services: [POOL], blockWork: 64n });
  const proxy = await startProxy([`stratum2+tcp://127.0.0.1:${pool.port}`], pool.verifier);
  expect(proxy.link().job?.farm).toBeDefined();
  const rigs = await Promise.all(
    Array.from({ length: 6 }, async (_, i) => {
      const rig = await (i % 2 === 0 ? V1Client : V2Client).open(proxy.port());
      await rig.login(`rig-${i}`);
      return rig;
    }),
  );
  let answered = 0;
  for (let round = 0; round < 12; round++) {
    for (const rig of rigs) {
      const job = rig.jobs.at(-1)!;
      const { nonce } = mine(job, rig.prefix, BigInt(round) << 20n);
      expect(await rig.submitCode(job.jobId, nonce)).toBe(0);
      answered++;
    }
    if (round % 3 === 1) pool.source.cut();
    if (round === 6) {
      const jobs = rigs[0]!.jobs.length;
      proxy.link().client.relogin();
      await until(() => rigs[0]!.jobs.length > jobs);
    }
  }
  await until(() => proxy.relay.figures.waiting === 0);
  const { figures } = proxy.relay;
  expect(figures).toMatchObject({ lost: 0, stale: 0, rejected: {} });
  expect(proxy.relay.counters.totals.accepted).toBe(answered);
  expect(figures.accepted).toBe(figures.sent);
  expect(pool.sink.accepted.length).toBe(figures.sent);
  // A share whose answer was lost with the link is sent again: the pool has it already.
  expect(pool.sink.rejected.filter(({ code }) => code !== CODE.duplicate)).toEqual([]);
  expect(pool.sink.blocks.length).toBeGreaterThan(0);
  const names = new Set(pool.sink.accepted.map(({ worker }) => worker));
  expect([...names].sort()).toEqual(rigs.map((_, i) => `rig-${i}`));
  expect(new Set(pool.sink.accepted.map(({ headerDigest, nonce }) => toHex(headerDigest) + toHex(nonce))).size).toBe(
    figures.sent,
  );
  for (const rig of rigs) rig.close();
});

test('with --keep-addresses the shares of each rig are credited to its own address, over new templates and a lost link', async () => {
  const pool = await startBed({ services: [POOL], blockWork: 64n });
  const proxy = await startProxy([`stratum2+tcp://127.0.0.1:${pool.port}`], pool.verifier, [
    '--keep-addresses',
    ...['--start-work', '1000'],
  ]);
  const users = [`${addressOf(5)}.one`, `${addressOf(5)}.two`, addressOf(6), 'rig-1', `${FARM_ADDRESS}.rig-2`];
  const rigs = await Promise.all(
    users.map(async (user, i) => {
      const rig = await (i % 2 === 0 ? V1Client : V2Client).open(proxy.port());
      await rig.login(user);
      return rig;
    }),
  );
  await until(() => rigs.every(({ jobs }) => jobs.length > 0));
  let answered = 0;
  for (let round = 0; round < 8; round++) {
    for (const rig of rigs) {
      const job = rig.jobs.at(-1)!;
      expect(toHex(job.payout)).toBe(toHex(POOL.pool.payout));
      expect(await rig.submitCode(job.jobId, mine(job, rig.prefix, BigInt(round) << 20n).nonce)).toBe(0);
      answered++;
    }
    const jobs = rigs.map((rig) => rig.jobs.length);
    pool.source.cut();
    await until(() => rigs.every((rig, i) => rig.jobs.length > jobs[i]!));
    if (round === 3) for (const { link } of proxy.kept!.links) link?.client.relogin();
  }
  // A job of another address is none of a rig's.
  const [one, , three] = rigs;
  const theirs = three!.jobs.at(-1)!;
  expect(await one!.submitCode(theirs.jobId, mine(theirs, one!.prefix).nonce)).toBe(21);
  await until(() => proxy.relay.figures.waiting === 0);
  const { figures } = proxy.relay;
  expect(figures).toMatchObject({ lost: 0, stale: 0, rejected: {} });
  expect(proxy.relay.counters.totals.accepted).toBe(answered);
  // The work here is that of the pool: every share goes on.
  expect(figures.sent).toBe(answered);
  expect(pool.sink.accepted.length).toBe(answered);
  expect(pool.sink.rejected).toEqual([]);
  const credited = new Set(pool.sink.accepted.map(({ account, worker }) => `${toHex(account)}.${worker}`));
  const [five, six, own] = [5, 6, 77].map((seed) => toHex(accountOf(seed)));
  expect([...credited].sort()).toEqual(
    [`${five}.one`, `${five}.two`, `${six}.rig`, `${own}.rig-1`, `${own}.rig-2`].sort(),
  );
  expect(new Set(pool.sink.accepted.map(({ headerDigest, nonce }) => toHex(headerDigest) + toHex(nonce))).size).toBe(
    answered,
  );
  for (const rig of rigs) rig.close();
});

test('at a pool without farms an address of its own is refused in words also with --keep-addresses', async () => {
  const pool = await startBed({ services: [POOL], limits: { ...EASY, farmRigs: 0 } });
  const proxy = await startProxy([`stratum2+tcp://127.0.0.1:${pool.port}`], pool.verifier, ['--keep-addresses']);
  const stranger = await V1Client.open(proxy.port());
  await expect(stranger.login(`${addressOf(5)}.mine`)).rejects.toThrow(
    /the pool has no farms, so everyone here works for/,
  );
  const rig = await V2Client.open(proxy.port());
  await rig.login('rig-1');
  const job = rig.jobs[0]!;
  expect(await rig.submitCode(job.jobId, mine(job, rig.prefix).nonce)).toBe(0);
  await until(() => proxy.relay.figures.accepted === 1);
  stranger.close();
  rig.close();
});

test('rigs of v1 and v2 and the miner of a page, over a WebSocket, work side by side through a proxy', async () => {
  const pool = await startBed({ services: [POOL] });
  const proxy = await startProxy([`stratum2+tcp://127.0.0.1:${pool.port}`], pool.verifier, [
    ...['--listen-ws', '127.0.0.1:0', '--start-work', '1000'],
  ]);
  const one = await V1Client.open(proxy.port());
  await one.login('one');
  const two = await V2Client.open(proxy.port());
  await two.login('two');
  const ws = proxy.rigs.current?.addresses.find(({ kind }) => kind === 'ws')?.port;
  const verdicts: string[] = [];
  const page = new PoolClient(
    {
      pools: [parsePoolUrl(`ws://127.0.0.1:${ws}/?protocol=v2`)],
      session: {
        network: 'development',
        address: FARM_ADDRESS,
        own: accountOf(77),
        worker: 'page',
        password: '',
        agent: 'page',
        tag: '',
        pinned: undefined,
      },
    },
    {
      onJob: (job) => {
        if (job === undefined || verdicts.length > 0) return;
        const { nonce } = mine(job.job, job.prefix);
        page.submit({ session: job.session, jobId: job.job.jobId, nonce, work: job.work, device: 0 });
      },
      onVerdict: (_, verdict) => void verdicts.push(verdict),
    },
    { ...systemClock, connect: connectFromBrowser, note: () => undefined },
  );
  page.start();
  for (const rig of [one, two]) {
    const job = rig.jobs.at(-1)!;
    expect(await rig.submitCode(job.jobId, mine(job, rig.prefix).nonce)).toBe(0);
  }
  await until(() => verdicts.length > 0 && proxy.relay.figures.accepted === 3);
  expect(verdicts).toEqual(['accepted']);
  expect(page.state?.poolName).toBe(POOL.pool.name);
  expect(pool.sink.accepted.map(({ worker }) => worker).sort()).toEqual(['one', 'page', 'two']);
  page.stop();
  one.close();
  two.close();
});
