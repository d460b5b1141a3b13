/** How figures are written on the page. Amounts stay integers until they are text. */

import type { PoolDocument } from '../pool/api/documents.ts';
import type { Pace } from './earnings.ts';
import { shownLocale, shownSigns, word } from './words/language.ts';

/** A plain number with the signs of the page's language. */
function local(plain: string): string {
  const { group, point } = shownSigns();
  const [whole = '', part] = plain.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, group);
  return part === undefined ? grouped : `${grouped}${point}${part}`;
}

/** With so many decimals, and with so many digits, in the language of the page. */
export const fixed = (value: number, decimals: number): string => local(value.toFixed(decimals));
/** Of a value with more whole digits all of them: people read no exponents. */
export const precise = (value: number, digits: number): string =>
  value < 10 ** digits - 0.5 ? local(value.toPrecision(digits)) : fixed(value, 0);

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

function short(amount: number, unit: string): string {
  let value = Math.max(0, amount);
  let size = 0;
  while (value >= 999.5 && size < PREFIXES.length - 1) {
    value /= 1000;
    size++;
  }
  return `${size === 0 ? Math.round(value) : precise(value, 3)} ${PREFIXES[size]}${unit}`.trimEnd();
}

export const MODES = { pplns: 'PPLNS', solo: 'Solo' } as const;

export const hashRate = (perSecond: number): string => short(perSecond, 'H/s');

/** Work, in hashes: `12.3 M`. */
export const hashes = (work: string | number): string => short(Number(work), '');

const ATOMS = 100_000_000n;
const DECIMALS = 8;

/** Atoms as coins, without trailing zeros beyond the second decimal. */
export function coins(atoms: string | bigint): string {
  const value = BigInt(atoms);
  const sign = value < 0n ? '-' : '';
  const size = value < 0n ? -value : value;
  const rest = (size % ATOMS)
    .toString()
    .padStart(DECIMALS, '0')
    .replace(/0{1,6}$/, '');
  return `${sign}${count(size / ATOMS)}${shownSigns().point}${rest}`;
}

const SHOWN_DECIMALS = 4;

/** The text of `coins` in two parts, of which a small screen shows the first, and the zeros up to the last atom. */
export function amountParts(atoms: string): { readonly head: string; readonly rest: string; readonly zeros: string } {
  const text = coins(atoms);
  const point = text.indexOf(shownSigns().point);
  const zeros = '0'.repeat(DECIMALS - (text.length - point - 1));
  // Of a very small amount nothing would be left.
  const end = /^-?0\D0{4}/.test(text) ? text.length : point + 1 + SHOWN_DECIMALS;
  return { head: text.slice(0, end), rest: text.slice(end), zeros };
}

/** Large amounts need no atoms: figures and estimates are read, not added up. */
export function roundedCoins(atoms: string | bigint): string {
  const value = BigInt(atoms);
  const whole = value / ATOMS;
  const digits = whole >= 1_000n ? 2n : whole >= 1n ? 4n : BigInt(DECIMALS);
  const unit = 10n ** (BigInt(DECIMALS) - digits);
  return coins((value / unit) * unit);
}

/** `1,234,567.89`, to a thousandth; in German `1.234.567,89`. */
export const count = (value: number | bigint): string =>
  local(String(typeof value === 'bigint' ? value : Math.round(value * 1000) / 1000));

/** Keyboards have others than the ones that are written: spaces and apostrophes. */
const GROUPS = [/\s/, /['’]/];
const AFTER_GROUPS = /^\d{3}$/;

/** What was typed as a number, with a point and without groups. In German 1.250 is more than a thousand, and 1.25 is no number: one that could be meant otherwise is not guessed. */
export function plainNumber(typed: string): string | undefined {
  const { group, point } = shownSigns();
  const [whole = '', part, ...more] = typed.trim().split(point);
  const [first = '', ...groups] = whole.split(GROUPS.find((signs) => signs.test(group)) ?? group);
  const isWhole = groups.length === 0 ? /^\d+$/.test(first) : /^\d{1,3}$/.test(first);
  if (!isWhole || !groups.every((each) => AFTER_GROUPS.test(each)) || more.length > 0) return undefined;
  if (part === undefined) return [first, ...groups].join('');
  return /^\d+$/.test(part) ? `${[first, ...groups].join('')}.${part}` : undefined;
}

/** `1 worker`, `2 workers`, in the language of the page. */
export const counted = (value: number, one: 'worker' | 'miner'): string =>
  word(value === 1 ? `count.${one}` : `count.${one}s`, { count: count(value) });

export const percent = (part: number, digits = 0): string =>
  Number.isFinite(part) ? `${fixed(part * 100, digits)} %` : '–';

/** The same for parts that are mostly small: `0.34 %`, never `0 %` where there is something. */
export const smallPercent = (part: number): string =>
  part > 0 && part < 0.0001
    ? word('number.below', { number: `${fixed(0.01, 2)} %` })
    : percent(part, part < 0.1 ? 2 : 0);

export function ago(millis: number | null, now: number): string {
  if (millis === null) return word('time.never');
  const seconds = Math.max(0, Math.round((now - millis) / 1000));
  if (seconds < 60) return word('time.seconds_ago', { count: seconds });
  if (seconds < 3600) return word('time.minutes_ago', { count: Math.floor(seconds / 60) });
  if (seconds < 86_400) return word('time.hours_ago', { count: Math.floor(seconds / 3600) });
  return word('time.days_ago', { count: Math.floor(seconds / 86_400) });
}

/** Made once for a locale, when the first is needed: a Date that is asked for its text makes one for each answer. */
export function timeFormat(options: Intl.DateTimeFormatOptions): (millis: number) => string {
  const made = new Map<string | undefined, Intl.DateTimeFormat>();
  return (millis) => {
    const locale = shownLocale();
    const format = made.get(locale) ?? new Intl.DateTimeFormat(locale, options);
    made.set(locale, format);
    return format.format(millis);
  };
}

/** The locale's, but with 24 hours everywhere: a table and the chart beside it write a time alike, and a phone has no room for more. */
const HOURS = { hourCycle: 'h23' } as const;
export const time = timeFormat({ dateStyle: 'short', timeStyle: 'medium', ...HOURS });
/** On hover, in full. */
export const fullTime = timeFormat({ dateStyle: 'full', timeStyle: 'long', ...HOURS });

/** For lists: without seconds, in two parts. */
export const date = timeFormat({ dateStyle: 'short' });
export const clock = timeFormat({ timeStyle: 'short', ...HOURS });
export const clockSeconds = timeFormat({ timeStyle: 'medium', ...HOURS });

/** Of an address, for the name of a file. */
export const shortName = (address: string): string => address.replace(/[^0-9a-z]/gi, '').slice(-8);

export const shortId = (id: string): string => (id.length <= 20 ? id : `${id.slice(0, 10)}…${id.slice(-6)}`);

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–';
  if (seconds < 0.1) return word('number.below', { number: `${fixed(0.1, 1)} s` });
  if (seconds < 10) return `${fixed(seconds, 1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${fixed(seconds / 3600, 1)} h`;
  return word('time.days', { count: fixed(seconds / 86_400, 1) });
}

/** `a block every 12 s`, in the language of the page. */
export const blockEvery = (seconds: number): string =>
  seconds < 0.1 ? word('time.many_blocks') : word('time.block_every', { time: duration(seconds) });

export const DAY_SECONDS = 86_400;
export const HOUR_SECONDS = 3_600;

/** `over a day`, or since when where there was no such day yet. */
export function overTime(words: string, seconds: number, sinceMillis: number | null, now: number): string {
  const age = sinceMillis === null ? Number.POSITIVE_INFINITY : (now - sinceMillis) / 1000;
  return age >= seconds ? words : word('time.since_start', { ago: ago(sinceMillis, now) });
}

type Announced = {
  readonly payouts: {
    readonly minimum: string;
    readonly minimum_changes?: readonly { readonly minimum: string; readonly from_millis: number }[] | undefined;
  };
  readonly now_millis: number;
};

/** The smallest payout, and those that are announced. */
export function minimumText({ payouts, now_millis: now }: Announced): string {
  const coming = (payouts.minimum_changes ?? []).map((one) =>
    word('terms.coins_in', {
      coins: coins(one.minimum),
      time: duration(Math.max(0, one.from_millis - now) / 1000),
    }),
  );
  return [word('terms.coins', { coins: coins(payouts.minimum) }), ...coming, word('terms.higher')].join('; ');
}

type Service = PoolDocument['services'][number];

/** What holds, and what is announced, with the time until each holds where the pace of the chain is known. */
function withChanges(
  now: string,
  changes: readonly { readonly text: string; readonly from_height: number }[],
  { network_figures: { height } }: PoolDocument,
  pace: Pace | undefined,
): string {
  const coming = changes.map(({ text: what, from_height: cut }) => {
    if (pace === undefined) return word('terms.from_cut', { what, height: count(cut) });
    const time = duration((Math.max(0, cut - height) * pace.cutMillis) / 1000);
    return word('terms.from_cut_in', { what, height: count(cut), time });
  });
  return [now, ...coming].join('; ');
}

export function feeText({ fee_ppm, fee_changes }: Service, pool: PoolDocument, pace: Pace | undefined): string {
  const text = (ppm: number) => percent(ppm / 1e6, 2);
  const changes = fee_changes.map((one) => ({ ...one, text: text(one.fee_ppm) }));
  return withChanges(text(fee_ppm), changes, pool, pace);
}

/** Undefined for a pool that does not say it. */
export function windowText(
  { window_thousandths, window_changes = [] }: Service,
  pool: PoolDocument,
  pace: Pace | undefined,
): string | undefined {
  if (window_thousandths === undefined) return undefined;
  const text = (thousandths: number) => word('terms.window_of', { count: count(thousandths / 1_000) });
  const changes = window_changes.map((one) => ({ ...one, text: text(one.window_thousandths) }));
  return withChanges(text(window_thousandths), changes, pool, pace);
}
