/**
 * The rate sent to a server at login (S25, `rate=`): that of all devices, as measured or else as remembered from an
 * earlier run, so that the first shares of a fast card are not thousands and those of a slow one not minutes apart.
 */

import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Rates } from '../work/hash-rate.ts';
import type { ListedDevice } from './device-list.ts';
import { type RateFile, rateKey } from './rate-file.ts';

const SAVE_MILLIS = 60_000;

export type ExpectedRateSettings = {
  readonly file: Pick<RateFile, 'of' | 'remember'>;
  readonly devices: readonly ListedDevice[];
  readonly light: boolean;
  /** Fraction of the time that is worked. */
  readonly throttle: number;
};

export type ExpectedRateDependencies = {
  readonly now: MonotonicClock;
  readonly running: () => readonly { readonly number: number; rates(now: number): Rates }[];
  readonly onUnsaved: (error: unknown) => void;
};

export class ExpectedRate {
  readonly #settings: ExpectedRateSettings;
  readonly #dependencies: ExpectedRateDependencies;
  #savedAt: number;

  constructor(settings: ExpectedRateSettings, dependencies: ExpectedRateDependencies) {
    this.#settings = settings;
    this.#dependencies = dependencies;
    this.#savedAt = dependencies.now();
  }

  #measured(device: ListedDevice): number | undefined {
    const { now, running } = this.#dependencies;
    return running()
      .find(({ number }) => number === device.number)
      ?.rates(now()).medium;
  }

  /** Hashes per second; undefined when one of the devices is unknown. */
  rate(): number | undefined {
    const { file, devices, light, throttle } = this.#settings;
    let sum = 0;
    for (const device of devices) {
      const remembered = file.of(rateKey(device, light));
      const rate = this.#measured(device) ?? (remembered === undefined ? undefined : remembered * throttle);
      if (rate === undefined) return undefined;
      sum += rate;
    }
    return sum;
  }

  /** Called about once a second. A throttled device does not show what it can do. */
  tick(): void {
    const { file, devices, light, throttle } = this.#settings;
    const now = this.#dependencies.now();
    if (throttle < 1 || now - this.#savedAt < SAVE_MILLIS) return;
    this.#savedAt = now;
    for (const device of devices) {
      const rate = this.#measured(device);
      if (rate !== undefined) file.remember(rateKey(device, light), rate).catch(this.#dependencies.onUnsaved);
    }
  }
}
