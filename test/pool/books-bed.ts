/** A pool's database for tests: the embedded PostgreSQL, migrated, with an elected accountant's term. */
import { Intake } from '../../pool/books/intake.ts';
import { advanceSlices } from '../../pool/books/slices.ts';
import { fenced, tryElection } from '../../pool/books/term.ts';
import { connectDatabase, type Sql, type Transaction } from '../../pool/database/connect.ts';
import { encodeRecord, type JournalRecord } from '../../pool/journal/journal-record.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { startDatabases } from './ready-cluster.ts';

export const SLICE_CUTS = 4;

export const account = (name: string): Uint8Array<ArrayBuffer> => Uint8Array.of(0, ...pattern(name, 48));

export type BooksBed = {
  readonly url: string;
  readonly sql: Sql;
  readonly term: bigint;
  readonly intake: Intake;
  fenced<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Brings the slices to a height; W is 1,000 hashes. The fees are those that the pool was started with. */
  height(height: number, fees?: ReadonlyMap<number, bigint>): Promise<void>;
  take(records: readonly JournalRecord[], bootId?: string): Promise<void>;
  close(): Promise<void>;
};

/** By service: 1 % and 0.5 %. */
const FEES = new Map([
  [0, 10_000n],
  [1, 5_000n],
]);

export async function openBooks(start = startDatabases): Promise<BooksBed> {
  const databases = await start();
  const url = await databases.create();
  const sql = connectDatabase(url, { max: 8 });
  const election = connectDatabase(url, { max: 1 });
  const term = await tryElection(election, 'test');
  if (term === undefined) throw new Error('no other accountant can hold the term here');
  const intake = new Intake({ network: 'development', sliceCuts: SLICE_CUTS });
  const run = <T>(work: (transaction: Transaction) => Promise<T>) => fenced(sql, term.number, work);
  const sequences = new Map<string, number>();
  return {
    url,
    sql,
    term: term.number,
    intake,
    fenced: run,
    height: (height, fees = FEES) =>
      run(async (transaction) => {
        const options = {
          network: NETWORKS.development,
          sliceCuts: SLICE_CUTS,
          windowThousandths: 1000n,
          services: [0, 1],
          feePpm: fees,
        };
        await advanceSlices(transaction, options, { height, targetOf: () => targetOfWork(1000n) });
      }),
    async take(records, bootId = '00'.repeat(8)) {
      const first = sequences.get(bootId) ?? 0;
      sequences.set(bootId, first + records.length);
      await run((transaction) =>
        intake.take(
          transaction,
          records.map((record, i) => ({ bootId, sequence: first + i, record: encodeRecord(record) })),
        ),
      );
    },
    async close() {
      await term.release();
      await election.end({ timeout: 1 });
      await sql.end({ timeout: 1 });
      await databases.stop();
    },
  };
}
