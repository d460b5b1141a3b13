/**
 * The miner's terminal output: a banner at the start, a status line at the bottom that is redrawn every second, a
 * summary at the end. Other output goes above that line (BottomLine). Pure, with the writing passed in.
 */

import { toHex } from '../../protocol/bytes.ts';
import { type LogEntry, shownField } from '../../runtime/log/log.ts';
import { minerState, type Snapshot, shareText, totalRates, totalShares, workPerHash } from '../stats.ts';
import { showRate } from '../work/hash-rate.ts';
import { showDuration } from './duration.ts';
import { keysText } from './keys.ts';

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

/** The time of day here: who sits at a terminal knows the day. */
export const clockText = (atMillis: number): string => new Date(atMillis).toTimeString().slice(0, 8);

/** Begins a line in a terminal, so that its subject is seen at a glance. */
export type Tag = 'miner' | 'rate' | 'share' | 'block' | 'pool' | 'device' | 'books';
const TAG_WIDTH = 7;
const TAG_COLOURS: Readonly<Partial<Record<Tag, keyof typeof CODES>>> = {
  share: 'green',
  block: 'green',
  pool: 'cyan',
  rate: 'bold',
};

function tagOf(message: string, fields: LogEntry['fields']): Tag {
  if (/^block\b/.test(message)) return 'block';
  if (/^shares?\b/.test(message)) return 'share';
  if ('alarm' in fields || 'slice' in fields) return 'books';
  if ('pool' in fields || 'pools' in fields) return 'pool';
  return 'device' in fields || 'devices' in fields ? 'device' : 'miner';
}

export const taggedLine = (atMillis: number, tag: Tag, text: string, paint: Paint): string =>
  `${clockText(atMillis)} ${paint(TAG_COLOURS[tag] ?? 'bold', tag.padEnd(TAG_WIDTH))}${text}`;

const SHORTEST_ID = 24;
const ID = new RegExp(`^[0-9a-z]{${SHORTEST_ID},}$`);

/** Ids and addresses by their ends: the whole ones are in a log file, and in the API. */
function shortField(value: unknown): string {
  const text = value instanceof Uint8Array ? toHex(value) : value;
  return typeof text === 'string' && ID.test(text) ? `${text.slice(0, 8)}…${text.slice(-4)}` : shownField(text);
}

/** A line of the log for a person at a terminal. */
export const shortLine =
  (paint: Paint) =>
  ({ atMillis, level, message, fields }: LogEntry): string => {
    const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${shortField(value)}`);
    const text = `${message}${pairs.join('')}`;
    const marked = level === 'error' ? paint('red', text) : level === 'warn' ? paint('yellow', text) : text;
    return taggedLine(atMillis, tagOf(message, fields), marked, paint);
  };

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
    ['keys', keysText()],
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

/** What came of the work so far, for the key s. */
export function shareLines(snapshot: Snapshot): string[] {
  const { devices, acceptedWork, blocks, shareWork } = snapshot;
  const perHash = workPerHash(snapshot);
  return [
    ...(devices.length < 2 ? [] : devices.map(({ number, name, shares }) => `${number} ${name}: ${shareText(shares)}`)),
    `${shareText(totalShares(devices))}; ${blockText(blocks)} found`,
    `work ${showWork(acceptedWork)}, ${perHash === null ? '-' : perHash.toFixed(3)} of each hash; a share now: ${shareWork === undefined ? '-' : showWork(shareWork)}`,
  ];
}

/** Where the miner is connected, or when it tries again and why it is not, for the key c. */
export function connectionLines(snapshot: Snapshot): string[] {
  const { pool, pools, connections, nextTrySeconds, lastRefusal } = snapshot;
  const tried = `connections opened: ${connections}; pools: ${pools.join(', ')}`;
  if (pool === undefined) {
    const why =
      lastRefusal === undefined ? [] : [`last error: ${shownField(lastRefusal.message)} [${lastRefusal.code}]`];
    return [stateText(minerState(snapshot), nextTrySeconds), ...why, tried];
  }
  // The server chose these names.
  const names = [pool.poolName, pool.server].flatMap((name) => (name === undefined ? [] : [shownField(name)]));
  const latency = pool.latencyMillis === undefined ? '' : `, ${Math.round(pool.latencyMillis)} ms`;
  const connected = `connected to ${pool.endpoint} for ${showDuration(pool.connectedSeconds)}${latency}`;
  return [connected, `server: ${names.join(', ')}`, tried];
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
