/** A client that resumes one session as fast as it can: the session becomes no larger, and what it costs the main thread is bounded. */
import { expect, test } from 'vitest';
import { BanList } from '../../bridge/session/ban-score.ts';
import type { SessionRecord } from '../../bridge/session/session-record.ts';
import { LocalSessionShelf } from '../../bridge/session/session-shelf.ts';
import type { FoundBlocks } from '../../bridge/shares/found-blocks.ts';
import { MainHub } from '../../bridge/threads/main-hub.ts';
import { EASY, RecordingSink } from '../bridge/bed.ts';
import { deskBed } from '../bridge/desk-bed.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { waiting } from '../pool/waiting-session.ts';

/** Of more than 32 and less than 64 hashes, which are a block. */
const SHARE = new Uint8Array(32).fill(5);

test('a session does not grow with the number of its resumes', async () => {
  const bed = await deskBed({ hash: () => SHARE });
  const first = new DeskMiner(bed);
  const session = await first.login();
  expect(await first.hit(first.jobs.at(-1)!)).toBeNull();
  first.end();
  let seen = 0;
  for (let i = 0; i < 300; i++) {
    const again = new DeskMiner(bed);
    expect(await again.login({ session, password: `d=${32 + (i % 2)}` })).toBe(session);
    again.end();
    seen = bed.shelf.get(session)?.jobs?.log.terms.length ?? 0;
  }
  // As many as there are ids of jobs on one template.
  expect(seen).toBeGreaterThan(0);
  expect(seen).toBeLessThanOrEqual(66);
  const last = new DeskMiner(bed);
  await last.login({ session });
  // What was judged counts no second time, and what is new counts.
  const job = first.jobs.at(-1)!;
  const nonce = last.nonce();
  expect(await last.ask({ method: 'mining.submit', params: { jobId: job.jobId, nonce } })).toMatchObject({
    error: { code: 22 },
  });
  expect(await last.hit(job)).toBeNull();
});

function hubBed(record: SessionRecord) {
  let now = 1_800_000_000_000;
  const shelf = new LocalSessionShelf({ resumeMillis: 120_000, resumeSessions: 100 }, () => now);
  const hub = new MainHub({
    sink: new RecordingSink(),
    sessionLog: () => undefined,
    shelf,
    bans: new BanList(EASY.bans),
    blocks: {} as FoundBlocks,
    now: () => now,
    template: () => undefined,
    listener: () => undefined,
    onBan: () => undefined,
    log: { warn: () => undefined },
  });
  hub.ended(record);
  return {
    hub,
    pass: (millis: number) => {
      now += millis;
    },
    /** How often of so many times. */
    resumes: async (times: number) => {
      let resumed = 0;
      for (let i = 0; i < times; i++) {
        const got = await hub.resume(record.id, 1);
        if (got === null) continue;
        resumed++;
        hub.ended(got);
      }
      return resumed;
    },
  };
}

const ID = '0'.repeat(32);
const heavy = (nonces: number): SessionRecord => {
  const record = waiting(ID);
  const jobs = record.jobs as NonNullable<SessionRecord['jobs']>;
  const seen = [[1, Float64Array.from({ length: nonces }, (_, i) => i)]] as const;
  return { ...record, jobs: { ...jobs, log: { ...jobs.log, terms: [{ ...jobs.log.terms[0]!, seen }] } } };
};

test('a session of many shares is copied a few times at once and then now and then; it is not lost', async () => {
  const { resumes, pass } = hubBed(heavy(25_000));
  const atOnce = await resumes(1_000);
  expect(atOnce).toBeGreaterThanOrEqual(10);
  expect(atOnce).toBeLessThan(20);
  let later = 0;
  for (let second = 0; second < 20; second++) {
    pass(1_000);
    later += await resumes(50);
  }
  expect(later).toBeGreaterThanOrEqual(9);
  expect(later).toBeLessThanOrEqual(11);
  pass(60_000);
  expect(await resumes(5)).toBe(5);
});

test('a session of few shares is resumed as often as its miner reconnects', async () => {
  expect(await hubBed(heavy(20)).resumes(1_000)).toBe(1_000);
});

test('a session that is banned is refused at every resume, and costs little', async () => {
  const record = { ...heavy(25_000), bannedUntilMillis: 1_800_000_600_000 };
  const { hub } = hubBed(record);
  for (let i = 0; i < 100; i++) {
    const got = await hub.resume(ID, 1);
    expect(got).toMatchObject({ bannedUntilMillis: record.bannedUntilMillis, jobs: null });
    hub.ended(got as SessionRecord);
  }
});

test('a session of another instance whose miner is cut off before it authorized can be resumed again', async () => {
  const bed = await deskBed();
  const record = { ...waiting('3'.repeat(32)), service: 'bridge' };
  bed.shelf.set(record.id, record);
  const cut = new DeskMiner(bed);
  await cut.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: record.id } });
  cut.end();
  expect(bed.shelf.get(record.id)).toMatchObject({ id: record.id, prefix: record.prefix, work: record.work });
});
