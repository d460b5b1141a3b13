/**
 * The operator's changes of a running pool, kept in the books: they replace the options until they are undone, in all
 * instances and after every start. Each change is one transaction with its entry in the operator's log, which includes
 * the previous value.
 */
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { optionFees, optionWindows } from '../books/terms-in-force.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { readPayoutMin } from '../options.ts';
import { endMillis, type LedgerDate, noteEarlier } from '../payout/earlier-minimums.ts';
import { PoolError } from '../pool-error.ts';
import {
  EDITABLE,
  type Editable,
  FEE_SERVICES,
  type FileTerms,
  feeText,
  fileValues,
  insistPayoutMin,
  isFee,
  readValue,
} from './editable.ts';
import { feeRow, readSchedule } from './edited-fee.ts';
import {
  announced,
  type FeeSchedule,
  feeAt,
  feeChanges,
  feeInForce,
  type OptionFees,
  parseSchedule,
  withFee,
} from './fee-schedule.ts';
import {
  type MinimumChange,
  minimumAt,
  minimumChanges,
  readMinimums,
  withMinimum,
  writeMinimums,
} from './minimum-schedule.ts';
import type { PublishedTerms } from './published-terms.ts';
import { lockTerms, type TermsRow, writeTerms } from './terms-rows.ts';

/** Row names in the table settings. The notice's name is older than the others. */
const rowOf = (name: Editable): TermsRow => (name === 'notice' ? name : (`edit_${name}` as const));

/** False for a row of an edit that cannot be read. */
export function isEdit(row: string, value: string): boolean {
  const name = EDITABLE.find((one) => rowOf(one) === row);
  if (name === undefined) return true;
  if (isFee(name)) return parseSchedule(value) !== undefined;
  try {
    readValue(name, value);
    return true;
  } catch {
    return false;
  }
}

/** Null while the option counts. */
async function readEdit(sql: Sql | Transaction, name: Exclude<Editable, `fee_${string}`>): Promise<string | null> {
  const row = rowOf(name);
  const [found] = await sql<{ value: string }[]>`select value from settings where name = ${row}`;
  if (found === undefined || name === 'notice') return found?.value ?? null;
  try {
    return readValue(name, found.value);
  } catch (error) {
    throw new PoolError(
      'terms_unreadable',
      `the row ${row} of the table settings was changed and cannot be read (${(error as Error).message}): restore it from a backup, or delete it, and the option counts`,
    );
  }
}

/** In atoms: the operator's wish, of which a higher one counts later. */
async function editedPayoutMin(sql: Sql | Transaction): Promise<bigint | undefined> {
  const value = await readEdit(sql, 'payout_min');
  return value === null ? undefined : readPayoutMin(value);
}

/** In atoms: the minimum of the options at the last start of any instance. */
const STARTED_MINIMUM = 'payout_min_started';

/** At a start, before anybody is told its minimum: another one of the options than before is a change like an edit. */
export async function startedWithMinimum(
  sql: Sql,
  minimum: bigint,
  nowMillis: number,
  ledger?: LedgerDate,
): Promise<void> {
  await sql.begin(async (transaction) => {
    await lockTerms(transaction);
    const edited = await editedPayoutMin(transaction);
    const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${STARTED_MINIMUM}`;
    await announceMinimum(
      transaction,
      { before: edited ?? BigInt(row?.value ?? minimum), atoms: edited ?? minimum },
      nowMillis,
      ledger,
    );
    await writeTerms(transaction, STARTED_MINIMUM, String(minimum));
  });
}

/** Payouts read it in the transaction that reserves one: what is reserved stays as it is. */
export const minimumInForce = async (sql: Sql | Transaction, nowMillis: number): Promise<bigint | undefined> =>
  minimumAt(await readMinimums(sql), nowMillis);

/** `before`: what counted if nothing was announced yet. A pool whose minimum falls has time to pay who is above it now. */
async function announceMinimum(
  transaction: Transaction,
  { before, atoms }: { readonly before: bigint; readonly atoms: bigint },
  clockMillis: number,
  ledger?: LedgerDate,
): Promise<void> {
  // A clock that is behind announces nothing in the past: when it is right again, the day of notice would be over.
  const nowMillis = endMillis(clockMillis, ledger);
  const known = await readMinimums(transaction);
  const minimums = known.length > 0 ? known : withMinimum([], before, nowMillis);
  const next = withMinimum(minimums, atoms, nowMillis);
  const was = minimumAt(minimums, nowMillis) ?? before;
  if (was > (minimumAt(next, nowMillis) ?? atoms))
    await noteEarlier(transaction, null, { atoms: was, untilMillis: nowMillis });
  await writeMinimums(transaction, next);
}

export const editedPoolName = async (sql: Sql | Transaction): Promise<string | undefined> =>
  (await readEdit(sql, 'pool_name')) ?? undefined;

/** Who made a change: the host, and the start of a hash of the token, which says whether it was the one before a replacement. */
export type Editor = { readonly host: string; readonly token: string };

/** The current terms, and the announced changes. */
export type TermsNow = FileTerms & {
  /** All announced changes, in order. */
  readonly feeChanges: { readonly pplns: readonly FeeChange[]; readonly solo: readonly FeeChange[] };
  /** In force, in thousandths of expected blocks; undefined before the accountant's first start. */
  readonly windows: { readonly pplns: number | undefined; readonly solo: number | undefined };
  readonly windowChanges: { readonly pplns: readonly WindowChange[]; readonly solo: readonly WindowChange[] };
  readonly minimumChanges: readonly MinimumChange[];
  readonly notice: string | null;
  readonly pauseNote: string | null;
};
export type WindowChange = { readonly thousandths: number; readonly fromSlice: number; readonly fromHeight: number };
export type FeeChange = { readonly ppm: number; readonly fromSlice: number; readonly fromHeight: number };

export type Setting = {
  readonly name: Editable;
  readonly value: string | null;
  readonly fileValue: string | null;
  readonly isEdited: boolean;
  readonly changes: readonly { readonly value: string; readonly fromSlice: number; readonly fromHeight: number }[];
};

export type EditOutcome = { readonly kind: 'made' | 'same' | 'too_many' | 'no_height' };

/** The pool's last reading of the chain. */
export type ChainLook = LedgerDate & { readonly height: number; readonly synced: boolean; readonly atMillis: number };
/** An older reading is too inaccurate about the chain's current slice, from which the notice of a rise is counted. */
export const MAX_LOOK_AGE = 60_000;

type Fees = {
  readonly schedule: FeeSchedule;
  /** The accountant's options, used for slices without an edit: this instance may have been started with another. */
  readonly options: OptionFees;
  readonly slice: number;
  readonly opened: number;
};

const feeNow = ({ schedule, options, slice }: Fees): number => feeInForce(schedule, options, slice);
const changesOf = ({ schedule, options, slice }: Fees): OptionFees => feeChanges(schedule, options, slice);

export class Edits {
  readonly #file: FileTerms & { readonly sliceCuts: number };
  readonly #sql: Sql;
  readonly #chain: () => ChainLook | undefined;
  readonly #time: () => number;
  readonly #published: PublishedTerms | undefined;
  #now: TermsNow;

  constructor(
    file: FileTerms & { readonly sliceCuts: number },
    dependencies: {
      readonly sql: Sql;
      readonly chain: () => ChainLook | undefined;
      readonly now: SteadyClock;
      readonly published?: PublishedTerms | undefined;
    },
  ) {
    this.#file = file;
    this.#sql = dependencies.sql;
    this.#chain = dependencies.chain;
    this.#time = dependencies.now;
    this.#published = dependencies.published;
    this.#now = {
      ...file,
      feeChanges: { pplns: [], solo: [] },
      windows: { pplns: undefined, solo: undefined },
      windowChanges: { pplns: [], solo: [] },
      minimumChanges: [],
      notice: null,
      pauseNote: null,
    };
  }

  /** As last read. */
  get now(): TermsNow {
    return this.#now;
  }

  /** From one moment of the database, and only what is on the disk too. */
  async refresh(): Promise<void> {
    const read = () =>
      this.#sql.begin('isolation level repeatable read', async (transaction) =>
        (await this.#published?.settle(transaction)) === 'put back' ? undefined : this.#read(transaction),
      ) as Promise<TermsNow | undefined>;
    // What was put back is noted and read by the second.
    this.#now = (await read()) ?? (await read()) ?? this.#now;
  }

  async #read(sql: Transaction): Promise<TermsNow> {
    const fees = [await this.#shownFees(sql, 0), await this.#shownFees(sql, 1)] as const;
    const { name, payoutMin } = this.#file;
    const minimums = await readMinimums(sql);
    const fee = (service: 0 | 1) => feeNow(fees[service]);
    const changes = (service: 0 | 1): FeeChange[] =>
      changesOf(fees[service]).map(({ ppm, from }) => ({
        ppm,
        fromSlice: from,
        fromHeight: from * this.#file.sliceCuts,
      }));
    const windows = [await optionWindows(sql, 0), await optionWindows(sql, 1)] as const;
    const window = (service: 0 | 1): number | undefined =>
      (windows[service].findLast(({ from }) => from <= fees[service].slice) ?? windows[service][0])?.window;
    const windowChanges = (service: 0 | 1): WindowChange[] =>
      windows[service]
        .filter(({ from }) => from > fees[service].slice)
        .map(({ from, window: thousandths }) => ({
          thousandths,
          fromSlice: from,
          fromHeight: from * this.#file.sliceCuts,
        }));
    return {
      name: (await editedPoolName(sql)) ?? name,
      payoutMin: minimumAt(minimums, this.#time()) ?? (await editedPayoutMin(sql)) ?? payoutMin,
      minimumChanges: minimumChanges(minimums, this.#time()),
      feePpm: { pplns: fee(0), solo: fee(1) },
      feeChanges: { pplns: changes(0), solo: changes(1) },
      windows: { pplns: window(0), solo: window(1) },
      windowChanges: { pplns: windowChanges(0), solo: windowChanges(1) },
      notice: await readEdit(sql, 'notice'),
      pauseNote: await readEdit(sql, 'pause_note'),
    };
  }

  /** Of the slice that the books are in, as `terms` has it: a change that the chain has passed and they have not is to come. */
  async #shownFees(sql: Transaction, service: number): Promise<Fees> {
    const fees = await this.#fees(sql, service);
    return fees.opened === -1 ? fees : { ...fees, slice: fees.opened };
  }

  async #fees(sql: Sql | Transaction, service: number): Promise<Fees> {
    const [row] = await sql<{ number: number | null }[]>`select max(number)::int as number from slices
      where service = ${service}`;
    const height = this.#chain()?.height;
    const ofChain = height === undefined ? -1 : sliceOfHeight(height, this.#file.sliceCuts);
    const opened = row?.number ?? -1;
    const own = this.#file.feePpm[service === 0 ? 'pplns' : 'solo'];
    const options = (await optionFees(sql, service)) ?? [{ from: 0, ppm: own }];
    return { schedule: await readSchedule(sql, service), options, slice: Math.max(opened, ofChain), opened };
  }

  async list(): Promise<Setting[]> {
    const settings: Setting[] = [];
    for (const name of EDITABLE) {
      if (isFee(name)) {
        const fees = await this.#fees(this.#sql, FEE_SERVICES[name]);
        const { schedule, options, slice } = fees;
        settings.push({
          name,
          fileValue: feeText(feeInForce([], options, slice)),
          value: feeText(feeNow(fees)),
          isEdited: feeAt(schedule, slice) !== undefined || announced(schedule, slice).length > 0,
          changes: changesOf(fees).map(({ ppm, from }) => ({
            value: feeText(ppm),
            fromSlice: from,
            fromHeight: from * this.#file.sliceCuts,
          })),
        });
        continue;
      }
      const fileValue = fileValues(this.#file)[name];
      const edit = await readEdit(this.#sql, name);
      settings.push({ name, fileValue, value: edit ?? fileValue, isEdited: edit !== null, changes: [] });
    }
    return settings;
  }

  /** Null undoes an edit. Throws an EditRefusal that says what is wrong with a value. */
  async change(name: Editable, word: string | null, editor: Editor): Promise<EditOutcome> {
    const value = word === null ? null : readValue(name, word);
    if (name === 'payout_min' && value !== null) insistPayoutMin(value, this.#file.payoutMin);
    const outcome = await this.#sql.begin(async (transaction) => {
      await lockTerms(transaction);
      await this.#published?.settle(transaction);
      return isFee(name)
        ? this.#changeFee(transaction, name, value, editor)
        : this.#changeValue(transaction, name, value, editor);
    });
    await this.refresh();
    return outcome as EditOutcome;
  }

  async #changeValue(
    transaction: Transaction,
    name: Exclude<Editable, `fee_${string}`>,
    value: string | null,
    editor: Editor,
  ): Promise<EditOutcome> {
    const [row] = await transaction<{ value: string }[]>`select value from settings where name = ${rowOf(name)}`;
    const before = row?.value ?? null;
    if (before === value) return { kind: 'same' };
    await writeTerms(transaction, rowOf(name), value);
    const file = fileValues(this.#file)[name];
    if (name === 'payout_min') {
      const [was, atoms] = [readPayoutMin(before ?? file ?? ''), readPayoutMin(value ?? file ?? '')];
      await announceMinimum(transaction, { before: was, atoms }, this.#time(), this.#chain());
    }
    await logEdit(transaction, name, editor, {
      old: before ?? file,
      new: value ?? file,
      ...(value === null ? BACK : {}),
    });
    return { kind: 'made' };
  }

  async #changeFee(
    transaction: Transaction,
    name: 'fee_pplns' | 'fee_solo',
    value: string | null,
    editor: Editor,
  ): Promise<EditOutcome> {
    // Locked, so that no slice opens between reading the newest one and the announcement.
    await transaction`lock table slices in share mode`;
    const service = FEE_SERVICES[name];
    const fees = await this.#fees(transaction, service);
    const { schedule, options, slice, opened } = fees;
    const ppm = value === null ? null : Math.round(Number(value) * 10_000);
    const next = withFee(schedule, ppm, { options, slice, opened, sliceCuts: this.#file.sliceCuts });
    if (next === undefined) return { kind: 'too_many' };
    if (JSON.stringify(next) === JSON.stringify(schedule)) return { kind: 'same' };
    const look = this.#chain();
    const isKnown = look?.synced === true && this.#time() - look.atMillis <= MAX_LOOK_AGE;
    const needsNotice = announced(next, slice).some(({ from }) => from > slice + 1);
    if (needsNotice && !isKnown) return { kind: 'no_height' };
    await writeTerms(transaction, feeRow(service), next.length === 0 ? null : JSON.stringify(next));
    await logEdit(transaction, name, editor, {
      old: feeText(feeNow(fees)),
      new: feeText(ppm ?? feeInForce([], options, next.at(-1)?.from ?? slice)),
      from_slice: next.at(-1)?.from ?? null,
      ...(value === null ? BACK : {}),
    });
    return { kind: 'made' };
  }
}

const BACK = { back_to_options: true };

const logEdit = (transaction: Transaction, setting: Editable, { host, token }: Editor, details: object) =>
  transaction`insert into operator_log (actor, action, details)
    values (${host}, 'edit', ${transaction.json({ setting, ...details, token } as never)})`;
