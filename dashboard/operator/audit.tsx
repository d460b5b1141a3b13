/** The audit of the books, beside the running pool: its start, how far it is, and what it found. */
import type { AuditDocument } from '../../pool/api/operator/operator-documents.ts';
import { count, duration } from '../format.ts';
import { Table, When } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { useOperated } from './operated.ts';
import type { Act } from './payout-queue.tsx';

/** A part of a small pool takes less, one of a large pool minutes. */
const READ_MILLIS = 2_000;

export function Audit({ token, turn, act }: { token: string; turn: number; act: Act }) {
  const audit = useOperated<AuditDocument>(token, 'audit', turn, READ_MILLIS);
  const runs = audit?.state === 'running';
  return (
    <section class="card">
      <h2>{word('operator.audit')}</h2>
      <p class="note">{word('operator.audit_note')}</p>
      <p>
        <button type="button" aria-disabled={runs} onClick={() => runs || void act('audit', 'POST')}>
          {word('operator.audit_start')}
        </button>
      </p>
      {runs ? <Progress progress={audit.progress} /> : null}
      <div role="status">
        {audit?.reason == null ? null : <p class="bad">{word('operator.audit_failed', { reason: audit.reason })}</p>}
        {audit?.result == null ? null : <Result audit={audit} result={audit.result} />}
      </div>
    </section>
  );
}

function Progress({ progress }: { progress: AuditDocument['progress'] }) {
  const name = word(progress === null ? 'operator.audit_begins' : `operator.part_${progress.part}`);
  const of = progress?.of ?? null;
  const text =
    progress === null || of === null
      ? name
      : word('operator.audit_done_of', { part: name, done: count(progress.done), of: count(of) });
  return (
    <>
      <p class="note">{text}</p>
      <progress max={of ?? 1} value={of === null ? 0 : (progress?.done ?? 0)} aria-label={text} />
    </>
  );
}

type AuditResult = NonNullable<AuditDocument['result']>;

const Listed = ({ title, texts }: { title: string; texts: readonly string[] }) => (
  <>
    <p class="warn">{title}</p>
    <ul>
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  </>
);

function Result({ audit, result }: { audit: AuditDocument; result: AuditResult }) {
  const { started_millis: started, ended_millis: ended } = audit;
  const { differences, unread, findings, not_checked: open, owed } = result;
  return (
    <>
      <p>
        <strong class={differences === 0 ? 'good' : 'bad'}>
          {differences === 0
            ? word('operator.audit_agrees')
            : word('operator.audit_differs', { count: count(differences) })}
        </strong>{' '}
        {unread === 0 ? '' : word('operator.audit_unread', { count: count(unread) })}{' '}
        {word('operator.audit_checked', {
          slices: count(result.slices),
          lists: count(result.lists),
          accounts: count(result.accounts),
          time: duration(((ended ?? 0) - (started ?? 0)) / 1000),
        })}{' '}
        <When millis={ended ?? 0} />
      </p>
      {result.ledger ? null : <p class="warn">{word('operator.audit_no_ledger')}</p>}
      {result.wallet ? null : <p class="warn">{word('operator.audit_no_wallet')}</p>}
      {open.count === 0 ? null : (
        <Listed title={word('operator.audit_open', { count: count(open.count) })} texts={open.first} />
      )}
      {owed.count === 0 ? null : (
        <Listed title={word('operator.audit_owed', { count: count(owed.count) })} texts={owed.first} />
      )}
      <Table
        hidden={findings.length === 0}
        caption={word('operator.audit_first')}
        columns={[
          { title: word('chain.what'), wide: true, cell: (one) => one.what },
          { title: word('operator.audit_books'), wide: true, cell: (one) => one.books },
          { title: word('operator.audit_computed'), wide: true, cell: (one) => one.computed },
          { title: word('operator.audit_remedy'), wide: true, cell: (one) => one.remedy },
        ]}
        rows={findings}
        keyOf={(one) => one.what}
      />
    </>
  );
}
