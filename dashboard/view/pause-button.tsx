/** At the foot of a page: stops the figures that change by themselves. */
import { usePaused } from '../data/pause.ts';

export function PauseButton() {
  const [paused, setPaused] = usePaused();
  return (
    <>
      <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
        Pause live figures
      </button>
      {paused ? <strong class="warn"> Figures are paused</strong> : null}
    </>
  );
}
