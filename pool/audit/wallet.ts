/**
 * Checks the books against the wallet's record (books rule 16): every request of the pool's series is a payout or a
 * merge in the books and vice versa, with the same recipients, transaction, fee and result. The wallet's record is
 * outside the database, so no edit there can shorten it.
 */
import type { Sql } from '../database/connect.ts';
import { numberOf, type PayoutSeries } from '../payout/payout-series.ts';
import { type PayoutWallet, samePayment, type WalletPayment } from '../payout/payout-wallet.ts';
import { type Findings, REMEDIES } from './findings.ts';

export type WalletReads = Pick<PayoutWallet, 'payments' | 'status'>;

type BookedPayment = {
  id: string;
  number: bigint;
  state: string;
  request_id: string;
  request_table: string | null;
  transaction_id: Buffer | null;
  fee: bigint | null;
  items: { address: string; amount: string }[];
};

const BOOKED: Readonly<Record<string, string>> = { submitted: 'open', finalized: 'finalized', void: 'void' };
const recipientsText = (list: readonly { address: string; amount: bigint | string }[]): string =>
  list
    .map(({ address, amount }) => `${amount} to ${address}`)
    .sort()
    .join(', ');

async function recordOf(wallet: WalletReads, prefix: string): Promise<Map<string, WalletPayment>> {
  const answer = await wallet.payments(prefix);
  if (answer.kind !== 'ok') throw new Error(`the wallet does not list its payments: ${answer.reason}`);
  return new Map(answer.value.map((payment) => [payment.requestId, payment]));
}

function auditPayout(row: BookedPayment, payment: WalletPayment, findings: Findings): void {
  const name = `payout ${row.id} (number ${row.number})`;
  const items = row.items.map(({ address, amount }) => ({ address, amount: BigInt(amount) }));
  if (!samePayment(items, payment.recipients))
    findings.add(
      `${name}: recipients at the wallet`,
      recipientsText(items),
      recipientsText(payment.recipients),
      REMEDIES.payment,
    );
  if (row.state === 'submitting') return;
  const own = row.transaction_id?.toString('hex') ?? 'none';
  findings.compare(`${name}: transaction at the wallet`, own, payment.transactionId ?? 'none', REMEDIES.payment);
  if (row.fee !== null) findings.compare(`${name}: fee at the wallet`, row.fee, payment.fee, REMEDIES.payment);
  // The books follow the wallet: a payment that is final there may still be pending in the books, never the other way
  // round.
  if (row.state !== 'submitted')
    findings.compare(`${name}: fate at the wallet`, BOOKED[row.state], payment.fate.state, REMEDIES.payment);
}

async function auditPayouts(
  sql: Sql,
  record: ReadonlyMap<string, WalletPayment>,
  before: ReadonlySet<string>,
  requestTable: string,
  prefix: string,
  findings: Findings,
): Promise<void> {
  const rows = await sql<
    BookedPayment[]
  >`select p.id, p.number, p.state, p.request_id, p.request_table, p.transaction_id, p.fee,
      coalesce(jsonb_agg(jsonb_build_object('address', a.address, 'amount', i.amount::text)) filter (where a.id is not null),
        '[]') as items
    from payouts p left join payout_items i on i.payout_id = p.id left join accounts a on a.id = i.account_id
    where p.number is not null group by p.id order by p.number`;
  const known = new Set<string>();
  for (const row of rows) {
    known.add(row.request_id);
    const payment = record.get(row.request_id);
    if (payment !== undefined) auditPayout(row, payment, findings);
    // A wallet that was restored from its words no longer has older requests: those are checked against the ledger.
    else if (row.state !== 'submitting' && row.request_table === requestTable)
      findings.add(
        `payout ${row.id} (number ${row.number})`,
        row.state,
        'the wallet was never asked',
        REMEDIES.payment,
      );
  }
  for (const [requestId, payment] of record)
    if (before.has(requestId) && !known.has(requestId) && numberOf(prefix, requestId) !== undefined)
      findings.add(
        `payment ${requestId} of the wallet`,
        'no payout',
        `${recipientsText(payment.recipients)}, transaction ${payment.transactionId ?? 'none'}`,
        REMEDIES.payment,
      );
}

type MergeRow = { id: string; state: string; request_id: string; fee: bigint | null };

/** Merges of the wallet's outputs: their fees come out of the pool's own income. */
async function auditMerges(
  sql: Sql,
  record: ReadonlyMap<string, WalletPayment>,
  before: ReadonlySet<string>,
  findings: Findings,
): Promise<void> {
  const rows = await sql<MergeRow[]>`select id, state, request_id, fee from compoundings order by number`;
  const known = new Set<string>();
  const oldest = [...record.keys()].sort()[0];
  for (const row of rows) {
    known.add(row.request_id);
    const payment = record.get(row.request_id);
    const name = `merge ${row.id}`;
    if (payment === undefined) {
      // A wallet that was restored from its words no longer has older merges.
      if (row.state !== 'submitting' && oldest !== undefined && row.request_id > oldest)
        findings.add(name, row.state, 'the wallet was never asked', REMEDIES.payment);
      continue;
    }
    if (row.fee !== null) findings.compare(`${name}: fee at the wallet`, row.fee, payment.fee, REMEDIES.payment);
    if (row.state === 'finalized' || row.state === 'void')
      findings.compare(`${name}: fate at the wallet`, row.state, payment.fate.state, REMEDIES.payment);
  }
  for (const [requestId, { fee, transactionId }] of record)
    if (before.has(requestId) && !known.has(requestId) && transactionId !== null)
      findings.add(`merge ${requestId} of the wallet`, 'no row', `fee ${fee}`, REMEDIES.payment);
}

/**
 * Names of the requests that the wallet has before the moment of the books that is audited: the books note a request
 * before they make it, so each must be in them. Later ones are judged by the next audit. Throws where the wallet does
 * not answer.
 */
export async function requestsBefore(wallet: WalletReads, series: PayoutSeries): Promise<ReadonlySet<string>> {
  const records = await Promise.all([series.payouts, series.merges].map((prefix) => recordOf(wallet, prefix)));
  return new Set(records.flatMap((record) => [...record.keys()]));
}

export async function auditWallet(
  sql: Sql,
  { reads: wallet, series }: { readonly reads: WalletReads; readonly series: PayoutSeries },
  requests: Promise<ReadonlySet<string>>,
  findings: Findings,
): Promise<void> {
  await findings.section(
    'payouts against the wallet',
    async () => {
      const status = await wallet.status();
      if (status.kind !== 'ok') throw new Error(`the wallet is not ready: ${status.reason}`);
      const record = await recordOf(wallet, series.payouts);
      await auditPayouts(sql, record, await requests, status.value.requestTable, series.payouts, findings);
    },
    undefined,
  );
  await findings.section(
    'merges against the wallet',
    async () => auditMerges(sql, await recordOf(wallet, series.merges), await requests, findings),
    undefined,
  );
}
