/**
 * Compares work that the pool answered with `accepted` ("told") with receipts (docs/miner.md, "The pool's books"), for
 * one pool, address and worker. Pure, small and bounded, so that it can be saved often; a page uses it too. Work is
 * kept by boot, which identifies one start of one front end of the pool: a receipt covers one boot only. Where the jobs
 * say of which service they are, it is kept by boot and service.
 *
 * At an honest pool the told work can be ahead of the receipts for three reasons: it is not in a closed slice yet (`open` of a receipt names it), it was told after
 * the receipt was made, or its receipt was not seen. So a new receipt is compared with the work told up to a while before the last request
 * in which the pool did not show it yet.
 */
import { OTHERS, OWN_RECEIPTS, type Receipt } from '../../protocol/books/receipt.ts';

/** The accepted work when a slice was seen to have closed, less the last minutes. */
type Note = { readonly slice: number; readonly told: bigint };
type Sample = { readonly atMillis: number; readonly told: bigint };
type Service = Receipt['service'];

export type Boot = {
  told: bigint;
  shares: number;
  received: bigint;
  /** Slice of the newest receipt, and what waited then, by service. */
  slice: number;
  open: Partial<Record<Service, { readonly slice: number; readonly work: bigint }>>;
  /** `slice` at the last comparison. */
  seen: number;
  /** Receipts of later slices count. */
  from: number;
  /** How many did not count for that reason, though they came after work was told. */
  before: number;
  /** Receipts of the same boot that are of the other service. */
  others: number;
  notes: Note[];
  samples: Sample[];
};

/** A front end makes a receipt within half of this time; work told before that was in its journal. */
export const NOTE_MILLIS = 60_000;
/** Accepted work must be in a closed slice after this many, without exception. */
export const LATE_SLICES = 36;
/** Receipts of the other service after which there must have been one of this. */
const MIN_OTHERS = 3;
const MAX_NOTES = 48;
const MAX_SAMPLES = 64;
const MAX_BOOTS = 64;
const MAX_COUNTED = 512;
/** Receipts of slices that the pool said were past; more than come late. */
const MAX_BEFORE = 6;

export type Shortfall = {
  /** `receipts_less`: less than was told; `late`: named as waiting, for far too long; `job_service`: only under the other service. */
  readonly kind: 'receipts_less' | 'late' | 'job_service';
  readonly boot: string;
  readonly slice: number;
  readonly told: bigint;
  readonly received: bigint;
};

const emptyBoot = (from: number): Boot => ({
  told: 0n,
  shares: 0,
  received: 0n,
  slice: -1,
  seen: -1,
  open: {},
  before: 0,
  others: 0,
  notes: [],
  samples: [],
  from,
});

export class ToldLedger {
  readonly boots = new Map<string, Boot>();
  /** Newest slice up to which receipts were asked for; undefined before the first answer. */
  through: number | undefined;
  /** `service/slice/boot` of receipts that were added up, oldest first. */
  readonly #counted = new Set<string>();
  /** When the last comparison asked the pool. */
  #began: number | undefined;

  #boot(name: string): Boot {
    let boot = this.boots.get(name);
    if (boot === undefined) {
      // One more slice: the answer may have been slightly old.
      boot = emptyBoot((this.through ?? 0) - 1);
      this.boots.set(name, boot);
      const [oldest] = this.boots.keys();
      if (this.boots.size > MAX_BOOTS && oldest !== undefined) this.boots.delete(oldest);
    }
    return boot;
  }

  /** The pool answered a share with `accepted`. */
  tell(name: string, work: bigint): void {
    const boot = this.#boot(name);
    boot.told += work;
    boot.shares++;
  }

  /** A valid receipt of this worker. Returns whether it is new. */
  receive(receipt: Receipt): boolean {
    const key = `${receipt.service}/${receipt.slice}/${receipt.boot}`;
    if (this.#counted.has(key)) return false;
    this.#counted.add(key);
    const [oldest] = this.#counted;
    if (this.#counted.size > MAX_COUNTED && oldest !== undefined) this.#counted.delete(oldest);
    const other = this.boots.get(toldName(receipt.boot, receipt.service === 'pplns' ? 'solo' : 'pplns'));
    // One that was made before work was told proves nothing of that work.
    const isAfter = other !== undefined && (this.#known(other)?.told ?? 0n) > 0n;
    if (isAfter && receipt.slice > other.from && receipt.work !== '0') other.others++;
    const boot = this.boots.get(toldName(receipt.boot, receipt.service)) ?? this.boots.get(receipt.boot);
    // That front end accepted no work: there is nothing to compare.
    if (boot === undefined) return true;
    if (receipt.slice <= boot.from) {
      this.#before(boot, receipt);
      return true;
    }
    boot.received += BigInt(receipt.work);
    boot.slice = Math.max(boot.slice, receipt.slice);
    if (receipt.slice > (boot.open[receipt.service]?.slice ?? -1))
      boot.open[receipt.service] = { slice: receipt.slice, work: BigInt(receipt.open) };
    return true;
  }

  /**
   * The pool says which slices were past when work was first told. Receipts of a few of them may arrive later; if more
   * keep arriving, the pool had named future slices, and no receipt would ever be compared: the count starts again from
   * there.
   */
  #before(boot: Boot, { slice }: Receipt): void {
    if (++boot.before < MAX_BEFORE) return;
    Object.assign(boot, emptyBoot(slice));
    this.through = slice;
  }

  /** A receipt that is new now was not there the last time, so it was made after that, or not long before. */
  get #madeMillis(): number {
    return (this.#began ?? Number.NEGATIVE_INFINITY) - NOTE_MILLIS;
  }

  /** What had been told before a receipt that is new now was made. */
  #known({ samples }: Boot): Sample | undefined {
    return samples.findLast(({ atMillis }) => atMillis <= this.#madeMillis);
  }

  /** After all receipts up to `through` were asked for: what is missing. `beganMillis` is when they were asked for. */
  close(through: number, beganMillis: number): Shortfall[] {
    const found: Shortfall[] = [];
    const madeMillis = this.#madeMillis;
    for (const [name, boot] of this.boots) {
      const known = this.#known(boot);
      const isNew = boot.slice > boot.seen;
      boot.seen = boot.slice;
      const short =
        late(name, boot, through) ??
        elsewhere(name, boot, known) ??
        (isNew && known !== undefined ? less(name, boot, known) : undefined);
      if (short !== undefined) found.push(short);
      const slice = Math.max(through, boot.slice);
      if (known !== undefined && slice > (boot.notes.at(-1)?.slice ?? -1)) boot.notes.push({ slice, told: known.told });
      if (boot.notes.length > MAX_NOTES) boot.notes.splice(0, boot.notes.length - MAX_NOTES);
      boot.samples = boot.samples.filter((sample) => sample === known || sample.atMillis > madeMillis);
      const last = boot.samples.at(-1);
      if (last === undefined || beganMillis - last.atMillis >= NOTE_MILLIS / 10)
        boot.samples.push({ atMillis: beganMillis, told: boot.told });
      if (boot.samples.length > MAX_SAMPLES) boot.samples.splice(1, boot.samples.length - MAX_SAMPLES);
    }
    this.#began = beganMillis;
    this.through = Math.max(this.through ?? -1, through);
    return found;
  }

  /** Receipts that the count needs are no longer available: it starts again. Returns the work that none was seen of. */
  forgetAll(): bigint {
    let unseen = 0n;
    for (const boot of this.boots.values()) {
      const seen = accounted(boot);
      if (boot.told > seen) unseen += boot.told - seen;
    }
    this.boots.clear();
    return unseen;
  }

  save(): unknown {
    return {
      through: this.through ?? null,
      counted: [...this.#counted],
      boots: [...this.boots].map(([name, { told, shares, received, slice, open, from, notes, others }]) => ({
        name,
        told: String(told),
        shares,
        received: String(received),
        slice,
        from,
        others,
        open: Object.entries(open).map(([service, each]) => ({ service, slice: each.slice, work: String(each.work) })),
        notes: notes.map((note) => ({ slice: note.slice, told: String(note.told) })),
      })),
    };
  }

  /** Throws if the input is malformed. */
  static restore(saved: unknown, nowMillis: number): ToldLedger {
    const { through, counted, boots } = saved as Saved;
    const ledger = new ToldLedger();
    ledger.through = through ?? undefined;
    for (const key of counted) ledger.#counted.add(key);
    for (const { name, told, received, open, notes, shares, slice, from, others = 0 } of boots)
      ledger.boots.set(name, {
        told: BigInt(told),
        received: BigInt(received),
        shares,
        slice,
        seen: slice,
        from,
        others,
        open: Object.fromEntries(open.map((each) => [each.service, { slice: each.slice, work: BigInt(each.work) }])),
        notes: notes.map((note) => ({ slice: note.slice, told: BigInt(note.told) })),
        samples: [{ atMillis: nowMillis, told: BigInt(told) }],
        before: 0,
      });
    return ledger;
  }
}

type Saved = {
  readonly through: number | null;
  readonly counted: readonly string[];
  readonly boots: readonly {
    readonly name: string;
    readonly told: string;
    readonly shares: number;
    readonly received: string;
    readonly slice: number;
    readonly from: number;
    readonly others?: number;
    readonly open: readonly { readonly service: Service; readonly slice: number; readonly work: string }[];
    readonly notes: readonly { readonly slice: number; readonly told: string }[];
  }[];
};

/** Told work of a boot is kept under this name. */
export const toldName = (boot: string, service: Service | undefined): string =>
  service === undefined ? boot : `${boot}/${service}`;

/**
 * The receipt as it counts for a worker; undefined if it does not. Where thousands of names of the address did more, the
 * worker is one of the others of that sheet (books rule 17). Where all of the address are watched (no worker), the pool's
 * API says what is open of them, and a receipt without that does not count.
 */
export function countedReceipt(
  receipt: Receipt,
  worker: string | undefined,
  accountOpen: ReadonlyMap<string, bigint> | undefined,
): Receipt | undefined {
  if (worker === undefined) {
    const open = accountOpen?.get(receipt.boot);
    return open === undefined ? undefined : { ...receipt, work: receipt.account_work, open: `${open}` };
  }
  const isFolded = receipt.worker === OTHERS && receipt.receipts > OWN_RECEIPTS;
  return receipt.worker === worker || isFolded ? receipt : undefined;
}

/** The work covered by the receipts of a boot, including work listed as waiting. */
export const accounted = ({ received, open }: Boot): bigint =>
  Object.values(open).reduce((sum, { work }) => sum + work, received);

function late(name: string, { received, notes }: Boot, through: number): Shortfall | undefined {
  const old = notes.findLast((note) => through - note.slice >= LATE_SLICES);
  if (old === undefined || old.told <= received) return undefined;
  return { kind: 'late', boot: name, slice: old.slice, told: old.told, received };
}

/** Work on jobs of one service, but receipts only of the other. */
function elsewhere(name: string, { slice, others }: Boot, known: Sample | undefined): Shortfall | undefined {
  if (slice !== -1 || others < MIN_OTHERS || known === undefined || known.told === 0n) return undefined;
  return { kind: 'job_service', boot: name, slice: 0, told: known.told, received: 0n };
}

function less(name: string, boot: Boot, { told }: Sample): Shortfall | undefined {
  const received = accounted(boot);
  return told <= received ? undefined : { kind: 'receipts_less', boot: name, slice: boot.slice, told, received };
}
