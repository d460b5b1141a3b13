/** At the bottom of every other page while this tab mines: what it does, and the switch. */
import { count, hashRate } from '../format.ts';
import { linkTo } from '../router.ts';
import { useMining } from './mining-state.ts';

export function MiniBar() {
  const mining = useMining();
  if (mining === undefined) return null;
  return (
    <aside class="mini-bar" aria-label="Miner of this tab">
      <span>
        {mining.resting ??
          `Mining in this tab: ${hashRate(mining.hashRate)}, ${count(mining.accepted)} shares accepted`}
      </span>
      <a href={linkTo('mine')}>Open the miner</a>
      <button
        type="button"
        onClick={() => {
          document.getElementById('main')?.focus({ preventScroll: true });
          void mining.stop();
        }}
      >
        Stop mining
      </button>
    </aside>
  );
}
