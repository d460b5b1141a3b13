/** After a fall of the database ids may be other accounts' than before: the pool's API forgets what it has read of the books before. */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ReceiptsDocument } from '../../pool/api/books/books-documents.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { Journal } from '../../pool/journal/journal.ts';
import { encodeRecord } from '../../pool/journal/journal-record.ts';
import type { PoolKey } from '../../pool/receipts/pool-key.ts';
import { ReceiptMaker } from '../../pool/receipts/receipt-maker.ts';
import { formatAddress } from '../../protocol/address.ts';
import { openPoolApiBed } from '../attack/pool-api-bed.ts';
import { account } from '../pool/books-bed.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { quietLog } from '../quiet-log.ts';
import { readJson } from '../stack/stack-fixture.ts';
import { temporaryDirectory } from '../temporary.ts';

test('names, rates and events are those of the books as they are now', async () => {
  const { base, sql, api } = await openPoolApiBed();
  const miners = async () => {
    const { miners: rows } = await readJson<{ miners: { address: string }[] }>(`${base}/miners?limit=100`);
    return rows.map(({ address }) => address);
  };
  const before = formatAddress(account('attack 0'), 'development');
  const after = formatAddress(account('somebody else'), 'development');
  await expect.poll(miners).toContain(before);
  const [first] = await sql<{ id: number }[]>`select id from accounts where address = ${before}`;
  // As after a fall: the id is somebody else's, versions and events count from further back, and another term has begun.
  await sql`alter table accounts disable trigger user`;
  await sql`update accounts set address = ${after}, payload = ${Buffer.from(account('somebody else'))}
    where id = ${first?.id as number}`;
  await sql`update stats_recent set version = -version`;
  await sql`update stats_recent set version = 1 - (select min(version) from stats_recent) + version`;
  await sql`update term set number = number + 1`;
  const seen = async () => {
    const found = await miners();
    return { before: found.includes(before), after: found.includes(after) };
  };
  await expect.poll(seen).toEqual({ before: false, after: true });
  expect(api.rates).toBeDefined();
});

test('receipts that fell with the database are made again, and the API gives those', async () => {
  const { base, sql } = await openPoolApiBed();
  const directory = join(temporaryDirectory(), 'journal');
  mkdirSync(directory);
  const journal = await Journal.open({ directory, bootId: randomBytes(8) });
  const { bootId } = journal;
  const outbox = await Outbox.open({ directory, bootId }, { log: quietLog });
  const write = async (work: bigint) => {
    const who = { service: 'pplns', account: account('attack 0'), worker: 'rig' } as const;
    const record = { kind: 'share', ...who, work, atMillis: Date.now(), identity: freshIdentity() } as const;
    const bytes = encodeRecord(record);
    outbox.push([{ bootId, sequence: await journal.append([bytes]), record: bytes }]);
  };
  await write(40n);
  // As if the books had it: 'attack 0' has more than that in slice 1.
  await sql`insert into slice_ends (slice, boot_id, through) values (1, ${Buffer.from(bootId, 'hex')}, 0)`;
  await outbox.marks.look(async () => {
    const ends = [
      { slice: 0, through: -1 },
      { slice: 1, through: 0 },
    ];
    return new Map([[bootId, ends]]);
  });
  const key = { publicKey: new Uint8Array(0), sign: async () => new Uint8Array(3_309) } as unknown as PoolKey;
  const delivered: number[] = [];
  const maker = new ReceiptMaker(
    { network: 'development', directory },
    { sql, outbox, key, log: quietLog, deliver: ({ head }) => void delivered.push(head.slice) },
  );
  await maker.round();
  await maker.round();
  expect(delivered).toEqual([1]);
  const open = async () => {
    const address = formatAddress(account('attack 0'), 'development');
    const { slices } = await readJson<ReceiptsDocument>(`${base}/miners/${address}/receipts`);
    return slices.flatMap(({ receipts }) => receipts.map((receipt) => receipt.open));
  };
  expect(await open()).toEqual(['0']);
  // The database falls back to before the sheet; another term begins, and the sheet is made with what is open now.
  await write(7n);
  await sql`delete from receipt_sheets`;
  await sql`update term set number = number + 1`;
  // In the first round of a term front ends only tell each other what they signed.
  await maker.round();
  expect(delivered).toEqual([1]);
  await maker.round();
  expect(delivered).toEqual([1, 1]);
  await expect.poll(open).toEqual(['7']);
  await journal.close();
});
