/** Files of a pool and of a bridge: journals with what stands beside them, sessions, values for Redis, and the books in PostgreSQL. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { SessionLog } from '../../bridge/session/session-log.ts';
import { audit } from '../../pool/audit/audit.ts';
import { balanceSheet } from '../../pool/books/sheet.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { MIGRATIONS, migrate } from '../../pool/database/migrate.ts';
import { PUBLISHED_TERMS_FILE, PublishedTerms } from '../../pool/edits/published-terms.ts';
import { writeTerms } from '../../pool/edits/terms-rows.ts';
import { SliceMarks } from '../../pool/feed/slice-marks.ts';
import { Journal, readJournal } from '../../pool/journal/journal.ts';
import { decodeRecord, encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { decode, encode } from '../../pool/shared/codec.ts';
import { waitingSession } from '../../pool/shared/session-codec.ts';
import { instanceFigures } from '../../pool/shared/shared-state.ts';
import { toHex } from '../../protocol/bytes.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { claimFormat } from '../../runtime/files/directory-format.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { startBed } from '../bridge/bed.ts';
import { addressOf, mine, V2Client } from '../bridge/stratum-client.ts';
import { openAuditBed } from '../pool/audit-bed.ts';
import { blockRecord } from '../pool/book-records.ts';
import { account } from '../pool/books-bed.ts';
import { startDatabases } from '../pool/ready-cluster.ts';
import { testSealed } from '../pool/sealed.ts';
import { waiting } from '../pool/waiting-session.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { type Fixture, plain } from './fixture.ts';

const BOOT = pattern('boot of a release', 8);
const NOW = () => 1_800_000_000_000;
const RECORDS: readonly JournalRecord[] = [
  { kind: 'ownership', owner: pattern('owner', 13), service: 'pplns', account: account('miner 1'), worker: 'w' },
  {
    kind: 'share',
    service: 'pplns',
    account: account('miner 1'),
    worker: 'w',
    work: 1n << 40n,
    atMillis: NOW(),
    identity: { anchorHeight: 7, bytes: pattern('share', 24) },
  },
  {
    kind: 'share',
    service: 'solo',
    account: account('miner 2'),
    worker: '',
    work: 5n,
    atMillis: NOW(),
    identity: null,
  },
  blockRecord('pplns', 'a block', 7, 1),
  { ...blockRecord('solo', 'a solo block', 8, 2), carried: { fees: 9n, mass: 1_000 } },
  {
    kind: 'terms',
    service: 'pplns',
    from: 1,
    through: 4,
    windowThousandths: 1_500,
    feePpm: 10_000,
    atMillis: NOW(),
  },
];

const journal: Fixture = {
  name: 'pool-journal',
  async write(folder) {
    await claimFormat(folder, 'pool');
    const directory = join(folder, 'journal');
    const written = await Journal.open({ directory, bootId: BOOT, segmentBytes: 256 });
    for (const record of RECORDS) await written.append([encodeRecord(record)]);
    await written.close();
    const marks = new SliceMarks(directory);
    await marks.know(toHex(BOOT));
    await marks.look(
      async () =>
        new Map([
          [
            toHex(BOOT),
            [
              { slice: 1, through: 2 },
              { slice: 2, through: 5 },
            ],
          ],
        ]),
    );
  },
  async read(folder) {
    await claimFormat(folder, 'pool');
    const directory = join(folder, 'journal');
    const damage: unknown[] = [];
    const records: unknown[] = [];
    for await (const entries of readJournal(directory, toHex(BOOT), -1, (found) => void damage.push(found)))
      for (const { sequence, record } of entries) records.push({ sequence, ...decodeRecord(record) });
    const marks = new SliceMarks(directory);
    await marks.know(toHex(BOOT));
    return plain({ records, damage, marks: marks.of(toHex(BOOT)) });
  },
};

const NAME = /^\d{10}-(\d+)-([0-9a-f]*)\.sessions$/;

const sessions: Fixture = {
  name: 'sessions',
  async write(folder) {
    const directory = temporaryDirectory();
    const bed = await startBed({ sessionsDirectory: directory, threads: 1 });
    const client = await V2Client.open(bed.port);
    await client.login(`${addressOf(1)}.w`, 'd=4');
    const job = client.jobs.at(-1) as Job;
    await client.submitCode(job.jobId, mine(job, client.prefix, 0n, targetToBytes(job.shareTarget)).nonce);
    await until(() => readdirSync(directory).some((name) => NAME.test(name)));
    client.close();
    await bed.server.drain();
    await bed.server.close();
    const files = readdirSync(directory).filter((name) => NAME.test(name));
    for (const name of files) cpSync(join(directory, name), join(folder, name));
    writeFileSync(join(folder, 'id'), client.session);
  },
  async read(folder) {
    const [, opened = '', machine = ''] = NAME.exec(readdirSync(folder).find((name) => NAME.test(name)) ?? '') ?? [];
    const log = await SessionLog.open(
      {
        directory: folder,
        bootId: BOOT,
        limits: { jobs: { graceMillis: 60_000, memoryMillis: 60_000 }, resumeMillis: 600_000, resumeSessions: 100 },
      },
      { now: () => Number(opened), log: quietLog, machine },
    );
    const { kept } = log;
    const publications = kept.publications({ graceMillis: 60_000, memoryMillis: 60_000 });
    const facts = {
      publications: publications.map(({ headHeight, templates }) => ({ headHeight, templates: templates.length })),
      blocks: kept.blocks.length,
      session: kept.take(readFileSync(join(folder, 'id'), 'latin1'), Number(opened)),
    };
    await log.close();
    return plain(facts);
  },
};

/** A value in Redis is never the only copy of anything; a release reads those of the one before as long as the form is the same. */
const redis: Fixture = {
  name: 'redis',
  async write(folder) {
    const { seal } = testSealed();
    const { id, jobs, ...session } = waiting('session of a release');
    const figures = {
      instance: 'a',
      name: 'first',
      version: '1.0.0',
      startedMillis: 1,
      atMillis: 2,
      accountant: true,
      ready: true,
      height: 3,
      connections: { pplns: 4 },
      accepted: 5,
      rejected: 6,
      waiting: 7,
    };
    const sealed = {
      session: seal.seal('session', id, encode(waitingSession, session)),
      instance: seal.seal('instance', 'a', encode(instanceFigures, figures)),
      entries: seal.seal('entries', 'boot 0', encodeRecord(RECORDS[1] as JournalRecord)),
    };
    for (const [name, bytes] of Object.entries(sealed)) writeFileSync(join(folder, name), bytes);
  },
  async read(folder) {
    const { seal } = testSealed();
    const open = <T>(
      purpose: 'session' | 'instance' | 'entries',
      name: string,
      read: (payload: Uint8Array) => T,
    ): T => {
      const opened = seal.open(purpose, name, readFileSync(join(folder, purpose)));
      if (opened.kind !== 'payload') throw new Error(`${purpose}: ${opened.kind}`);
      return read(Uint8Array.from(opened.payload));
    };
    return plain({
      session: open('session', 'session of a release', (payload) => decode(waitingSession, payload)),
      instance: open('instance', 'a', (payload) => decode(instanceFigures, payload)),
      entries: open('entries', 'boot 0', decodeRecord),
    });
  },
};

const quoted = (name: string): string => `"${name}"`;

/** The schema as the migrations of the release made it, then all rows. */
async function dump(sql: Sql): Promise<string> {
  const migrations = readdirSync(MIGRATIONS)
    .sort()
    .map((name) => `-- ${name}\n${readFileSync(new URL(name, MIGRATIONS), 'utf8')}`);
  const lines = [
    'create table schema_version (number integer primary key, name text not null, applied_at timestamptz not null default now());',
    ...migrations,
    'set session_replication_role = replica;',
  ];
  const tables = await sql<{ name: string }[]>`select c.relname as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`;
  const partitions = await sql<{ name: string; parent: string; bound: string }[]>`select c.relname as name,
    i.inhparent::regclass::text as parent, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_class c join pg_inherits i on i.inhrelid = c.oid where c.relispartition and c.relkind = 'r' order by 1`;
  for (const { name, parent, bound } of partitions)
    lines.push(`create table if not exists ${quoted(name)} partition of ${parent} ${bound};`);
  for (const { name } of tables) {
    const columns = await sql<{ name: string }[]>`select attname as name from pg_attribute
      where attrelid = ${`public.${name}`}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`;
    const names = columns.map((column) => quoted(column.name));
    const values = names.map((column) => `quote_nullable(${column}::text)`).join(` || ', ' || `);
    const rows = await sql.unsafe<{ row: string }[]>(`select ${values} as row from ${quoted(name)}`);
    lines.push(`delete from ${quoted(name)};`);
    for (const { row } of rows)
      lines.push(`insert into ${quoted(name)} (${names.join(', ')}) overriding system value values (${row});`);
  }
  const sequences = await sql<{ name: string; last: string }[]>`select sequencename as name, last_value::text as last
    from pg_sequences where schemaname = 'public' and last_value is not null`;
  for (const { name, last } of sequences) lines.push(`select setval('public.${quoted(name)}', ${last});`);
  return `${lines.join('\n')}\nset session_replication_role = default;\n`;
}

const NOTICE = 'a notice of a release';

const books: Fixture = {
  name: 'pool-database',
  async write(folder) {
    const { books: bed } = await openAuditBed();
    const { sql } = bed;
    const published = new PublishedTerms(join(folder, PUBLISHED_TERMS_FILE), { log: quietLog, now: NOW });
    await sql.begin((transaction) => writeTerms(transaction, 'notice', NOTICE));
    await sql.begin((transaction) => published.settle(transaction));
    writeFileSync(join(folder, 'books.sql.gz'), gzipSync(await dump(sql), { level: 9 }));
    await bed.close();
  },
  async read(folder) {
    const databases = await startDatabases();
    const admin = connectDatabase((await databases.create()).replace(/\/[^/]*$/, '/postgres'), { max: 1 });
    const name = `release_${process.pid}_${Date.now()}`;
    await admin.unsafe(`create database ${name} template template0`);
    const url = new URL(await databases.create());
    url.pathname = `/${name}`;
    const sql = connectDatabase(url.href, { max: 2 });
    try {
      const restore = connectDatabase(url.href, { max: 1 });
      await restore.unsafe(gunzipSync(readFileSync(join(folder, 'books.sql.gz'))).toString());
      await restore.end();
      await migrate(sql, quietLog);
      const { findings, slices, lists, accounts } = await audit(sql, { network: 'development' });
      // As an older copy of the database, which does not know the notice.
      await sql`delete from settings where name in ('notice', 'terms_editions')`;
      const published = new PublishedTerms(join(folder, PUBLISHED_TERMS_FILE), { log: quietLog, now: NOW });
      const terms = await sql.begin((transaction) => published.settle(transaction));
      const [notice] = await sql`select value from settings where name = 'notice'`;
      return plain({
        audit: { findings, slices, lists, accounts },
        sheet: await balanceSheet(sql),
        accounts: await sql`select address, balance from accounts order by address`,
        payouts: await sql`select id, state, transaction_id, fee, final_height from payouts order by id`,
        terms,
        notice,
      });
    } finally {
      await sql.end({ timeout: 1 });
      await admin.unsafe(`drop database ${name} with (force)`);
      await admin.end({ timeout: 1 });
      await databases.stop();
    }
  },
};

export const POOL_FIXTURES: readonly Fixture[] = [journal, sessions, redis, books];
