/**
 * The store of a node: one embedded key-value database. Everything a cut changes goes into one atomic, synced batch, so after any crash the
 * store is at a finalized cut. Waiting blocks are written when they are accepted, so a crash does not lose a miner's block.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { CodedError } from '../../protocol/coded-error.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { type Certificate, decodeCertificate, encodeCertificate } from '../../protocol/ledger/cut.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import type { BlockRecord, CutRecord, PositionsPage } from '../full-node.ts';
import type { AppliedCut } from '../ledger/apply-cut.ts';
import { isFaultOfCopy } from '../ledger/effects.ts';
import type { LedgerTries } from '../ledger/genesis-cut.ts';
import { KEY_LAYOUT, OUTPUT_LAYOUT, outpointKey } from '../ledger/output-set.ts';
import { type Committee, decodeCommittee } from '../ledger/staking/committee.ts';
import { decodeValidator, type Validator } from '../ledger/staking/validator.ts';
import { decodeState, type LedgerState } from '../ledger/state.ts';
import { Trie } from '../ledger/trie.ts';
import { DamagedRecordError, decodeRecord, UnreadRecordError } from '../ledger/unread-record.ts';
import { markedHeight, pruneBodies } from './body-pruning.ts';
import type { BatchOp, CutIndexer, RangeOptions, StoreReader } from './cut-indexer.ts';
import { type Database, FORMAT, type FrozenStore, freeze, openDatabase, originOperations } from './database.ts';
import { CERTIFICATE_STEP, certificatesToDrop, endsStep } from './kept-certificates.ts';
import { KEYS } from './keys.ts';
import {
  decodeBlockRecord,
  decodeCutRecord,
  decodeTransactionRecord,
  encodeBlockRecord,
  encodeCutRecord,
  encodeTransactionRecord,
  type TransactionRecord,
} from './records.ts';
import { StakingSets } from './staking-sets.ts';
import type { StorageMode } from './storage-mode.ts';

const MEBIBYTE = 1024 * 1024;

export const STORE_ERROR_CODES = ['store_format', 'store_genesis', 'store_damaged', 'store_checkpoint'] as const;

export class StoreError extends CodedError<(typeof STORE_ERROR_CODES)[number]> {
  override readonly name = 'StoreError';
}

/** `durable: false` does not wait for the disk: for stores that can be rebuilt. */
export type StoreOptions = { readonly durable?: boolean; readonly mode?: StorageMode };

/**
 * States after cuts that end a step of 96: a snapshot contains its own and the previous one, whose work rate gives the
 * targets of the 96 anchors in between. The last two are kept, a few kB each.
 */
function steppedStateOperations(height: number, stateBytes: Bytes): BatchOp[] {
  if (!endsStep(height)) return [];
  const operations: BatchOp[] = [{ type: 'put', key: KEYS.steppedState(height), value: stateBytes }];
  const old = height - 2 * CERTIFICATE_STEP;
  if (old >= 0) operations.push({ type: 'del', key: KEYS.steppedState(old) });
  return operations;
}

export class LedgerStore {
  readonly outputTrie: Trie;
  readonly keyTrie: Trie;
  readonly staking: StakingSets;
  readonly #db: Database;
  readonly #durable: boolean;
  readonly #beganAt: number;
  readonly mode: StorageMode;

  private constructor(db: Database, { durable = true, mode = 'full' }: StoreOptions) {
    this.#db = db;
    this.#durable = durable;
    this.#beganAt = markedHeight(db, KEYS.began);
    this.mode = mode;
    const read = (key: Bytes) => this.get(key);
    this.outputTrie = new Trie(OUTPUT_LAYOUT, read);
    this.keyTrie = new Trie(KEY_LAYOUT, read);
    this.staking = new StakingSets(read);
  }

  static async open(directory: string, options: StoreOptions = {}): Promise<LedgerStore> {
    const db = await openDatabase(directory);
    const store = new LedgerStore(db, options);
    const format = store.get(KEYS.format);
    if (format !== undefined && Buffer.from(format).toString() !== FORMAT) {
      await db.close();
      const says = `the data directory has the format ${Buffer.from(format)}, and this release reads ${FORMAT}`;
      throw new StoreError('store_format', `${says}: use the release that wrote it, or a new data directory`);
    }
    await store.staking.load((from, to) => store.range(from, to));
    return store;
  }

  get(key: Bytes): Uint8Array | undefined {
    try {
      return this.#db.getSync(key);
    } catch (cause) {
      throw new UnreadRecordError(`the store could not be read: ${(cause as Error).message}`, { cause });
    }
  }

  async range(from: Bytes, to: Bytes, options: RangeOptions = {}): Promise<[Uint8Array, Uint8Array][]> {
    const { limit = -1, reverse = false } = options;
    return await this.#db.iterator({ gte: from, lt: to, limit, reverse, highWaterMarkBytes: MEBIBYTE }).all();
  }

  async values(from: Bytes, to: Bytes, { limit = -1, reverse = false }: RangeOptions = {}): Promise<Uint8Array[]> {
    return await this.#db.values({ gte: from, lt: to, limit, reverse, highWaterMarkBytes: MEBIBYTE }).all();
  }

  /** An index sees its own keys only, without the prefix. */
  reader(name: string): StoreReader {
    const prefix = KEYS.index(name);
    const inside = (key: Bytes) => Buffer.concat([prefix, key]);
    return {
      get: (key) => this.get(inside(key)),
      range: async (from, to, options) => {
        const found = await this.range(inside(from), inside(to), options);
        return found.map(([key, value]) => [key.subarray(prefix.length), value]);
      },
      values: (from, to, options) => this.values(inside(from), inside(to), options),
    };
  }

  /**
   * Replaces this store's index by another store's. `headKey` is deleted first and written last: an index without it
   * counts as missing, so a crash in between cannot leave an incomplete one in use.
   */
  async replaceIndex(name: string, headKey: Bytes, from: LedgerStore): Promise<void> {
    const prefix = KEYS.index(name);
    const head = Buffer.concat([prefix, headKey]);
    const end = Buffer.from(prefix);
    end[end.length - 1] = 1;
    await this.#db.del(head, { sync: true });
    await this.#db.clear({ gte: prefix, lt: end });
    let [operations, bytes]: [BatchOp[], number] = [[], 0];
    for await (const [key, value] of from.#db.iterator({ gte: prefix, lt: end })) {
      if (Buffer.compare(key, head) === 0) continue;
      operations.push({ type: 'put', key, value });
      bytes += key.length + value.length;
      if (bytes < MEBIBYTE) continue;
      await this.#db.batch(operations);
      [operations, bytes] = [[], 0];
    }
    await this.#db.batch(operations);
    await this.#db.put(head, from.get(head) as Uint8Array, { sync: true });
  }

  /** Preloads the data that a cut with these outputs will read. */
  async readAhead({ outputs }: Pick<LedgerState, 'outputs'>, made: readonly Outpoint[]): Promise<void> {
    await this.outputTrie.readAhead(outputs, made.map(outpointKey), (keys) => this.#db.getMany(keys));
  }

  genesis(): Uint8Array | undefined {
    return this.get(KEYS.genesis);
  }

  state(): LedgerState {
    const bytes = this.get(KEYS.state);
    if (bytes === undefined) throw new StoreError('store_damaged', 'the store has a genesis and no state');
    return decodeState(bytes, {
      window: (anchor) => this.#part(KEYS.window(anchor), `the window of anchor ${anchor}`),
      committee: (epoch) => this.#part(KEYS.committee(epoch), `the committee of epoch ${epoch}`),
    });
  }

  #part(key: Bytes, name: string): Uint8Array {
    const bytes = this.get(key);
    if (bytes === undefined) throw new StoreError('store_damaged', `${name} is missing`);
    return bytes;
  }

  committee(epoch: number): Committee | undefined {
    const bytes = this.get(KEYS.committee(epoch));
    return bytes === undefined ? undefined : decodeCommittee(bytes);
  }

  /** In the order of their identifiers. */
  async validators({ after, limit }: PositionsPage): Promise<Validator[]> {
    const [first, end] = KEYS.validatorRange;
    const from = after === undefined ? first : Buffer.concat([KEYS.validator(after), Buffer.of(0)]);
    return (await this.values(from, end, { limit })).map(decodeValidator);
  }

  /** Identifiers of the positions that an address owns. */
  async ownedPositions(owner: Bytes, { after, limit }: PositionsPage = { limit: -1 }): Promise<Uint8Array[]> {
    const prefix = KEYS.owned(owner, new Uint8Array(0));
    const from = after === undefined ? prefix : Buffer.concat([prefix, after, Buffer.of(0)]);
    const to = Buffer.concat([prefix, new Uint8Array(ID_BYTES + 1).fill(0xff)]);
    return (await this.range(from, to, { limit })).map(([key]) => key.slice(prefix.length));
  }

  /** The sets as execution reads them at a state. */
  sets(state: LedgerState) {
    return {
      outputTrie: this.outputTrie,
      keyTrie: this.keyTrie,
      stakingTries: this.staking.tries,
      staking: this.staking.reads(state),
    };
  }

  get tries(): LedgerTries {
    return { outputTrie: this.outputTrie, keyTrie: this.keyTrie, stakingTries: this.staking.tries };
  }

  cut(height: number): CutRecord | undefined {
    return decodeRecord(this.get(KEYS.cut(height)), decodeCutRecord);
  }

  certificate(height: number): Certificate | undefined {
    const bytes = this.get(KEYS.certificate(height));
    return bytes === undefined ? undefined : decodeCertificate(bytes);
  }

  block(id: Bytes): BlockRecord | undefined {
    return decodeRecord(this.get(KEYS.block(id)), (bytes) => decodeBlockRecord(id, bytes));
  }

  body(id: Bytes): Uint8Array | undefined {
    return this.get(KEYS.body(id));
  }

  transaction(id: Bytes): TransactionRecord | undefined {
    return decodeRecord(this.get(KEYS.transaction(id)), decodeTransactionRecord);
  }

  spender(outpoint: Outpoint): Uint8Array | undefined {
    return this.get(KEYS.spender(outpoint));
  }

  publicKey(address: Bytes): Uint8Array | undefined {
    return this.get(KEYS.publicKey(address));
  }

  /** Identifier and PoW hash of every block that waits. */
  async waitingKeys(): Promise<{ id: Uint8Array; hash: Uint8Array }[]> {
    return (await this.range(...KEYS.waitingRange)).map(([key, hash]) => ({ id: key.slice(1), hash }));
  }

  /** Undefined when a part is missing; throws when one cannot be read. */
  waitingBlock(id: Bytes): { record: BlockRecord; body: Uint8Array } | undefined {
    const [record, body] = [this.block(id), this.body(id)];
    return record === undefined || body === undefined ? undefined : { record, body };
  }

  /** Removes blocks that no cut shall take. Decisions of cuts about blocks stay. */
  async removeWaiting(ids: readonly Bytes[]): Promise<void> {
    const registered = this.state().windows.flatMap((window) => window.blocks);
    const operations: BatchOp[] = [];
    for (const id of ids) {
      operations.push({ type: 'del', key: KEYS.waiting(id) });
      if (registered.some((block) => equalBytes(block.id, id)) || this.#isDecided(id)) continue;
      operations.push({ type: 'del', key: KEYS.block(id) }, { type: 'del', key: KEYS.body(id) });
    }
    await this.#db.batch(operations, { sync: this.#durable });
  }

  /** An unreadable record counts as missing. */
  #isDecided(id: Bytes): boolean {
    try {
      const record = this.block(id);
      return record !== undefined && (record.registeredHeight !== undefined || record.reward.state !== 'waiting');
    } catch (error) {
      if (error instanceof DamagedRecordError) return false;
      throw error;
    }
  }

  /**
   * Not synced: it survives a crash of the process; a power failure loses at most blocks that no cut has taken and no
   * validator is locked on.
   */
  async addWaiting(record: BlockRecord, body: Bytes, hash: Bytes): Promise<void> {
    await this.#db.batch([
      { type: 'put', key: KEYS.block(record.id), value: encodeBlockRecord(record) },
      { type: 'put', key: KEYS.body(record.id), value: body },
      { type: 'put', key: KEYS.waiting(record.id), value: hash },
    ]);
  }

  /** When this resolves, all unsynced writes are on disk. */
  async sync(): Promise<void> {
    await this.#db.del(KEYS.nothing, { sync: this.#durable });
  }

  /** Writes one cut atomically; it is on disk when this resolves. */
  async commit(
    cut: AppliedCut,
    certificate: Certificate,
    indexers: readonly CutIndexer[],
    genesisBytes?: Bytes,
  ): Promise<void> {
    const operations = this.#operations(cut, certificate);
    if (genesisBytes !== undefined) operations.push(...originOperations(genesisBytes));
    for (const indexer of indexers) {
      const prefix = KEYS.index(indexer.name);
      for (const operation of indexer.operations(cut.effects, this.reader(indexer.name)))
        operations.push({ ...operation, key: Buffer.concat([prefix, operation.key]) });
    }
    // Checks that read meanwhile see the sets of the previous cut: the tries keep the previous values.
    await this.#db.batch(operations, { sync: this.#durable });
    this.outputTrie.committed(cut.outputs);
    this.keyTrie.committed(cut.keys);
    this.staking.committed(cut.staking, cut.effects.staking);
  }

  #operations(cut: AppliedCut, certificate: Certificate): BatchOp[] {
    const { effects } = cut;
    const { height } = effects.header;
    const operations: BatchOp[] = [
      ...cut.outputs.operations,
      ...cut.keys.operations,
      ...this.staking.operations(cut.staking, effects.staking),
      ...steppedStateOperations(height, cut.stateBytes),
    ];
    const put = (key: Bytes, value: Bytes) => operations.push({ type: 'put', key, value });
    const del = (key: Bytes) => operations.push({ type: 'del', key });
    put(KEYS.state, cut.stateBytes);
    put(KEYS.cut(height), encodeCutRecord(effects));
    put(KEYS.certificate(height), encodeCertificate(certificate));
    for (const old of certificatesToDrop(height, cut.state.intervalCuts, this.mode)) del(KEYS.certificate(old));
    if (cut.committee !== undefined) put(KEYS.committee(cut.committee.epoch), cut.committee.bytes);
    for (const window of cut.windows) put(KEYS.window(window.anchorHeight), window.bytes);
    if (cut.closedAnchor !== undefined) del(KEYS.window(cut.closedAnchor));
    for (const { address, publicKey } of effects.keys) put(KEYS.publicKey(address), publicKey);
    for (const { outpoint, spentBy } of effects.spent) put(KEYS.spender(outpoint), spentBy);
    this.#transactionOperations(effects, put);
    this.#blockOperations(effects, put, del);
    return operations;
  }

  #transactionOperations(
    { transactions, lost, header }: AppliedCut['effects'],
    put: (key: Bytes, value: Bytes) => void,
  ) {
    for (const { id, reason } of lost)
      put(KEYS.transaction(id), encodeTransactionRecord({ outcome: reason, height: header.height }));
    // An execution takes precedence over any other result of the same transaction in this or another cut.
    const ranked = [...transactions].sort(
      (a, b) => Number(a.outcome === 'executed') - Number(b.outcome === 'executed'),
    );
    for (const transaction of ranked) {
      if (transaction.outcome === 'repeated') continue;
      // A copy with bad witnesses says nothing about the transaction, and a final result does not change.
      if (transaction.outcome === 'failed' && (isFaultOfCopy(transaction) || this.#isFinal(transaction.id))) continue;
      const outcome = transaction.outcome === 'executed' ? 'executed' : transaction.reason;
      const carriedBy = { blockId: transaction.blockId, index: transaction.index };
      put(KEYS.transaction(transaction.id), encodeTransactionRecord({ outcome, height: header.height, carriedBy }));
    }
  }

  #isFinal(id: Bytes): boolean {
    const outcome = this.transaction(id)?.outcome;
    return outcome === 'executed' || outcome === 'conflict' || outcome === 'expired';
  }

  #blockOperations(
    effects: AppliedCut['effects'],
    put: (key: Bytes, value: Bytes) => void,
    del: (key: Bytes) => void,
  ): void {
    const { height } = effects.header;
    // A block may be registered and paid by the same cut, the last of its window.
    const changed = new Map<string, BlockRecord>();
    const change = (id: Bytes, next: (record: BlockRecord) => BlockRecord) => {
      const name = Buffer.from(id).toString('latin1');
      const record = changed.get(name) ?? this.block(id);
      if (record === undefined) throw new StoreError('store_damaged', 'a registered block has no record');
      changed.set(name, next(record));
    };
    for (const { id, feeShare } of effects.registered) {
      change(id, (record) => ({ ...record, registeredHeight: height, reward: { state: 'pending', fees: feeShare } }));
      del(KEYS.waiting(id));
    }
    for (const { blockId, subsidy, fees, amount } of effects.rewards)
      change(blockId, (record) => ({
        ...record,
        reward: { state: 'paid', height, reward: { subsidy, fees, amount } },
      }));
    for (const { id } of effects.expired) {
      change(id, (record) => ({ ...record, reward: { state: 'expired' } }));
      del(KEYS.waiting(id));
      del(KEYS.body(id));
    }
    for (const record of changed.values()) put(KEYS.block(record.id), encodeBlockRecord(record));
  }

  /** The last cut whose bodies were deleted; -1 if none were. */
  prunedThrough(): number {
    return markedHeight(this.#db, KEYS.pruned);
  }

  /** The cut of the snapshot that the store began with; -1 if it began with genesis. */
  beganAt(): number {
    return this.#beganAt;
  }

  /** A fixed view of the current state, while cuts continue. */
  frozen(): FrozenStore {
    return freeze(this.#db);
  }

  /** Deletes the bodies of the blocks that cuts up to this height registered; records, rewards and cuts stay. */
  async pruneBodies(height: number): Promise<number> {
    return await pruneBodies(this.#db, height);
  }

  async close(): Promise<void> {
    await this.#db.close();
  }
}
