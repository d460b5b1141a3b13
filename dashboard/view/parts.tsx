/** Small pieces that every page is made of. Text from outside goes in as text nodes only. */

import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { amountParts, clock, coins, count, date, fullTime, roundedCoins, shortId } from '../format.ts';
import { linkTo } from '../router.ts';
import { word, wordAround } from '../words/language.ts';
import { useHeldFocus } from './focus.ts';
import { say } from './say.ts';

type FigureParts = {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly spark?: ComponentChildren;
};

export function Figure({ label, value, note, spark }: FigureParts) {
  return (
    <dl class="card figure">
      <dt>{label}</dt>
      <dd>{value}</dd>
      {note === undefined ? null : <dd class="note">{note}</dd>}
      {spark === undefined ? null : <dd class="trend">{spark}</dd>}
    </dl>
  );
}

/** A labelled text that counts once it is entered: leaving the field is not enough. What is being typed stays when the page is drawn again meanwhile. */
export function EnteredText(props: {
  label: string;
  value: string;
  inputMode?: 'search' | 'url';
  placeholder?: string;
  onEnter: (text: string) => void;
}) {
  const [typed, setTyped] = useState<string>();
  const enter = (event: Event) => {
    event.preventDefault();
    setTyped(undefined);
    props.onEnter((typed ?? props.value).trim());
  };
  return (
    <form class="row grow" onSubmit={enter}>
      <label class="grow">
        {props.label}
        <input
          type="search"
          inputMode={props.inputMode ?? 'search'}
          value={typed ?? props.value}
          placeholder={props.placeholder ?? ''}
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <button type="submit" aria-label={word('part.show_what', { what: props.label })}>
        {word('part.show')}
      </button>
    </form>
  );
}

/** What is wrong with a field that names it in `aria-describedby`. It is there before its text, or the text would often not be read aloud. */
export const FieldProblem = ({ id, text }: { id: string; text: string }) => (
  <p id={id} role="status" class={text === '' ? 'hidden-text' : 'bad'}>
    {text}
  </p>
);

/** How long a list is that a search or filter has changed, for those who do not see it change. */
export const ListSaid = ({ rows, what }: { rows: readonly unknown[] | undefined; what: string }) => (
  <p role="status" class="hidden-text">
    {rows === undefined
      ? ''
      : word(rows.length === 0 ? 'part.no_rows' : 'part.rows', { count: count(rows.length), what })}
  </p>
);

/** To the atom. In a column of numbers the decimal points stand below each other; on a phone it ends after four decimals. */
export function Amount({ atoms }: { atoms: string | null }) {
  if (atoms === null) return <span>–</span>;
  const { head, rest, zeros } = amountParts(atoms);
  return (
    <span title={word('part.coins_and_atoms', { coins: coins(atoms), atoms })}>
      {head}
      <span class="rest">{rest}</span>
      {rest === '' ? null : <span class="more">…</span>}
      <span class="zeros">{zeros}</span>
    </span>
  );
}

/** A narrow screen has room for the time of today, or for the date of another day. */
export const When = ({ millis }: { millis: number }) => {
  const isToday = date(millis) === date(Date.now());
  return (
    <span title={fullTime(millis)}>
      <span class={isToday ? 'minor' : ''}>{date(millis)}</span>
      <span class="minor">, </span>
      <span class={isToday ? '' : 'minor'}>{clock(millis)}</span>
    </span>
  );
};

/** An amount as a figure; the title has it to the atom. */
export const RoundedAmount = ({ atoms }: { atoms: string }) => (
  <span title={word('part.coins', { coins: coins(atoms) })}>{roundedCoins(atoms)}</span>
);

/** A phone shows the end: all addresses begin alike. */
export const ShortId = ({ id }: { id: string }) => {
  const short = shortId(id);
  const gap = short.indexOf('…');
  return (
    <>
      <span class={gap > 0 ? 'minor' : ''}>{short.slice(0, Math.max(0, gap))}</span>
      {short.slice(Math.max(0, gap))}
    </>
  );
};

export const Identifier = ({ id }: { id: string }) => (
  <Copied text={id} page={false}>
    <span class="mono" title={id}>
      {shortId(id)}
    </span>
  </Copied>
);

export const BlockLink = ({ id }: { id: string }) => (
  <Copied text={id}>
    <a class="mono" href={linkTo('blocks', id)} title={id}>
      <ShortId id={id} />
    </a>
  </Copied>
);

export const MinerLink = ({ address }: { address: string }) => (
  <Copied text={address}>
    <a class="mono" href={linkTo('miner', address)} title={address}>
      <ShortId id={address} />
    </a>
  </Copied>
);

const STATES = [
  'found',
  'accepted',
  'registered',
  'held',
  'paid',
  'expired',
  'refused',
  // Of payments, rewards, transactions and validators: with the texts of the pages that show them.
  'reserved',
  'submitting',
  'submitted',
  'finalized',
  'void',
  'waiting',
  'pending',
  'failed',
  'conflict',
  'invalid',
  'dropped',
  'no_effect',
  'committee',
  'eligible',
  'lapsed',
  'jailed',
  'exiting',
  'slashed',
] as const;

/** A state of the API in the language of the page; one that has no words there, as it is. */
export function stateText(state: string): string {
  const known = STATES.find((one) => one === state);
  return known === undefined ? state : word(`state.${known}`);
}

export const State = ({ state }: { state: string }) => <span class={`state state-${state}`}>{stateText(state)}</span>;

/** The next step, shown in an empty list. */
export const StartMining = () => (
  <>
    {wordAround('part.connect_or_mine', {
      connect: <a href={linkTo('connect')}>{word('part.connect')}</a>,
      mine: <a href={linkTo('mine')}>{word('part.mine')}</a>,
    })}
  </>
);

/** The states of a list: empty, loading, failed. */
export function Placeholder({
  error,
  loading,
  empty,
}: {
  error: Pick<Error, 'message'> | undefined;
  loading: boolean;
  empty: ComponentChildren;
}) {
  if (error !== undefined)
    return (
      <p class="bad" role="alert">
        {error.message}
      </p>
    );
  return <p class="note">{loading ? word('lazy.loading') : empty}</p>;
}

export type Column<T> = {
  readonly title: string;
  readonly number?: boolean;
  /** Left out on a narrow screen until it is asked for. */
  readonly minor?: boolean;
  /** Left out on a tablet too. */
  readonly spare?: boolean;
  /** Long text, which may take several lines. */
  readonly wide?: boolean;
  readonly cell: (row: T) => ComponentChildren;
};

const classOf = ({ number, minor, spare, wide }: Column<never>): string =>
  [number && 'number', minor && 'minor', spare && 'spare', wide && 'wide'].filter(Boolean).join(' ');

/** The pool's maximum per answer; more lines than this would make the page slow. */
const MOST_ROWS = 200;

type TableParts<T> = {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
};

/** Every table follows a heading that names it; the caption says it to those who do not see the heading. */
export const Table = <T,>({ hidden = false, ...parts }: TableParts<T> & { hidden?: boolean }) =>
  hidden ? null : <ShownTable {...parts} />;

function ShownTable<T>({ caption, columns, rows, keyOf }: TableParts<T>) {
  const region = useHeldFocus<HTMLElement>();
  const [all, setAll] = useState(false);
  return (
    <>
      {columns.some(({ minor, spare }) => minor || spare) ? (
        <button
          type="button"
          class={columns.some(({ spare }) => spare) ? 'narrow early' : 'narrow'}
          aria-label={word('part.all_columns_of', { table: caption })}
          aria-pressed={all}
          onClick={() => setAll(!all)}
        >
          {word('part.all_columns')}
        </button>
      ) : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section ref={region} class={all ? 'scroll all' : 'scroll'} tabIndex={0} aria-label={caption}>
        <table>
          <caption class="hidden-text">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.title} scope="col" class={classOf(column)}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_ROWS).map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((column) => (
                  <td key={column.title} class={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length > MOST_ROWS ? (
          <p class="note">{word('part.more_rows', { count: count(rows.length - MOST_ROWS) })}</p>
        ) : null}
      </section>
    </>
  );
}

type CopyState = 'ready' | 'copied' | 'refused';
const COPY_SAID = { copied: 'part.copied', refused: 'part.not_copied' } as const;
const COPIED_MILLIS = 2_000;
const REFUSED_MILLIS = 6_000;

/** Puts text on the clipboard; false when the browser did not let it. Pages of plain http have no `navigator.clipboard`, only the older command. */
async function copyText(text: string): Promise<boolean> {
  const isWritten = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  return isWritten === true || copyMarked(text);
}

/** Marks the text in a field that is not seen, and has it copied as Ctrl-C would. */
function copyMarked(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.setAttribute('aria-hidden', 'true');
  field.style.position = 'fixed';
  field.style.opacity = '0';
  document.body.append(field);
  try {
    field.select();
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}

/** What became of a copy, for some seconds: shown, and said to those who do not see it. */
function useCopy(text: string): [CopyState, () => void] {
  const [state, setState] = useState<CopyState>('ready');
  const copy = async () => {
    const outcome = (await copyText(text)) ? 'copied' : 'refused';
    setState(outcome);
    say(word(COPY_SAID[outcome]));
    setTimeout(() => setState('ready'), outcome === 'copied' ? COPIED_MILLIS : REFUSED_MILLIS);
  };
  return [state, copy];
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [state, copy] = useCopy(text);
  const words = word(state === 'ready' ? 'part.copy' : COPY_SAID[state]);
  return (
    <button type="button" onClick={copy} aria-label={word('part.copy_what', { act: words, what: label })}>
      {words}
    </button>
  );
}

const COPY_GLYPHS: Readonly<Record<CopyState, ComponentChildren>> = {
  ready: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M3.5 10.5h-1v-8h8v1" />
    </>
  ),
  copied: <path d="M3 8.5 6.5 12 13 4.5" />,
  refused: <path d="M4 4l8 8M12 4l-8 8" />,
};

/** A short name in a table, with a small button for the whole of it. A narrow screen shows it with all columns, or where no `page` has the whole. */
export function Copied({ text, page = true, children }: { text: string; page?: boolean; children: ComponentChildren }) {
  const [state, copy] = useCopy(text);
  return (
    <span class="copied">
      {children}
      <button
        type="button"
        class={page ? 'icon minor' : 'icon'}
        title={word('part.copy')}
        aria-label={word('part.copy_id', { id: shortId(text) })}
        onClick={copy}
      >
        <svg class={state === 'refused' ? 'glyph bad' : 'glyph'} viewBox="0 0 16 16" aria-hidden="true">
          {COPY_GLYPHS[state]}
        </svg>
      </button>
    </span>
  );
}

export const Command = ({ text, label }: { text: string; label: string }) => (
  <div class="command-line">
    <pre class="command">
      <code>
        {/* A line ends between words, and never within `-u`. */}
        {text.split(/([ \n])/).map((part, i) =>
          i % 2 === 1 ? (
            part
          ) : (
            <span key={i} class="word">
              {part}
            </span>
          ),
        )}
      </code>
    </pre>
    <CopyButton text={text} label={label} />
  </div>
);

/** A long name in full, to be read and copied. */
export const WholeName = ({ text, label }: { text: string; label: string }) => (
  <p class="mono wide">
    {text} <CopyButton text={text} label={label} />
  </p>
);

/** Between pages of a list, by the cursor of the one that is shown and of the one after it. Nothing at all where one page holds everything; else it stays, since it is used from the keyboard. */
export function Pager({
  cursor,
  next,
  onMove,
  words = [word('part.newest'), word('part.older')],
}: {
  cursor: string | undefined;
  next: string | undefined;
  onMove(cursor: string | undefined): void;
  words?: readonly [string, string];
}) {
  const isFirst = cursor === undefined;
  const isLast = next === undefined;
  const isNeeded = useRef(false);
  isNeeded.current ||= !(isFirst && isLast);
  const [counted, setPage] = useState(1);
  const page = isFirst ? 1 : counted;
  const move = (to: number) => {
    setPage(to);
    onMove(to === 1 ? undefined : next);
  };
  if (!isNeeded.current) return null;
  return (
    <div class="row pager">
      <button type="button" aria-disabled={isFirst} onClick={() => isFirst || move(1)}>
        {words[0]}
      </button>
      <button type="button" aria-disabled={isLast} onClick={() => isLast || move(page + 1)}>
        {words[1]}
      </button>
      <span class="note" role="status">
        {word('part.page', { page })}
      </span>
    </div>
  );
}
