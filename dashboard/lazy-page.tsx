/** Parts of the page that are loaded when they are shown, with their texts: the first figures wait for nothing else. */

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { loadPageWords, type WordKey, word } from './words/language.ts';

/** A pool that is away may be back by then. */
const AGAIN_MILLIS = 3_000;

export type Lazy<P extends object> = ComponentType<P> & {
  /** Loads it before it is shown. */
  ahead(): Promise<unknown>;
};

export function lazyPage<P extends object>(what: WordKey, load: () => Promise<ComponentType<P>>): Lazy<P> {
  let loaded: ComponentType<P> | undefined;
  const ready = async (): Promise<ComponentType<P>> => {
    loaded ??= (await Promise.all([load(), loadPageWords()]))[0];
    return loaded;
  };
  const LazyPage = (given: P) => {
    const [Page, setPage] = useState(() => loaded);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      let isOver = false;
      const attempt = (): Promise<void> =>
        ready().then(
          (page) => setPage(() => page),
          () => {
            if (isOver) return;
            setFailed(true);
            timer = setTimeout(attempt, AGAIN_MILLIS);
          },
        );
      void attempt();
      return () => {
        isOver = true;
        clearTimeout(timer);
      };
    }, []);
    if (Page !== undefined) return <Page {...given} />;
    if (failed) return <p role="alert">{word('lazy.failed', { what: word(what) })}</p>;
    return <p class="note loading-part">{word('lazy.loading')}</p>;
  };
  return Object.assign(LazyPage, { ahead: ready });
}
