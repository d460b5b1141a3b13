/** A block was found while the page is open: a few words for some seconds, with sparks for people who do not mind motion. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLive } from '../data/hooks.ts';
import { isPaused } from '../data/pause.ts';
import { blockNews, type News, NewsGate } from './news.ts';

const SHOWN_MILLIS = 6_000;
/** On a busy pool blocks are no news: the words would be read aloud again and again. */
const AGAIN_MILLIS = 10 * 60_000;
const SPARKS = 12;

export function Celebration() {
  const gate = useRef(new NewsGate(AGAIN_MILLIS));
  const [news, setNews] = useState<News>();
  const [isShown, setShown] = useState(false);
  useLive((frame) => {
    const found = blockNews(frame, Date.now());
    if (found === undefined || document.hidden || isPaused() || !gate.current.passes(found, Date.now())) return;
    setNews(found);
    setShown(true);
  });
  useEffect(() => {
    if (!isShown) return;
    const timer = setTimeout(() => setShown(false), SHOWN_MILLIS);
    return () => clearTimeout(timer);
  }, [isShown, news]);
  // The text stays for screen readers, and is not visible otherwise.
  return (
    <div class={isShown ? 'celebration' : 'hidden-text'} role="status" data-block={news?.tag}>
      {news === undefined ? null : (
        <>
          <strong>{news.title}</strong> {news.body}
        </>
      )}
      {isShown ? (
        <span class="sparks" aria-hidden="true">
          {Array.from({ length: SPARKS }, (_, i) => (
            <i key={i} style={{ '--turn': `${i / SPARKS}turn` }} />
          ))}
        </span>
      ) : null}
    </div>
  );
}
