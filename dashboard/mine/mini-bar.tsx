/** At the bottom of every other page while this tab mines: what it does, and the switch. */

import { count, hashRate } from '../format.ts';
import { linkTo } from '../router.ts';
import { word } from '../words/language.ts';
import { useMining } from './mining-state.ts';

export function MiniBar() {
  const mining = useMining();
  if (mining === undefined) return null;
  return (
    <aside class="mini-bar" aria-label={word('bar.name')}>
      <span>
        {mining.resting ?? word('bar.mining', { rate: hashRate(mining.hashRate), count: count(mining.accepted) })}
      </span>
      <a href={linkTo('mine')}>{word('bar.open')}</a>
      <button
        type="button"
        onClick={() => {
          document.getElementById('main')?.focus({ preventScroll: true });
          void mining.stop();
        }}
      >
        {word('bar.stop')}
      </button>
    </aside>
  );
}
