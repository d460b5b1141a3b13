/** An audit's report in words: each difference on a line, then what to do about them, then what was checked. */
import type { AuditReport } from './audit.ts';
import { COVERAGE } from './coverage.ts';

export function reportText(report: AuditReport): string {
  const lines = report.findings.map(
    ({ what, books, computed }) => `${what}: the books say ${books}, computed ${computed}`,
  );
  if (report.differences > report.findings.length)
    lines.push(`and ${report.differences - report.findings.length} more`);
  for (const remedy of new Set(report.findings.map((finding) => finding.remedy))) lines.push(`What to do: ${remedy}`);
  const verdict = report.differences === 0 ? 'every atom is where it belongs' : `${report.differences} differences`;
  lines.push(
    `${report.slices} slices, ${report.lists} credit lists and ${report.accounts} accounts checked: ${verdict}`,
    report.ledger
      ? 'Rewards and payments were compared with the ledger.'
      : 'Rewards and payments were not compared with the ledger: name a node with --node-api.',
  );
  const left = Object.entries(COVERAGE).filter(([, how]) => how.startsWith('not covered'));
  lines.push(`Not audited: ${left.map(([table]) => table).join(', ')}, and the tables of figures and news.`);
  return `${lines.join('\n')}\n`;
}
