/**
 * Follows the node: reads every finalized cut into the wallet, in order, each as one atomic write that also moves
 * `indexed_height`. It polls instead of subscribing: a poll has no stream to lose, and a cut comes every few seconds.
 */
import { setImmediate } from 'node:timers/promises';
import type { ChangeDocument } from '../../protocol/api/address-documents.ts';
import type { Manifest } from '../../protocol/api/transaction-documents.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { WallClock } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Messenger } from '../messenger/messenger.ts';
import { missingAddresses, unsearched } from '../state/address-book.ts';
import type { Book } from '../state/book.ts';
import { compareWithNode, cutIdAt, withCheckpoint } from '../state/checkpoints.ts';
import type { Journal } from '../state/journal.ts';
import { type AddressRecord, outputKey } from '../state/records.ts';
import { type Changes, type Meta, newRequestTable, type Stop, type WalletStore } from '../state/store.ts';
import { WalletError } from '../wallet-error.ts';
import { type CutEffects, effectsOf } from './cut-effects.ts';
import {
  batches,
  changesOfAddresses,
  changesOfCut,
  checkManifest,
  genesisOutputs,
  type NodeClient,
  nodeFailure,
  spentGenesisOutputs,
  transactionsOfCut,
} from './node-link.ts';
import { fatesOnThisChain } from './reopening.ts';

/** One read covers at most this many cuts, so that a long catch-up shows progress and survives a stop. */
const SPAN_CUTS = 10_000;

export type NodeState = {
  /** Why the node cannot be used now; null when it can. */
  readonly trouble: WalletError | null;
  readonly synced: boolean;
  readonly behindBy: number;
  readonly finalizedHeight: number;
  readonly manifest: Manifest | null;
};

export type FollowerEvents = {
  /** Called after the write, before anything else reads the book. `live` is false while old cuts are read. */
  cut(height: number, effects: CutEffects, live: boolean): void;
  /** Payments of this wallet were settled in the chain before and are not in this one. */
  reopened(): void;
  /** Events may have been missed or repeated: listeners should catch up. */
  resync(reason: 'rescanned'): void;
};

export type FollowerDependencies = {
  readonly client: NodeClient;
  readonly book: Book;
  readonly store: Pick<WalletStore, 'settledOutgoing' | 'historyOf'>;
  readonly journal: Journal;
  /** Whether this wallet has a record of signing a transaction. */
  readonly isOnRecord: (transaction: string) => Promise<boolean>;
  /** The effects of a cut's transactions on chats. */
  readonly chatsOf: Messenger['chatsOf'];
  readonly keyring: Keyring;
  readonly log: Logger;
  readonly now: WallClock;
  readonly events: FollowerEvents;
};

export class Follower {
  readonly #network: NetworkName;
  readonly #with: FollowerDependencies;
  #state: NodeState = {
    trouble: new WalletError('node_unreachable', 'the node has not answered yet'),
    synced: false,
    behindBy: 0,
    finalizedHeight: 0,
    manifest: null,
  };
  /** The problem that was logged last, if it is not over. */
  #told: string | undefined;
  #running: Promise<void> | undefined;
  #extending: Promise<unknown> = Promise.resolve();
  #rescanning: boolean;
  /** A rescan was asked for: the next pass begins with it. */
  #forgetFirst = false;
  #soundHeight: number;

  constructor(network: NetworkName, dependencies: FollowerDependencies) {
    this.#network = network;
    this.#with = dependencies;
    const { rescan, stopped } = dependencies.book.meta;
    this.#rescanning = rescan !== null;
    // Until the node was asked, or everything was read again, nobody knows what of it is left.
    this.#soundHeight = stopped?.reason === 'chain_rolled_back' ? 0 : Number.POSITIVE_INFINITY;
  }

  get node(): NodeState {
    return this.#state;
  }

  get rescanning(): boolean {
    return this.#rescanning;
  }

  /** Up to this height the node has the chain that was read. Payments shown as final above it may no longer exist. */
  get soundHeight(): number {
    return this.#soundHeight;
  }

  /** Everything the node has finalized so far is in the wallet. */
  get caughtUp(): boolean {
    return !this.#rescanning && this.#with.book.meta.indexedHeight >= this.#state.finalizedHeight;
  }

  /** Reads what is new. Calls at the same time share one pass. */
  step(): Promise<void> {
    this.#running ??= this.#pass().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Reads the whole history again: outputs and history are cleared, requests and labels are kept. */
  async rescan(): Promise<void> {
    this.#rescanning = true;
    this.#forgetFirst = true;
    // A running pass may already be past the point where it clears the history.
    await this.#running?.catch(() => undefined);
    await this.step();
  }

  async #pass(): Promise<void> {
    try {
      await this.#meet();
      if (this.#state.trouble === null) await this.#follow();
    } catch (error) {
      const trouble = nodeFailure(error);
      if (!(trouble instanceof WalletError)) throw error;
      // The manifest is read again: the next answer may come from another node.
      this.#state = { ...this.#state, trouble, synced: false, manifest: null };
    }
    const { trouble } = this.#state;
    if (trouble !== null && this.#told !== trouble.code)
      this.#with.log.warn('node not usable', { code: trouble.code, reason: trouble.message });
    this.#told = trouble?.code;
  }

  async #meet(): Promise<void> {
    const { client, book, log } = this.#with;
    const sync = await client.nodeSync();
    const before = this.#state;
    let { manifest } = before;
    if (manifest === null || sync.finalized_height < before.finalizedHeight) {
      manifest = await client.manifest();
      checkManifest(manifest, this.#network, book.meta.chainId);
      if (book.meta.chainId === null) {
        const met = { chainId: manifest.chain_id, pastThrough: sync.finalized_height };
        await this.#write({ meta: { ...book.meta, ...met } }, true);
      }
      // Later trouble is logged again, even in the same pass.
      this.#told = undefined;
      log.info('node answers', { chain: manifest.chain_id, height: sync.finalized_height, synced: sync.synced });
    }
    // Checked before the node counts as usable: no payment may be made on a chain other than the one that was read.
    const isNews = before.trouble !== null || sync.finalized_height !== before.finalizedHeight;
    const trouble = isNews ? await this.#compare(sync.finalized_height) : null;
    this.#state = {
      trouble,
      synced: sync.synced && trouble === null,
      behindBy: sync.behind_by,
      finalizedHeight: sync.finalized_height,
      manifest,
    };
  }

  /** Whether the node holds the chain that was read. */
  async #compare(head: number): Promise<WalletError | null> {
    const { client, book } = this.#with;
    const found = await compareWithNode(client, book.meta.checkpoints, head);
    // While the history is read again, the chain that was read is the new one, and the records are of the old one.
    const before = this.#rescanning ? this.#soundHeight : Number.POSITIVE_INFINITY;
    this.#soundHeight = found.kind === 'same' ? before : Math.min(before, found.sound);
    if (found.kind === 'same') return null;
    const { indexedHeight } = book.meta;
    if (found.kind === 'behind' && !this.#forgetFirst)
      return new WalletError(
        'node_behind_wallet',
        `the node has finalized ${head} cuts and this wallet has read ${indexedHeight}: the node is behind, or was rolled back`,
        { indexed_height: indexedHeight, finalized_height: head },
      );
    const message = `the node no longer holds cut ${indexedHeight} that this wallet has read (they agree up to ${found.sound}): it was rolled back; rescan reads its chain anew`;
    if (book.meta.stopped?.reason !== 'chain_rolled_back')
      await this.#write({ meta: this.#stop({ reason: 'chain_rolled_back', message }) }, true);
    if (this.#forgetFirst) return null;
    return new WalletError('chain_rolled_back', message, { sound_height: found.sound });
  }

  /** From here on old request ids cannot be trusted: the chain differs from the wallet's records. */
  #stop(stopped: Stop): Meta {
    const { book, log } = this.#with;
    log.error('payments are stopped', { ...stopped });
    return { ...book.meta, stopped, requestTable: newRequestTable() };
  }

  async #follow(): Promise<void> {
    const { book } = this.#with;
    for (;;) {
      if (this.#forgetFirst) {
        this.#forgetFirst = false;
        await this.#forget();
      }
      await this.extendAddresses();
      await this.#search();
      const head = this.#state.finalizedHeight;
      const after = book.meta.indexedHeight;
      if (after >= head) break;
      const through = Math.min(head, after + SPAN_CUTS);
      // A node without an index yet is asked again in the next round: until then its answer may change.
      if (!(await this.#read(after, through, !this.#rescanning))) break;
    }
    if (this.#rescanning && !this.#forgetFirst && book.meta.indexedHeight >= this.#state.finalizedHeight)
      await this.#rescanned();
  }

  /** Everything was read again: the records now match this chain, and payments may resume. */
  async #rescanned(): Promise<void> {
    const { book, journal, store, events, log } = this.#with;
    await journal.settled();
    const outgoing = await fatesOnThisChain(store, book);
    const reopened = outgoing.filter((record) => record.reopened === true);
    const requestTable = reopened.length > 0 ? newRequestTable() : book.meta.requestTable;
    await this.#write({ outgoing, meta: { ...book.meta, requestTable, stopped: null, rescan: null } }, true);
    this.#rescanning = false;
    this.#soundHeight = Number.POSITIVE_INFINITY;
    events.reopened();
    log.info('history read again', { height: book.meta.indexedHeight, reopened: reopened.length });
    events.resync('rescanned');
  }

  /** Watches further ahead when addresses were handed out or paid. Needs no node. */
  extendAddresses(): Promise<void> {
    // One after the other: two at once would make the same addresses.
    const next = this.#extending.then(() => this.#extend());
    this.#extending = next.catch(() => undefined);
    return next;
  }

  async #extend(): Promise<void> {
    const { book, keyring, now } = this.#with;
    const addresses: AddressRecord[] = [];
    for (const { branch, index } of missingAddresses(book)) {
      addresses.push(keyring.addressRecord(branch, index, now()));
      // Sixty-four keys take half a millisecond each: calls are answered in between.
      await setImmediate();
    }
    if (addresses.length > 0) await this.#write({ addresses }, true);
  }

  /** Newly watched addresses may have a history, if the words were used before; then everything is read again. */
  async #search(): Promise<void> {
    const { book, client, log } = this.#with;
    const fresh = unsearched(book);
    if (fresh.length === 0) return;
    const searched = { receive: book.branches.receive.length, change: book.branches.change.length };
    const names = fresh.map((record) => record.address);
    const genesis = await genesisOutputs(client, names);
    let past = genesis.length > 0;
    for (const batch of past || book.meta.indexedHeight === 0 ? [] : batches(names)) {
      const page = await client.addressChanges({ addresses: batch, after_height: 0, limit: 1 });
      past ||= (page.changes[0]?.finalized_height ?? Number.MAX_SAFE_INTEGER) <= book.meta.indexedHeight;
    }
    if (past && book.meta.indexedHeight > 0) {
      log.info('used addresses found', { addresses: names.length });
      await this.#forget(searched);
    } else await this.#write({ meta: { ...book.meta, searched } }, true);
  }

  async #forget(searched = this.#with.book.meta.searched): Promise<void> {
    this.#rescanning = true;
    const { meta } = this.#with.book;
    // The answer includes which keys the chain knows.
    const addresses = [...this.#with.book.addresses()].filter(({ registered }) => registered);
    await this.#write({ addresses: addresses.map((record) => ({ ...record, registered: false })) }, false);
    const pastThrough = Math.max(meta.pastThrough ?? 0, this.#state.finalizedHeight);
    await this.#with.journal.forgetChain({ ...meta, indexedHeight: 0, checkpoints: [], pastThrough, searched });
  }

  /** Whether everything up to `through` was read. */
  async #read(after: number, through: number, live: boolean): Promise<boolean> {
    const { client, book } = this.#with;
    const names = [...book.addresses()].map((record) => record.address);
    const byHeight = new Map<number, ChangeDocument[]>();
    const sort = (changes: readonly ChangeDocument[]) => {
      for (const change of changes) {
        if (book.address(change.address) === undefined) continue;
        const list = byHeight.get(change.finalized_height);
        if (list === undefined) byHeight.set(change.finalized_height, [change]);
        else list.push(change);
      }
    };
    if (after === 0) sort(await genesisOutputs(client, names));
    let complete = through;
    if (names.length / 64 <= through - after) {
      const read = await changesOfAddresses(client, names, after, through);
      complete = read.complete;
      sort(read.changes);
    } else for (let height = after + 1; height <= through; height++) sort(await changesOfCut(client, height));
    if (after === 0) {
      const keyOf = ({ outpoint }: ChangeDocument) => outputKey(outpoint.transaction_id, outpoint.output_index);
      const unspent = new Set((byHeight.get(0) ?? []).map(keyOf));
      sort(spentGenesisOutputs([...byHeight.values()].flat()).filter((change) => !unspent.has(keyOf(change))));
    }
    const last = Math.max(after, complete);
    const cutId = await this.#cutIdAfter(after, last);
    for (const height of [...new Set([...byHeight.keys(), last])].sort((a, b) => a - b))
      await this.#applyCut(height, byHeight.get(height) ?? [], live, height === last ? cutId : undefined);
    return complete >= through;
  }

  /**
   * Records the newest cut read, and checks the previous one again: if both belong to one chain, so does everything in
   * between.
   */
  async #cutIdAfter(after: number, last: number): Promise<string | undefined> {
    const { client, book } = this.#with;
    const cutId = await cutIdAt(client, last);
    const before = book.meta.checkpoints.find(({ height }) => height === after);
    if (before !== undefined && (await cutIdAt(client, after)) !== before.cutId)
      throw new WalletError('node_unreachable', 'the node changed its chain while it was read');
    return cutId;
  }

  async #applyCut(
    height: number,
    changes: readonly ChangeDocument[],
    live: boolean,
    cutId: string | undefined,
  ): Promise<void> {
    const { client, book, events } = this.#with;
    const wanted = new Set(
      changes.filter(({ source, kind }) => kind === 'spent' || source === 'regular').map((c) => c.transaction_id),
    );
    const transactions = wanted.size === 0 ? new Map() : await transactionsOfCut(client, height, wanted);
    const effects = effectsOf(
      { height, changes, transactions },
      {
        address: (text) => book.address(text),
        output: (key) => book.outputs.get(key),
        open: book.open,
        isComplete: !this.#rescanning,
      },
    );
    const registered = await this.#registered(changes, effects.addresses);
    const addresses = [...effects.addresses.filter(({ address }) => !registered.has(address)), ...registered.values()];
    const stop = await this.#unknownSpend(height, changes);
    const checkpoints =
      cutId === undefined ? book.meta.checkpoints : withCheckpoint(book.meta.checkpoints, { height, cutId });
    const meta = { ...(stop === undefined ? book.meta : this.#stop(stop)), indexedHeight: height, checkpoints };
    const chats = await this.#with.chatsOf(height, transactions);
    await this.#write({ ...effects, ...chats, addresses, meta }, stop !== undefined);
    events.cut(height, effects, live);
  }

  /** A final payment out of this wallet that it does not remember: it was restored from an older copy, or another wallet has its words. */
  async #unknownSpend(height: number, changes: readonly ChangeDocument[]): Promise<Stop | undefined> {
    const { book, isOnRecord } = this.#with;
    if (height <= (book.meta.pastThrough ?? 0) || book.meta.stopped !== null) return undefined;
    for (const { kind, transaction_id: transaction } of changes)
      if (kind === 'spent' && !(await isOnRecord(transaction)))
        return {
          reason: 'unknown_spend',
          message: `transaction ${transaction} of cut ${height} spends from this wallet and is not on its record: the wallet was restored from an older copy, or another one has its words; compare, then rescan`,
        };
    return undefined;
  }

  /** Addresses that spent in this cut: their keys may be in the registry now; only the node knows. */
  async #registered(
    changes: readonly ChangeDocument[],
    touched: readonly AddressRecord[],
  ): Promise<Map<string, AddressRecord>> {
    const { client, book } = this.#with;
    const spenders = new Set(changes.filter(({ kind }) => kind === 'spent').map(({ address }) => address));
    const unknown = [...spenders].filter((address) => book.address(address)?.registered === false);
    const found = new Map<string, AddressRecord>();
    for (const batch of batches(unknown)) {
      const { keys } = await client.registeredKeys({ addresses: batch });
      for (const { address, registered, registered_height } of keys) {
        const record = touched.find((one) => one.address === address) ?? book.address(address);
        if (registered && registered_height !== null && record !== undefined)
          found.set(address, { ...record, registered: true });
      }
    }
    return found;
  }

  #write(changes: Changes, durable: boolean): Promise<void> {
    return this.#with.journal.commit(changes, durable);
  }
}
