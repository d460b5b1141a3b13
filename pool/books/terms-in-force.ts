/**
 * The terms of the options (books rule 3), by the slice from which they hold. Those of a start hold from the slice after
 * the one that the chain is in then, a higher fee or another window a day later (edits/fee-schedule.ts). Books that are behind the chain
 * open the slices before with the terms that were in force, so that no fee counts for work that was done before it was
 * announced.
 */
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { feeInForce, isOptionFees, type OptionFees, sliceAfterNotice, withOptionFee } from '../edits/fee-schedule.ts';
import { writeTerms } from '../edits/terms-rows.ts';
import { PoolError } from '../pool-error.ts';

export const TERMS_SETTING = 'terms_in_force';
const WINDOW_FEE_SETTING = 'window_fee_from';

type Windows = readonly { readonly from: number; readonly window: number }[];
type ServiceTerms = { readonly fees: OptionFees; readonly windows: Windows };

/** By service. */
type InForce = Readonly<Record<string, ServiceTerms>>;

/** The options of a start. */
export type TermsOptions = {
  readonly sliceCuts: number;
  /** W in expected blocks of the network, in thousandths: 4 blocks are 4000. */
  readonly windowThousandths: bigint;
  readonly services: readonly number[];
  /** By service. */
  readonly feePpm: ReadonlyMap<number, bigint>;
};

type NewestSlice = { readonly service: number; readonly number: number; readonly window: number; readonly fee: number };

const isCount = (value: unknown, least = 0): boolean => Number.isSafeInteger(value) && (value as number) >= least;
const isWindows = (value: unknown): value is Windows =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((each, i) => isCount(each?.window, 1) && isCount(each?.from, (value[i - 1]?.from ?? -1) + 1));

/** Undefined for a text that the pool did not write. */
export function parseInForce(text: string): InForce | undefined {
  let value: { services?: Readonly<Record<string, Partial<ServiceTerms>>> } | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const services = value?.services ?? ofEarlierRelease(value);
  if (typeof services !== 'object' || services === null) return undefined;
  const isWhole = Object.values(services).every((each) => isOptionFees(each?.fees) && isWindows(each?.windows));
  return isWhole ? (services as InForce) : undefined;
}

/** It had one fee and window for each service; slices before them are in the books or noted. */
function ofEarlierRelease(value: unknown): Readonly<Record<string, ServiceTerms>> | undefined {
  const { through, terms } = (value ?? {}) as { through?: unknown; terms?: Record<string, Record<string, number>> };
  if (!isCount(through, -1) || typeof terms !== 'object' || terms === null) return undefined;
  const schedules = Object.entries(terms).map(([service, each]) => [
    service,
    { fees: [{ from: 0, ppm: each?.fee }], windows: [{ from: 0, window: each?.window }] },
  ]);
  return Object.fromEntries(schedules);
}

async function readInForce(transaction: Sql | Transaction): Promise<InForce | undefined> {
  const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${TERMS_SETTING}`;
  if (row === undefined) return undefined;
  const terms = parseInForce(row.value);
  if (terms === undefined)
    throw new PoolError(
      'terms_unreadable',
      `the row ${TERMS_SETTING} of the table settings was changed and cannot be read: ${row.value.slice(0, 200)}; restore it from a backup, or delete it, and slices that are not open yet have the fee and window of the newest one`,
    );
  return terms;
}

/** The fees of the accountant's options; undefined before its first start. */
export const optionFees = async (sql: Sql | Transaction, service: number): Promise<OptionFees | undefined> =>
  (await readInForce(sql))?.[service]?.fees;

/** The windows of the accountant's options, those that are announced included. */
export const optionWindows = async (sql: Sql | Transaction, service: number): Promise<Windows> =>
  (await readInForce(sql))?.[service]?.windows ?? [];

/** The terms of the options for a slice; undefined before the first start. */
export async function optionTerms(
  transaction: Transaction,
  service: number,
  slice: number,
): Promise<{ readonly fee: number; readonly window: number } | undefined> {
  const own = (await readInForce(transaction))?.[service];
  if (own === undefined) return undefined;
  const { window } = own.windows.findLast(({ from }) => from <= slice) ?? (own.windows[0] as Windows[number]);
  return { fee: feeInForce([], own.fees, slice), window };
}

/** The first slice whose list has the lowest fee of its window; lists before it were made under an earlier release. */
export async function windowFeeStart(sql: Sql | Transaction): Promise<number | undefined> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${WINDOW_FEE_SETTING}`;
  return row === undefined ? undefined : Number(row.value);
}

/** A higher fee or another window of the options, and the slice that it holds from. */
export type AnnouncedTerms = {
  readonly service: number;
  readonly from: number;
  readonly ppm?: number;
  readonly window?: number;
};

/** `height` is that of the chain, not of the books. Returns what needs a notice. */
export async function beginTerms(
  transaction: Transaction,
  options: TermsOptions,
  height: number,
): Promise<readonly AnnouncedTerms[]> {
  const { services, sliceCuts, feePpm, windowThousandths } = options;
  const before = await readInForce(transaction);
  const newest = await transaction<NewestSlice[]>`select distinct on (service) service, number,
    window_thousandths as window, fee_ppm as fee from slices order by service, number desc`;
  // A node that is behind must not shorten the notice.
  const slice = Math.max(sliceOfHeight(height, sliceCuts), ...newest.map(({ number }) => number));
  const terms = services.map((service): [number, ServiceTerms] => {
    const [ppm, window] = [Number(feePpm.get(service) ?? 0n), Number(windowThousandths)];
    const opened = newest.find((each) => each.service === service);
    const known = before?.[service] ?? (opened === undefined ? undefined : termsOfSlice(opened));
    if (known === undefined) return [service, { fees: [{ from: slice, ppm }], windows: [{ from: slice, window }] }];
    const moment = { slice, opened: opened?.number ?? slice, sliceCuts };
    return [
      service,
      { fees: withOptionFee(known.fees, ppm, moment), windows: withWindow(known.windows, window, moment) },
    ];
  });
  await writeTerms(transaction, TERMS_SETTING, JSON.stringify({ services: Object.fromEntries(terms) }));
  if ((await windowFeeStart(transaction)) === undefined)
    await writeTerms(transaction, WINDOW_FEE_SETTING, String(newest.length === 0 ? 0 : slice + 1));
  return terms.flatMap(([service, { fees, windows }]) =>
    [...fees, ...windows].filter(({ from }) => from > slice + 1).map((each) => ({ service, ...each })),
  );
}

const termsOfSlice = ({ number, window, fee }: NewestSlice): ServiceTerms => ({
  fees: [{ from: number, ppm: fee }],
  windows: [{ from: number, window }],
});

/**
 * The windows after a start with another one. A shorter one pays old work less, and a longer one new work: so either holds a
 * day later. Those that the books need stay; at most one is announced, with its first slice if it is announced again.
 */
export function withWindow(
  windows: Windows,
  window: number,
  { slice, opened, sliceCuts }: { slice: number; opened: number; sliceCuts: number },
): Windows {
  const oldest = windows.findLast(({ from }) => from <= Math.min(opened, slice))?.from ?? 0;
  const kept = windows.filter(({ from }) => from >= oldest && from <= slice);
  if ((kept.at(-1) ?? windows[0])?.window === window) return kept.length > 0 ? kept : windows.slice(0, 1);
  const announced = windows.find((each) => each.from > slice && each.window === window);
  return [
    ...(kept.length > 0 ? kept : windows.slice(0, 1)),
    announced ?? { from: sliceAfterNotice(slice, sliceCuts), window },
  ];
}
