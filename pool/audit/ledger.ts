/**
 * The books against the ledger, read from a node: every reward of the pool's address belongs to a block of the books and the
 * other way round; every payment is a finalized transaction with these recipients and this fee, and the ledger holds none to an
 * account that the books do not.
 */
import { readExtranonce } from '../../bridge/session/extranonce.ts';
import type { ApiClient } from '../../protocol/api/client.ts';
import { readCommitment } from '../../protocol/books/books-commitment.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { UNKNOWN_FINDER } from '../books/intake.ts';
import type { Sql } from '../database/connect.ts';
import { auditCarried, Heads, reachedBy } from './commitments.ts';
import { CutReader, changesOf } from './cut-reader.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { UnreadRows } from './public-unread.ts';
import type { Progress } from './slices.ts';
import { batches } from './snapshot.ts';

export type LedgerReads = Pick<ApiClient, 'block' | 'addressChanges' | 'cutTransactions' | 'cuts' | 'nodeSync'>;

export type LedgerAuditOptions = { readonly poolAddress: string };

const SOLO = 1;
const BATCH_ADDRESSES = 64;
/** Cuts that the books may need to restore a lost payment. */
const MAX_LAG = 16;

type BlockRow = {
  block_id: Buffer;
  service: number;
  account_id: number;
  /** The name of the worker that found it. */
  worker: string | null;
  anchor_height: bigint;
  slice: number;
  slice_cuts: number | null;
  state: string;
  reward: bigint | null;
  reward_transaction: Buffer | null;
  reward_output: number | null;
  settled_height: bigint | null;
  credit_list: number | null;
  /** Address of the finder in the books. */
  address: string | null;
};

/** The height after which the books begin. Cut 0 is the genesis, which the books do not cover. */
async function heightBefore(sql: Sql): Promise<number> {
  const [row] = await sql<{ height: bigint | null }[]>`select min(opened_height) as height from slices`;
  return Math.max(0, Number(row?.height ?? 0) - 1);
}

async function auditBlocks(
  sql: Sql,
  node: LedgerReads,
  options: LedgerAuditOptions,
  findings: Findings,
  onProgress: Progress,
): Promise<void> {
  const through = await reachedBy(sql);
  const asked = { addresses: [options.poolAddress], after_height: 0, limit: 1 };
  const { indexed_height: indexed } = await node.addressChanges(asked);
  const rewards = new Map<string, { amount: string; height: number }>();
  for await (const change of changesOf(node, [options.poolAddress], await heightBefore(sql)))
    if (change.kind === 'received' && change.source === 'work_reward')
      rewards.set(change.transaction_id, { amount: change.amount, height: change.finalized_height });
  let count = 0;
  const [all] = await sql<{ count: number }[]>`select count(*)::int as count from blocks`;
  const query = sql<BlockRow[]>`select b.block_id, b.service, b.account_id, w.name as worker,
      b.anchor_height, b.slice, s.slice_cuts, b.state, b.reward, b.reward_transaction, b.reward_output, b.settled_height,
      b.credit_list, a.address
    from blocks b left join accounts a on a.id = b.account_id left join slices s on s.service = b.service and s.number = b.slice
      left join workers w on w.id = b.worker_id order by b.block_id`;
  for await (const rows of batches(sql, query, 1_000))
    for (const row of rows) {
      const id = row.block_id.toString('hex');
      const name = `block ${id}`;
      const transaction = rewardTransaction(id);
      const paid = rewards.get(transaction);
      rewards.delete(transaction);
      onProgress('blocks', ++count, all?.count);
      // The ledger is read later than the books: it may have paid since.
      if (row.state !== 'paid' && paid !== undefined && paid.height > through) continue;
      const settled = Number(row.settled_height ?? 0);
      if (row.state === 'paid' && paid === undefined && settled > indexed && settled <= through) {
        findings.skip(name, `paid in cut ${settled}, and the node has read up to cut ${indexed}`);
        continue;
      }
      findings.compare(`${name}: paid by the ledger`, row.state === 'paid', paid !== undefined, REMEDIES.block);
      if (paid !== undefined && row.state === 'paid') {
        findings.compare(`${name}: reward`, row.reward, paid.amount, REMEDIES.block);
        findings.compare(
          `${name}: reward transaction`,
          row.reward_transaction?.toString('hex'),
          transaction,
          REMEDIES.block,
        );
        findings.compare(`${name}: reward output`, row.reward_output, 0, REMEDIES.block);
        findings.compare(`${name}: paid at`, row.settled_height, paid.height, REMEDIES.block);
        findings.compare(`${name}: anchor`, row.anchor_height, paid.height - REGISTRATION_WINDOW, REMEDIES.block);
        // A late reward is divided with a later slice, never with an earlier one.
        if (row.slice_cuts === null || row.slice < Math.floor(Number(row.anchor_height) / row.slice_cuts))
          findings.add(`${name}: slice`, row.slice, 'that of its anchor, or a later one');
        // The finder of a PPLNS block is in the list's id (rule 9). One that was not on record when the list was made stays so.
        if (row.service === SOLO || row.worker !== UNKNOWN_FINDER)
          await auditFinder(sql, { node, ...options }, row, name, findings);
      }
      // Long after the cut that would have paid it, a block without a reward is expired and no longer held (rule 15).
      if (row.state === 'held' && paid === undefined && Number(row.anchor_height) + 2 * REGISTRATION_WINDOW <= through)
        findings.add(`${name}: state`, 'held', 'the ledger paid nothing for it', REMEDIES.block);
    }
  for (const [transaction, { amount, height }] of rewards)
    if (height <= through)
      findings.add(
        `reward ${transaction} of cut ${height}`,
        'no block',
        `${amount} atoms paid to the pool`,
        REMEDIES.block,
      );
}

const LATE_FINDER =
  'The list was made before the journal came that names the finder, so it is credited to the pool’s own address.';

const KNOWN_FINDER = 'who was on record before the list was made';

/** Finders: on solo they get the reward. The extranonce on the ledger identifies the connection, and the connection its account. */
async function auditFinder(
  sql: Sql,
  { node, poolAddress }: { readonly node: LedgerReads; readonly poolAddress: string },
  row: BlockRow,
  name: string,
  findings: Findings,
): Promise<void> {
  const document = await node.block({ id: row.block_id.toString('hex') });
  const owner = readExtranonce(fromHex(document.extranonce))?.owner ?? new Uint8Array(0);
  const [owned] = await sql<
    { account_id: number; address: string; after_list: number }[]
  >`select o.account_id, a.address, o.after_list
    from ownerships o join accounts a on a.id = o.account_id where o.owner = ${Buffer.from(owner)}`;
  if (owned === undefined || row.account_id === owned.account_id) return;
  const list = row.worker === UNKNOWN_FINDER && row.address === poolAddress ? row.credit_list : null;
  // The journal that names the finder came after the list was made, and lists are made once (rules 7 and 22).
  if (list !== null && owned.after_list >= list)
    findings.owe(`${name}: its reward of ${row.reward} atoms, less the fee, is ${owned.address}’s. ${LATE_FINDER}`);
  else if (list !== null)
    findings.add(`${name}: finder`, 'not on record', `${owned.address}, ${KNOWN_FINDER}`, REMEDIES.finder);
  else findings.add(`${name}: finder`, row.account_id, owned.account_id, REMEDIES.block);
}

type PayoutRow = {
  id: string;
  number: bigint | null;
  books_slice: number | null;
  books_head: Buffer | null;
  state: string;
  transaction_id: Buffer | null;
  fee: bigint | null;
  final_height: bigint | null;
  items: { address: string; amount: string }[];
};

async function auditPayments(
  sql: Sql,
  node: LedgerReads,
  options: LedgerAuditOptions,
  findings: Findings,
  onProgress: Progress,
): Promise<void> {
  const cuts = new CutReader(node);
  const heads = new Heads(sql);
  const known = new Set<string>();
  const unread = new UnreadRows();
  const rows = await sql<PayoutRow[]>`select p.id, p.number, p.books_slice, p.books_head, p.state,
      p.transaction_id, p.fee, p.final_height,
      coalesce(jsonb_agg(jsonb_build_object('address', a.address, 'amount', i.amount::text)) filter (where a.id is not null),
        '[]') as items
    from payouts p left join payout_items i on i.payout_id = p.id left join accounts a on a.id = i.account_id
    group by p.id order by p.final_height nulls last, p.id`;
  let count = 0;
  for (const row of rows) {
    const name = `payout ${row.id}`;
    const id = row.transaction_id?.toString('hex');
    onProgress('payouts', ++count, rows.length);
    // One that is void was given back: on the ledger it is a payment that the books do not hold.
    if (id !== undefined && row.state !== 'void') known.add(id);
    if (row.state !== 'finalized') continue;
    if (id === undefined || row.final_height === null) {
      findings.add(`${name}: transaction`, 'none', 'the one that paid it', REMEDIES.payment);
      continue;
    }
    // A node that does not answer at all ends this part: it would be asked for each payout in vain.
    const read = await unread.read('payouts', name, () => cuts.find(Number(row.final_height), id));
    if (read === undefined) continue;
    const paid = read.value;
    if (paid === undefined) {
      findings.add(`${name}: transaction ${id}`, `final in cut ${row.final_height}`, 'not there', REMEDIES.payment);
      continue;
    }
    findings.compare(`${name}: fee`, row.fee, paid.fee, REMEDIES.payment);
    await auditCarried(name, row, paid.payload_hex, heads, findings);
    const made = paid.outputs.map((output) => `${output.address} ${output.amount}`);
    for (const item of row.items) {
      const at = made.indexOf(`${item.address} ${item.amount}`);
      if (at === -1) findings.add(`${name}: to ${item.address}`, item.amount, 'no such output', REMEDIES.payment);
      else made.splice(at, 1);
    }
    // The remaining outputs are change, which returns to the pool's address (books rule 25).
    for (const output of made)
      if (!output.startsWith(`${options.poolAddress} `))
        findings.add(`${name}: output ${output}`, 'no payment', 'paid by the ledger', REMEDIES.payment);
  }
  for (const line of unread.lines) findings.unread('payments against the ledger', line);
  await auditUnknownPayments(sql, node, { poolAddress: options.poolAddress, known, cuts }, findings);
}

/** Payments of the pool to its accounts that the books do not hold: a deleted row, or one that a restore lost. */
async function auditUnknownPayments(
  sql: Sql,
  node: LedgerReads,
  { poolAddress, known, cuts }: { poolAddress: string; known: ReadonlySet<string>; cuts: CutReader },
  findings: Findings,
): Promise<void> {
  const accounts = await sql<{ address: string }[]>`select address from accounts order by id`;
  const addresses = accounts.map((row) => row.address).filter((address) => address !== poolAddress);
  const after = await heightBefore(sql);
  const told = new Set<string>();
  const reached = await reachedBy(sql);
  for (let at = 0; at < addresses.length; at += BATCH_ADDRESSES)
    for await (const change of changesOf(node, addresses.slice(at, at + BATCH_ADDRESSES), after)) {
      if (change.kind !== 'received' || change.source !== 'regular') continue;
      const id = change.transaction_id;
      if (known.has(id) || told.has(id)) continue;
      const paid = await cuts.find(change.finalized_height, id);
      if (paid === undefined || !paid.inputs.some((input) => input.address === poolAddress)) continue;
      told.add(id);
      const what = `transaction ${id} of cut ${change.finalized_height}`;
      // Books that fell back to an older copy compare themselves with the wallet once they have caught up.
      if (change.finalized_height + MAX_LAG > reached && readCommitment(paid.payload_hex) !== undefined) {
        findings.skip(what, 'the books have not reached it yet');
        continue;
      }
      findings.add(what, 'no payout', `paid ${change.amount} atoms to ${change.address}`, REMEDIES.payment);
    }
}

/** Targets of the slices' first cuts, on which W rests. */
async function auditTargets(sql: Sql, node: LedgerReads, findings: Findings): Promise<void> {
  const rows = await sql<{ number: number; slice_cuts: number; target: Buffer; service: number }[]>`select number,
    slice_cuts, target, service from slices order by number`;
  let read: { height: number; cut: { height: number; target: string } | undefined } | undefined;
  let lacking = 0;
  for (const row of rows) {
    const height = row.number * row.slice_cuts;
    if (read?.height !== height) {
      const [cut] = (await node.cuts({ before: height + 1, limit: 1 })).cuts;
      read = { height, cut };
    }
    const { cut } = read;
    const name = `slice ${row.number} of service ${row.service}: target`;
    if (cut === undefined) lacking++;
    else if (cut.height < height)
      findings.skip(name, `it begins with cut ${height}, and the node has read up to cut ${cut.height}`);
    else findings.compare(name, row.target.toString('hex'), cut.target);
  }
  if (lacking > 0)
    findings.unread('targets against the ledger', `the node does not have the first cuts of ${lacking} slices`);
}

export async function auditLedger(
  sql: Sql,
  node: LedgerReads,
  options: LedgerAuditOptions,
  findings: Findings,
  onProgress: Progress,
): Promise<void> {
  onProgress('targets', 0);
  await findings.section('targets against the ledger', () => auditTargets(sql, node, findings), undefined);
  onProgress('blocks', 0);
  await findings.section(
    'blocks against the ledger',
    () => auditBlocks(sql, node, options, findings, onProgress),
    undefined,
  );
  onProgress('payouts', 0);
  await findings.section(
    'payments against the ledger',
    () => auditPayments(sql, node, options, findings, onProgress),
    undefined,
  );
}
