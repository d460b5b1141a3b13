/**
 * Temperature and power of graphics cards, from nvidia-smi if it is installed. Optional: values that
 * cannot be read are not shown.
 */
import { execFile } from 'node:child_process';

export type Reading = {
  readonly name: string;
  readonly celsius: number | undefined;
  readonly watts: number | undefined;
};

const QUERY = ['--query-gpu=name,temperature.gpu,power.draw', '--format=csv,noheader,nounits'];

export function parseNvidiaSmi(output: string): Reading[] {
  return output
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [name = '', celsius, watts] = line.split(',').map((field) => field.trim());
      const number = (field: string | undefined) =>
        field !== undefined && /^\d+(\.\d+)?$/.test(field) ? Number(field) : undefined;
      return { name, celsius: number(celsius), watts: number(watts) };
    });
}

export function readSensors(program = 'nvidia-smi'): Promise<Reading[] | undefined> {
  return new Promise((resolve) => {
    execFile(program, QUERY, { timeout: 5_000 }, (error, output) =>
      resolve(error === null ? parseNvidiaSmi(output) : undefined),
    );
  });
}

/** Reads now and then; gives up for good where there is nothing to read. */
export class Sensors {
  #readings: readonly Reading[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;

  start(everyMillis = 10_000): void {
    const read = async (): Promise<void> => {
      const found = await readSensors();
      if (found === undefined) this.stop();
      else this.#readings = found;
    };
    this.#timer = setInterval(() => void read(), everyMillis);
    this.#timer.unref();
    void read();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#readings = [];
  }

  /**
   * Values of card `index` among those of its kind: WebGPU does not expose the slot of a card, but both lists have the
   * same order.
   */
  of(index: number): Reading | undefined {
    return this.#readings[index];
  }
}
