/** Options as they are written on the command line, with values in words and units. */
import { coins, count, duration, percent } from '../format.ts';
import { type WordKey, word } from '../words/language.ts';

/** `payoutInterval` is `--payout-interval`. */
export const optionName = (name: string): string =>
  `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

const ofMillis = (value: unknown): string => duration(Number(value) / 1_000);
const ofMillionths = (value: unknown): string => percent(Number(value) / 1e6, 2);
const counting =
  (unit: WordKey, per = 1) =>
  (value: unknown): string =>
    word(unit, { count: count(Number(value) / per) });

const SIZES = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
  ['B', 1],
] as const;

/** In the largest unit that it is a whole number of. */
function ofBytes(value: unknown): string {
  const bytes = Number(value);
  const [unit, size] = SIZES.find(([, each]) => bytes % each === 0) ?? ['B', 1];
  return `${count(bytes / size)} ${unit}`;
}

const UNITS: Readonly<Record<string, (value: unknown) => string>> = {
  feePplns: ofMillionths,
  feeSolo: ofMillionths,
  payoutMin: (value) => word('part.coins', { coins: coins(String(value)) }),
  window: counting('operator.expected_blocks', 1_000),
  maxFeePerMass: counting('operator.atoms_per_mass'),
  shareDays: counting('time.days'),
  chartDays: counting('time.days'),
  sliceCuts: counting('operator.cuts'),
  journalKeepSize: ofBytes,
  logFileSize: ofBytes,
  payoutInterval: ofMillis,
  journalKeep: ofMillis,
  silentAfter: ofMillis,
  jobGrace: ofMillis,
  loginTime: ofMillis,
  idleTime: ofMillis,
  drainTime: ofMillis,
  banTime: ofMillis,
};

function plain(value: unknown): string {
  if (value === null || value === '') return '–';
  if (typeof value === 'boolean') return word(value ? 'operator.yes' : 'operator.no');
  if (typeof value === 'number') return count(value);
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.map(plain).join(', ');
  if (typeof value !== 'object') return String(value);
  const { host, port } = value as { readonly host?: string; readonly port?: number };
  if (host === undefined) return JSON.stringify(value);
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function optionValue(name: string, value: unknown): string {
  const unit = UNITS[name];
  return unit === undefined || value === null || !Number.isFinite(Number(value)) ? plain(value) : unit(value);
}
