/**
 * Makes the store of a node from a snapshot. It is written into a separate folder, piece by piece, each proven before;
 * the folder becomes the store once it is complete. A node that is killed meanwhile starts again, and the files of a
 * refused snapshot are deleted.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, concat, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { encodeCertificate } from '../../protocol/ledger/cut.ts';
import { encodeGenesis, type Genesis } from '../../protocol/ledger/genesis.ts';
import { syncDirectory, syncFiles } from '../../runtime/files/durable-file.ts';
import { INDEX_NAME } from '../index/index-keys.ts';
import { indexedOperation, registeredKeyOperation, unspentOperations } from '../index/unspent-index.ts';
import { outputOfEntry } from '../ledger/output-set.ts';
import { targetOfRate } from '../ledger/retarget.ts';
import { positionOfEntry } from '../ledger/staking/position.ts';
import { encodeState } from '../ledger/state.ts';
import { EMPTY_TRIE, Trie, type TrieRoot } from '../ledger/trie.ts';
import type { BatchOp } from '../store/batch.ts';
import { markHeight } from '../store/body-pruning.ts';
import { type Database, openDatabase, originOperations } from '../store/database.ts';
import { KEYS } from '../store/keys.ts';
import { encodeBlockRecord, encodeRecordedCut } from '../store/records.ts';
import { ownedOperations } from '../store/staking-sets.ts';
import type { ProvenPiece } from './beside-entries.ts';
import { SET_NAMES, SETS, type SetName } from './committed-sets.ts';
import { readSnapshot, type SnapshotFigures, type SnapshotSink } from './read-snapshot.ts';
import { falsePart, SnapshotError } from './snapshot-error.ts';
import { checkAge, type ProvenHead } from './snapshot-head.ts';
import type { CutWork } from './snapshot-parts.ts';

export type InstallSettings = {
  readonly file: string;
  /** Identifier of the cut that is trusted. */
  readonly trust: Bytes;
  /** Path of the store, which does not exist yet. */
  readonly storeDirectory: string;
  readonly network: Genesis['network'];
  /** The required chain; without it, any chain of the network. */
  readonly genesis?: Genesis | undefined;
  readonly nowMillis: number;
  /** After every piece. */
  readonly onPiece?: (pieces: number) => Promise<void> | void;
};

/** Undefined if a store exists: a node is restarted with the same options. */
export async function installSnapshot(settings: InstallSettings): Promise<SnapshotFigures | undefined> {
  const { file, trust, storeDirectory } = settings;
  const unfinished = `${storeDirectory}.snapshot`;
  await rm(unfinished, { recursive: true, force: true });
  if (await hasChain(storeDirectory)) return undefined;
  await rm(storeDirectory, { recursive: true, force: true });
  await mkdir(dirname(storeDirectory), { recursive: true });
  let store: StoreOfSnapshot | undefined;
  try {
    store = new StoreOfSnapshot(await openDatabase(unfinished), settings);
    const figures = await readSnapshot(file, trust, store);
    await store.finish();
    // The store syncs only its newest log file, not earlier ones.
    await syncFiles(unfinished);
    await rename(unfinished, storeDirectory);
    await syncDirectory(dirname(storeDirectory));
    return figures;
  } catch (error) {
    await store?.close();
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

/** A start that failed leaves a store without one. */
export async function hasChain(storeDirectory: string): Promise<boolean> {
  if (!existsSync(storeDirectory)) return false;
  const db = await openDatabase(storeDirectory);
  const has = db.getSync(KEYS.genesis) !== undefined;
  await db.close();
  return has;
}

/** Whether a node that is to begin with this chain may begin with this snapshot. */
export function checkWanted(
  head: ProvenHead,
  { network, genesis, nowMillis }: Pick<InstallSettings, 'network' | 'genesis' | 'nowMillis'>,
): void {
  if (head.genesis.network !== network)
    throw new SnapshotError('snapshot_other_chain', `the snapshot is of ${head.genesis.network}, not of ${network}`);
  if (genesis !== undefined && !equalBytes(encodeGenesis(genesis), encodeGenesis(head.genesis)))
    throw new SnapshotError('snapshot_other_chain', 'the snapshot is of another chain than the genesis document');
  checkAge(head.cut.header, nowMillis);
}

const index = KEYS.index(INDEX_NAME);
const indexed = (operation: BatchOp): BatchOp => ({ ...operation, key: concat(index, operation.key) });

const NO_FIGURES = {
  outputs: 0n,
  bonded: 0n,
  unbonding: 0n,
  workReserve: 0n,
  stakeReserve: 0n,
  burned: 0n,
  minted: 0n,
  unscheduled: 0n,
};

class StoreOfSnapshot implements SnapshotSink {
  readonly #db: Database;
  readonly #settings: InstallSettings;
  readonly #tries: Readonly<Record<SetName, Trie>>;
  readonly #roots: Record<SetName, TrieRoot>;
  #head: ProvenHead | undefined;
  #pieces = 0;

  constructor(db: Database, settings: InstallSettings) {
    this.#db = db;
    this.#settings = settings;
    const each = <T>(of: (set: SetName) => T) =>
      Object.fromEntries(SET_NAMES.map((set) => [set, of(set)])) as Record<SetName, T>;
    this.#tries = each((set) => new Trie(SETS[set].layout, (key) => db.getSync(key)));
    this.#roots = each(() => EMPTY_TRIE);
  }

  get #proven(): ProvenHead {
    if (this.#head === undefined) throw new Error('the head of a snapshot comes first');
    return this.#head;
  }

  head(head: ProvenHead): void {
    checkWanted(head, this.#settings);
    this.#head = head;
  }

  async work(cuts: readonly CutWork[]): Promise<void> {
    const operations: BatchOp[] = [];
    let open = 0;
    for (const { cut, blocks, rate } of cuts) {
      const registered = cut.blockIds.map((id, i) => ({ id, work: blocks[i]?.work ?? 0n }));
      const transactionCount = blocks.reduce((sum, block) => sum + block.transactionCount, 0);
      // Results of execution are not known for these cuts, and not shown (`historyFrom`).
      const unknown = { executedBlocks: 0, rewards: [], stakePayouts: [], subsidy: 0n, fees: 0n, figures: NO_FIGURES };
      const { headerBytes } = cut;
      const record = { ...unknown, headerBytes, registered, transactionCount, nextTarget: targetOfRate(rate) };
      operations.push({ type: 'put', key: KEYS.cut(cut.header.height), value: encodeRecordedCut(record) });
      for (const { record: block } of blocks)
        if (block !== undefined) {
          operations.push({ type: 'put', key: KEYS.block(block.id), value: encodeBlockRecord(block) });
          open++;
        }
    }
    if (open !== this.#proven.state.windows.reduce((sum, { blocks }) => sum + blocks.length, 0))
      throw falsePart('a block of an open window is in none of the cuts');
    await this.#db.batch(operations);
  }

  async piece(piece: ProvenPiece): Promise<void> {
    const { set, entries } = piece;
    const { keyBytes } = SETS[set].layout;
    const changes = entries.map((entry) => ({ key: entry.subarray(0, keyBytes), entry }));
    const update = this.#tries[set].update(this.#roots[set], changes);
    await this.#db.batch([...update.operations, ...this.#beside(piece)]);
    this.#tries[set].committed(update);
    this.#roots[set] = update.root;
    await this.#settings.onPiece?.(++this.#pieces);
  }

  /** The records that the store keeps beside the sets, and the index. */
  #beside({ set, entries, beside }: ProvenPiece): BatchOp[] {
    const { height } = this.#proven.state;
    switch (set) {
      case 'outputs': {
        const reader = { get: (key: Bytes) => this.#db.getSync(concat(index, key)) };
        return unspentOperations(entries.map(outputOfEntry), height, reader).map(indexed);
      }
      case 'keys':
        return beside.flatMap((publicKey): BatchOp[] => {
          const address = keyAddressPayload(publicKey);
          return [
            { type: 'put', key: KEYS.publicKey(address), value: publicKey },
            indexed(registeredKeyOperation(address, height)),
          ];
        });
      case 'validators':
        return beside.map((value, i) => ({
          type: 'put',
          key: KEYS.validator((entries[i] as Bytes).subarray(0, ID_BYTES)),
          value,
        }));
      case 'positions':
        return entries.flatMap((entry) => ownedOperations(positionOfEntry(entry), 'put'));
      default:
        return [];
    }
  }

  /** Completes the store: everything is compared once more, and on disk when this resolves. */
  async finish(): Promise<void> {
    const { state, genesis, certificate, committees } = this.#proven;
    const { height } = state;
    for (const set of SET_NAMES)
      if (!equalBytes(this.#roots[set].digest, state[set].digest))
        throw falsePart(`the pieces of ${set} are not the set`);
    const put = (key: Bytes, value: Bytes): BatchOp => ({ type: 'put', key, value });
    const stateBytes = encodeState(state);
    await this.#db.batch(
      [
        ...originOperations(encodeGenesis(genesis)),
        put(KEYS.state, stateBytes),
        put(KEYS.steppedState(height), stateBytes),
        put(KEYS.certificate(height), encodeCertificate(certificate)),
        ...committees.map(({ epoch, bytes }) => put(KEYS.committee(epoch), bytes)),
        ...state.windows.map(({ anchorHeight, bytes }) => put(KEYS.window(anchorHeight), bytes)),
        markHeight(KEYS.began, height),
        // These cuts cannot be served to peers.
        markHeight(KEYS.pruned, height),
        indexed(indexedOperation(height)),
      ],
      { sync: true },
    );
    await this.close();
  }

  async close(): Promise<void> {
    await this.#db.close();
  }
}
