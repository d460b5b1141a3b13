/** The operator's log, newest first, page by page. */
import { useState } from 'preact/hooks';
import type { OperatorLogDocument } from '../../pool/api/operator/operator-documents.ts';
import { query } from '../data/client.ts';
import { Pager, Table, When } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { useOperated } from './operated.ts';

type Entry = OperatorLogDocument['entries'][number];
type Edit = { readonly setting: string; readonly old: unknown; readonly new: unknown; readonly from_slice?: number };

const ROWS = 20;

const valueText = (value: unknown): string => (value === null ? word('operator.nothing') : String(value));

function Details({ entry }: { entry: Entry }) {
  if (entry.action !== 'edit') return <code>{JSON.stringify(entry.details)}</code>;
  const { setting, old, new: now, from_slice: slice, ...rest } = entry.details as Edit;
  return (
    <>
      {word(slice == null ? 'operator.edited' : 'operator.edited_from_slice', {
        setting,
        old: valueText(old),
        new: valueText(now),
        slice: slice ?? '',
      })}{' '}
      <code>{JSON.stringify(rest)}</code>
    </>
  );
}

export function OperatorLog({ token, turn }: { token: string; turn: number }) {
  const [cursor, setCursor] = useState<string>();
  const log = useOperated<OperatorLogDocument>(token, `log${query({ cursor, limit: ROWS })}`, turn);
  const entries = log?.entries ?? [];
  return (
    <section class="card">
      <h2>{word('operator.log')}</h2>
      {log !== undefined && entries.length === 0 ? <p class="note">{word('operator.log_none')}</p> : null}
      <Table
        hidden={entries.length === 0}
        caption={word('operator.log_newest')}
        columns={[
          { title: word('pay.time'), cell: (entry) => <When millis={entry.at_millis} /> },
          { title: word('operator.who'), cell: (entry) => entry.actor },
          { title: word('chain.what'), cell: (entry) => entry.action },
          { title: word('operator.details'), wide: true, cell: (entry) => <Details entry={entry} /> },
        ]}
        rows={entries}
        keyOf={(entry) => `${entry.at_millis}/${entry.action}/${JSON.stringify(entry.details)}`}
      />
      <Pager cursor={cursor} next={log?.next_cursor} onMove={setCursor} />
    </section>
  );
}
