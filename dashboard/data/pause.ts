/** Figures that stand still, for readers who need the time. What a person asks for is read and shown all the same, and notifications go on. */
import { useEffect, useState } from 'preact/hooks';

let paused = false;
const watchers = new Set<() => void>();

export const isPaused = (): boolean => paused;

function watchPause(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function usePaused(): [boolean, (wanted: boolean) => void] {
  const [shown, setShown] = useState(paused);
  useEffect(() => watchPause(() => setShown(paused)), []);
  const set = (wanted: boolean) => {
    paused = wanted;
    for (const watcher of watchers) watcher();
  };
  return [shown, set];
}

/** Keeps what is shown fresh: on an interval, but not while the figures are paused or the page is hidden, and at once when they go on. Returns how to end it. */
export function keepFresh(update: () => void, everyMillis: number): () => void {
  const timer = setInterval(() => {
    if (!document.hidden && !paused) update();
  }, everyMillis);
  const unwatch = watchPause(() => {
    if (!paused) update();
  });
  return () => {
    clearInterval(timer);
    unwatch();
  };
}
