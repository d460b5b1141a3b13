/**
 * The pool's side of the stratum server (bridge/shares/sink.ts): every share and block is in the local journal, on
 * disk, before its call resolves, and in the outbox right after. The first share or block of a connection is preceded,
 * in the same write, by the owner of its extranonces: a login alone stores nothing, and no block is sent whose finder
 * is not on record. Shares are refused only if the journal cannot be written: neither the database nor Redis is used
 * here.
 */
import { readExtranonce } from '../../bridge/session/extranonce.ts';
import type {
  AcceptedShare,
  BlockFate,
  FoundBlock,
  Ownership,
  RefusedShare,
  ShareSink,
  WorkerEvent,
} from '../../bridge/shares/sink.ts';
import { shareIdentity } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Outbox } from '../feed/outbox.ts';
import type { Journal } from './journal.ts';
import { sharesAtEnds } from './journal-ends.ts';
import { encodeRecord, type JournalRecord, SERVICES, type Service } from './journal-record.ts';

/** How long after a failure of the journal the next share tries it again. */
const RETRY_MILLIS = 1_000;

/**
 * Connections known to be on record. One that was evicted is written again with its next share, which changes nothing
 * in the books.
 */
const MAX_ON_RECORD = 100_000;

/** Immediate notifications for the rest of the pool; the books do not depend on them. */
export type SinkListener = {
  shares?(shares: readonly AcceptedShare[]): void;
  refused?(shares: readonly RefusedShare[]): void;
  block?(block: FoundBlock): void;
  blockFate?(blockId: Bytes, fate: BlockFate): void;
  worker?(event: WorkerEvent): void;
};

export type PoolSinkDependencies = {
  readonly journal: Journal;
  readonly outbox: Pick<Outbox, 'push'>;
  readonly log: Logger;
  readonly now: SteadyClock;
  readonly listener?: SinkListener;
  readonly balance?: (account: Bytes) => Promise<{ pending: bigint; paid: bigint } | undefined>;
};

export class PoolSink implements ShareSink {
  readonly #dependencies: PoolSinkDependencies;
  #failedAt = Number.NEGATIVE_INFINITY;
  readonly #onRecord = new Set<string>();
  /** The same, keyed by the extranonce's array itself: connections keep theirs, so most shares need no text key. */
  readonly #known = new WeakSet<Bytes>();
  readonly #told = new WeakSet<FoundBlock>();

  constructor(dependencies: PoolSinkDependencies) {
    this.#dependencies = dependencies;
  }

  /** After a failure one batch a second may try the disk: the journal recovers with a successful write. */
  get accepting(): boolean {
    const { journal, now } = this.#dependencies;
    return journal.failure === undefined ? journal.accepting : now() - this.#failedAt >= RETRY_MILLIS;
  }

  async #keep(records: readonly JournalRecord[]): Promise<void> {
    const { journal, outbox, now, log } = this.#dependencies;
    const encoded = records.map(encodeRecord);
    if (encoded.length === 0) return;
    let first: number;
    try {
      first = await journal.append(encoded);
    } catch (error) {
      if (now() - this.#failedAt >= RETRY_MILLIS) log.error('the journal cannot be written', { error });
      this.#failedAt = now();
      throw error;
    }
    outbox.push(encoded.map((record, i) => ({ bootId: journal.bootId, sequence: first + i, record })));
  }

  /**
   * Writes nothing: anybody may log in any number of times. Only while the journal cannot be written, one login a second is
   * written to it as a test: otherwise, without any share, it would not be noticed that the disk is writable again.
   */
  async own(ownerships: readonly Ownership[]): Promise<void> {
    const { journal } = this.#dependencies;
    if (!this.accepting) throw journal.failure ?? new Error('the journal is behind');
    if (journal.failure !== undefined) await this.#keep(ownerships.slice(0, 1).map(recordOf));
  }

  /** Owner records for those connections that are not on record yet. */
  #unrecorded(shares: readonly AcceptedShare[]): Map<string, JournalRecord> {
    const records = new Map<string, JournalRecord>();
    for (const { extranonce, service, account, worker } of shares) {
      if (this.#known.has(extranonce)) continue;
      const owner = readExtranonce(extranonce)?.owner;
      if (owner === undefined) continue;
      const key = toHex(owner);
      if (this.#onRecord.has(key)) this.#known.add(extranonce);
      else if (!records.has(key)) records.set(key, recordOf({ owner, service, account, worker }));
    }
    return records;
  }

  async #keepWithOwners(shares: readonly AcceptedShare[], records: readonly JournalRecord[]): Promise<void> {
    const owners = this.#unrecorded(shares);
    await this.#keep([...owners.values(), ...records]);
    for (const key of owners.keys()) this.#onRecord.add(key);
    for (const key of this.#onRecord)
      if (this.#onRecord.size > MAX_ON_RECORD) this.#onRecord.delete(key);
      else break;
  }

  knowsFinder(block: FoundBlock): boolean {
    return this.#unrecorded([block]).size === 0;
  }

  async shares(shares: readonly AcceptedShare[]): Promise<void> {
    await this.#keepWithOwners(
      shares,
      shares.map((share) => ({
        kind: 'share',
        service: serviceOf(share.service),
        account: share.account,
        worker: share.worker,
        work: share.work,
        atMillis: share.atMillis,
        identity: { anchorHeight: share.cutHeight, bytes: shareIdentity(share.headerDigest, share.nonce) },
      })),
    );
    this.#dependencies.listener?.shares?.(shares);
  }

  /** The journal is the truth: what it has is booked, answered or not. */
  async stored(identities: readonly Bytes[], boots: readonly Bytes[]): Promise<readonly boolean[]> {
    const names = identities.map(toHex);
    const { directory } = this.#dependencies.journal;
    const kept = await sharesAtEnds(directory, boots.map(toHex), new Set(names));
    return names.map((name) => kept.has(name));
  }

  refused(shares: readonly RefusedShare[]): void {
    this.#dependencies.listener?.refused?.(shares);
  }

  /**
   * If the journal fails here, the finder is still known if the connection is on record by an earlier share. If not,
   * this is called again.
   */
  async block(block: FoundBlock): Promise<void> {
    if (!this.#told.has(block)) this.#dependencies.listener?.block?.(block);
    this.#told.add(block);
    await this.#keepWithOwners(
      [block],
      [
        {
          kind: 'block',
          service: serviceOf(block.service),
          account: block.account,
          worker: block.worker,
          blockId: block.blockId,
          anchorHeight: block.anchorHeight,
          target: block.target,
          extranonce: block.extranonce,
          atMillis: block.atMillis,
          carried: block.carried,
        },
      ],
    );
  }

  async blockFate(blockId: Bytes, fate: BlockFate): Promise<void> {
    this.#dependencies.listener?.blockFate?.(blockId, fate);
  }

  worker(event: WorkerEvent): void {
    this.#dependencies.listener?.worker?.(event);
  }

  async balance(_service: string, account: Bytes): Promise<{ pending: bigint; paid: bigint } | undefined> {
    return this.#dependencies.balance?.(account);
  }
}

const recordOf = ({ owner, service, account, worker }: Ownership): JournalRecord => ({
  kind: 'ownership',
  owner,
  service: serviceOf(service),
  account,
  worker,
});

function serviceOf(name: string): Service {
  const service = SERVICES.find((known) => known === name);
  if (service === undefined) throw new Error(`the pool has no service '${name}'`);
  return service;
}
