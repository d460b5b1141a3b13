/**
 * Sessions over a restart (docs/protocol/stratum.md, S50, S52 and S55), with two servers one after the other. A process
 * that is killed leaves its files as they are at that moment: so does a copy of them that is made while it lives.
 */
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import type { StratumService } from '../../bridge/service.ts';
import { jobIdOf, serialOf } from '../../bridge/session/job-book.ts';
import { JobLog } from '../../bridge/session/job-log.ts';
import { KeptSessions } from '../../bridge/session/kept-sessions.ts';
import { entriesOf, sessionEntry } from '../../bridge/session/session-entries.ts';
import { SessionLog } from '../../bridge/session/session-log.ts';
import { bootOf } from '../../miner/client/link-books.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { jobOfFarm } from '../../protocol/stratum/farm.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { waiting } from '../pool/waiting-session.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { type Bed, BRIDGE, EASY, startBed } from './bed.ts';
import { accountOf, addressOf, mine, V1Client, V2Client } from './stratum-client.ts';
import { TemplateSource } from './template-source.ts';

type Client = V1Client | V2Client;
const LINES = [
  ['v1 over TCP', V1Client, 'tcp'],
  ['v2 over TCP', V2Client, 'tcp'],
  ['v2 over WebSocket', V2Client, 'ws'],
] as const;
const WAYS = ['killed', 'stopped'] as const;
const SECOND = 1_000;

const filesOf = (directory: string) =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.sessions'))
    .sort()
    .map((name) => join(directory, name));

function keptIn(directory: string): KeptSessions {
  const kept = new KeptSessions({ bootId: new Uint8Array(8), resumeMillis: EASY.resumeMillis, maxSessions: 1_000 });
  for (const path of filesOf(directory)) kept.read(readFileSync(path));
  return kept;
}

/** The next process: on the files as they are now, or after an orderly end. */
async function restarted(
  bed: Bed,
  directory: string,
  way: (typeof WAYS)[number],
  options = {},
): Promise<Bed & { readonly directory: string }> {
  const next = temporaryDirectory();
  if (way === 'stopped') {
    await bed.server.drain();
    await bed.server.close();
  }
  cpSync(directory, next, { recursive: true });
  await bed.server.close();
  return { ...(await startBed({ sources: [bed.source], sessionsDirectory: next, ...options })), directory: next };
}

const open = (Form: typeof V1Client | typeof V2Client, { port, wsPort }: Bed, transport: 'tcp' | 'ws') =>
  Form.open(transport === 'ws' ? wsPort : port, transport);

/** A session with one accepted share and one more found on its newest job, and kept on the disk. */
/** A share is accepted, and is no block where the target of blocks is given: a body is good for one. */
async function worked(client: Client, directory: string, worker = 'w', blockTarget?: Bytes) {
  await client.login(`${addressOf(1)}.${worker}`, 'd=4');
  const job = client.jobs.at(-1) as Job;
  const first = mine(job, client.prefix, 0n, targetToBytes(job.shareTarget), blockTarget);
  expect(await client.submitCode(job.jobId, first.nonce)).toBe(0);
  await until(() => keptIn(directory).take(client.session, Date.now()) !== null);
  return { job, sent: first.nonce, found: mine(job, client.prefix, first.next).nonce };
}

test.each(LINES.flatMap(([name, Form, transport]) => WAYS.map((way) => [name, way, Form, transport] as const)))(
  'a session on %s goes on after its server was %s: its jobs are good, and what was answered is a duplicate',
  async (_name, way, Form, transport) => {
    const directory = temporaryDirectory();
    const before = await startBed({ sessionsDirectory: directory });
    const client = await open(Form, before, transport);
    const { job, sent, found } = await worked(client, directory);
    // The next job of the run leaves no note of its own.
    before.source.cut();
    const later = await until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(job.jobId)));
    const onLater = mine(later, client.prefix).nonce;

    const after = await restarted(before, directory, way);
    const next = await open(Form, after, transport);
    await next.login(`${addressOf(1)}.w`, 'd=4', client.session);
    expect([next.session, toHex(next.prefix)]).toEqual([client.session, toHex(client.prefix)]);
    const fresh = next.jobs[0] as Job;
    expect(fresh.clean).toBe(false);
    expect(fresh.shareTarget).toBe(later.shareTarget);
    expect(serialOf(fresh.jobId)).toBeGreaterThan(serialOf(later.jobId));
    // New jobs say which process sends them (S35).
    expect(bootOf(fresh)).toBe(toHex(after.server.bootId));
    expect(await next.submitCode(job.jobId, sent)).toBe(CODE.duplicate);
    expect(await next.submitCode(job.jobId, found)).toBe(0);
    expect(await next.submitCode(job.jobId, found)).toBe(CODE.duplicate);
    expect(await next.submitCode(later.jobId, onLater)).toBe(0);
    // Ids that were never sent.
    expect(await next.submitCode(jobIdOf(serialOf(later.jobId), 1), onLater)).toBe(CODE.unknown_job);
    expect(after.sink.accepted.map(({ worker, extranonce }) => [worker, toHex(extranonce)])).toEqual([
      ['w', toHex(job.extranonce)],
      ['w', toHex(later.extranonce)],
    ]);
    next.close();
  },
);

test.each(WAYS)(
  'a farm goes on after its server was %s: its jobs are good by rig, each share and each block of a generation once',
  async (way) => {
    const directory = temporaryDirectory();
    const before = await startBed({ sessionsDirectory: directory, threads: 1, blockWork: 16n });
    const client = await V2Client.open(before.port);
    await client.login(`${addressOf(1)}.hall`, 'd=4');
    const job = await client.farm(3);
    const blockTarget = targetToBytes(decodeHeader(job.header).target);
    const ANY = Uint8Array.of(0xff, 0x01);
    const generation = job.firstGeneration + 7;
    const rig = 1;
    const nonceOf = (at: number, from = 0n, target = targetToBytes(job.shareTarget)) =>
      mine(jobOfFarm(job, at), ANY, from, target);
    const send = (to: V2Client, at: number, nonce: Bytes, as = rig, { jobId } = job): Promise<number> => {
      const from = to.frames.length;
      return to.codeOf(to.farmSubmit({ jobId, generation: at, rig: as, nonce }), from);
    };
    const block = nonceOf(generation, 0n, blockTarget);
    const second = nonceOf(generation, block.next, blockTarget);
    expect(await send(client, job.firstGeneration, nonceOf(job.firstGeneration).nonce, 0)).toBe(0);
    await until(() => keptIn(directory).take(client.session, Date.now()) !== null);
    expect(await send(client, generation, block.nonce)).toBe(0);
    expect(client.frames.filter(({ type }) => type === 'block').length).toBeGreaterThan(0);
    const found = nonceOf(generation + 1);
    // After a resume: farm jobs that only a note of their first one tells of.
    const resumed = await V2Client.open(before.port);
    await resumed.login(`${addressOf(1)}.hall`, 'd=4', client.session);
    const later = await resumed.farm(3);
    expect(later.firstGeneration).toBeGreaterThan(generation + 4 * 3);
    const onLater = mine(jobOfFarm(later, later.firstGeneration + 2), ANY);
    const nextOnLater = mine(jobOfFarm(later, later.firstGeneration + 2), ANY, onLater.next);
    expect(await send(resumed, later.firstGeneration + 2, onLater.nonce, 0, later)).toBe(0);

    const after = await restarted(before, directory, way, { threads: 1 });
    const next = await V2Client.open(after.port);
    await next.login(`${addressOf(1)}.hall`, 'd=4', client.session);
    expect(next.session).toBe(client.session);
    const fresh = await next.farm(3);
    expect(fresh.firstGeneration).toBeGreaterThan(later.firstGeneration + 2);
    expect(toHex(fresh.extranonceHead)).not.toBe(toHex(job.extranonceHead));
    expect(await send(next, generation, block.nonce)).toBe(CODE.duplicate);
    expect(await send(next, job.firstGeneration - 1, found.nonce)).toBe(CODE.internal);
    expect(await send(next, generation, second.nonce, 2)).toBe(0);
    expect(await send(next, generation + 1, found.nonce)).toBe(0);
    expect(await send(next, generation + 1, found.nonce, 2)).toBe(CODE.duplicate);
    expect(await send(next, later.firstGeneration + 2, onLater.nonce, 0, later)).toBe(CODE.duplicate);
    expect(await send(next, later.firstGeneration + 2, nextOnLater.nonce, 0, later)).toBe(0);
    expect(after.sink.accepted.map(({ worker }) => worker)).toEqual(['w2', 'w1', 'w0']);
    expect(after.sink.blocks.filter(({ worker }) => worker === 'w2')).toEqual([]);
    expect(before.sink.accepted.map(({ worker }) => worker)).toEqual(['w0', 'w1', 'w0']);
    next.close();
  },
);

test('two restarts in a row: the jobs of all three processes are good, each share once', async () => {
  let directory = temporaryDirectory();
  let bed = await startBed({ sessionsDirectory: directory });
  let client = await V1Client.open(bed.port);
  const { job, sent, found } = await worked(client, directory);
  const kept = [{ job, nonce: sent }];
  for (let i = 0; i < 2; i++) {
    const after = await restarted(bed, directory, 'killed');
    bed = after;
    directory = after.directory;
    const next = await V1Client.open(bed.port);
    await next.login(`${addressOf(1)}.w`, 'd=4', client.session);
    for (const each of kept) expect(await next.submitCode(each.job.jobId, each.nonce)).toBe(CODE.duplicate);
    const newest = next.jobs.at(-1) as Job;
    const { nonce } = mine(newest, next.prefix);
    expect(await next.submitCode(newest.jobId, nonce)).toBe(0);
    kept.push({ job: newest, nonce });
    if (i === 0) {
      expect(await next.submitCode(job.jobId, found)).toBe(0);
      kept.push({ job, nonce: found });
    }
    const { bootId } = bed.server;
    const noted = () => keptIn(directory).take(next.session, Date.now());
    await until(() => toHex(noted()?.servedBy ?? new Uint8Array(0)) === toHex(bootId));
    client = next;
  }
});

test('a block on a job of before the restart is sent with the body of its template', async () => {
  const directory = temporaryDirectory();
  const source = new TemplateSource();
  source.transactions = [[new Uint8Array(4_000).fill(1), new Uint8Array(5_000).fill(2)]];
  const before = await startBed({ sessionsDirectory: directory, sources: [source], blockWork: 64n });
  const client = await V2Client.open(before.port);
  const blockTarget = targetToBytes(targetOfWork(64n));
  const { job } = await worked(client, directory, 'w', blockTarget);
  const block = mine(job, client.prefix, 1_000n, blockTarget).nonce;
  const sentBefore = source.submitted.length;
  const after = await restarted(before, directory, 'killed');
  const next = await V2Client.open(after.port);
  await next.login(`${addressOf(1)}.w`, 'd=4', client.session);
  expect(await next.submitCode(job.jobId, block)).toBe(0);
  const submitted = await until(() => source.submitted[sentBefore]);
  const body = decodeBody(submitted.body);
  expect(toHex(body.extranonce)).toBe(toHex(job.extranonce));
  expect(body.transactions.map(toHex)).toEqual(source.transactions[0]?.map(toHex));
  expect(after.sink.blocks.map(({ extranonce }) => toHex(extranonce))).toEqual([toHex(job.extranonce)]);
});

test('a share that the sink still has not taken when its session is resumed is no duplicate if it is refused then', async () => {
  const bed = await startBed();
  const client = await V1Client.open(bed.port);
  await client.login(`${addressOf(1)}.w`, 'd=4');
  const job = client.jobs.at(-1) as Job;
  const { nonce } = mine(job, client.prefix);
  let fail = (): void => undefined;
  bed.sink.hold = new Promise((_, reject) => {
    fail = () => reject(new Error('the disk failed'));
  });
  bed.sink.hold.catch(() => undefined);
  void client.submitCode(job.jobId, nonce).catch(() => undefined);
  await until(() => bed.sink.held > 0);
  const next = await V1Client.open(bed.port);
  await next.subscribe(client.session);
  expect(next.session).toBe(client.session);
  fail();
  bed.sink.hold = Promise.resolve();
  await next.ask({ method: 'mining.authorize', params: { username: `${addressOf(1)}.w`, password: 'd=4' } });
  await until(() => next.jobs.at(-1));
  // Whether the sink takes it could not be known: nothing is guessed, and its jobs are dead.
  expect(await next.submitCode(job.jobId, nonce)).toBe(CODE.unknown_job);
});

const poolOf = (name: string, fill: number): StratumService => ({
  ...BRIDGE,
  name,
  pool: { payout: accountOf(fill), address: addressOf(fill), name: 'test' },
});

test('it is not resumed at another service, and where blocks pay another address its jobs are dead', async () => {
  const directory = temporaryDirectory();
  const before = await startBed({ sessionsDirectory: directory, services: [poolOf('pplns', 1)] });
  const client = await V1Client.open(before.port);
  const { job, found } = await worked(client, directory);
  const solo = await restarted(before, directory, 'killed', { services: [poolOf('solo', 1)] });
  const stranger = await V1Client.open(solo.port);
  await stranger.login(`${addressOf(1)}.w`, 'd=4', client.session);
  expect(stranger.session).not.toBe(client.session);
  expect(await stranger.submitCode(job.jobId, found)).toBe(CODE.unknown_job);
  const other = await restarted(before, directory, 'killed', { services: [poolOf('pplns', 2)] });
  const next = await V1Client.open(other.port);
  await next.login(`${addressOf(1)}.w`, 'd=4', client.session);
  expect(next.session).toBe(client.session);
  expect(next.jobs[0]?.clean).toBe(true);
  expect(await next.submitCode(job.jobId, found)).toBe(CODE.unknown_job);
});

test('after a restart on another chain a session goes on, and its jobs are dead', async () => {
  const directory = temporaryDirectory();
  const before = await startBed({ sessionsDirectory: directory });
  const client = await V1Client.open(before.port);
  const { job, found } = await worked(client, directory);
  const other = new TemplateSource();
  const after = await restarted(before, directory, 'killed', { sources: [other] });
  const next = await V1Client.open(after.port);
  await next.login(`${addressOf(1)}.w`, 'd=4', client.session);
  expect(next.session).toBe(client.session);
  expect(await next.submitCode(job.jobId, found)).toBe(CODE.unknown_job);
});

test('a server that was away until the windows of its jobs closed starts, and its sessions go on', async () => {
  const directory = temporaryDirectory();
  const before = await startBed({ sessionsDirectory: directory });
  const client = await V1Client.open(before.port);
  const { job, found } = await worked(client, directory);
  await before.server.close();
  for (let i = 0; i < 100; i++) before.source.cut();
  const after = await restarted(before, directory, 'killed');
  const next = await V1Client.open(after.port);
  await next.login(`${addressOf(1)}.w`, 'd=4', client.session);
  expect(next.session).toBe(client.session);
  expect(await next.submitCode(job.jobId, found)).toBe(CODE.unknown_job);
});

test('the time in which a server is away does not count: neither for a session nor for the grace of its jobs', () => {
  const kept = new KeptSessions({ bootId: new Uint8Array(8), resumeMillis: 120 * SECOND, maxSessions: 9 });
  const killed = 1_800_000_000_000;
  for (const number of [1, 2]) kept.read(sessionEntry(recordOf(number), killed));
  expect(kept.back(killed + 200 * SECOND)).toBe(200 * SECOND);
  expect(kept.take(idOf(1), killed + 319 * SECOND)).not.toBeNull();
  expect(kept.take(idOf(2), killed + 321 * SECOND)).toBeNull();
});

test('a flipped bit anywhere in the log costs jobs or sessions, never a second credit', async () => {
  const directory = temporaryDirectory();
  const bed = await startBed({ sessionsDirectory: directory });
  const client = await V1Client.open(bed.port);
  const { job } = await worked(client, directory);
  const bytes = readFileSync(filesOf(directory)[0] as string);
  const judgedOf = (file: Uint8Array) => {
    const kept = new KeptSessions({ bootId: new Uint8Array(8), resumeMillis: EASY.resumeMillis, maxSessions: 1 });
    kept.read(file);
    kept.settle(kept.open.shares);
    const jobs = kept.take(client.session, Date.now())?.record.jobs ?? null;
    if (jobs === null) return 'dead';
    const log = JobLog.restore(jobs.log);
    return log.find(job.jobId) === undefined ? 'dead' : log.judged;
  };
  expect(judgedOf(bytes)).toBe(1);
  for (let at = 0; at < bytes.length; at++) {
    const spoiled = Uint8Array.from(bytes);
    spoiled[at] = (spoiled[at] as number) ^ (1 << (at % 8));
    expect(judgedOf(spoiled), `byte ${at}`).toBe('dead');
    // An end that is missing was not answered: what is before it stays.
    expect(['dead', 0, 1]).toContain(judgedOf(bytes.subarray(0, at)));
  }
});

test('an entry that is whole and cannot be read, as of another release, counts as damaged', () => {
  for (const kind of [1, 2, 3, 4, 5, 99]) {
    const entry = Buffer.alloc(14, 1);
    entry.writeUInt32LE(1, 0);
    entry.writeUInt32LE(crc32(entry.subarray(0, 4)), 4);
    entry[12] = kind;
    entry.writeUInt32LE(crc32(entry.subarray(12)), 8);
    let isDamaged = false;
    const found = [
      ...entriesOf(entry, () => {
        isDamaged = true;
      }),
    ];
    expect({ kind, found, isDamaged }).toEqual({ kind, found: [], isDamaged: true });
  }
});

test('a login without a share leaves nothing, and nobody can resume a session with what is in the file', async () => {
  const directory = temporaryDirectory();
  const bed = await startBed({ sessionsDirectory: directory });
  const idle = await V1Client.open(bed.port);
  await idle.login(`${addressOf(2)}.idle`);
  const client = await V1Client.open(bed.port);
  await worked(client, directory);
  idle.close();
  await bed.server.close();
  expect(keptIn(directory).size).toBe(1);
  for (const path of filesOf(directory)) {
    expect(statSync(path).mode & 0o077).toBe(0);
    const text = readFileSync(path).toString('latin1');
    expect(text).not.toContain(client.session);
    expect(text).not.toContain(Buffer.from(client.session, 'hex').toString('latin1'));
  }
});

/** A log in virtual time. */
async function logBed({ maxBytes, sessions = 100 }: { maxBytes?: number; sessions?: number } = {}) {
  const directory = temporaryDirectory();
  const clock = { now: 1_800_000_000_000 };
  const limits = { ...EASY, resumeSessions: sessions };
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('bridge', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: () => 0 });
  const openLog = (machine = 'ab') =>
    SessionLog.open(
      { directory, bootId: new Uint8Array(8).fill(3), limits, ...(maxBytes === undefined ? {} : { maxBytes }) },
      { now: () => clock.now, log, machine },
    );
  return { directory, clock, openLog, lines };
}
const idOf = (number: number): string => number.toString(16).padStart(32, '0');
const recordOf = (number: number) => waiting(idOf(number));

test('a session is kept for as long as it can be resumed, and once', async () => {
  const { clock, openLog } = await logBed();
  const log = await openLog();
  log.ended(recordOf(1), 'here');
  clock.now += 30 * SECOND;
  log.ended(recordOf(2), 'shared');
  await log.close();
  clock.now += 100 * SECOND;
  const { kept } = await openLog();
  expect(kept.take(idOf(1), clock.now)).toBeNull();
  expect(kept.take(idOf(2), clock.now)).toMatchObject({
    record: { id: idOf(2), prefix: recordOf(2).prefix },
    isShared: true,
  });
  expect(kept.take(idOf(2), clock.now)).toBeNull();
});

test('what an earlier start of the machine left is not read: a power failure takes shares that were answered', async () => {
  for (const machine of ['cd', '']) {
    const { directory, openLog } = await logBed();
    const log = await openLog();
    log.ended(recordOf(1), 'here');
    await log.close();
    expect((await openLog()).kept.size).toBe(1);
    expect((await openLog(machine)).kept.size).toBe(0);
    expect(filesOf(directory)).toEqual([]);
  }
});

test('the log is bounded: in sessions, in bytes, and in time', async () => {
  const { directory, clock, openLog } = await logBed({ maxBytes: 400_000, sessions: 50 });
  const log = await openLog();
  const bytes = () => filesOf(directory).reduce((sum, path) => sum + statSync(path).size, 0);
  for (let i = 0; i < 1_000; i++) {
    log.ended(recordOf(i), 'here');
    await log.shares([]);
    expect(bytes()).toBeLessThan(500_000);
  }
  expect((await openLog()).kept.size).toBe(50);
  // Files that nothing needs any more go, whatever their size.
  for (let minute = 0; minute < 30; minute++) {
    clock.now += 60 * SECOND;
    await log.shares([]);
    expect(filesOf(directory).length).toBeLessThan(16);
  }
  expect(bytes()).toBeLessThan(1_000);
  await log.close();
  clock.now += 3_600 * SECOND;
  await (await openLog()).close();
  expect(filesOf(directory)).toEqual([]);
});

test('of a log with a gap nothing is left: where a write failed, shares would count twice', async () => {
  const { directory, clock, openLog, lines } = await logBed();
  const log = await openLog();
  log.ended(recordOf(1), 'here');
  await log.shares([]);
  // The name of the next file is taken.
  clock.now += 61 * SECOND;
  const taken = join(directory, `0000000002-${clock.now}-ab.sessions`);
  writeFileSync(taken, 'a file of this name', { flag: 'wx' });
  await log.shares([]);
  expect(filesOf(directory)).toEqual([taken]);
  // The log of it goes on a minute later, and says so once.
  clock.now += 61 * SECOND;
  for (let i = 0; i < 2; i++) await log.shares([]);
  expect(filesOf(directory)).toHaveLength(2);
  const told = lines.map((line) => /sessions (cannot be|are) kept for a restart( again)?/.exec(line)?.[0]);
  expect(told).toEqual(['sessions cannot be kept for a restart', 'sessions are kept for a restart again']);
});
