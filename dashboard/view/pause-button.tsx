/** At the foot of a page: stops the figures that change by themselves. */

import { usePaused } from '../data/pause.ts';
import { word } from '../words/language.ts';

export function PauseButton() {
  const [paused, setPaused] = usePaused();
  return (
    <>
      <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
        {word('frame.pause')}
      </button>
      {paused ? <strong class="warn"> {word('frame.figures_paused')}</strong> : null}
    </>
  );
}
