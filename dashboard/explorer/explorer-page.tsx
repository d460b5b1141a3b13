/** The explorer: a search field for anything on the chain, and the page of what was asked for. */

import { useEffect, useState } from 'preact/hooks';
import { type ExplorerKind, explorerLink, linkTo } from '../router.ts';
import { word } from '../words/language.ts';
import { AddressView } from './address-view.tsx';
import { BlockView } from './block-view.tsx';
import { readChain, useChain } from './chain-document.ts';
import { CutView } from './cut-view.tsx';
import { Overview } from './overview.tsx';
import { SupplyView } from './supply-view.tsx';
import { TransactionView } from './transaction-view.tsx';
import { updateNotice } from './update-notice.ts';
import { ValidatorView } from './validator-view.tsx';

export type ExplorerPlace = { readonly kind: ExplorerKind | undefined; readonly id: string | undefined };

export function ExplorerPage({ kind, id }: ExplorerPlace) {
  return (
    <>
      <h1>{word(kind === undefined || kind === 'find' ? 'chain.title' : `place.${kind}`)}</h1>
      <Update />
      <Search />
      <div key={`${kind}/${id}`}>
        <Shown kind={kind} id={id} />
      </div>
      {kind === undefined ? null : (
        <p>
          <a href={linkTo('explorer')}>{word('chain.back')}</a>
        </p>
      )}
    </>
  );
}

const UPDATE_MILLIS = 30_000;

function Update() {
  const { data } = useChain<'nodeStatus'>('node/status', UPDATE_MILLIS);
  const notice = updateNotice(data);
  return notice === undefined ? null : (
    <p class={notice.kind === 'warn' ? 'card warn' : 'card'} role="status">
      {notice.text}
    </p>
  );
}

function Shown({ kind, id }: ExplorerPlace) {
  if (kind === 'supply') return <SupplyView />;
  if (kind === undefined || id === undefined) return <Overview />;
  switch (kind) {
    case 'cut':
      return <CutView height={Number(id)} />;
    case 'block':
      return <BlockView id={id} />;
    case 'transaction':
      return <TransactionView id={id} />;
    case 'address':
      return <AddressView address={id} />;
    case 'validator':
      return <ValidatorView id={id} />;
    case 'find':
      return <Find id={id} />;
  }
}

const HEIGHT = /^\d{1,10}$/;
const IDENTIFIER = /^[0-9a-f]{96}$/;
/** bech32m with the prefix of a network. */
const ADDRESS = /^[a-z]{1,16}1[02-9ac-hj-np-z]{20,}$/;

type Found = { readonly kind: ExplorerKind; readonly id: string };

/** The text of the search field as a place in the explorer; undefined if it cannot be any identifier. An identifier may be of several kinds: `find` tries each. */
function whatIs(typed: string): Found | undefined {
  const text = typed.trim();
  const height = text.replace(/^#/, '').replaceAll(/[,.'’_\s]/g, '');
  if (HEIGHT.test(height)) return { kind: 'cut', id: String(Number(height)) };
  const lower = text.toLowerCase();
  if (IDENTIFIER.test(lower)) return { kind: 'find', id: lower };
  return ADDRESS.test(lower) ? { kind: 'address', id: lower } : undefined;
}

/** In this order an identifier is asked for: blocks and transactions are what people have. */
const KINDS_OF_IDENTIFIER = [
  ['block', (id: string) => `blocks/${id}`],
  ['transaction', (id: string) => `transactions/${id}/status`],
  ['validator', (id: string) => `staking/validators/${id}`],
] as const;

function Search() {
  const [typed, setTyped] = useState('');
  const [isUnknown, setUnknown] = useState(false);
  return (
    // biome-ignore lint/a11y/useSemanticElements: `search` is not known to all browsers yet
    <form
      class="row"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const found = whatIs(typed);
        setUnknown(found === undefined);
        if (found === undefined) return;
        setTyped('');
        location.hash = explorerLink(found.kind, found.id);
      }}
    >
      <label class="grow">
        {word('chain.search')}
        <input
          type="search"
          value={typed}
          spellcheck={false}
          autocomplete="off"
          aria-describedby="search-problem"
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <button type="submit">{word('chain.find')}</button>
      <p id="search-problem" class={isUnknown ? 'bad' : 'hidden-text'} role="status">
        {isUnknown ? word('chain.not_recognised') : ''}
      </p>
    </form>
  );
}

/** Asks what the id names, and goes there. */
function Find({ id }: { id: string }) {
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    let over = false;
    const find = async () => {
      let last = '';
      for (const [kind, path] of KINDS_OF_IDENTIFIER) {
        try {
          await readChain(path(encodeURIComponent(id)));
          if (!over) location.replace(explorerLink(kind, id));
          return;
        } catch (error) {
          last = (error as Error).message;
        }
      }
      if (!over) setProblem(last);
    };
    void find();
    return () => {
      over = true;
    };
  }, [id]);
  return (
    <section class="card">
      {problem === undefined ? (
        <p class="note">{word('chain.looking')}</p>
      ) : (
        <p role="status">{word('chain.not_found', { problem })}</p>
      )}
      <p class="mono wide">{id}</p>
    </section>
  );
}
