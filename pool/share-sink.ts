/**
 * The pool's side of the stratum server (bridge/sink.ts): every ownership, share and block is in the local journal, on disk,
 * before its call resolves, and in the outbox right after. A journal that cannot write stops the taking of shares, and
 * nothing else does: neither the database nor Redis is asked for anything here.
 */
import type {
  AcceptedShare,
  BlockFate,
  FoundBlock,
  Ownership,
  RefusedShare,
  ShareSink,
  WorkerEvent,
} from '../bridge/sink.ts';
import type { Bytes } from '../protocol/bytes.ts';
import { shareIdentity } from '../protocol/share-identity.ts';
import type { Logger } from '../runtime/log.ts';
import type { Outbox } from './feed/outbox.ts';
import type { Journal } from './journal.ts';
import { encodeRecord, type JournalRecord, SERVICES, type Service } from './journal-record.ts';

/** How long a journal that failed is left alone before the next share tries it again. */
const RETRY_MILLIS = 1_000;

/** What the rest of the pool likes to hear at once; the books do not depend on it. */
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
  readonly now: () => number;
  readonly listener?: SinkListener;
  readonly balance?: (account: Bytes) => Promise<{ pending: bigint; paid: bigint } | undefined>;
};

export class PoolSink implements ShareSink {
  readonly #dependencies: PoolSinkDependencies;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(dependencies: PoolSinkDependencies) {
    this.#dependencies = dependencies;
  }

  /** After a failure one batch a second may try the disk: the journal recovers by a write that succeeds. */
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

  async own(ownerships: readonly Ownership[]): Promise<void> {
    await this.#keep(
      ownerships.map((ownership) => ({
        kind: 'ownership',
        owner: ownership.owner,
        service: serviceOf(ownership.service),
        account: ownership.account,
        worker: ownership.worker,
      })),
    );
  }

  async shares(shares: readonly AcceptedShare[]): Promise<void> {
    await this.#keep(
      shares.map((share) => ({
        kind: 'share',
        service: serviceOf(share.service),
        account: share.account,
        worker: share.worker,
        work: share.work,
        atMillis: share.atMillis,
        identity: { anchorHeight: share.anchorHeight, bytes: shareIdentity(share.headerDigest, share.nonce) },
      })),
    );
    this.#dependencies.listener?.shares?.(shares);
  }

  refused(shares: readonly RefusedShare[]): void {
    this.#dependencies.listener?.refused?.(shares);
  }

  /** Should the journal fail here, the reward still finds its owner: the ownership was on disk before the first job. */
  async block(block: FoundBlock): Promise<void> {
    this.#dependencies.listener?.block?.(block);
    await this.#keep([
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
    ]);
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

function serviceOf(name: string): Service {
  const service = SERVICES.find((known) => known === name);
  if (service === undefined) throw new Error(`the pool has no service '${name}'`);
  return service;
}
