/** Parts of the page that are loaded when they are shown: the first figures wait for nothing else. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export type Lazy<P extends object> = ComponentType<P> & {
  /** Loads it before it is shown. */
  ahead(): Promise<unknown>;
};

export function lazyPage<P extends object>(what: string, load: () => Promise<ComponentType<P>>): Lazy<P> {
  let loaded: ComponentType<P> | undefined;
  const ready = async (): Promise<ComponentType<P>> => {
    loaded ??= await load();
    return loaded;
  };
  const LazyPage = (given: P) => {
    const [Page, setPage] = useState(() => loaded);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      ready().then(
        (page) => setPage(() => page),
        () => setFailed(true),
      );
    }, []);
    if (failed) return <p role="alert">{what} could not be loaded. Reload the page to try again.</p>;
    return Page === undefined ? <p class="note loading-part">Loading…</p> : <Page {...given} />;
  };
  return Object.assign(LazyPage, { ahead: ready });
}
