/** The text of an audit's report: each difference on a line, then the remedies, then the parts that were checked. */
import { visible } from '../../runtime/log/visible.ts';
import type { AuditReport } from './audit.ts';
import { COVERAGE, UNCOVERED_COLUMNS } from './coverage.ts';
import type { PublicReport } from './public.ts';

/** No difference, but the operator has rewards to pass on. */
export const OWED_EXIT = 5;

const textOf = (lines: readonly string[]): string => `${lines.map(visible).join('\n')}\n`;

function findingLines(
  { findings, differences }: Pick<AuditReport, 'findings' | 'differences'>,
  says: string,
): string[] {
  const lines = findings.map(({ what, books, computed }) => `${what}: ${says} ${books}, computed ${computed}`);
  if (differences > findings.length) lines.push(`and ${differences - findings.length} more`);
  for (const remedy of new Set(findings.map((finding) => finding.remedy))) lines.push(`What to do: ${remedy}`);
  return lines;
}

/** `asked`: what the command was told to compare the books with. */
export function reportText(report: AuditReport, asked: { readonly ledger: boolean; readonly wallet: boolean }): string {
  const lines = findingLines(report, 'the books say');
  const unread = report.unread === 0 ? '' : `, of these ${report.unread} parts that could not be read`;
  for (const each of report.not_checked) lines.push(`Not checked: ${each}`);
  for (const each of report.owed) lines.push(`To be passed on by the operator: ${each}`);
  const open =
    report.not_checked.length === 0
      ? ''
      : `, but for ${report.not_checked.length} parts that the books have not reached yet`;
  const agrees =
    report.owed.length === 0
      ? 'every atom is where it belongs'
      : `no difference, and ${report.owed.length} rewards that the operator has to pass on (exit code ${OWED_EXIT})`;
  const verdict =
    report.differences === 0
      ? `${agrees}${report.ledger ? '' : ' as far as the books themselves say'}${open}`
      : `${report.differences} differences${unread}`;
  const notLookedAt = asked.ledger
    ? 'THE LEDGER WAS NOT WHOLLY LOOKED AT: the node of --node-api did not tell all that was asked, see above.'
    : 'THE LEDGER WAS NOT LOOKED AT: rewards and payments that the books invent or leave out do not show. Name a node with --node-api.';
  lines.push(
    `${report.slices} slices, ${report.lists} credit lists and ${report.accounts} accounts checked: ${verdict}`,
    report.ledger ? 'Rewards and payments were compared with the ledger.' : notLookedAt,
  );
  if (!report.wallet)
    lines.push(
      asked.wallet
        ? 'Payouts were not wholly compared with the wallet, see above.'
        : 'Payouts were not compared with the wallet: name it with --wallet and --wallet-token-file.',
    );
  const left = Object.entries(COVERAGE).filter(
    ([table, how]) => how.startsWith('not covered') || (table === 'compoundings' && !report.wallet),
  );
  const columns = Object.keys(UNCOVERED_COLUMNS).join(', ');
  lines.push(`Not audited: ${left.map(([table]) => table).join(', ')}; and of the other tables ${columns}.`);
  return textOf(lines);
}

const SUSPICIONS: Readonly<Record<PublicReport['suspicions'][number]['name'], string>> = {
  rewards_withheld: 'for hours the pool has credited nobody with rewards that it was paid',
  payouts_unlisted:
    'the ledger has payouts of the pool that it does not list; books that fell back lack them until the wallet answers',
  books_behind: 'the books of the pool are more than an hour behind the ledger',
};

const VERDICTS: Readonly<Record<PublicReport['verdict'], (report: PublicReport) => string>> = {
  holds: () => 'Verdict: no difference was found.',
  unchecked: () => 'Verdict: nothing was found to be wrong, and not everything could be checked (exit code 3).',
  suspicious: () =>
    'Verdict: suspicious. Nothing was found to be wrong, and it lasts longer than it should (exit code 4). Ask the operator.',
  false: ({ differences }) => `Verdict: what the pool publishes does not hold: ${differences} differences.`,
};

export function publicReportText(report: PublicReport): string {
  const lines = findingLines(report, 'the pool says');
  const { proven, unchecked, false: wrong } = report.lists;
  lines.push(
    `The pool whose blocks pay ${report.address} (${report.network}): ${report.slices} slices, ${report.commitments} commitments, ${report.payments} payments`,
    `Credit lists: ${proven} proven, ${unchecked} not to be proven from here, ${wrong} false`,
  );
  if (report.money !== null && report.money.withdrawals.length > 0)
    lines.push(
      `The pool took ${report.money.withdrawn} atoms for itself in ${report.money.withdrawals.length} transactions`,
    );
  if (report.money !== null && report.money.overpaid !== '0')
    lines.push(`Paid beyond credits, which only the pool’s own money may cover: ${report.money.overpaid} atoms`);
  if (report.unpaid !== null && report.unpaid.accounts > 0)
    lines.push(
      `Credited and not paid yet: ${report.unpaid.amount} atoms of ${report.unpaid.accounts} accounts. When they are due depends on each account’s threshold; whether they are ever paid no audit can say.`,
    );
  if (report.uncredited !== null && report.uncredited.rewards > 0)
    lines.push(`In no list yet: ${report.uncredited.rewards} rewards, ${report.uncredited.amount} atoms`);
  if (report.moved !== null && report.moved.rewards > 0)
    lines.push(
      `In a later list than their own, because they came to light late, as the pool says: ${report.moved.rewards} rewards, ${report.moved.amount} atoms`,
    );
  for (const [why, count] of Object.entries(report.missing)) lines.push(`Not checked in ${count} lists: ${why}`);
  for (const each of report.not_checked) lines.push(`Not checked: ${each}`);
  for (const { name, says } of report.suspicions)
    lines.push(`SUSPICION (${name}): ${SUSPICIONS[name]}: ${visible(says)}`);
  lines.push(VERDICTS[report.verdict](report));
  return textOf(lines);
}

/** Escaped for a terminal: texts of a pool are untrusted. */
export const reportJson = (report: AuditReport | PublicReport): string =>
  `${JSON.stringify(report, undefined, 2).split('\n').map(visible).join('\n')}\n`;
