import { expect, test } from 'vitest';
import { readExtranonce } from '../../bridge/session/extranonce.ts';
import { equalBytes, toHex } from '../../protocol/bytes.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { BRIDGE, EASY, startBed } from './bed.ts';
import { accountOf, addressOf, mine, type Transport, V1Client, V2Client } from './stratum-client.ts';

const TRANSPORTS: Transport[] = ['tcp', 'tls', 'ws'];

test.each(TRANSPORTS.flatMap((transport) => [0, 2].map((threads) => [transport, threads] as const)))(
  'v1 over %s, %i threads: login, job, share, stats, ping',
  async (transport, threads) => {
    const { port, wsPort, sink } = await startBed({ threads, certificate: TEST_CERTIFICATE });
    const client = await V1Client.open(transport === 'ws' ? wsPort : port, transport);
    await client.login(`${addressOf(1)}.rig`);
    const job = client.jobs[0]!;
    expect(job.clean).toBe(true);
    expect(headerPays(job.header, accountOf(1), job.extranonce)).toBe(true);
    const { nonce } = mine(job, client.prefix);
    expect(await client.submit(job.jobId, nonce)).toMatchObject({
      kind: 'result',
      result: { work: 4n, blockId: null },
    });
    expect(sink.accepted).toMatchObject([{ service: 'bridge', worker: 'rig', work: 4n, cutHeight: 1_000 }]);
    expect(sink.accepted[0]?.hashWork).toBeGreaterThanOrEqual(4);
    const owner = readExtranonce(job.extranonce)?.owner;
    expect(toHex(sink.owned[0]!.owner)).toBe(toHex(owner!));
    expect(await client.ask({ method: 'mining.ping' })).toMatchObject({ kind: 'result' });
    const stats = await client.ask({ method: 'mining.stats' });
    expect(stats).toMatchObject({ kind: 'result', result: { accepted: 1, stale: 0, work: 4n, pool: null } });
    client.close();
  },
);

test.each(TRANSPORTS.flatMap((transport) => [0, 2].map((threads) => [transport, threads] as const)))(
  'v2 over %s, %i threads: login, job, acknowledged run, rejected inside it',
  async (transport, threads) => {
    const { port, wsPort } = await startBed({ threads, certificate: TEST_CERTIFICATE });
    const client = await V2Client.open(transport === 'ws' ? wsPort : port, transport);
    const job = await client.login(`${addressOf(2)}.rig`);
    const first = mine(job, client.prefix);
    const second = mine(job, client.prefix, first.next);
    client.submit(job.jobId, first.nonce);
    client.submit(job.jobId, first.nonce);
    client.submit(job.jobId, second.nonce);
    expect(await client.next('rejected')).toEqual({ type: 'rejected', sequence: 2, code: 22 });
    const seen: number[] = [];
    let work = 0n;
    for (let from = 0; !seen.includes(3); ) {
      const frame = await client.next('accepted', from);
      from = client.frames.indexOf(frame) + 1;
      seen.push(frame.through);
      work = frame.work;
    }
    expect(work).toBe(8n);
    client.send({ type: 'ping', value: 77n });
    expect((await client.next('pong')).value).toBe(77n);
    client.close();
  },
);

test('a block: to the node first, then the books; a fresh body and job at once; hits on the old job are only shares', async () => {
  const { port, sink, source } = await startBed({ blockWork: 8n });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(3)}.rig`);
  const job = client.jobs[0]!;
  const blockTarget = targetToBytes(targetOfWork(8n));
  const first = mine(job, client.prefix, 0n, blockTarget);
  const answer = await client.submit(job.jobId, first.nonce);
  const header = Uint8Array.from(job.header);
  header.set(first.nonce, 304);
  expect(answer).toMatchObject({ kind: 'result', result: { work: 4n, blockId: blockId(header) } });
  expect(source.submitted.length).toBe(1);
  const { header: sent, body } = source.submitted[0]!;
  expect(equalBytes(sent, header)).toBe(true);
  expect(decodeBody(body).payout).toEqual(accountOf(3));
  expect(headerPays(sent, decodeBody(body).payout, decodeBody(body).extranonce)).toBe(true);
  const next = await client.until(() => client.jobs[1]);
  expect(readExtranonce(next.extranonce)?.generation).toBeGreaterThan(0);
  expect(next.clean).toBe(false);
  const second = mine(job, client.prefix, first.next, blockTarget);
  expect(await client.submit(job.jobId, second.nonce)).toMatchObject({ result: { work: 4n, blockId: null } });
  expect(source.submitted.length).toBe(1);
  expect(sink.blocks.length).toBe(1);
  const third = mine(next, client.prefix, 0n, blockTarget);
  expect(await client.submitCode(next.jobId, third.nonce)).toBe(0);
  expect(source.submitted.length).toBe(2);
  source.cut([{ blockId: toHex(blockId(header)), transactionId: 'ab', outputIndex: 3, amount: 125n }]);
  // A cut is believed once a template on it was found good.
  await expect
    .poll(() => sink.fates.at(-1))
    .toMatchObject({ id: toHex(blockId(header)), fate: { state: 'paid', amount: 125n } });
  for (let i = 0; i < 96; i++) source.cut();
  await expect.poll(() => sink.fates.at(-1)?.fate.state).toBe('expired');
  client.close();
});

test('what miners find until they leave a server that drains is theirs', async () => {
  const { server, port, sink } = await startBed({ limits: { ...EASY, drainMillis: 60_000 } });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.rig`);
  const drained = server.drain();
  await client.until(() =>
    client.received.find((message) => message.kind === 'notification' && message.method === 'mining.reconnect'),
  );
  expect((await server.figures()).ready).toBe(false);
  // The server looks at itself every 250 ms.
  await new Promise((resolve) => setTimeout(resolve, 600));
  const job = client.jobs.at(-1)!;
  expect(await client.submitCode(job.jobId, mine(job, client.prefix).nonce)).toBe(0);
  expect(sink.accepted.length).toBe(1);
  client.close();
  await drained;
});

test('on a port with fixed work every share has it, whatever the miner asks for; the other port goes by the miner', async () => {
  const { server, port, sink } = await startBed({
    services: [{ ...BRIDGE, fixed: [{ listen: { host: '127.0.0.1', port: 0 }, work: 16n }] }],
  });
  const fixed = server.addresses.find(({ kind }) => kind === 'fixed')?.port ?? 0;
  expect(fixed).not.toBe(port);
  for (const [at, password, work] of [
    [fixed, '', 16n],
    [fixed, 'd=2', 16n],
    [fixed, 'min=1000', 16n],
    [port, 'd=2', 2n],
    [port, '', 4n],
  ] as const) {
    const client = await V1Client.open(at, 'tcp');
    await client.login(`${addressOf(1)}.rig`, password);
    const job = client.jobs[0]!;
    const { nonce } = mine(job, client.prefix);
    expect(await client.submit(job.jobId, nonce)).toMatchObject({ kind: 'result', result: { work } });
    expect(sink.accepted.at(-1)).toMatchObject({ service: 'bridge', work });
    client.close();
  }
});
