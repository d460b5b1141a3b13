/**
 * Shows the progress of a dataset: a bar in a terminal, or occasional lines if the output goes to a file. Very short
 * builds are not shown.
 */
import type { Progress } from '../../kernels/backend.ts';
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import { showDuration } from './duration.ts';

const STAGES: Readonly<Record<Progress['stage'], string>> = {
  cache: 'building cache',
  dataset: 'building dataset',
  load: 'loading dataset',
  verify: 'checking dataset',
  store: 'saving dataset',
};
const BAR = 24;
const QUIET_MILLIS = 1_000;
const FILE_EVERY_MILLIS = 10_000;

export function showProgress(device: string, { epoch, stage, done, total, secondsLeft }: Progress): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const full = Math.round(part * BAR);
  const left = secondsLeft === undefined || part === 1 ? '' : `, ${showDuration(Math.ceil(secondsLeft))} left`;
  const bar = `${'#'.repeat(full)}${'.'.repeat(BAR - full)}`;
  return `device ${device}: ${STAGES[stage]} of epoch ${epoch} [${bar}] ${Math.floor(part * 100)} %${left}`;
}

export class ProgressLine {
  readonly #out: (text: string) => void;
  readonly #isTerminal: boolean;
  readonly #now: MonotonicClock;
  readonly #began = new Map<string, number>();
  #shownAt = 0;
  #isOpen = false;

  constructor(
    options: { readonly isTerminal: boolean },
    dependencies: { out(text: string): void; readonly now: MonotonicClock },
  ) {
    this.#isTerminal = options.isTerminal;
    this.#out = dependencies.out;
    this.#now = dependencies.now;
  }

  show(device: string, progress: Progress): void {
    const now = this.#now();
    const key = `${device}/${progress.epoch}/${progress.stage}`;
    const began = this.#began.get(key) ?? now;
    const isDone = progress.done >= progress.total;
    if (isDone) this.#began.delete(key);
    else this.#began.set(key, began);
    if (now - began < QUIET_MILLIS) return;
    const text = showProgress(device, progress);
    if (this.#isTerminal) {
      if (now - this.#shownAt < 100 && !isDone) return;
      this.#out(`\r\u001b[K${text}${isDone ? '\n' : ''}`);
      this.#isOpen = !isDone;
    } else if (isDone || now - this.#shownAt >= FILE_EVERY_MILLIS) this.#out(`${text}\n`);
    else return;
    this.#shownAt = now;
  }

  /** Whether a bar is being drawn. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Called before other output: ends the line of the bar. */
  break(): void {
    if (this.#isOpen) this.#out('\n');
    this.#isOpen = false;
  }
}
