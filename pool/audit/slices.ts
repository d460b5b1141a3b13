/**
 * Checks slices (books rules 1, 2, 3 and 12): numbers without gaps, roots, totals, heights, W and the chain of records.
 */
import { FIRST_CHAIN, sliceChain, WINDOW_SLICES, windowWork } from '../../protocol/books/books-slice.ts';
import { toHex } from '../../protocol/bytes.ts';
import { EMPTY_ROOT, type SumRoot, sumTree } from '../../protocol/crypto/sum-tree.ts';
import { targetFromBytes } from '../../protocol/ledger/target.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { unpackWork } from '../books/packed.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal/journal-record.ts';
import type { Findings } from './findings.ts';
import { batches } from './snapshot.ts';

/** What is audited one after the other, as progress names it. */
export const AUDIT_PARTS = [
  'slices',
  'raw_shares',
  'headers_and_nonces',
  'credit_lists',
  'accounts',
  'owners',
  'commitments',
  'targets',
  'blocks',
  'payouts',
  'wallet',
  'settings',
] as const;
export type PartName = (typeof AUDIT_PARTS)[number];

/** `of`: how many there are, where that is known. */
export type Progress = (what: PartName, done: number, of?: number) => void;

type SliceRow = {
  service: number;
  number: number;
  window_work: string;
  opened_height: bigint;
  closed_height: bigint | null;
  total: string | null;
  root: Buffer | null;
  leaves: Buffer | null;
  slice_cuts: number;
  window_thousandths: number;
  fee_ppm: number;
  target: Buffer;
  previous: Buffer | null;
  chain: Buffer | null;
};

/** Slices that are in memory at once, each with up to some megabytes of leaves. */
const BATCH = 64;

export const sliceName = (service: number, slice: number): string =>
  `slice ${slice} of ${SERVICES[service] ?? service}`;

/** The root of packed leaves; undefined if they do not form a tree, which is a finding. */
async function rootOf(sql: Sql, name: string, leaves: Buffer, findings: Findings): Promise<SumRoot | undefined> {
  const rows = unpackWork(leaves);
  const ids = rows.map((row) => row.accountId);
  const accounts = await sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts
    where id = any(${ids}::int[])`;
  const payloads = new Map(accounts.map((account) => [account.id, account.payload]));
  const missing = ids.find((id) => !payloads.has(id));
  if (missing !== undefined) {
    findings.add(`${name}: account ${missing}`, 'in the leaves', 'not in the books');
    return undefined;
  }
  try {
    return rows.length === 0
      ? EMPTY_ROOT
      : sumTree(rows.map((row) => ({ key: payloads.get(row.accountId) as Buffer, value: row.value }))).root;
  } catch (error) {
    findings.add(`${name}: leaves`, (error as Error).message, 'ascending by address');
    return undefined;
  }
}

/** Follows one service's slices in order. */
class SliceWalk {
  readonly #network: NetworkName;
  readonly #findings: Findings;
  #before: SliceRow | undefined;
  /** Totals of the newest slices with work. */
  #newest: bigint[] = [];

  constructor(network: NetworkName, findings: Findings) {
    this.#network = network;
    this.#findings = findings;
  }

  async take(sql: Sql, row: SliceRow): Promise<void> {
    const name = sliceName(row.service, row.number);
    const findings = this.#findings;
    const before = this.#before;
    this.#before = row;
    if (before !== undefined) {
      findings.compare(`${name}: the one before`, before.number, row.number - 1);
      if (before.closed_height === null) findings.add(`${sliceName(row.service, before.number)}: closed`, 'no', 'yes');
    }
    findings.compare(`${name}: opened at`, row.opened_height, row.number * row.slice_cuts);
    const work = windowWork(targetFromBytes(row.target), BigInt(row.window_thousandths), this.#newest);
    findings.compare(`${name}: W`, row.window_work, work);
    if (row.closed_height === null || row.leaves === null) return;
    const root = await rootOf(sql, name, row.leaves, findings);
    if (root === undefined) return;
    findings.compare(`${name}: root`, row.root?.toString('hex'), toHex(root.hash));
    findings.compare(`${name}: total`, row.total, root.sum);
    findings.compare(`${name}: closed at`, row.closed_height, (row.number + 1) * row.slice_cuts);
    const previous = before?.chain?.toString('hex') ?? FIRST_CHAIN;
    findings.compare(`${name}: previous`, row.previous?.toString('hex'), previous);
    const chain = sliceChain({
      network: this.#network,
      service: SERVICES[row.service] as (typeof SERVICES)[number],
      slice: row.number,
      slice_cuts: row.slice_cuts,
      window_thousandths: row.window_thousandths,
      fee_ppm: row.fee_ppm,
      target: row.target.toString('hex'),
      window_work: row.window_work,
      accounts: root.count,
      total_work: String(root.sum),
      root: toHex(root.hash),
      previous,
    });
    findings.compare(`${name}: chain`, row.chain?.toString('hex'), chain);
    if (root.sum > 0n) this.#newest = [root.sum, ...this.#newest].slice(0, WINDOW_SLICES);
  }

  end(service: number): void {
    if (this.#before?.closed_height != null)
      this.#findings.add(`the open slice of ${SERVICES[service]}`, 'none', 'one');
  }
}

export async function auditSlices(
  sql: Sql,
  network: NetworkName,
  findings: Findings,
  onProgress: Progress,
): Promise<number> {
  let count = 0;
  const [all] = await sql<{ count: number }[]>`select count(*)::int as count from slices`;
  for (const service of SERVICES.keys()) {
    const walk = new SliceWalk(network, findings);
    const query = sql<SliceRow[]>`select service, number, window_work::text, opened_height, closed_height, total::text,
        root, leaves, slice_cuts, window_thousandths, fee_ppm, target, previous, chain
      from slices where service = ${service} order by number`;
    for await (const rows of batches(sql, query, BATCH))
      for (const row of rows) {
        await findings.section(sliceName(service, row.number), () => walk.take(sql, row), undefined);
        onProgress('slices', ++count, all?.count);
      }
    walk.end(service);
  }
  return count;
}
