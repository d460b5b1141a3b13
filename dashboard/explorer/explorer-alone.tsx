/** The explorer without a pool: a page of its own that reads any node that admits it. `?node=URL` names the node; the browser remembers it. */

import '../theme.css';
import { useEffect, useState } from 'preact/hooks';
import { usePlace } from '../data/place.ts';
import { titleOf } from '../router.ts';
import { showPage } from '../show-page.tsx';
import { rememberedTheme, showTheme } from '../theme.ts';
import { LanguageChoice, PauseButton, ThemeChoice } from '../view/page-foot.tsx';
import { loadPageWords, word } from '../words/language.ts';
import { nodeAddress, readFrom } from './explorer-node.ts';
import { ExplorerPage } from './explorer-page.tsx';

const REMEMBERED = 'svc-explorer-node';

function firstNode(): string {
  const asked = nodeAddress(new URLSearchParams(location.search).get('node') ?? '');
  if (asked !== undefined) return asked;
  // What whoever serves the page wrote into it (docs/launch.md).
  const served = document.querySelector<HTMLMetaElement>('meta[name="svc-node"]')?.content ?? '';
  try {
    return nodeAddress(localStorage.getItem(REMEMBERED) ?? '') ?? nodeAddress(served) ?? '';
  } catch {
    return nodeAddress(served) ?? '';
  }
}

function remember(node: string): void {
  try {
    localStorage.setItem(REMEMBERED, node);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
}

function Alone() {
  const place = usePlace();
  const [node, setNode] = useState(firstNode);
  const [typed, setTyped] = useState(node);
  const [isWrong, setWrong] = useState(false);
  readFrom(node);
  const title = place.page === 'explorer' ? titleOf(place) : word('chain.title');
  useEffect(() => {
    document.title = node === '' ? title : `${title} – ${new URL(node).host}`;
  }, [node, title]);
  const choose = (event: Event) => {
    event.preventDefault();
    const chosen = nodeAddress(typed);
    setWrong(chosen === undefined);
    if (chosen === undefined) return;
    remember(chosen);
    setNode(chosen);
  };
  const shown = place.page === 'explorer' ? place : { kind: undefined, id: undefined };
  return (
    <>
      <header class="top">
        <div class="bar">
          <span class="name">
            <img src="icon.svg" alt="" width="24" height="24" />
            {word('chain.title')}
          </span>
        </div>
      </header>
      <main id="main" tabIndex={-1} aria-label={title}>
        <form class="row" onSubmit={choose}>
          <label class="grow">
            {word('alone.node', { example: 'http://127.0.0.1:28701' })}
            <input
              type="url"
              value={typed}
              spellcheck={false}
              aria-invalid={isWrong}
              aria-describedby="node-problem"
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="primary">
            {word('alone.read')}
          </button>
          <p id="node-problem" class={isWrong ? 'bad' : 'hidden-text'} role="status">
            {isWrong ? word('alone.wrong') : ''}
          </p>
        </form>
        {node === '' ? (
          <>
            <h1>{word('chain.title')}</h1>
            <p class="note">{word('alone.must_allow', { origin: location.origin })}</p>
          </>
        ) : (
          <div key={node}>
            <ExplorerPage kind={shown.kind} id={shown.id} />
          </div>
        )}
      </main>
      <footer>
        <p>{word('alone.from_node')}</p> <PauseButton /> <ThemeChoice /> <LanguageChoice />
      </footer>
    </>
  );
}

showTheme(rememberedTheme());

const root = document.getElementById('app');
if (root !== null) void loadPageWords().then(() => showPage(root, Alone));
