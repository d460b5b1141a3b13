/** A ban of a session lasts (docs/protocol/stratum.md, S59): neither a resume nor another instance ends it, and its score is kept. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LocalSessionShelf, type SessionShelf } from '../../bridge/session/session-shelf.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { RedisSessionShelf } from '../../pool/shared/redis-shared-state.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { BRIDGE, EASY, startBed } from '../bridge/bed.ts';
import { deskBed, type RecordingPeer } from '../bridge/desk-bed.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { type RedisServer, startRedisServer } from '../pool/redis-server.ts';
import { testSealed } from '../pool/sealed.ts';
import { waiting } from '../pool/waiting-session.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedisServer();
});
afterAll(() => server.stop());

async function redisShelf(): Promise<SessionShelf> {
  const redis = await server.connect('shelf');
  return new RedisSessionShelf(EASY, { redis, keys: redisKeys('ban'), ...testSealed(), now: Date.now });
}

async function subscribe(port: number, session: string) {
  const client = await V1Client.open(port, 'proxied');
  const answer = client.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session } });
  const banned = client.until(() => client.received.find((said) => said.kind === 'error' && said.error.code === 28));
  return { client, said: await Promise.race([answer, banned]) };
}

test.each([
  ['in one process', 1],
  ['over Redis, from one instance to the other', 2],
])('%s: a banned session gets the code of its ban however often it comes back', async (_, instances) => {
  const limits = { ...EASY, bans: { ...EASY.bans, limit: 20 } };
  const beds = [];
  for (let i = 0; i < instances; i++)
    beds.push(
      await startBed({ limits, proxies: ['127.0.0.1'], ...(instances === 1 ? {} : { sessions: await redisShelf() }) }),
    );
  const [{ port }] = beds as [(typeof beds)[0]];
  const client = await V1Client.open(port, 'proxied');
  await client.login(`${addressOf(1)}.a`);
  const job = client.jobs[0] as Job;
  const { nonce } = mine(job, client.prefix);
  expect(await client.submitCode(job.jobId, nonce)).toBe(0);
  for (let i = 0; i < 12; i++) client.send({ method: 'mining.submit', params: { jobId: job.jobId, nonce } });
  await client.closed;
  for (const bed of [...beds, ...beds]) {
    const { client: again, said } = await subscribe(bed.port, client.session);
    expect(said).toMatchObject({ kind: 'error', error: { code: 28, retryAfterMillis: expect.any(Number) } });
    await again.closed;
  }
  // The account and the address are not banned: many rigs share them.
  const other = await V1Client.open(port, 'proxied');
  await other.login(`${addressOf(1)}.a`);
  other.close();
});

test('a score goes on where it was when the session is resumed, and decays', async () => {
  const bed = await deskBed({ hash: () => new Uint8Array(32).fill(255) });
  const first = new DeskMiner(bed);
  const session = await first.login();
  const job = first.jobs[0] as Job;
  for (let i = 0; i < 18; i++) expect(await first.hit(job)).toBe(23);
  first.end();
  const second = new DeskMiner(bed);
  expect(await second.login({ session })).toBe(session);
  const fresh = second.jobs.at(-1) as Job;
  expect(await second.hit(fresh)).toBe(23);
  expect(await second.hit(fresh)).toBe(23);
  expect(second.codes.at(-1)).toBe(28);
  second.end();
  expect(bed.shelf.get(session)?.bannedUntilMillis).toBe(bed.clock + EASY.bans.banMillis);
  bed.clock += EASY.bans.banMillis;
  const third = new DeskMiner(bed);
  expect(await third.login({ session })).toBe(session);
  expect(await third.hit(third.jobs.at(-1) as Job)).toBe(23);
  expect(third.codes).not.toContain(28);
});

test('a shelf keeps a banned session until its ban ends, and strangers cannot push out those that brought shares', async () => {
  let now = 0;
  const shelf = new LocalSessionShelf({ resumeMillis: 1_000, resumeSessions: 8 }, () => now);
  await shelf.put({ ...waiting('banned'), bannedUntilMillis: 5_000 });
  await shelf.put({ ...waiting('miner'), accepted: 1 });
  for (let i = 0; i < 100; i++) await shelf.put({ ...waiting(`stranger ${i}`), accepted: 0 });
  now = 900;
  expect(await shelf.take('miner')).not.toBeNull();
  expect(await shelf.take('stranger 99')).not.toBeNull();
  expect(await shelf.take('stranger 9')).toBeNull();
  now = 4_999;
  const banned = await shelf.take('banned');
  expect(banned?.bannedUntilMillis).toBe(5_000);
  await shelf.put(banned!);
  now = 6_001;
  expect(await shelf.take('banned')).toBeNull();
});

test('a session that comes to the other service of a pool is banned there too, and is not lost', async () => {
  const bed = await deskBed({ hash: () => new Uint8Array(32).fill(255) });
  const solo: typeof bed = Object.assign(Object.create(bed), {
    open: (form: 'v1' | 'v2', peer: RecordingPeer) =>
      bed.desk.open({ ...BRIDGE, name: 'solo' }, form, peer, '203.0.113.8'),
  });
  const first = new DeskMiner(bed);
  const session = await first.login();
  for (let i = 0; i < 18; i++) expect(await first.hit(first.jobs[0] as Job)).toBe(23);
  first.end();
  // Not banned yet: the other service gives a session of its own, and the old one can still be resumed, with its score.
  const visitor = new DeskMiner(solo);
  expect(await visitor.login({ session })).not.toBe(session);
  visitor.end();
  const back = new DeskMiner(bed);
  expect(await back.login({ session })).toBe(session);
  for (let i = 0; i < 2; i++) expect(await back.hit(back.jobs.at(-1) as Job)).toBe(23);
  expect(back.codes.at(-1)).toBe(28);
  back.end();
  for (const at of [solo, bed, solo, bed]) {
    const again = new DeskMiner(at);
    again.send({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session } });
    await bed.settle();
    expect(again.codes).toEqual([28]);
  }
});
