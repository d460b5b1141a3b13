/**
 * `svc-pool audit`: recomputes the whole history and compares it with the books, to the atom: slices and their chain from
 * their leaves, leaves from raw shares, credit lists from slices, balances from lists and payouts; and with a node, rewards
 * and payments from the ledger. coverage.ts lists what each table is compared with.
 */
import type { NetworkName } from '../../protocol/network.ts';
import { balanceSheet } from '../books/sheet.ts';
import type { Sql } from '../database/connect.ts';
import type { PayoutSeries } from '../payout/payout-series.ts';
import { auditAccounts } from './accounts.ts';
import { auditCommitments } from './commitments.ts';
import { type Finding, Findings } from './findings.ts';
import { auditLedger, type LedgerReads } from './ledger.ts';
import { type AuditedLists, auditLists } from './lists.ts';
import { auditOwnerships } from './ownerships.ts';
import { auditSettings, whenSettled } from './settings.ts';
import { auditIdentities, auditRawShares } from './shares.ts';
import { auditSlices, type PartName, type Progress } from './slices.ts';
import { inSnapshot } from './snapshot.ts';
import { auditWallet, requestsBefore, type WalletReads } from './wallet.ts';

export type AuditReport = {
  readonly slices: number;
  readonly lists: number;
  readonly accounts: number;
  /** Whether all rewards and payments were compared with a node. */
  readonly ledger: boolean;
  /** Whether all payouts and merges were compared with the wallet's record. */
  readonly wallet: boolean;
  /** Total number of differences; `findings` holds the first of them. */
  readonly differences: number;
  /** Parts that could not be read; each counts as a difference. */
  readonly unread: number;
  /**
   * Items that the books have not reached yet, while they read the chain again after being replaced by an older copy; or the node.
   */
  readonly not_checked: readonly string[];
  /** Rewards that the books hold for the pool because it did not know their finders in time, and that a journal has named since. */
  readonly owed: readonly string[];
  readonly findings: readonly Finding[];
};

export type AuditOptions = {
  readonly network: NetworkName;
  /** The ledger, and the address that the pool's blocks pay; without them the books are only checked for consistency. */
  readonly ledger?: { readonly node: LedgerReads; readonly poolAddress: string };
  /** The wallet that pays, and the names of the pool's requests at it. */
  readonly wallet?: { readonly reads: WalletReads; readonly series: PayoutSeries };
  readonly onProgress?: Progress;
  /** How long to wait for a running pool that is about to record a cut. */
  readonly pauseMillis?: number;
};

/** Audits one moment of the books; the pool may be running. */
export async function audit(sql: Sql, options: AuditOptions): Promise<AuditReport> {
  const requests = walletRequests(options);
  await Promise.allSettled([requests]);
  return inSnapshot(sql, whenSettled(options.pauseMillis), (snapshot) => auditMoment(snapshot, options, requests));
}

const walletRequests = async ({ wallet }: AuditOptions): Promise<ReadonlySet<string>> =>
  wallet === undefined ? new Set() : requestsBefore(wallet.reads, wallet.series);

/** Audits what one transaction sees. `requests` are those that the wallet had before it. */
export async function auditMoment(
  sql: Sql,
  options: AuditOptions,
  requests = walletRequests(options),
): Promise<AuditReport> {
  const findings = new Findings(sql);
  const { network, ledger, wallet, onProgress = () => undefined } = options;
  const part = <T>(what: PartName, work: () => Promise<T>, otherwise: T): Promise<T> => {
    onProgress(what, 0);
    return findings.section(what.replaceAll('_', ' '), work, otherwise);
  };
  const slices = await part('slices', () => auditSlices(sql, network, findings, onProgress), 0);
  await part('raw_shares', () => auditRawShares(sql, findings, onProgress), undefined);
  await part('headers_and_nonces', () => auditIdentities(sql, findings), undefined);
  const none: AuditedLists = { lists: 0, credited: undefined };
  const { lists, credited } = await part('credit_lists', () => auditLists(sql, findings, onProgress), none);
  const accounts = await part('accounts', () => auditAccounts(sql, network, credited, findings), 0);
  await part('owners', () => auditOwnerships(sql, findings), undefined);
  await part('commitments', () => auditCommitments(sql, findings), undefined);
  const wholly = async (part: () => Promise<void>): Promise<boolean> => {
    const before = findings.failed;
    await part();
    return findings.failed === before;
  };
  const isLedgerRead =
    ledger !== undefined &&
    (await wholly(() => auditLedger(sql, ledger.node, { poolAddress: ledger.poolAddress }, findings, onProgress)));
  if (wallet !== undefined) onProgress('wallet', 0);
  const isWalletRead = wallet !== undefined && (await wholly(() => auditWallet(sql, wallet, requests, findings)));
  await part('settings', () => auditHeight(sql, options, findings), undefined);
  await findings.section(
    'the balance sheet',
    async () => findings.compare('the balance sheet', (await balanceSheet(sql)).gap, 0n),
    undefined,
  );
  return {
    slices,
    lists,
    accounts,
    ledger: isLedgerRead,
    wallet: isWalletRead,
    differences: findings.count,
    unread: findings.failed,
    not_checked: findings.notChecked,
    owed: findings.owed,
    findings: findings.list,
  };
}

async function auditHeight(sql: Sql, { ledger }: AuditOptions, findings: Findings): Promise<void> {
  if (ledger === undefined) return auditSettings(sql, {}, findings);
  const { node, poolAddress } = ledger;
  const asked = { addresses: [poolAddress], after_height: 0, limit: 1 };
  const { indexed_height: height } = await node.addressChanges(asked);
  await auditSettings(sql, { ledger: { poolAddress, height } }, findings);
}
