/** The text of an audit's report: each difference on a line, then the remedies, then the parts that were checked. */

import type { NotChecked } from '../../protocol/books/books-verdict.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { visible } from '../../runtime/log/visible.ts';
import type { AuditReport } from './audit.ts';
import { COVERAGE, UNCOVERED_COLUMNS } from './coverage.ts';
import { type PublicReport, WITHOUT_A_NODE } from './public.ts';
import type { Progress } from './slices.ts';

/** No difference, but the operator has rewards to pass on. */
export const OWED_EXIT = 5;

const TOLD_MILLIS = 5_000;

/** Tells how far a long audit is, every few seconds; a short one says nothing. */
export function toldProgress({
  log,
  now,
}: {
  readonly log: Pick<Logger, 'info'>;
  readonly now: SteadyClock;
}): Progress {
  let told = now();
  return (what, done) => {
    if (now() - told < TOLD_MILLIS) return;
    told = now();
    log.info('the audit goes on', { what, done });
  };
}

const many = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

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
  const unread = report.unread === 0 ? '' : `, of these ${many(report.unread, 'part')} that could not be read`;
  for (const each of report.not_checked) lines.push(`Not checked: ${each}`);
  for (const each of report.owed) lines.push(`To be passed on by the operator: ${each}`);
  const open =
    report.not_checked.length === 0
      ? ''
      : `, but for ${many(report.not_checked.length, 'part')} that the books or the node have not reached yet`;
  const agrees =
    report.owed.length === 0
      ? 'every atom is where it belongs'
      : `no difference, and ${many(report.owed.length, 'reward')} that the operator has to pass on (exit code ${OWED_EXIT})`;
  const verdict =
    report.differences === 0
      ? `${agrees}${report.ledger ? '' : ' as far as the books themselves say'}${open}`
      : `${many(report.differences, 'difference')}${unread}`;
  const notLookedAt = asked.ledger
    ? 'THE LEDGER WAS NOT WHOLLY LOOKED AT: the node of --node-api did not tell all that was asked, see above.'
    : 'THE LEDGER WAS NOT LOOKED AT: rewards and payments that the books invent or leave out do not show. Name a node with --node-api.';
  lines.push(
    `${many(report.slices, 'slice')}, ${many(report.lists, 'credit list')} and ${many(report.accounts, 'account')} checked: ${verdict}`,
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
  unchecked: () =>
    'Verdict: nothing was found to be wrong, and not everything could be checked (exit code 3). What is only late can be checked later: audit again.',
  suspicious: () =>
    'Verdict: suspicious. Nothing was found to be wrong, and it lasts longer than it should (exit code 4). Ask the operator.',
  false: ({ differences }) => `Verdict: what the pool publishes does not hold: ${many(differences, 'difference')}.`,
};

const LATER = 'audit again later';
const WHOLE = 'audit again later, or name a node that keeps the whole chain';

/** What could not be checked of a list, why, and what helps. */
const MISSING: Readonly<Record<NotChecked, string>> = {
  terms: `its fee and window: the pool did not tell its terms (${LATER})`,
  records: `its slices: the pool did not tell its records (${LATER})`,
  records_reach: `its window: the pool does not tell the records of all its slices (${LATER})`,
  target: `the target that its window follows from: the node does not have the cut (${WHOLE})`,
  rewards: `its rewards: the node did not tell what the pool was paid (${WHOLE})`,
  other_service: `whether a reward is left out: the pool did not tell which are in other lists, or held (${LATER})`,
  block_service: `whether its blocks are of PPLNS or solo: the node does not tell it of each (${WHOLE})`,
  later_list: `rewards that a later list has, as the pool says (${LATER})`,
  commitments: `whether the payouts of its time commit to these books: not each payout on the ledger could be compared, see below (${WHOLE})`,
  solo_finder: 'who found a solo block: only the pool and the finder know',
};

/** Without a node none of these can be checked, and the report says so in one line. */
const OF_THE_NODE: readonly NotChecked[] = ['target', 'rewards', 'block_service', 'commitments'];

export function publicReportText(report: PublicReport): string {
  const lines = findingLines(report, 'the pool says');
  const { proven, unchecked, false: wrong } = report.lists;
  lines.push(
    `The pool whose blocks pay ${report.address} (${report.network}): ${many(report.slices, 'slice')}, ${many(report.commitments, 'commitment')}, ${many(report.payments, 'payment')}`,
    `Credit lists: ${proven} proven, ${unchecked} not to be proven from here, ${wrong} false`,
  );
  if (report.money !== null && report.money.withdrawals.length > 0)
    lines.push(
      `The pool took ${report.money.withdrawn} atoms for itself in ${many(report.money.withdrawals.length, 'transaction')}`,
    );
  if (report.money !== null && report.money.overpaid !== '0')
    lines.push(`Paid beyond credits, which only the pool’s own money may cover: ${report.money.overpaid} atoms`);
  if (report.unpaid !== null && report.unpaid.accounts > 0)
    lines.push(
      `Credited and not paid yet: ${report.unpaid.amount} atoms of ${many(report.unpaid.accounts, 'account')}. When they are due depends on each account’s threshold; whether they are ever paid no audit can say.`,
    );
  if (report.uncredited !== null && report.uncredited.rewards > 0)
    lines.push(`In no list yet: ${many(report.uncredited.rewards, 'reward')}, ${report.uncredited.amount} atoms`);
  if (report.moved !== null && report.moved.rewards > 0)
    lines.push(
      `In a later list than their own, because they came to light late, as the pool says: ${many(report.moved.rewards, 'reward')}, ${report.moved.amount} atoms`,
    );
  const hasNode = !report.not_checked.includes(WITHOUT_A_NODE);
  for (const [part, count] of Object.entries(report.missing) as [NotChecked, number][])
    if (hasNode || !OF_THE_NODE.includes(part)) lines.push(`Not checked in ${many(count, 'list')}: ${MISSING[part]}`);
  for (const each of report.not_checked) lines.push(`Not checked: ${each}`);
  for (const { name, says } of report.suspicions)
    lines.push(`SUSPICION (${name}): ${SUSPICIONS[name]}: ${visible(says)}`);
  lines.push(VERDICTS[report.verdict](report));
  return textOf(lines);
}

/** Escaped for a terminal: texts of a pool are untrusted. */
export const reportJson = (report: AuditReport | PublicReport): string =>
  `${JSON.stringify(report, undefined, 2).split('\n').map(visible).join('\n')}\n`;
