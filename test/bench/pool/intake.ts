/**
 * Taking shares into the books, with the check that each counts once and without, in turns. Besides the rate, the time of all
 * cores that a share costs here and in PostgreSQL: a busy machine changes that less.
 */
import { readFileSync } from 'node:fs';
import { Intake } from '../../../pool/books/intake.ts';
import { connectDatabase } from '../../../pool/database/connect.ts';
import { encodeRecord, type JournalRecord } from '../../../pool/journal/journal-record.ts';
import { accountOf } from '../../bridge/stratum-client.ts';
import { type BooksBed, openBooks } from '../../pool/books-bed.ts';
import { freshIdentity } from '../../pool/fresh-identity.ts';
import type { Bench } from '../harness.ts';

const ACCOUNTS = 1_000;
const BATCH = 5_000;
const ROUNDS = 40;
/** At ten thousand shares a second and a cut every 2.5 s. */
const SHARES_OF_AN_ANCHOR = 25_000;

type Variant = 'checked' | 'unchecked';

export async function benchIntake(b: Bench): Promise<void> {
  const books: BooksBed = await openBooks();
  const sql = connectDatabase(books.url, { max: 2 });
  await books.height(1_000);
  const intakes = { checked: new Intake(options), unchecked: new Intake(options) };
  const taken = { checked: 0, unchecked: 0 };
  const millis: Record<Variant, number[]> = { checked: [], unchecked: [] };
  const cpuMillis: Record<Variant, number[]> = { checked: [], unchecked: [] };
  const cpu = async (): Promise<number> => {
    const { user, system } = process.cpuUsage();
    const rows = await sql<{ pid: number }[]>`select pid from pg_stat_activity`;
    return (user + system) / 1000 + rows.reduce((sum, { pid }) => sum + cpuMillisOf(pid), 0);
  };
  const round = async (variant: Variant): Promise<number> => {
    const entries = Array.from({ length: BATCH }, (_, i) => {
      const number = taken[variant] + i;
      const record: JournalRecord = {
        kind: 'share',
        service: 'pplns',
        account: accountOf(number % ACCOUNTS),
        worker: 'w',
        work: 1_000n,
        atMillis: Date.now(),
        identity: variant === 'checked' ? freshIdentity(1_000 + Math.floor(number / SHARES_OF_AN_ANCHOR)) : null,
      };
      return { bootId: BOOTS[variant], sequence: number, record: encodeRecord(record) };
    });
    taken[variant] += BATCH;
    const [from, cpuFrom] = [performance.now(), await cpu()];
    await books.fenced((transaction) => intakes[variant].take(transaction, entries));
    const took = performance.now() - from;
    cpuMillis[variant].push((await cpu()) - cpuFrom);
    return took;
  };
  for (const variant of ['unchecked', 'checked'] as const) await round(variant);
  for (let i = 0; i < ROUNDS; i++)
    for (const variant of i % 2 === 0 ? (['unchecked', 'checked'] as const) : (['checked', 'unchecked'] as const))
      millis[variant].push(await round(variant));
  const rate = (variant: Variant) => (BATCH * 1000) / (median(millis[variant]) as number);
  b.figure('intake-unchecked', rate('unchecked'), '1/s');
  b.figure('intake', rate('checked'), '1/s', {
    ratio: rate('checked') / rate('unchecked'),
    yardstick: 'shares without an identity',
  });
  const cost = (variant: Variant) => ((median(cpuMillis[variant]) as number) * 1000) / BATCH;
  b.figure('intake-cpu-unchecked', cost('unchecked'), 'us/share');
  b.figure('intake-cpu', cost('checked'), 'us/share', {
    ratio: cost('checked') / cost('unchecked'),
    yardstick: 'shares without an identity',
  });
  // What a new accountant reads before it takes the first share.
  intakes.checked.forget();
  b.figure('intake-first-batch', await round('checked'), 'ms');
  await sql.end({ timeout: 1 });
  await books.close();
}

/** Linux alone tells it; elsewhere only this process counts. */
function cpuMillisOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}

const options = { network: 'development', sliceCuts: 4 } as const;
const BOOTS = { checked: 'c0'.repeat(8), unchecked: 'ab'.repeat(8) };
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
