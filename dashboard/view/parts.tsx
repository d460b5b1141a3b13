/** Small pieces that every page is made of. Text from outside goes in as text nodes only. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { PoolError } from '../data/client.ts';
import { coins, shortId } from '../format.ts';
import { linkTo } from '../router.ts';

export function Figure({ label, value, note }: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <dl class="card figure">
      <dt>{label}</dt>
      <dd>{value}</dd>
      {note === undefined ? null : <dd class="note">{note}</dd>}
    </dl>
  );
}

export const Amount = ({ atoms }: { atoms: string | null }) => (
  <span title={atoms === null ? '' : `${atoms} atoms`}>{atoms === null ? '–' : coins(atoms)}</span>
);

export const Identifier = ({ id }: { id: string }) => (
  <span class="mono" title={id}>
    {shortId(id)}
  </span>
);

export const MinerLink = ({ address }: { address: string }) => (
  <a class="mono" href={linkTo('miner', address)} title={address}>
    {shortId(address)}
  </a>
);

export const State = ({ state }: { state: string }) => <span class={`state state-${state}`}>{state}</span>;

/** What a list shows when there is nothing, when it loads and when it failed. */
export function Placeholder({
  error,
  loading,
  empty,
}: {
  error: PoolError | undefined;
  loading: boolean;
  empty: string;
}) {
  if (error !== undefined)
    return (
      <p class="bad" role="alert">
        {error.message}
      </p>
    );
  return <p class="note">{loading ? 'Loading…' : empty}</p>;
}

export type Column<T> = {
  readonly title: string;
  readonly number?: boolean;
  readonly cell: (row: T) => ComponentChildren;
};

export function Table<T>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="scroll" tabIndex={0} aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={column.number ? 'number' : ''}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} class={column.number ? 'number' : ''}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function Command({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).catch(() => undefined);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div>
      <pre class="command">
        <code>{text}</code>
      </pre>
      <button type="button" onClick={copy} aria-label={`Copy: ${label}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}

export function Pager({
  next,
  first,
  onNext,
  onFirst,
}: {
  next: boolean;
  first: boolean;
  onNext(): void;
  onFirst(): void;
}) {
  return (
    <div class="row">
      <button type="button" disabled={first} onClick={onFirst}>
        Newest
      </button>
      <button type="button" disabled={!next} onClick={onNext}>
        Older
      </button>
    </div>
  );
}
