/**
 * Temperature and power of graphics cards, from nvidia-smi if it is installed, else from the kernel (sysfs), and the
 * temperature of the processor. Optional: values that cannot be read are not shown.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type Reading = {
  readonly name: string;
  readonly celsius: number | undefined;
  readonly watts: number | undefined;
};

export type Readings = { readonly cards: readonly Reading[]; readonly processor: Reading | undefined };

const QUERY = ['--query-gpu=name,temperature.gpu,power.draw', '--format=csv,noheader,nounits'];
/** Of drivers that read the processor itself. */
const PROCESSORS = new Set(['coretemp', 'k10temp', 'zenpower', 'cpu_thermal']);
const MOST_ENTRIES = 64;

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

const nvidiaCards = (program: string): Promise<Reading[]> =>
  new Promise((resolve) => {
    execFile(program, QUERY, { timeout: 5_000 }, (error, output) =>
      resolve(error === null ? parseNvidiaSmi(output) : []),
    );
  });

const entriesOf = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => []))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .slice(0, MOST_ENTRIES);
const textOf = async (path: string): Promise<string> => (await readFile(path, 'utf8').catch(() => '')).trim();
/** In millionths or thousandths, as the kernel writes it. */
const partsOf = async (path: string, parts: number): Promise<number | undefined> => {
  const text = await textOf(path);
  return /^\d{1,12}$/.test(text) ? Number(text) / parts : undefined;
};

/** A folder of the kernel's hardware monitor. */
async function monitorAt(folder: string): Promise<Reading> {
  const [name, celsius, mean, now] = await Promise.all([
    textOf(join(folder, 'name')),
    partsOf(join(folder, 'temp1_input'), 1_000),
    partsOf(join(folder, 'power1_average'), 1_000_000),
    partsOf(join(folder, 'power1_input'), 1_000_000),
  ]);
  return { name, celsius, watts: mean ?? now };
}

/** As the kernel shows them below `root`. */
export async function kernelReadings(root: string): Promise<Readings> {
  const cards: Reading[] = [];
  for (const card of (await entriesOf(join(root, 'class/drm'))).filter((entry) => /^card\d+$/.test(entry))) {
    const folder = join(root, 'class/drm', card, 'device/hwmon');
    const [monitor] = await entriesOf(folder);
    if (monitor !== undefined) cards.push(await monitorAt(join(folder, monitor)));
  }
  const monitors = await entriesOf(join(root, 'class/hwmon'));
  const all = await Promise.all(monitors.map((entry) => monitorAt(join(root, 'class/hwmon', entry))));
  return { cards, processor: all.find(({ name }) => PROCESSORS.has(name)) };
}

/** Undefined where there is nothing to read. */
export async function readSensors(program = 'nvidia-smi', root = '/sys'): Promise<Readings | undefined> {
  const [nvidia, kernel] = await Promise.all([nvidiaCards(program), kernelReadings(root)]);
  const cards = nvidia.length > 0 ? nvidia : kernel.cards;
  return cards.length === 0 && kernel.processor === undefined ? undefined : { ...kernel, cards };
}

const NONE: Readings = { cards: [], processor: undefined };

/** Reads now and then; gives up for good where there is nothing to read. */
export class Sensors {
  #readings = NONE;
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
    this.#readings = NONE;
  }

  /**
   * Values of card `which` among those of its kind: WebGPU does not expose the slot of a card, but both lists have the
   * same order.
   */
  of(which: number | 'processor'): Reading | undefined {
    return which === 'processor' ? this.#readings.processor : this.#readings.cards[which];
  }
}
