/**
 * The disk under PostgreSQL is full: the books wait and say why, shares are answered all the while, because the journal has them, and with
 * room on the disk the books take all of them by themselves. (The disk under the journal: test/pool/fleet.slow.test.ts.)
 */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { connectDatabase } from '../../pool/database/connect.ts';
import { startPostgresServer } from '../pool/postgres-server.ts';
import { mountedDisk } from '../pool/small-disk.ts';
import { temporaryDirectory } from '../temporary.ts';
import { recordingLog } from '../wallet/open-wallet.ts';
import { lasts } from '../watch/limits.ts';
import { booksSettled, expectBooks, Oracle, PlayedChain, RigInstance } from './books-rig.ts';

test(
  'a full disk of PostgreSQL: nothing that was answered is lost, and the books go on by themselves',
  lasts(120, 'a disk is filled and freed, and the server starts again'),
  async ({ skip }) => {
    const directory = temporaryDirectory();
    const disk = mountedDisk(join(directory, 'postgres'), 160);
    if (disk === undefined) return skip('this user may not mount a file system');
    const postgres = await startPostgresServer(40, join(directory, 'postgres'));
    onTestFinished(() => postgres.stop());
    const oracle = new Oracle();
    const chain = new PlayedChain();
    onTestFinished(() => chain.close());
    const lines: string[] = [];
    const instance = await RigInstance.start(
      { directory: join(directory, 'a'), databaseUrl: postgres.url, log: recordingLog(lines) },
      oracle,
      chain,
    );
    const sql = connectDatabase(postgres.url, { max: 2, name: 'test' });
    onTestFinished(() => sql.end({ timeout: 1 }));
    const taken = async () => (await sql<{ n: number }[]>`select count(*)::int as n from shares`)[0]?.n ?? 0;
    await expect.poll(taken).toBeGreaterThan(100);
    disk.fill(0);
    const said = () => lines.some((line) => /the books wait.*No space left on device/.test(line));
    await expect.poll(said).toBe(true);
    const answered = oracle.answered.size;
    await expect.poll(() => oracle.answered.size).toBeGreaterThan(answered + 100);
    disk.free(0);
    // The server ends where it cannot even write its log; its operator starts it again.
    const isUp = await taken().then(
      () => true,
      () => false,
    );
    if (!isUp) {
      await postgres.kill();
      await postgres.start();
    }
    await expect.poll(() => taken().catch(() => 0)).toBeGreaterThan(answered);
    await instance.stopLoad();
    chain.goOn(300);
    await booksSettled(sql, oracle, 180_000);
    await expectBooks(sql, oracle, new Map());
    await instance.stop();
  },
);
