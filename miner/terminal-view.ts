/**
 * The miner's terminal output: a banner at the start, a status line at the bottom that is redrawn every second, a
 * summary at the end. Other output goes above that line (BottomLine). Pure, with the writing passed in.
 */
import { showDuration } from './duration.ts';
import { minerState, type Snapshot, shareText, totalRates, totalShares } from './stats.ts';
import { showRate } from './work/hash-rate.ts';

const ERASE = '\r\u001b[K';
const RESET = '\u001b[0m';
const CODES = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

/** Marks text, where the terminal has colours. */
export type Paint = (colour: keyof typeof CODES, text: string) => string;

const PLAIN: Paint = (_, text) => text;
const COLOURED: Paint = (colour, text) => `\u001b[${CODES[colour]}m${text}${RESET}`;

/** No colours if NO_COLOR is set to a non-empty value, or on terminals called `dumb`. */
export const paintFor = (isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): Paint =>
  isTerminal && !env.NO_COLOR && env.TERM !== 'dumb' ? COLOURED : PLAIN;

export type BannerFacts = {
  readonly version: string;
  readonly pools: readonly string[];
  readonly user: string;
  readonly network: string;
  readonly devices: readonly string[];
};

export function bannerLines({ version, pools, user, network, devices }: BannerFacts, paint: Paint): string[] {
  const rows: [string, string][] = [
    ...pools.map((pool, i): [string, string] => [i === 0 ? 'pool' : 'or', pool]),
    ['user', user],
    ['network', network],
    ...devices.map((device): [string, string] => ['device', device]),
    ['keys', 'h hash rate, p pause, r resume, q quit'],
  ];
  return [
    paint('bold', `svc-miner ${version}`),
    ...rows.map(([name, text]) => `  ${paint('cyan', name.padEnd(8))}${text}`),
  ];
}

/** Three figures and a unit: `12.1M`. */
export function showWork(work: bigint): string {
  const units = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
  let unit = 0;
  let value = Number(work);
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${unit === 0 ? value : value.toPrecision(3)}${units[unit]}`;
}

const blockText = (blocks: number): string => `${blocks} ${blocks === 1 ? 'block' : 'blocks'}`;

const stateText = (state: ReturnType<typeof minerState>, nextTrySeconds: number | undefined): string =>
  nextTrySeconds === undefined || state === 'paused' || state === 'stopped'
    ? state
    : `disconnected, next try in ${Math.ceil(nextTrySeconds)} s`;

/** Parts that are left out, from the last on, where the terminal is too narrow for all of them. */
export function liveLine(snapshot: Snapshot, columns: number, paint: Paint): string {
  const { devices, pool, shareWork, blocks, nextTrySeconds } = snapshot;
  const shares = totalShares(devices);
  const state = minerState(snapshot);
  const rate = showRate(totalRates(devices).short);
  const parts: [keyof typeof CODES | undefined, string][] = [
    ...(state === 'mining' ? [['bold', rate] as [keyof typeof CODES, string]] : []),
    ...(state === 'mining' && nextTrySeconds === undefined
      ? []
      : [['yellow', stateText(state, nextTrySeconds)] as [keyof typeof CODES, string]]),
    [shares.rejected + shares.bad > 0 ? 'red' : 'green', shareText(shares)],
    ...(blocks === 0 ? [] : [[undefined, blockText(blocks)] as [undefined, string]]),
    ...(shareWork === undefined ? [] : [[undefined, `share ${showWork(shareWork)}`] as [undefined, string]]),
    ...(pool?.latencyMillis === undefined
      ? []
      : [[undefined, `${Math.round(pool.latencyMillis)} ms`] as [undefined, string]]),
    [undefined, `max ${showRate(snapshot.fastest)}`],
    [undefined, showDuration(snapshot.uptimeSeconds)],
  ];
  let used = 0;
  const shown: string[] = [];
  for (const [colour, text] of parts) {
    const wanted = text.length + (shown.length === 0 ? 0 : SEPARATOR.length);
    // The last column is left free: some terminals begin a new line there.
    if (used + wanted >= columns) break;
    used += wanted;
    shown.push(colour === undefined ? text : paint(colour, text));
  }
  return shown.join(SEPARATOR);
}

const SEPARATOR = '  ';

export function summaryLines(snapshot: Snapshot): string[] {
  const { devices, acceptedWork, blocks, books, uptimeSeconds, fastest } = snapshot;
  const hashes = devices.reduce((sum, device) => sum + device.hashes, 0);
  const mean = uptimeSeconds > 0 ? hashes / uptimeSeconds : undefined;
  const found = blocks === 0 ? '' : `; ${blockText(blocks)} found`;
  const lines = [
    `mined for ${showDuration(uptimeSeconds)}: ${showRate(mean)} on average, ${showRate(fastest)} at most`,
    `shares: ${shareText(totalShares(devices))}; work ${showWork(acceptedWork)}${found}`,
  ];
  if (books === undefined || books.compared === 0) return lines;
  const alarms = books.alarms === 0 ? 'no difference' : `${books.alarms} differences: see the log`;
  const unwritten = books.unwritten === 0 ? '' : `; ${books.unwritten} FILES OF EVIDENCE COULD NOT BE WRITTEN`;
  return [...lines, `books of the pool: ${books.compared} slices compared, ${alarms}${unwritten}`];
}

/** The last line of a terminal, under whatever else is written. */
export class BottomLine {
  readonly #out: (text: string) => void;
  #text = '';

  constructor(out: (text: string) => void) {
    this.#out = out;
  }

  show(text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    this.#out(`${ERASE}${text}`);
  }

  clear(): void {
    if (this.#text !== '') this.#out(ERASE);
    this.#text = '';
  }

  /** Lines that stay, written by `write`. */
  above(write: () => void): void {
    const text = this.#text;
    this.clear();
    write();
    if (text !== '') this.show(text);
  }
}
