/**
 * Scores are for what a miner can help (docs/protocol/stratum.md, S59), and what one client sends makes no other's possible
 * block be refused.
 */
import { expect, test } from 'vitest';
import { connectionCountMemory } from '../../bridge/connection/connection-count.ts';
import { KernelError } from '../../kernels/kernel-error.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { encodeClientFrame } from '../../protocol/stratum/v2.ts';
import { EXCESS_RATE } from '../../runtime/clients/excess.ts';
import { EASY } from '../bridge/bed.ts';
import { type DeskBed, deskBed, RecordingPeer } from '../bridge/desk-bed.ts';
import { DeskFarm } from '../bridge/desk-farm.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { addressOf } from '../bridge/stratum-client.ts';

/** The first byte of a nonce says what it is: 1 a block, 2 a share, anything else nothing. The bed's blocks take 64 hashes. */
const hash = (header: Bytes): Bytes => {
  const first = header[NONCE_OFFSET];
  return new Uint8Array(32).fill(first === 1 ? 0 : first === 2 ? 0x05 : 0xff, 0, 1).fill(0xff, 1);
};
const SLOW = { ...EASY, submits: { perSecond: 1, burst: 20 } };

async function flood(miner: DeskMiner, jobId: number, count: number, first: number): Promise<void> {
  for (let i = 0; i < count; i++) miner.send({ method: 'mining.submit', params: { jobId, nonce: miner.nonce(first) } });
  await miner.bed.settle();
}

test('a miner with a fixed share work that the block target eases is not banned for the flood', async () => {
  const bed = await deskBed({ limits: SLOW, hash });
  const miner = new DeskMiner(bed);
  await miner.login({ password: 'd=1000000' });
  for (let second = 0; second < 10; second++) {
    bed.clock += 1_000;
    await flood(miner, (miner.jobs.at(-1) as Job).jobId, 60, 1);
  }
  expect(miner.codes.filter((code) => code === 27).length).toBeGreaterThan(400);
  expect(miner.codes).not.toContain(28);
  // One that chose a work that is too easy is.
  const greedy = new DeskMiner(bed);
  await greedy.login({ password: 'd=32' });
  await flood(greedy, (greedy.jobs[0] as Job).jobId, 200, 2);
  expect(greedy.codes).toContain(28);
});

test('a farm is not banned for a flood on jobs that keep the share work of before for a cut or two', async () => {
  const bed = await deskBed({ limits: SLOW, hash });
  const first = new DeskFarm(bed);
  const session = await first.begin(['a'], { rigs: 1, password: 'd=32' });
  first.end();
  const farm = new DeskFarm(bed);
  expect(await farm.begin(['a'], { rigs: 1, session, password: 'd=48' })).toBe(session);
  const flooded = async (from: number) => {
    const { jobId, firstGeneration: generation } = farm.job;
    const submits = Array.from({ length: 200 }, () => ({ jobId, generation, rig: 0, nonce: farm.nonce(2) }));
    await farm.send(...submits.map((submit, i) => ({ type: 'farmSubmit' as const, sequence: from + i, submit })));
    return farm.codes.includes(28);
  };
  expect(await flooded(1)).toBe(false);
  for (const height of [1_001, 1_002]) await bed.publish(height);
  await farm.send();
  expect(await flooded(201)).toBe(true);
});

test('a newcomer is forgiven a flood of good shares, not one of nothing', async () => {
  const bed = await deskBed({ limits: SLOW, hash });
  const [rig, pest] = [new DeskMiner(bed), new DeskMiner(bed)];
  await rig.login({ password: '' });
  await pest.login({ password: '' });
  for (let second = 0; second < 20; second++) {
    bed.clock += 1_000;
    await flood(rig, (rig.jobs.at(-1) as Job).jobId, 30, 2);
    await flood(pest, 12_345, 30, 2);
  }
  expect(rig.codes).not.toContain(28);
  expect(pest.codes).toContain(28);
});

test('who submits far more than it may is not read for a while, one connection of an address after the other; others are', async () => {
  const bed = await deskBed({ limits: SLOW, hash });
  const [rig, ...pests] = [new DeskMiner(bed, '203.0.113.8'), new DeskMiner(bed), new DeskMiner(bed)];
  for (const miner of [rig, ...pests]) await miner.login({ password: '' });
  const paused = () => pests.filter(({ peer }) => peer.isPaused).length;
  for (const pest of pests) await flood(pest, 12_345, EXCESS_RATE.burst, 2);
  await flood(rig, 12_345, 60, 2);
  expect([paused(), rig.peer.isPaused]).toEqual([1, false]);
  for (const pest of pests) await flood(pest, 12_345, 100, 2);
  expect(paused()).toBe(2);
  bed.clock += 10;
  bed.desk.tick();
  expect(paused()).toBe(2);
  bed.clock += 2_000;
  bed.desk.tick();
  expect(paused()).toBe(1);
  bed.desk.tick();
  expect(paused()).toBe(0);
  // A few too many are answered at once.
  await flood(pests[0] as DeskMiner, 12_345, 60, 2);
  expect(paused()).toBe(0);
});

test('a ping is answered, as often as a client may send requests', async () => {
  const bed = await deskBed({ limits: SLOW, hash });
  const rig = new DeskFarm(bed);
  const { burst } = SLOW.requests;
  for (let i = 0; i < burst + 5; i++) rig.put({ type: 'ping', value: BigInt(i) });
  await bed.settle();
  const pongs = rig.said.flatMap((frame) => (frame.type === 'pong' ? [Number(frame.value)] : []));
  expect(pongs).toEqual(Array.from({ length: burst }, (_, i) => i));
  expect(rig.codes).toEqual(Array(5).fill(27));
});

test('a sink that fails costs the miner no share: it is told to send it again, and the operator why', async () => {
  let isFailing = true;
  const shares = async () => {
    if (isFailing) throw new Error('no space left');
  };
  const bed = await deskBed({ hash, hub: { shares } });
  const miner = new DeskMiner(bed);
  await miner.login();
  const share = { jobId: (miner.jobs[0] as Job).jobId, nonce: miner.nonce(2) };
  expect(await miner.ask({ method: 'mining.submit', params: share })).toMatchObject({ error: { code: 31 } });
  expect(bed.logged.splice(0)).toMatchObject([
    expect.stringMatching(/^warn shares could not be judged .*no space left/),
  ]);
  isFailing = false;
  expect(await miner.ask({ method: 'mining.submit', params: share })).toMatchObject({ kind: 'result' });
  expect(bed.faults).toEqual([]);
});

test('a server that ends waits for the shares that are being verified, and tells their miners', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const bed = await deskBed({ limits: { ...EASY, drainMillis: 0 }, hash, verifying: () => promise });
  const miner = new DeskMiner(bed);
  await miner.login();
  const params = { jobId: (miner.jobs[0] as Job).jobId, nonce: miner.nonce(2) };
  const id = miner.send({ method: 'mining.submit', params });
  await bed.settle();
  const drained = bed.desk.drain();
  expect([miner.answerTo(id), miner.peer.isClosed]).toEqual([undefined, false]);
  resolve();
  await drained;
  expect(miner.answerTo(id)).toMatchObject({ kind: 'result' });
  expect(miner.peer.isClosed).toBe(true);
});

test('a pong that nobody asked for counts as a request', async () => {
  const bed = await deskBed({ limits: SLOW, hash });
  const peer = new RecordingPeer();
  const pest = bed.open('v2', peer);
  const pong = encodeClientFrame({ type: 'pong', value: 1n });
  for (let i = 0; i < SLOW.requests.burst; i++) pest.receive(pong);
  expect(bed.faults).toEqual([]);
  for (let i = 0; i < 1_000; i++) pest.receive(pong);
  await bed.settle();
  expect(bed.faults[0]?.fault).toBe('excess');
  expect(peer.isClosed).toBe(true);
});

test.each([
  ['requests than it may', '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n'],
  ['faults', '{}\n'],
])('who is never banned and sends far more %s is not read for a while', async (_name, line) => {
  const bed = await deskBed({ limits: SLOW, hash });
  const [rig, near] = [new DeskMiner(bed), new DeskMiner(bed, '127.0.0.1')];
  for (const miner of [rig, near]) await miner.login({ password: '' });
  for (let i = 0; i < SLOW.requests.burst + 2 * EXCESS_RATE.burst; i++) near.conversation.receive(utf8(line));
  await bed.settle();
  expect([near.peer.isClosed, near.peer.isPaused, rig.peer.isPaused]).toEqual([false, true, false]);
  bed.clock += 2_000;
  bed.desk.tick();
  expect(near.peer.isPaused).toBe(false);
});

test('not being ready, a slow disk or a slow database is not counted against those who wait for it', async () => {
  const bed = await deskBed({ limits: { ...EASY, loginMillis: 5_000 }, hash });
  bed.desk.ready = false;
  const waits = Array.from({ length: 30 }, () => new DeskMiner(bed));
  for (const miner of waits) {
    const params = { username: `${addressOf(1)}.w`, password: '' };
    // All at once, as many miners do.
    miner.send({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } });
    miner.send({ method: 'mining.authorize', params });
    miner.send({ method: 'mining.submit', params: { jobId: 64, nonce: new Uint8Array(8) } });
  }
  await bed.settle();
  expect(waits[0]?.codes).toEqual([31, 25, 25]);
  for (let second = 0; second < 8; second++) {
    bed.clock += 1_000;
    for (let tick = 0; tick < 20; tick++) bed.desk.tick();
  }
  expect(waits.every(({ peer }) => peer.isClosed)).toBe(true);
  expect(bed.faults).toEqual([]);
  // A client that sends nothing, or sends out of turn, is scored as ever.
  bed.desk.ready = true;
  const silent = new DeskMiner(bed);
  const early = new DeskMiner(bed);
  await early.ask({ method: 'mining.submit', params: { jobId: 64, nonce: new Uint8Array(8) } });
  for (let second = 0; second < 8; second++) {
    bed.clock += 1_000;
    for (let tick = 0; tick < 20; tick++) bed.desk.tick();
  }
  expect(silent.peer.isClosed).toBe(true);
  expect(bed.faults.map(({ fault }) => fault).sort()).toEqual(['login_timeout', 'login_timeout', 'unauthorized']);
});

test('a submit that is sent again after a resume is not scored, one that is sent over and over is', async () => {
  const bed = await deskBed({ hash });
  const first = new DeskMiner(bed);
  const session = await first.login();
  const { jobId } = first.jobs[0] as Job;
  const nonces = Array.from({ length: 40 }, () => first.nonce(2));
  for (const nonce of nonces) await first.ask({ method: 'mining.submit', params: { jobId, nonce } });
  first.end();
  const again = new DeskMiner(bed);
  await again.login({ session });
  for (const nonce of nonces) await again.ask({ method: 'mining.submit', params: { jobId, nonce } });
  expect(again.codes).toEqual(Array(40).fill(22));
  for (let i = 0; i < 50; i++) again.send({ method: 'mining.submit', params: { jobId, nonce: nonces[0] as Bytes } });
  await bed.settle();
  expect(again.codes).toContain(28);
});

const expire = async (bed: DeskBed): Promise<void> => {
  await bed.publish(1_001);
  await bed.settle();
  bed.clock += EASY.jobs.graceMillis + 1_000;
};

test('garbage on expired jobs costs its sender the session, and no other its late block', async () => {
  const bed = await deskBed({ hash });
  const [victim, ...pests] = Array.from({ length: 41 }, () => new DeskMiner(bed));
  for (const miner of [victim as DeskMiner, ...pests]) await miner.login();
  const [old] = (victim as DeskMiner).jobs as [Job];
  await expire(bed);
  for (const pest of pests) await flood(pest, old.jobId, 600, 9);
  for (const pest of pests) expect(pest.codes).toContain(28);
  expect(await victim?.hit(old, 2)).toBe(21);
  expect(await victim?.hit(old, 1)).toBeInstanceOf(Uint8Array);
  expect(bed.blocks.length).toBe(1);
});

test('a server that others keep busy still hashes what each connection is owed', async () => {
  const limits = { ...EASY, submitsOverall: { perSecond: 1, burst: 50 } };
  const bed = await deskBed({ limits, hash });
  const [victim, pest] = [new DeskMiner(bed), new DeskMiner(bed)];
  await victim.login();
  await pest.login();
  await flood(pest, (pest.jobs[0] as Job).jobId, 500, 2);
  expect(pest.codes.filter((code) => code === 27).length).toBeGreaterThan(400);
  expect(pest.codes).not.toContain(28);
  expect(await victim.hit(victim.jobs[0] as Job, 1)).toBeInstanceOf(Uint8Array);
});

test('one address cannot use up what the server can verify: the others have their part', async () => {
  const limits = { ...EASY, submitsOverall: { perSecond: 1, burst: 50 }, owedSubmits: { perSecond: 0, burst: 0 } };
  const bed = await deskBed({ limits, hash });
  const [victim, pest] = [new DeskMiner(bed, '203.0.113.8'), new DeskMiner(bed)];
  await victim.login();
  await pest.login();
  await flood(pest, (pest.jobs[0] as Job).jobId, 500, 2);
  for (let i = 0; i < 10; i++) expect(await victim.hit(victim.jobs[0] as Job, 2)).toBeNull();
});

test('a verifier whose queue others fill is asked again for what each connection is owed', async () => {
  let isFull = true;
  const bed = await deskBed({
    hash: (header) => {
      if (isFull) throw new KernelError('kernel_busy', 'full', {});
      return hash(header);
    },
  });
  const miner = new DeskMiner(bed);
  await miner.login();
  const job = miner.jobs[0] as Job;
  const ids = Array.from({ length: 40 }, () =>
    miner.send({ method: 'mining.submit', params: { jobId: job.jobId, nonce: miner.nonce(1) } }),
  );
  await bed.settle();
  const owed = EASY.owedSubmits.burst;
  expect(miner.codes).toEqual(Array(40 - owed).fill(27));
  isFull = false;
  await expect
    .poll(async () => {
      await bed.settle();
      return ids.filter((id) => miner.answerTo(id)?.kind === 'result').length;
    })
    .toBe(owed);
});

const garbage = (miner: DeskMiner, lines: number): void => {
  for (let i = 0; i < lines && !miner.peer.isClosed; i++) miner.conversation.receive(utf8('{"id":1,"method":\n'));
};

test('a login that can be read and is refused costs nobody a point', async () => {
  const bed = await deskBed();
  for (let i = 0; i < 30; i++) {
    const miner = new DeskMiner(bed);
    await miner.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } });
    for (const [username, password] of [
      [`${addressOf(1)}.my rig`, 'd=32'],
      [`${addressOf(1)}.`, 'd=32'],
      ['not an address', 'd=32'],
      [`${addressOf(1)}.rig`, 'd=none'],
    ] as const)
      await miner.ask({ method: 'mining.authorize', params: { username, password } });
    expect(miner.codes).toEqual([-32602, -32602, 29, -32602]);
    await miner.ask({ method: 'mining.authorize', params: { username: `${addressOf(1)}.rig`, password: 'd=32' } });
    expect(miner.jobs.length).toBeGreaterThan(0);
    await miner.ask({ method: 'mining.authorize', params: { username: `${addressOf(2)}.rig`, password: '' } });
    expect(miner.codes.at(-1)).toBe(-32600);
  }
  expect(bed.faults).toEqual([]);
});

test('behind a NAT one bad rig is put off alone', async () => {
  const counts = connectionCountMemory(64);
  const bed = await deskBed({ hash, counts });
  // Another thread of the same server.
  const other = await deskBed({ hash, counts });
  const good = new DeskMiner(other);
  await good.login();
  await good.hit(good.jobs[0] as Job, 2);
  const bad = new DeskMiner(bed);
  garbage(bad, 30);
  expect(bad.codes).toContain(28);
  expect(bad.peer.isClosed).toBe(true);
  expect(bed.faults).toEqual([]);
  // A ban from elsewhere does not shut out the others either.
  bed.desk.ban('203.0.113.7', bed.clock + 600_000);
  const next = new DeskMiner(bed);
  await next.login();
  expect(next.jobs.length).toBeGreaterThan(0);
  // Where nobody works, the address is what is known of the sender.
  good.end();
  expect(new DeskMiner(bed).codes).toEqual([28]);
  const stranger = new DeskMiner(bed, '203.0.113.8');
  garbage(stranger, 30);
  expect(bed.faults.length).toBe(20);
});

test.each(['127.0.0.1', '::1', '198.51.100.7'])('%s is never banned, by whatever rule', async (address) => {
  const bed = await deskBed({ limits: SLOW, hash, allow: ['198.51.100.0/24'] });
  const [own, stranger] = [new DeskMiner(bed, address), new DeskMiner(bed)];
  for (const miner of [own, stranger]) {
    await miner.login();
    for (let second = 0; second < 5; second++) {
      bed.clock += 1_000;
      // Above the target, and far too many.
      await flood(miner, (miner.jobs[0] as Job).jobId, 30, 9);
    }
  }
  expect(stranger.codes).toContain(28);
  expect(own.codes).not.toContain(28);
  garbage(own, 100);
  expect(own.codes).not.toContain(28);
});
