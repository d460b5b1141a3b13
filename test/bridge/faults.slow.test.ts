/** What goes wrong around a server: nodes, the verifier, clocks, sinks, restarts of connections. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readExtranonce } from '../../bridge/session/extranonce.ts';
import { serialOf } from '../../bridge/session/job-book.ts';
import { createVerifier } from '../../kernels/verifier.ts';
import { toHex } from '../../protocol/bytes.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { EASY, startBed } from './bed.ts';
import { addressOf, mine, V1Client, V2Client } from './stratum-client.ts';
import { TemplateSource } from './template-source.ts';

test('a node that is away stops nobody while the job is good; the next one serves, and the first again when it is back', async () => {
  const [first, second] = [new TemplateSource('first'), new TemplateSource('second')];
  second.height = first.height;
  const { server, port, sink } = await startBed({ sources: [first, second] });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0]!;
  first.away();
  second.away();
  const hit = mine(job, client.prefix);
  expect(await client.submitCode(job.jobId, hit.nonce)).toBe(0);
  second.back();
  second.cut();
  await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(job.jobId)));
  expect((await server.figures()).nodes.map(({ serving }) => serving)).toEqual([false, true]);
  first.height = second.height;
  first.back();
  expect((await server.figures()).nodes.map(({ serving }) => serving)).toEqual([true, false]);
  expect(sink.accepted.length).toBe(1);
  client.close();
});

test('a broken template is never mined on: the next node serves', async () => {
  const [first, second] = [new TemplateSource('first'), new TemplateSource('second')];
  first.spoil = (answer) => ({
    ...answer,
    body: { ...answer.body, transactions: [...answer.body.transactions, Uint8Array.of(1)] },
  });
  const { server, port } = await startBed({ sources: [first, second] });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  expect((await server.figures()).nodes.find(({ name }) => name === 'second')?.healthy).toBe(true);
  client.close();
});

test('a found block goes to every node, and again while none can be reached', async () => {
  const [first, second] = [new TemplateSource('first'), new TemplateSource('second')];
  const { port, sink } = await startBed({ sources: [first, second], blockWork: 8n });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0]!;
  const block = targetToBytes(targetOfWork(8n));
  expect(await client.submitCode(job.jobId, mine(job, client.prefix, 0n, block).nonce)).toBe(0);
  await expect.poll(() => [first.submitted.length, second.submitted.length]).toEqual([1, 1]);
  const next = await client.until(() => client.jobs[1]);
  first.isAway = true;
  second.isAway = true;
  expect(await client.submitCode(next.jobId, mine(next, client.prefix, 0n, block).nonce)).toBe(0);
  first.isAway = false;
  first.answer = { state: 'late' };
  while (first.submitted.length < 2) await sleep(20);
  while (sink.fates.length < 2) await sleep(5);
  expect(sink.fates.map(({ fate }) => fate.state)).toEqual(['accepted', 'late']);
  client.close();
});

test('not ready without a node or a sink that takes shares: code 31, and good again afterwards', async () => {
  const { port, sink, server } = await startBed();
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0]!;
  sink.accepting = false;
  await expect.poll(async () => (await server.figures()).ready).toBe(false);
  const hit = mine(job, client.prefix);
  expect(await client.submitCode(job.jobId, hit.nonce)).toBe(31);
  const other = await V1Client.open(port);
  expect(await other.ask({ method: 'mining.subscribe', params: { agent: 'x', tag: '', session: null } })).toMatchObject(
    {
      kind: 'error',
      error: { code: 31 },
    },
  );
  sink.accepting = true;
  await expect.poll(async () => (await server.figures()).ready).toBe(true);
  await other.login(`${addressOf(2)}.b`);
  const second = mine(job, client.prefix, hit.next);
  expect(await client.submitCode(job.jobId, second.nonce)).toBe(0);
  client.close();
  other.close();
});

test('an answer waits until the sink has the share safe, and jobs until the sink takes the connection', async () => {
  const { port, sink } = await startBed();
  let release = (): void => {};
  sink.hold = new Promise((resolve) => {
    release = resolve;
  });
  const client = await V1Client.open(port);
  const login = client.login(`${addressOf(1)}.a`);
  await sleep(150);
  expect(client.jobs.length).toBe(0);
  release();
  await login;
  sink.hold = new Promise((resolve) => {
    release = resolve;
  });
  const job = client.jobs[0]!;
  let code: number | undefined;
  const asked = client.submitCode(job.jobId, mine(job, client.prefix).nonce).then((got) => {
    code = got;
  });
  await sleep(150);
  expect(code).toBeUndefined();
  release();
  await asked;
  expect(code).toBe(0);
  client.close();
});

test('the same nonce again, in another spelling or on another connection’s job', async () => {
  const { port } = await startBed();
  const [a, b] = [await V1Client.open(port), await V1Client.open(port)];
  await a.login(`${addressOf(1)}.a`);
  await b.login(`${addressOf(1)}.b`);
  const job = a.jobs[0]!;
  let hit = mine(job, a.prefix);
  while (!/[a-f]/.test(toHex(hit.nonce))) hit = mine(job, a.prefix, hit.next);
  expect(await a.submitCode(job.jobId, hit.nonce)).toBe(0);
  expect(await a.submitCode(job.jobId, hit.nonce)).toBe(22);
  const jobId = job.jobId.toString(16).padStart(8, '0');
  const upper = toHex(hit.nonce).toUpperCase();
  a.raw(`{"jsonrpc":"2.0","id":99,"method":"mining.submit","params":{"job_id":"${jobId}","nonce":"${upper}"}}\n`);
  await a.until(() =>
    a.received.find((message) => message.kind === 'error' && message.id === 99 && message.error.code === 26),
  );
  expect(await b.submitCode(job.jobId, hit.nonce)).toBe(26);
  expect(await a.submitCode(job.jobId + 64 * 50, hit.nonce)).toBe(21);
  expect(await a.submitCode(0, hit.nonce)).toBe(21);
  a.close();
  b.close();
});

test.each([0, 2])(
  'a session is resumed, %i threads: same prefix, jobs, work sum; the older connection is closed first',
  async (threads) => {
    const { port, sink } = await startBed({ threads });
    const first = await V1Client.open(port);
    await first.login(`${addressOf(1)}.a`);
    const job = first.jobs[0]!;
    const hit = mine(job, first.prefix);
    expect(await first.submitCode(job.jobId, hit.nonce)).toBe(0);
    // While the first still lasts, several times so that threads change.
    let last = first;
    for (let i = 0; i < 6; i++) {
      const again = await V1Client.open(port);
      await again.login(`${addressOf(1)}.a`, '', first.session);
      expect(again.session).toBe(first.session);
      expect(toHex(again.prefix)).toBe(toHex(first.prefix));
      await last.closed;
      expect(again.jobs[0]!.clean).toBe(false);
      expect(readExtranonce(again.jobs[0]!.extranonce)?.owner).toEqual(readExtranonce(job.extranonce)?.owner);
      last = again;
    }
    expect(await last.submitCode(job.jobId, hit.nonce)).toBe(22);
    const more = mine(job, first.prefix, hit.next);
    expect(await last.submitCode(job.jobId, more.nonce)).toBe(0);
    expect(await last.ask({ method: 'mining.stats' })).toMatchObject({ result: { accepted: 2, work: 8n } });
    // After the end of the connection, and by another account, which is refused.
    last.close();
    await sleep(100);
    const thief = await V1Client.open(port);
    await thief.subscribe(first.session);
    expect(
      await thief.ask({ method: 'mining.authorize', params: { username: `${addressOf(2)}.a`, password: '' } }),
    ).toMatchObject({ kind: 'error', error: { code: -32600 } });
    thief.close();
    const stranger = await V1Client.open(port);
    await stranger.login(`${addressOf(3)}.a`, '', 'ff'.repeat(16));
    expect(stranger.session).not.toBe('ff'.repeat(16));
    expect(sink.accepted.length).toBe(2);
    stranger.close();
  },
);

test.each([0, 2])(
  'drain, %i threads: miners are asked to reconnect, what is being verified is answered',
  async (threads) => {
    const { server, port, sink } = await startBed({ threads });
    const v1 = await V1Client.open(port);
    const v2 = await V2Client.open(port);
    await v1.login(`${addressOf(1)}.a`);
    const job2 = await v2.login(`${addressOf(1)}.b`);
    let release = (): void => {};
    sink.hold = new Promise((resolve) => {
      release = resolve;
    });
    const job = v1.jobs[0]!;
    const asked = v1.submitCode(job.jobId, mine(job, v1.prefix).nonce);
    v2.submit(job2.jobId, mine(job2, v2.prefix).nonce);
    await expect.poll(() => sink.held).toBe(2);
    const drained = server.drain();
    await v1.until(() =>
      v1.received.find((message) => message.kind === 'notification' && message.method === 'mining.reconnect'),
    );
    await v2.next('reconnect');
    await sleep(400);
    release();
    expect(await asked).toBe(0);
    expect(await v2.next('accepted')).toMatchObject({ through: 1, count: 1 });
    await drained;
    await Promise.all([v1.closed, v2.closed]);
    await expect(V1Client.open(port)).rejects.toThrow();
  },
);

test('a late share is a block or code 21, never credited', async () => {
  const limits = { ...EASY, jobs: { graceMillis: 50, memoryMillis: 60_000 } };
  const { port, source, sink } = await startBed({ limits, blockWork: 16n });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0]!;
  source.cut();
  await client.until(() => client.jobs[1]);
  await sleep(100);
  const block = targetToBytes(targetOfWork(16n));
  const hit = mine(job, client.prefix, 0n, targetToBytes(job.shareTarget), block);
  expect(await client.submitCode(job.jobId, hit.nonce)).toBe(21);
  expect(await client.submitCode(job.jobId, mine(job, client.prefix, 0n, block).nonce)).toBe(0);
  await expect.poll(() => [source.submitted.length, sink.blocks.length]).toEqual([1, 1]);
  client.close();
});

test('a worker of the verifier that dies costs no share; an overloaded one is nobody’s fault', async () => {
  const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 2 });
  let fail: 'no' | 'busy' = 'no';
  const shaky = Object.assign(Object.create(verifier), {
    prepare: (epoch: number) => verifier.prepare(epoch),
    hashMany: (epoch: number, headers: readonly Uint8Array[]) =>
      fail === 'no' ? verifier.hashMany(epoch, headers) : verifier.hashMany(epoch, Array(20_000).fill(headers[0])),
  });
  const { port } = await startBed({ verifier: shaky });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0]!;
  const hit = mine(job, client.prefix);
  fail = 'busy';
  expect(await client.submitCode(job.jobId, hit.nonce)).toBe(27);
  fail = 'no';
  expect(await client.submitCode(job.jobId, hit.nonce)).toBe(0);
  expect(await client.ask({ method: 'mining.stats' })).toMatchObject({
    result: { accepted: 1, rejected: { too_many_requests: 1 } },
  });
  await verifier.close();
  const second = mine(job, client.prefix, hit.next);
  expect(await client.submitCode(job.jobId, second.nonce)).toBe(20);
  client.close();
});

test('fees that rise within a cut bring a fresh template; fees that stand still do not', async () => {
  const { source, port } = await startBed();
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.a`);
  source.fees = 1_000n;
  source.transactions = [[new Uint8Array(40).fill(1)], [new Uint8Array(40).fill(2)]];
  source.back();
  await client.until(() => client.jobs[1]);
  source.back();
  await sleep(200);
  expect(client.jobs.length).toBe(2);
  client.close();
});
