/** How views get their data: read once, again on an interval and when live news says so; the last good answer stays. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LiveFrame } from '../../pool/api/documents.ts';
import { type PoolError, read, readTogether } from './client.ts';
import { FIRST_WAIT, LiveFeed, type LiveState, nextWait } from './live.ts';
import { keepFresh } from './pause.ts';

let feed: LiveFeed | undefined;
export const liveFeed = (): LiveFeed => {
  feed ??= new LiveFeed();
  return feed;
};

export type Loaded<T> = { readonly data: T | undefined; readonly error: PoolError | undefined; reload(): void };

/** Temporary failures: no answer, too many requests, or the pool is not ready. */
const mayPass = ({ status }: PoolError): boolean => status === 0 || status === 429 || status >= 500;

/** Pages that open later than this read the pool's figures anew. */
const FRESH_MILLIS = 10_000;
const PATH = 'pool';

let known: unknown;

/**
 * The pool's figures that came with the page (pool/api/public/first-page.ts): they are on the screen with the first
 * paint. Undefined where the page came without them, and later on.
 */
function firstDocument<T>(path: string | undefined): T | undefined {
  if (path !== PATH || performance.now() > FRESH_MILLIS) return undefined;
  known ??= parsed(document.getElementById('first-document')?.textContent);
  return known as T | undefined;
}

function parsed(text: string | null | undefined): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** `path` undefined reads nothing. A temporary failure is retried soon, whatever the interval. */
export function useDocument<T>(path: string | undefined, everyMillis = 30_000): Loaded<T> {
  const [data, setData] = useState(() => firstDocument<T>(path));
  const [error, setError] = useState<PoolError>();
  const [turn, setTurn] = useState(0);
  const shown = useRef(path);
  // Before the first paint: an ordinary effect would ask for the figures only after the empty page was drawn.
  useLayoutEffect(() => {
    if (path === undefined) return;
    if (shown.current !== path) setData(undefined);
    shown.current = path;
    let over = false;
    let again: ReturnType<typeof setTimeout> | undefined;
    let wait = FIRST_WAIT;
    const load = (): Promise<void> =>
      // A reload shows what a change has done, so it shares no earlier request.
      (turn === 0 ? readTogether<T>(path) : read<T>(path)).then(
        (answer) => {
          if (over) return;
          clearTimeout(again);
          wait = FIRST_WAIT;
          setData(answer);
          setError(undefined);
        },
        (problem: PoolError) => {
          if (over) return;
          clearTimeout(again);
          if (mayPass(problem)) again = setTimeout(load, wait);
          wait = nextWait(wait, Math.random());
          setError(problem);
        },
      );
    // What came with the page is shown first, and read again when that is done.
    if (firstDocument(path) === undefined || turn > 0) void load();
    else again = setTimeout(load, FIRST_WAIT);
    const end = keepFresh(() => void load(), everyMillis);
    // When the pool is back, what is shown may be old: read it again at once.
    let away = false;
    const unwatch = liveFeed().watch((state) => {
      if (state === 'live' && away) void load();
      away = state === 'away';
    });
    return () => {
      over = true;
      clearTimeout(again);
      end();
      unwatch();
    };
  }, [path, everyMillis, turn]);
  return { data, error, reload: () => setTurn((now) => now + 1) };
}

export function useLive(listener: (frame: LiveFrame) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => liveFeed().listen((frame) => latest.current(frame)), []);
}

export function useLiveState(): LiveState {
  const [state, setState] = useState<LiveState>(liveFeed().state);
  useEffect(() => {
    setState(liveFeed().state); // it may have changed since the page was drawn
    return liveFeed().watch(setState);
  }, []);
  return state;
}

/** The present, once a second, for texts such as '5 s ago'. */
export function useNow(everyMillis = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => keepFresh(() => setNow(Date.now()), everyMillis), [everyMillis]);
  return now;
}
