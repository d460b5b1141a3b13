/**
 * Takes journal entries into the books: one fenced transaction per batch. Entries at or below a boot's position were
 * taken before and are skipped, so any replay, from any instance, counts each share once; an entry that does not
 * directly follow the position is refused, so no entry is ever missed (books rule 11).
 */

import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import { byteaTexts, type Transaction } from '../database/connect.ts';
import { copyIn } from '../database/copy-in.ts';
import { takeTurn } from '../database/row-turns.ts';
import { type DoubledShare, noteDoubled } from '../journal/doubled-shares.ts';
import { fillHoles, type Likeness } from '../journal/filled-holes.ts';
import type { JournalEntry } from '../journal/journal.ts';
import {
  type BlockRecord,
  decodeRecord,
  type JournalRecord,
  type MinerRecord,
  SERVICES,
  type ShareRecord,
} from '../journal/journal-record.ts';
import { takeStats } from '../stats/take.ts';
import { ensureAccounts } from './made-accounts.ts';
import { keepNotedTerms } from './noted-terms.ts';
import { OwnWorkers } from './own-workers.ts';
import { ensureSharePartitions } from './partitions.ts';
import { ShareIdentities } from './share-identities.ts';
import { LaterWork, SharePlaces } from './share-slice.ts';
import { openSlices } from './slices.ts';

export const serviceNumber = (service: (typeof SERVICES)[number]): number => SERVICES.indexOf(service);

/** Worker name of a block whose finder is not on record. No miner can have it: worker names cannot contain brackets. */
export const UNKNOWN_FINDER = '(unknown)';

/** Duplicate shares are counted under this name, among the refused ones. */
export const COUNTED_BEFORE = 'counted_before';

export type IntakeOptions = { readonly network: NetworkName; readonly sliceCuts: number };

type Taken = {
  readonly bootId: string;
  readonly sequence: number;
  readonly record: JournalRecord;
  readonly slice: number | undefined;
};
type ShareEntry = Taken & { readonly record: ShareRecord };
type CountedShare = ShareEntry & { readonly accountId: number; readonly workerId: number };
/** A share with its slice. */
type TakenShare = CountedShare & { readonly slice: number };

export type IntakeResult = {
  readonly taken: number;
  readonly repeated: number;
  readonly shares: number;
  /** Entries that no journal holds any more, as the journals themselves report. */
  readonly lost: number;
  /** Shares whose header and nonce counted before: 0 in a healthy pool. */
  readonly doubled: number;
  /** Records that could not be read and were set aside: 0 in a healthy pool. They are among those taken. */
  readonly unread: number;
};

/** Entries are missing after the books' position: they must be sent again from there. */
export class EntryGapError extends Error {
  constructor(bootId: string, position: number, sequence: number) {
    super(`the books have boot ${bootId} up to ${position} and cannot take ${sequence} next`);
    this.name = 'EntryGapError';
  }
}

/** Accounts whose id is remembered: far more than a batch has entries. */
const CACHED_ACCOUNTS = 200_000;

type UnreadRecord = Pick<JournalEntry, 'bootId' | 'sequence' | 'record'> & { readonly reason: string };

/**
 * Records of journals that cannot be read: a damaged disk, a bug, or a compromised front end. They are stored unchanged
 * and count nothing. The books continue: one bad record must not delay all other shares.
 */
async function setAside(transaction: Transaction, records: readonly UnreadRecord[]): Promise<void> {
  if (records.length === 0) return;
  const hexOf = (record: UnreadRecord['record']) => Buffer.from(record).toString('hex');
  await transaction`insert into unread_records (boot_id, sequence, record, reason)
    select * from unnest(${byteaTexts(records.map(({ bootId }) => bootId))}::text[]::bytea[],
      ${records.map(({ sequence }) => sequence)}::bigint[],
      ${byteaTexts(records.map(({ record }) => hexOf(record)))}::text[]::bytea[],
      ${records.map(({ reason }) => reason)}::text[]) on conflict do nothing`;
}

type EntryPlace =
  | { readonly kind: 'repeated' }
  | { readonly kind: 'gap' }
  /** `lost` entries after the position are in no journal; `isLost` says that the entry is the last of them. */
  | { readonly kind: 'next'; readonly lost: number; readonly isLost: boolean };

/**
 * Whether an entry of a journal follows the books' position in it (books rule 11). Only the journal itself can state that
 * it has nothing between: by `after`, and by an empty record, which was answered and is not there any more.
 */
export function placeOfEntry({ sequence, record, after }: JournalEntry, position: number): EntryPlace {
  if (sequence <= position) return { kind: 'repeated' };
  if (sequence !== position + 1 && (after === undefined || after > position)) return { kind: 'gap' };
  const isLost = record.length === 0;
  return { kind: 'next', lost: sequence - position - (isLost ? 0 : 1), isLost };
}

export class Intake {
  readonly #options: IntakeOptions;
  readonly #accounts = new BoundedMap<string, number>(CACHED_ACCOUNTS);
  readonly #workers = new OwnWorkers();
  readonly #identities = new ShareIdentities();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Anchors beyond the slice `newest` are ignored. */
  async take(
    transaction: Transaction,
    entries: readonly JournalEntry[],
    newest = Number.POSITIVE_INFINITY,
  ): Promise<IntakeResult> {
    const { fresh, last, unread, likenesses, repeated, lost } = await this.#fresh(transaction, entries);
    if (last.size === 0) return { taken: 0, repeated, shares: 0, lost, doubled: 0, unread: 0 };
    const records = fresh.map((entry) => entry.record);
    await this.#resolveIds(
      transaction,
      records.filter((record): record is MinerRecord => record.kind !== 'terms'),
    );
    await keepNotedTerms(
      transaction,
      fresh.flatMap(({ record, slice }) => (record.kind === 'terms' ? [{ record, slice }] : [])),
      newest,
    );
    const { counted: shares, doubled } = await this.#counted(transaction, fresh);
    await this.#addWork(transaction, shares, doubled, newest);
    await takeStats(
      transaction,
      shares.map(({ record, workerId }) => ({ workerId, work: record.work, atMillis: record.atMillis })),
    );
    for (const entry of fresh) {
      const { record } = entry;
      if (record.kind === 'ownership')
        await transaction`insert into ownerships (owner, service, account_id, worker_id, after_list)
          values (${Buffer.from(record.owner)}, ${serviceNumber(record.service)}, ${this.accountId(record.account)},
            ${this.workerId(record)}, (select coalesce(max(id), 0) from credit_lists)) on conflict (owner) do nothing`;
    }
    await this.#addBlocks(transaction, fresh);
    await setAside(transaction, unread);
    await this.#advancePositions(transaction, last);
    if (doubled.size > 0 || likenesses.size > 0) await this.#noteDoubled(transaction, fresh, doubled, likenesses);
    const taken = fresh.length + unread.length;
    return { taken, repeated, shares: shares.length, lost, doubled: doubled.size, unread: unread.length };
  }

  /** The shares among the entries, and those whose header and nonce counted before (rule 14). */
  async #counted(transaction: Transaction, fresh: readonly Taken[]) {
    const shares = fresh.filter((entry): entry is ShareEntry => entry.record.kind === 'share');
    const counts = await this.#identities.take(
      transaction,
      shares.map(({ record }) => record.identity),
    );
    const counted: CountedShare[] = [];
    const doubled = new Set<ShareEntry>();
    for (const [i, share] of shares.entries()) {
      const { bootId, sequence, record, slice } = share;
      if (counts[i] !== true) {
        doubled.add(share);
        continue;
      }
      const accountId = this.accountId(record.account);
      counted.push({ bootId, sequence, record, slice, accountId, workerId: this.#workers.idOf(accountId, record) });
    }
    if (doubled.size > 0)
      await transaction`insert into refused_shares (result, count) values (${COUNTED_BEFORE}, ${doubled.size})
        on conflict (result) do update set count = refused_shares.count + excluded.count`;
    return { counted, doubled };
  }

  /** To be called when a transaction failed: ids that it assigned were rolled back, and may be assigned again. */
  forget(): void {
    this.#identities.forget();
    this.#accounts.clear();
    this.#workers.forget();
  }

  accountId(payload: Bytes): number {
    return this.#accounts.get(nativeHex(payload)) as number;
  }

  workerId(record: MinerRecord): number {
    return this.#workers.idOf(this.accountId(record.account), record);
  }

  async #fresh(transaction: Transaction, entries: readonly JournalEntry[]) {
    const boots = [...new Set(entries.map((entry) => entry.bootId))];
    const rows = await transaction<
      { boot_id: Buffer; through: bigint; copy_of: Buffer | null; agreed: number }[]
    >`select boot_id, through, copy_of, agreed
      from journal_positions where boot_id = any(${byteaTexts(boots)}::text[]::bytea[]) for update`;
    const positions = new Map(rows.map((row) => [row.boot_id.toString('hex'), Number(row.through)]));
    const likenesses = new Map<string, Likeness>();
    for (const { boot_id: boot, copy_of: of, agreed } of rows)
      if (of !== null) likenesses.set(boot.toString('hex'), { of: of.toString('hex'), agreed });
    const fresh: Taken[] = [];
    const unread: UnreadRecord[] = [];
    const last = new Map<string, number>();
    let repeated = 0;
    let lost = 0;
    for (const entry of entries) {
      const { bootId, sequence, record, slice } = entry;
      const position = positions.get(bootId) ?? -1;
      const place = placeOfEntry(entry, position);
      if (place.kind === 'gap') throw new EntryGapError(bootId, position, sequence);
      if (place.kind === 'repeated') {
        repeated++;
        continue;
      }
      if (place.lost > 0)
        await transaction`insert into journal_holes (boot_id, after, until, began)
          values (${Buffer.from(bootId, 'hex')}, ${position}, ${position + place.lost + 1}, ${position})`;
      lost += place.lost;
      positions.set(bootId, sequence);
      last.set(bootId, sequence);
      if (place.isLost) continue;
      const decoded = attempt(() => decodeRecord(record));
      if (decoded.ok) fresh.push({ bootId, sequence, record: decoded.value, slice });
      else unread.push({ bootId, sequence, record, reason: decoded.error.message });
    }
    return { fresh, last, unread, likenesses, repeated, lost };
  }

  async #resolveIds(transaction: Transaction, records: readonly MinerRecord[]): Promise<void> {
    const payloads = new Set<string>();
    let firstMillis = Number.MAX_SAFE_INTEGER;
    for (const record of records) {
      const key = nativeHex(record.account);
      if (this.#accounts.use(key) !== undefined) continue;
      payloads.add(key);
      if ('atMillis' in record) firstMillis = Math.min(firstMillis, record.atMillis);
    }
    if (payloads.size > 0) {
      const rows = await ensureAccounts(transaction, [...payloads], this.#options.network, firstMillis);
      for (const [payload, id] of rows) this.#accounts.set(payload, id);
    }
    await this.#workers.resolve(transaction, records, (record) => this.accountId(record.account));
  }

  async #addWork(
    transaction: Transaction,
    counted: readonly CountedShare[],
    doubled: ReadonlySet<ShareEntry>,
    newest: number,
  ): Promise<void> {
    if (counted.length + doubled.size === 0) return;
    const open = await openSlices(transaction);
    const bound = { newest, sliceCuts: this.#options.sliceCuts };
    // Where a slice ends in a journal does not depend on which of its shares count: that may be otherwise after a fall.
    const inOrder =
      doubled.size === 0 ? counted : [...counted, ...doubled].sort((one, other) => one.sequence - other.sequence);
    const boots = inOrder.map(({ bootId }) => bootId);
    const places = await SharePlaces.of(transaction, boots, bound);
    const openIn = ({ record }: ShareEntry): number => openNumber(open, serviceNumber(record.service));
    const later = new LaterWork();
    const shares: TakenShare[] = [];
    for (const share of inOrder) {
      const slice = places.place(share, openIn(share));
      if (slice > openIn(share)) later.begin(share, slice);
      if ('accountId' in share) shares.push({ ...share, slice });
    }
    const byAccount = new Map<string, bigint>();
    const byWorker = new Map<number, { count: number; work: bigint; atMillis: number }>();
    const totals = new Map<number, bigint>();
    for (const share of shares) {
      const { record, accountId, workerId, slice } = share;
      const service = serviceNumber(record.service);
      const key = `${service}/${accountId}`;
      if (slice === openIn(share)) byAccount.set(key, (byAccount.get(key) ?? 0n) + record.work);
      else later.add({ service, accountId, slice }, record.work);
      totals.set(service, (totals.get(service) ?? 0n) + record.work);
      const sum = byWorker.get(workerId) ?? { count: 0, work: 0n, atMillis: 0 };
      byWorker.set(workerId, {
        count: sum.count + 1,
        work: sum.work + record.work,
        atMillis: Math.max(sum.atMillis, record.atMillis),
      });
    }
    const keys = [...byAccount.keys()].map((key) => key.split('/').map(Number) as [number, number]);
    await transaction`insert into open_work (service, account_id, work)
      select * from unnest(${keys.map(([service]) => service)}::smallint[], ${keys.map(([, id]) => id)}::int[],
        ${[...byAccount.values()].map(String)}::numeric[])
      on conflict (service, account_id) do update set work = open_work.work + excluded.work`;
    await later.write(transaction);
    if (shares.length === 0) return;
    const sums = [...byWorker.values()];
    await takeTurn(transaction, 'workers');
    await transaction`update workers w set accepted = w.accepted + k.n, work = w.work + k.work,
        last_share_at = greatest(w.last_share_at, k.at), last_taken_at = now()
      from unnest(${[...byWorker.keys()]}::int[], ${sums.map((sum) => sum.count)}::int[],
        ${sums.map((sum) => String(sum.work))}::numeric[],
        ${sums.map((sum) => new Date(sum.atMillis).toISOString())}::text[]::timestamptz[]) as k(id, n, work, at)
      where w.id = k.id`;
    for (const [service, total] of totals)
      await transaction`update effort set work = work + ${String(total)}::numeric where service = ${service}`;
    await this.#copyShares(transaction, shares);
  }

  async #copyShares(transaction: Transaction, shares: readonly TakenShare[]): Promise<void> {
    await ensureSharePartitions(
      transaction,
      shares.map((share) => share.record.atMillis),
    );
    const lines = shares.map((share) => {
      const { bootId, sequence, record, accountId, workerId, slice } = share;
      const service = serviceNumber(record.service);
      const at = new Date(record.atMillis).toISOString();
      const whose = `\\\\x${bootId}\t${sequence}\t${service}\t${accountId}\t${workerId}`;
      return `${whose}\t${slice}\t${record.work}\t${at}\t${identityColumns(record)}\n`;
    });
    await copyIn(
      transaction`copy shares (boot_id, sequence, service, account_id, worker_id, slice, work, at, identity, anchor_height)
        from stdin`,
      lines.join(''),
    );
  }

  async #addBlocks(transaction: Transaction, fresh: readonly Taken[]): Promise<void> {
    for (const { record } of fresh) if (record.kind === 'block') await this.addBlock(transaction, record);
  }

  /**
   * Idempotent: a block may arrive from the journal of its finder and from the chain. A journal that arrives after the
   * chain corrects an unknown finder, as long as nothing is credited. An anchor may lie before the pool's first slice:
   * such a block counts in the first slice (books rule 7), because no earlier slice is published.
   */
  async addBlock(transaction: Transaction, record: BlockRecord): Promise<void> {
    const service = serviceNumber(record.service);
    const { carried } = record;
    const [inserted] = await transaction`insert into blocks
        (block_id, service, account_id, worker_id, anchor_height, slice, target_work, effort_work, found_at, state,
          carried_fees, carried_mass)
      select ${Buffer.from(record.blockId)}, ${service}, ${this.accountId(record.account)}, ${this.workerId(record)},
        ${record.anchorHeight}, greatest(${sliceOfHeight(record.anchorHeight, this.#options.sliceCuts)},
          (select min(number) from slices where service = ${service})),
        ${String(workOfTarget(record.target))}::numeric, effort.work, ${new Date(record.atMillis)}, 'found',
        ${carried?.fees ?? null}::bigint, ${carried?.mass ?? null}::integer
      from effort where effort.service = ${service}
      on conflict (block_id) do nothing returning 1`;
    if (inserted !== undefined) await transaction`update effort set work = 0 where service = ${service}`;
    else
      await transaction`update blocks set service = ${service}, account_id = ${this.accountId(record.account)},
          worker_id = ${this.workerId(record)}
        where block_id = ${Buffer.from(record.blockId)} and credit_list is null
          and worker_id in (select id from workers where name = ${UNKNOWN_FINDER})`;
    if (inserted === undefined && carried !== undefined)
      await transaction`update blocks set carried_fees = ${carried.fees}, carried_mass = ${carried.mass}
        where block_id = ${Buffer.from(record.blockId)} and carried_fees is null and credit_list is null`;
  }

  /**
   * A block that the chain paid but that is in no journal: its finder is known from the ownership of its extranonce.
   */
  async adoptBlock(transaction: Transaction, record: BlockRecord): Promise<void> {
    await this.#resolveIds(transaction, [record]);
    await this.addBlock(transaction, record);
  }

  async #advancePositions(transaction: Transaction, last: ReadonlyMap<string, number>): Promise<void> {
    for (const [bootId, through] of last)
      await transaction`insert into journal_positions (boot_id, through) values (${Buffer.from(bootId, 'hex')}, ${through})
        on conflict (boot_id) do update set through = excluded.through, updated_at = now()`;
  }

  async #noteDoubled(
    transaction: Transaction,
    fresh: readonly Taken[],
    doubled: ReadonlySet<ShareEntry>,
    likenesses: ReadonlyMap<string, Likeness>,
  ): Promise<void> {
    const noted = [...doubled].flatMap(({ bootId, sequence, record }): DoubledShare[] => {
      if (record.identity === null) return [];
      const { anchorHeight, bytes: identity } = record.identity;
      const [service, accountId] = [serviceNumber(record.service), this.accountId(record.account)];
      return [{ bootId, sequence, service, accountId, work: record.work, anchorHeight, identity }];
    });
    if (noted.length > 0) await noteDoubled(transaction, noted);
    const shares = fresh.flatMap((entry) => {
      const { bootId, sequence, record } = entry;
      if (record.kind !== 'share') return [];
      return [{ bootId, sequence, identity: record.identity, isCounted: !doubled.has(entry as ShareEntry) }];
    });
    await fillHoles(transaction, shares, likenesses);
  }
}

const identityColumns = ({ identity }: ShareRecord): string =>
  identity === null ? '\\N\t\\N' : `\\\\x${nativeHex(identity.bytes)}\t${identity.anchorHeight}`;

type OpenSlices = ReadonlyMap<number, { readonly number: number }>;
const openNumber = (open: OpenSlices, service: number): number => (open.get(service) as { number: number }).number;
