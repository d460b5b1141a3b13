/**
 * Whether a pool pays what it credits (books rule 29). The miner adds up its own credits of the lists that it judged, and the payments that its node shows. What was
 * credited for longer than the bound and is not paid must be less than the threshold; otherwise that is a suspicion, because a wallet can fail for long too.
 */
import { newPayments } from '../../protocol/account-payments.ts';
import { parseAtoms } from '../../protocol/amount.ts';
import type { BooksSources } from '../../protocol/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books-slice.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { UNPAID_EVIDENCE_FORMAT, type UnpaidEvidence } from '../../protocol/unpaid-evidence.ts';

export type PaymentWatchDependencies = {
  readonly pool: BooksSources['pool'];
  readonly node: BooksSources['node'];
  readonly alarm: (
    kind: 'unpaid',
    what: string,
    fields: Readonly<Record<string, unknown>>,
    evidence: UnpaidEvidence,
  ) => void;
  readonly wallMillis: () => number;
};

/** A day, and two of the pool's own payout intervals: an honest pool whose wallet failed overnight is not accused. */
export const UNPAID_MILLIS = 24 * 3_600_000;
/** No interval is believed to be longer. */
const MAX_INTERVAL_MILLIS = 7 * 24 * 3_600_000;
/** Where payments could not be looked at for longer, the pool has had no chance to show them: the time begins anew. */
const GAP_MILLIS = 3 * 3_600_000;
/** Credits and payments that are kept by name; of older ones the sum is kept. A list before all that are kept by name is not counted. */
const MAX_CREDITS = 2_048;
const MAX_PAYMENTS = 4_096;

type Credit = { readonly atoms: bigint; readonly atMillis: number };
type PayoutTerms = { readonly minimum: bigint; readonly intervalMillis: number; readonly isPaused: boolean };

export class PaymentWatch {
  readonly #address: string;
  /** As the user says it; undefined where the pool's word counts. */
  readonly #threshold: bigint | undefined;
  readonly #dependencies: PaymentWatchDependencies;
  /** By `service/slice`, oldest first. */
  readonly #credits = new Map<string, Credit>();
  #oldCredits = 0n;
  readonly #payments = new Map<string, bigint>();
  #oldPayments = 0n;
  /** Payments of before the first look are of credits that nobody here knows. */
  #hasLooked = false;
  /** The lowest threshold that the pool ever named. One that it raises could put off every payment. */
  #least: bigint | undefined;
  /** Since when payments could be looked at, and when they last were. */
  #sinceMillis: number | undefined;
  #lookedMillis: number | undefined;
  #lapse: string | undefined;

  constructor(address: string, threshold: bigint | undefined, dependencies: PaymentWatchDependencies) {
    this.#address = address;
    this.#threshold = threshold;
    this.#dependencies = dependencies;
  }

  /** The account's credit in a list that was judged and is not false. */
  credited(service: BooksService, slice: number, atoms: bigint): void {
    const name = `${service}/${slice}`;
    const [oldest] = this.#credits.keys();
    const isBefore = this.#credits.size >= MAX_CREDITS && slice <= Number(oldest?.split('/')[1]);
    if (atoms === 0n || this.#credits.has(name) || isBefore) return;
    this.#credits.set(name, { atoms, atMillis: this.#dependencies.wallMillis() });
    for (const [first, { atoms: sum }] of this.#credits) {
      if (this.#credits.size <= MAX_CREDITS) break;
      this.#credits.delete(first);
      this.#oldCredits += sum;
    }
  }

  /** Why payments cannot be judged, while that is so and something is owed. */
  get lapse(): string | undefined {
    return this.#creditsBefore(Number.POSITIVE_INFINITY) > this.#paid ? this.#lapse : undefined;
  }

  /** `heightLapse`: why the node is not believed to follow the chain. No answer is no accusation: another pool may not have these routes. */
  async round(heightLapse: string | undefined): Promise<void> {
    this.#lapse = await this.#look(heightLapse).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
  }

  async #look(heightLapse: string | undefined): Promise<string | undefined> {
    const { node, pool, wallMillis } = this.#dependencies;
    if (heightLapse !== undefined && node !== null) return heightLapse;
    const terms = readTerms(await pool('pool'), await pool(`miners/${this.#address}`));
    this.#least = this.#least === undefined || terms.minimum < this.#least ? terms.minimum : this.#least;
    const { found, denied } = await newPayments(this.#address, this.#hasLooked ? this.#payments : null, { pool, node });
    for (const [payout, atoms] of [...found].reverse()) this.#pay(payout, this.#hasLooked ? atoms : 0n);
    this.#hasLooked = true;
    const now = wallMillis();
    const isAnew = this.#lookedMillis === undefined || now - this.#lookedMillis > GAP_MILLIS;
    if (isAnew || now < (this.#sinceMillis ?? now) || terms.isPaused) this.#sinceMillis = now;
    this.#lookedMillis = now;
    if (terms.isPaused) return 'the pool says that its payouts are paused';
    this.#judge(terms, denied, now);
    const isRaised = this.#threshold === undefined && terms.minimum > this.#least;
    return isRaised ? `the pool pays this address from ${terms.minimum} atoms on, ${this.#least} before` : undefined;
  }

  #judge({ minimum, intervalMillis }: PayoutTerms, denied: number, now: number): void {
    const bound = UNPAID_MILLIS + 2 * intervalMillis;
    if (now - (this.#sinceMillis ?? now) < bound) return;
    const threshold = this.#threshold ?? minimum;
    const owed = this.#creditsBefore(now - bound) - this.#paid;
    if (owed < threshold || owed <= 0n) return;
    const hours = Math.floor(bound / 3_600_000);
    this.#dependencies.alarm(
      'unpaid',
      String(this.#payments.size),
      { owed, threshold, hours, paid: this.#paid, denied },
      {
        ...{ format: UNPAID_EVIDENCE_FORMAT, address: this.#address, threshold: String(threshold) },
        ...{ owed: String(owed), at_millis: now, for_hours: hours },
        credits: [...this.#credits].map(([name, { atoms }]) => ({
          ...{ service: name.split('/')[0] as BooksService, slice: Number(name.split('/')[1]), amount: String(atoms) },
        })),
        payments: [...this.#payments].map(([payout_id, atoms]) => ({ payout_id, amount: String(atoms) })),
      },
    );
  }

  #creditsBefore(millis: number): bigint {
    let sum = this.#oldCredits;
    for (const { atoms, atMillis } of this.#credits.values()) if (atMillis <= millis) sum += atoms;
    return sum;
  }

  get #paid(): bigint {
    return [...this.#payments.values()].reduce((sum, atoms) => sum + atoms, this.#oldPayments);
  }

  #pay(payout: string, atoms: bigint): void {
    this.#payments.set(payout, atoms);
    for (const [first, sum] of this.#payments) {
      if (this.#payments.size <= MAX_PAYMENTS) return;
      this.#payments.delete(first);
      this.#oldPayments += sum;
    }
  }

  save(): unknown {
    return {
      credits: [...this.#credits].map(([name, { atoms, atMillis }]) => [name, String(atoms), atMillis]),
      payments: [...this.#payments].map(([payout, atoms]) => [payout, String(atoms)]),
      ...{ oldCredits: String(this.#oldCredits), oldPayments: String(this.#oldPayments), hasLooked: this.#hasLooked },
      least: this.#least === undefined ? null : String(this.#least),
      ...{ since: this.#sinceMillis ?? null, looked: this.#lookedMillis ?? null },
    };
  }

  /** A state that it cannot read is ignored as a whole: half of it could accuse. */
  restore(saved: unknown): void {
    const read = readSaved(saved);
    if (read === undefined) return;
    for (const [name, credit] of read.credits) this.#credits.set(name, credit);
    for (const [payout, atoms] of read.payments) this.#payments.set(payout, atoms);
    [this.#oldCredits, this.#oldPayments] = [read.oldCredits, read.oldPayments];
    this.#least = read.least;
    [this.#hasLooked, this.#sinceMillis, this.#lookedMillis] = [read.hasLooked, read.since, read.looked];
  }
}

/** What the pool says of its payouts, and from what on it pays this account. */
function readTerms(answer: unknown, account: unknown): PayoutTerms {
  const { payouts } = (answer ?? {}) as { payouts?: Readonly<Record<string, unknown>> };
  const { interval_seconds: seconds, paused } = payouts ?? {};
  const { payout_minimum: minimum } = (account ?? {}) as { payout_minimum?: unknown };
  if (typeof minimum !== 'string' || typeof seconds !== 'number' || !(seconds >= 0) || typeof paused !== 'boolean')
    throw new ProtocolError('out_of_range', 'the pool does not say when it pays');
  return {
    minimum: parseAtoms(minimum),
    intervalMillis: Math.min(seconds * 1_000, MAX_INTERVAL_MILLIS),
    isPaused: paused,
  };
}

function readSaved(saved: unknown) {
  type Saved = {
    readonly credits: [string, string, number][];
    readonly payments: [string, string][];
    readonly [name: string]: unknown;
  };
  const { credits, payments, oldCredits, oldPayments, hasLooked, since, looked, least } = (saved ?? {}) as Saved;
  try {
    return {
      credits: credits.map(([name, atoms, atMillis]) => {
        if (!/^(pplns|solo)[/][0-9]{1,15}$/.test(name) || !isWhole(atMillis)) throw new TypeError('a credit');
        return [name, { atoms: BigInt(atoms), atMillis }] as const;
      }),
      payments: payments.map(([payout, atoms]) => [String(payout), BigInt(atoms)] as const),
      ...{ oldCredits: BigInt(oldCredits as string), oldPayments: BigInt(oldPayments as string) },
      hasLooked: hasLooked === true,
      least: typeof least === 'string' ? BigInt(least) : undefined,
      ...{ since: isWhole(since) ? since : undefined, looked: isWhole(looked) ? looked : undefined },
    };
  } catch {
    return undefined;
  }
}
