/**
 * Admission of a work block: the checks (candidate.ts), the record in the store, the pool. Everything is checked before
 * anything is written, and its body is reserved before the write begins, so a written block is never refused
 * afterwards. Blocks that waited at a crash are checked again at the next start: a bad record is set aside and logged,
 * and the node starts without it.
 */
import type { Verifier } from '../../kernels/verifier.ts';
import { type Bytes, compareBytes, toHex } from '../../protocol/bytes.ts';
import { blockId, HEADER_BYTES, type Header } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { LedgerClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { BlockRecord, Origin, Submission } from '../full-node.ts';
import { isWindowOpen, nameOf } from '../ledger/registration.ts';
import type { WorkBlock } from '../ledger/work-block.ts';
import { type NodeError, nodeError } from '../node-error.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import {
  type CandidateContext,
  checkCandidate,
  checkHeaderBytes,
  checkStored,
  meetsBlockTarget,
  recheckCandidate,
} from './candidate.ts';
import type { WaitingBlock, WorkPool } from './work-pool.ts';

export type BlockDoorDependencies = {
  readonly store: Pick<LedgerStore, 'waitingKeys' | 'waitingBlock' | 'addWaiting' | 'removeWaiting'>;
  readonly pool: WorkPool;
  readonly verifier: Pick<Verifier, 'hash' | 'prepare'>;
  readonly log: Logger;
  readonly now: LedgerClock;
  epoch(anchorHeight: number): number;
  context(): CandidateContext;
  /** A block that was registered before this node's history begins, as far as it can tell. */
  isBeforeHistory(id: Bytes): boolean;
  /** It waits for a cut from now on. */
  onAccepted(block: WaitingBlock): void;
  /** It was evicted from the pool, and no cut takes it. */
  onLeft(block: WaitingBlock): void;
  /** The store cannot be written. */
  onFault(error: Error): void;
};

const MAX_EXAMINED = 1_024;

export class BlockDoor {
  readonly #dependencies: BlockDoorDependencies;
  /** Blocks being checked, so that the same one is not hashed twice. */
  readonly #arriving = new Map<string, Promise<Submission>>();
  /** Hashes of headers whose bodies are on their way. */
  readonly #examined = new BoundedMap<string, Bytes>(MAX_EXAMINED);

  constructor(dependencies: BlockDoorDependencies) {
    this.#dependencies = dependencies;
  }

  /** `cutMillis`: a proposed cut of this time names the block. Then the pool makes room for it, another waiting block may have its body, and its time is judged by the cut's. */
  async submit(header: Bytes, body: Bytes, origin: Origin, cutMillis?: number): Promise<Submission> {
    const name = nameOf(header);
    const arriving = this.#arriving.get(name);
    if (arriving !== undefined) {
      const outcome = await arriving;
      if (outcome.status === 'accepted') return { ...outcome, status: 'known' };
      // The other may have come with another body, and a block that was refused alone may still be named by a cut.
      return await this.submit(header, body, origin, cutMillis);
    }
    const arrival = this.#accept(new Uint8Array(header), body, origin, cutMillis);
    this.#arriving.set(name, arrival);
    try {
      return await arrival;
    } finally {
      this.#arriving.delete(name);
    }
  }

  /** Checks header and work, before a body is requested. The hash is cached for when the body arrives. */
  async examineHeader(header: Bytes, cutMillis?: number): Promise<NodeError | undefined> {
    const { epoch, log } = this.#dependencies;
    const checked = checkHeaderBytes(header, this.#context(cutMillis));
    if ('code' in checked) return checked;
    try {
      const hash = await this.#hash(epoch(checked.anchorHeight), header);
      if (!meetsBlockTarget(hash, checked)) return aboveTarget(hash, checked);
      this.#examined.set(nameOf(header), hash);
      return undefined;
    } catch (error) {
      log.error('a block could not be hashed', { error });
      return nodeError('verifier_unavailable', 'the hash could not be computed: try again');
    }
  }

  /** Drops blocks that wait, with their records and hashes, so that they can come anew. */
  async forget(ids: readonly Bytes[]): Promise<void> {
    const { store, pool, onLeft } = this.#dependencies;
    for (const id of ids) {
      const block = pool.forget(id);
      if (block === undefined) continue;
      this.#examined.delete(nameOf(block.headerBytes));
      onLeft(block);
    }
    await store.removeWaiting(ids);
  }

  /** Waits until no accepted block is still being written. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#arriving.values());
  }

  #context(cutMillis: number | undefined): CandidateContext {
    const { context: contextNow, isBeforeHistory: isKnownParent } = this.#dependencies;
    const context = contextNow();
    if (cutMillis === undefined) return context;
    return { ...context, nowMillis: cutMillis, isBodyUsed: context.isBodyRegistered, isKnownParent };
  }

  async #accept(header: Bytes, body: Bytes, origin: Origin, cutMillis: number | undefined): Promise<Submission> {
    const { epoch, log, pool } = this.#dependencies;
    const context = () => this.#context(cutMillis);
    // A body takes milliseconds to read, and its sender need not have worked for it.
    const isKnown = header.length === HEADER_BYTES && context().isKnownBlock(blockId(header));
    const wrong = origin === 'relayed' && !isKnown ? await this.examineHeader(header, cutMillis) : undefined;
    if (wrong !== undefined) return refused(wrong);
    const checked = checkCandidate(header, body, context());
    if ('known' in checked) return { status: 'known', id: checked.known };
    // A second block with the body of another is refused all the same, and has to show its work for that.
    const block = 'block' in checked ? checked.block : checked.error.code === 'body_used' && checked.misplaced;
    if (!block) return refused((checked as { readonly error: NodeError }).error);
    let hash: Bytes;
    try {
      hash = await this.#hash(epoch(block.header.anchorHeight), header);
    } catch (error) {
      log.error('a block could not be hashed', { block: block.id, error });
      return refused(nodeError('verifier_unavailable', 'the hash could not be computed: try again'));
    }
    if (!meetsBlockTarget(hash, block.header)) return refused(aboveTarget(hash, block.header));
    // A cut, or a block with the same body, may have arrived while the hash was computed. From here to the write there
    // is no await.
    const again = recheckCandidate(block, context());
    if ('known' in again) return { status: 'known', id: again.known };
    if ('error' in again) {
      if (again.error.code === 'body_used') pool.contest(block.bodyId);
      return refused(again.error);
    }
    return await this.#takeIn(block, hash, origin, cutMillis !== undefined);
  }

  /** An epoch that begins just now may not be prepared yet. */
  async #hash(epoch: number, header: Bytes): Promise<Bytes> {
    const known = this.#examined.get(nameOf(header));
    if (known !== undefined) return known;
    await this.#dependencies.verifier.prepare(epoch);
    return await this.#dependencies.verifier.hash(epoch, header);
  }

  async #takeIn(block: WorkBlock, hash: Bytes, origin: Origin, isNamed: boolean): Promise<Submission> {
    const { pool, store, now, context, onAccepted, onFault } = this.#dependencies;
    if (!isNamed && pool.roomFor(hash, block.bodyBytes.length) === undefined) return refused(queueFull());
    pool.hold(block);
    const record = recordOf(block, now(), origin);
    // In the pool only once it is in the store: a cut must find the record of every block it registers. One that had to leave the
    // pool is there still; written again, it could take the place of what a cut is just writing about it.
    try {
      if (!pool.isOutside(block.id)) await store.addWaiting(record, block.bodyBytes, hash);
    } catch (error) {
      onFault(error as Error);
      return refused(nodeError('node_stopped', 'the node is stopping'));
    }
    const waiting = { ...block, hash, record };
    if (isNamed) pool.add(waiting);
    else if (!this.#enter(waiting)) return refused(queueFull());
    // The cut that closed its window arrived during the write: the next one marks it as expired.
    const { headHeight } = context();
    if (!isWindowOpen(block.header.anchorHeight, headHeight + 1))
      return refused(nodeError('block_too_late', 'its window has just closed', { head_height: headHeight }));
    onAccepted(waiting);
    return { status: 'accepted', id: block.id };
  }

  /** False when there is no room; it stays on record until its window closes. */
  #enter(block: WaitingBlock): boolean {
    const { pool, onLeft } = this.#dependencies;
    const leaving = pool.roomFor(block.hash, block.bodyBytes.length);
    if (leaving === undefined) {
      pool.leaveOut(block);
      return false;
    }
    for (const other of leaving) {
      pool.leaveOut(other);
      onLeft(other);
    }
    pool.add(block);
    return true;
  }

  /** Loads the blocks that waited when the node ended. Lowest hashes first: those a cut would take first. */
  async reload(): Promise<{ readonly waiting: number; readonly setAside: number }> {
    const { store, pool, log } = this.#dependencies;
    const keys = await store.waitingKeys();
    keys.sort((a, b) => compareBytes(a.hash, b.hash));
    const onRecord = new Set(keys.map(({ id }) => nameOf(id)));
    const bad: Bytes[] = [];
    for (const { id, hash } of keys) {
      const checked = this.#recheck(id, hash, onRecord);
      if ('error' in checked) {
        log.warn('a waiting block is set aside', {
          block: id,
          code: checked.error.code,
          reason: checked.error.message,
        });
        bad.push(id);
      } else {
        this.#enter(checked.block);
        // Whether a second block with its body was seen is not known any more.
        pool.contest(checked.block.bodyId);
      }
    }
    if (bad.length > 0) await store.removeWaiting(bad);
    return { waiting: pool.count, setAside: bad.length };
  }

  #recheck(id: Bytes, hash: Bytes, onRecord: ReadonlySet<string>) {
    const now = this.#dependencies.context();
    // Parents may come later in the list; whether they can be registered is checked by every cut. Its time was valid
    // when it arrived.
    const context: CandidateContext = {
      ...now,
      nowMillis: Number.MAX_SAFE_INTEGER,
      isKnownBlock: (parent) => onRecord.has(nameOf(parent)) || now.isKnownBlock(parent),
    };
    try {
      const stored = this.#dependencies.store.waitingBlock(id);
      if (stored === undefined) return { error: nodeError('body_malformed', 'its record or body is missing') };
      const { record, body } = stored;
      if (record.registeredHeight !== undefined || record.reward.state !== 'waiting')
        return { error: nodeError('block_too_late', 'a cut has decided about it already') };
      const checked = checkStored(record.header, body, context);
      if ('error' in checked) return checked;
      const { block } = checked;
      if (compareBytes(block.id, id) !== 0) return { error: nodeError('header_malformed', 'its header is another') };
      if (!meetsBlockTarget(hash, block.header)) return { error: aboveTarget(hash, block.header) };
      return { block: { ...block, hash, record } };
    } catch (error) {
      return { error: nodeError('body_malformed', `its record cannot be read: ${(error as Error).message}`) };
    }
  }
}

const refused = (error: NodeError): Submission => ({ status: 'refused', error });
const aboveTarget = (hash: Bytes, { target }: Pick<Header, 'target'>): NodeError =>
  nodeError('pow_above_target', 'the hash is above the target', { found: toHex(hash), expected: target.toString(16) });
const queueFull = (): NodeError => nodeError('block_queue_full', 'too many blocks with lower hashes wait');

const recordOf = (block: WorkBlock, acceptedMillis: number, origin: Origin): BlockRecord => ({
  id: block.id,
  header: block.headerBytes,
  anchorHeight: block.header.anchorHeight,
  dueHeight: block.header.anchorHeight + REGISTRATION_WINDOW,
  acceptedMillis,
  origin,
  payout: block.body.payout,
  extranonce: block.body.extranonce,
  parents: block.body.parents,
  transactionCount: block.transactions.length,
  reward: { state: 'waiting' },
});
