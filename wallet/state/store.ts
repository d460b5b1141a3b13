/**
 * The wallet's state on disk: an embedded key-value store beside the wallet file. Everything that belongs together is
 * one atomic batch; whatever a payment depends on is flushed to the disk before the call goes on (`sync`).
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { ClassicLevel } from 'classic-level';
import type { Chat } from '../../protocol/messenger/chats.ts';
import { WalletError } from '../wallet-error.ts';
import type { Checkpoint } from './checkpoints.ts';
import { damagedLog } from './log-files.ts';
import {
  type AddressRecord,
  type ChatMessageRecord,
  decodeRecord,
  encodeRecord,
  type HistoryEntry,
  isFinal,
  type MultisigRecord,
  type OutgoingRecord,
  type OwnedOutput,
  type RequestRecord,
} from './records.ts';
import { damagedTable } from './table-files.ts';

/** Prefixes of the tables. `~` sorts after every character a key holds, so `prefix + '~'` ends a range. */
const TABLE = {
  meta: 'm!',
  address: 'a!',
  output: 'o!',
  outgoing: 't!',
  /** Signed bytes of transactions whose fate is open: written once, while their record changes. */
  wire: 'w!',
  /** Names of transactions whose fate is open: all that has to be read at the start. */
  open: 'p!',
  request: 'r!',
  /** Names of requests that still merge. */
  merging: 'g!',
  history: 'h!',
  /** From a transaction to its place in the history. */
  seen: 'x!',
  /** Multisig addresses that are watched. */
  multisig: 'd!',
  chat: 'c!',
  /** Messages of chats in the order of the conversation, and by their nonces. */
  message: 'k!',
  nonce: 'n!',
} as const;

/** Raised with any change that releases of before would misread; these then refuse the state. */
export const STATE_VERSION = 1;

export type Meta = {
  readonly version: number;
  readonly requestTable: string;
  readonly network: string;
  /** Null before the first connection to a node. */
  readonly chainId: string | null;
  readonly indexedHeight: number;
  /** Cut ids of heights up to `indexedHeight`, newest first. */
  readonly checkpoints: readonly Checkpoint[];
  /**
   * Up to this height, spends without a record are the earlier history of these words, read for the first time; null
   * before the first node.
   */
  readonly pastThrough: number | null;
  /** Why no payment is made until the history was read again; null while payments are made. */
  readonly stopped: Stop | null;
  /** The history is being read again: first the old data is deleted, then everything is read. */
  readonly rescan: 'forgetting' | 'reading' | null;
  /** How many addresses of each branch have been searched for in the whole history. */
  readonly searched: { readonly receive: number; readonly change: number };
};

export const STOPS = ['chain_rolled_back', 'unknown_spend'] as const;
export type Stop = { readonly reason: (typeof STOPS)[number]; readonly message: string };

export const newRequestTable = (): string => randomBytes(16).toString('hex');

/** Everything one step changes; written as a whole or not at all. */
export type Changes = {
  readonly meta?: Meta;
  readonly addresses?: readonly AddressRecord[];
  readonly outputsAdded?: readonly OwnedOutput[];
  readonly outputsSpent?: readonly string[];
  readonly outgoing?: readonly OutgoingRecord[];
  readonly requests?: readonly RequestRecord[];
  readonly history?: readonly HistoryEntry[];
  readonly multisig?: readonly MultisigRecord[];
  readonly chats?: readonly Chat[];
  /** Unaccepted requests that were displaced by newer ones. */
  readonly chatsDropped?: readonly string[];
  readonly chatMessages?: readonly ChatMessageRecord[];
};

/** A write failed: the disk is full or broken. The data on it may be intact. */
export const unwritable = (error: unknown): WalletError =>
  new WalletError(
    'state_unwritable',
    `the state of the wallet cannot be written: ${(error as Error).message ?? String(error)}`,
  );

const changedByDisk = (directory: string, name: string): WalletError =>
  new WalletError(
    'state_damaged',
    `the disk has changed ${join(directory, name)}: requests that were paid may be missing in it`,
  );

/** Records put into a batch without a pause: about a millisecond. */
const SLICE = 64;

type Operation = { type: 'put'; key: string; value: string } | { type: 'del'; key: string };

const order = (value: number, digits = 12): string => value.toString().padStart(digits, '0');
const addressKey = (record: Pick<AddressRecord, 'branch' | 'index'>): string =>
  `${TABLE.address}${record.branch}!${order(record.index, 10)}`;
/** A transaction has one entry per height, so writing a cut again changes nothing. */
const historyKey = (entry: Pick<HistoryEntry, 'height' | 'transaction'>): string =>
  `${TABLE.history}${order(entry.height)}!${entry.transaction}`;
const messageKey = ({ chat, height, sentMillis, transaction }: ChatMessageRecord): string =>
  `${TABLE.message}${chat}!${order(height)}!${order(sentMillis, 16)}!${transaction}`;
/** The key that identifies a message: chat, author, nonce. */
export const nonceKey = ({ chat, isOwn, nonceHex }: Pick<ChatMessageRecord, 'chat' | 'isOwn' | 'nonceHex'>): string =>
  `${chat}!${isOwn ? 1 : 0}!${nonceHex}`;
/** Request ids are the caller's own text: hex keeps them inside their table. */
const requestKey = (requestId: string): string => Buffer.from(requestId, 'utf8').toString('hex');

/** `wires` names the transactions whose signed bytes are on disk. */
function* operationsOf(changes: Changes, wires: Set<string>): Generator<Operation> {
  const put = (key: string, record: object): Operation => ({ type: 'put', key, value: encodeRecord(record) });
  if (changes.meta !== undefined) yield put(`${TABLE.meta}state`, changes.meta);
  for (const record of changes.addresses ?? []) yield put(addressKey(record), record);
  for (const output of changes.outputsAdded ?? []) yield put(`${TABLE.output}${output.key}`, output);
  for (const key of changes.outputsSpent ?? []) yield { type: 'del', key: `${TABLE.output}${key}` };
  for (const record of changes.outgoing ?? []) {
    const { transaction, wireHex } = record;
    yield put(`${TABLE.outgoing}${transaction}`, { ...record, wireHex: '' });
    if (isFinal(record.state)) {
      yield { type: 'del', key: `${TABLE.wire}${transaction}` };
      yield { type: 'del', key: `${TABLE.open}${transaction}` };
      wires.delete(transaction);
    } else if (!wires.has(transaction)) {
      yield { type: 'put', key: `${TABLE.wire}${transaction}`, value: wireHex };
      yield { type: 'put', key: `${TABLE.open}${transaction}`, value: '' };
      wires.add(transaction);
    }
  }
  for (const record of changes.requests ?? []) {
    yield put(`${TABLE.request}${requestKey(record.requestId)}`, record);
    const merging = `${TABLE.merging}${requestKey(record.requestId)}`;
    yield record.state === 'merging' ? { type: 'put', key: merging, value: '' } : { type: 'del', key: merging };
  }
  for (const record of changes.multisig ?? []) yield put(`${TABLE.multisig}${record.address}`, record);
  for (const chat of changes.chats ?? []) yield put(`${TABLE.chat}${chat.request}`, chat);
  for (const request of changes.chatsDropped ?? []) yield { type: 'del', key: `${TABLE.chat}${request}` };
  for (const message of changes.chatMessages ?? []) {
    yield put(messageKey(message), message);
    yield { type: 'put', key: `${TABLE.nonce}${nonceKey(message)}`, value: '' };
  }
  for (const entry of changes.history ?? []) {
    const key = historyKey(entry);
    yield put(key, entry);
    yield { type: 'put', key: `${TABLE.seen}${entry.transaction}`, value: key };
  }
}

export class WalletStore {
  readonly #level: ClassicLevel<string, string>;
  readonly #wires = new Set<string>();

  private constructor(level: ClassicLevel<string, string>) {
    this.#level = level;
  }

  static async open(directory: string): Promise<WalletStore> {
    const log = await damagedLog(directory);
    if (log !== undefined) throw changedByDisk(directory, log);
    const level = new ClassicLevel<string, string>(directory, { keyEncoding: 'utf8', valueEncoding: 'utf8' });
    try {
      await level.open();
    } catch (error) {
      const cause = (error as { cause?: { code?: string; message?: string } }).cause;
      if (cause?.code === 'LEVEL_LOCKED')
        throw new WalletError('wallet_locked', 'the wallet state is in use by another process');
      if (cause?.code === 'LEVEL_IO_ERROR') throw unwritable(cause);
      throw new WalletError('state_damaged', `cannot open the wallet state: ${cause?.message ?? String(error)}`);
    }
    const damaged = await damagedTable(directory);
    if (damaged === undefined) return new WalletStore(level);
    await level.close();
    throw changedByDisk(directory, damaged);
  }

  async close(): Promise<void> {
    await this.#level.close();
  }

  /** `durable` waits for the disk: nothing that was promised to a caller may be lost to a power cut. */
  async write(changes: readonly Changes[], durable: boolean): Promise<void> {
    const batch = this.#level.batch();
    let count = 0;
    for (const step of changes)
      for (const operation of operationsOf(step, this.#wires)) {
        if (operation.type === 'put') batch.put(operation.key, operation.value);
        else batch.del(operation.key);
        // A cut may hold thousands of records: calls are answered in between, and still it is one write.
        if (++count % SLICE === 0) await setImmediate();
      }
    await batch.write({ sync: durable });
  }

  async meta(): Promise<Meta | undefined> {
    const meta = await this.#get<Meta>(`${TABLE.meta}state`);
    if (meta !== undefined && !(meta.version <= STATE_VERSION))
      throw new WalletError(
        'state_newer',
        `a newer release wrote the wallet's state (its version is ${meta.version}, this release reads ${STATE_VERSION}): run that release again`,
      );
    // A state from before these fields: everything read so far is its history.
    return (
      meta && {
        ...meta,
        checkpoints: meta.checkpoints ?? [],
        pastThrough: meta.pastThrough ?? meta.indexedHeight,
        stopped: meta.stopped ?? null,
        rescan: meta.rescan ?? null,
      }
    );
  }

  /** A new wallet state has a new request table: callers learn from its id that old request ids are forgotten. */
  static firstMeta(network: string): Meta {
    return {
      version: STATE_VERSION,
      requestTable: newRequestTable(),
      network,
      chainId: null,
      indexedHeight: 0,
      checkpoints: [],
      pastThrough: null,
      stopped: null,
      rescan: null,
      searched: { receive: 0, change: 0 },
    };
  }

  addresses = (): Promise<AddressRecord[]> => this.#all<AddressRecord>(TABLE.address);
  multisig = (): Promise<MultisigRecord[]> => this.#all<MultisigRecord>(TABLE.multisig);
  outputs = (): Promise<OwnedOutput[]> => this.#all<OwnedOutput>(TABLE.output);
  /** Without the signed bytes, which only open transactions need (`openOutgoing`). */
  outgoing = (transaction: string): Promise<OutgoingRecord | undefined> =>
    this.#get<OutgoingRecord>(`${TABLE.outgoing}${transaction}`);
  request = (requestId: string): Promise<RequestRecord | undefined> =>
    this.#get<RequestRecord>(`${TABLE.request}${requestKey(requestId)}`);

  /** The ids of all requests ever made. */
  async requestIds(): Promise<string[]> {
    const keys = await this.#level.keys({ gte: TABLE.request, lt: `${TABLE.request}~` }).all();
    return keys.map((key) => Buffer.from(key.slice(TABLE.request.length), 'hex').toString('utf8'));
  }

  /** Requests whose id begins with a text, in the order of their ids, after one of them. */
  async requestsAfter(prefix: string, after: string | undefined, limit: number): Promise<RequestRecord[]> {
    const first = `${TABLE.request}${requestKey(prefix)}`;
    const from = after === undefined ? { gte: first } : { gt: `${TABLE.request}${requestKey(after)}` };
    // An `after` that sorts before the prefix must not include ids without the prefix.
    const range = after !== undefined && requestKey(after) < requestKey(prefix) ? { gte: first } : from;
    const texts = await this.#level.values({ ...range, lt: `${first}~`, limit }).all();
    return texts.map((text) => decodeRecord<RequestRecord>(text));
  }

  /** Whole, with their signed bytes: these are to be sent again. */
  async openOutgoing(): Promise<OutgoingRecord[]> {
    const records = await this.#named<OutgoingRecord>(TABLE.open, TABLE.outgoing);
    const wires = await this.#level.getMany(records.map(({ transaction }) => `${TABLE.wire}${transaction}`));
    return records.map((record, i) => {
      const wireHex = wires[i];
      if (wireHex !== undefined) this.#wires.add(record.transaction);
      // A state from before this table has the bytes in the record.
      const whole = { ...record, wireHex: wireHex ?? record.wireHex };
      if (whole.wireHex === '' && whole.reopened !== true)
        throw new WalletError('state_damaged', `the signed transaction ${record.transaction} is missing`);
      return whole;
    });
  }

  /** Every transaction this wallet signed and that has met its fate, without the signed bytes. */
  async *settledOutgoing(): AsyncGenerator<OutgoingRecord> {
    for await (const text of this.#level.values({ gte: TABLE.outgoing, lt: `${TABLE.outgoing}~` })) {
      const record = decodeRecord<OutgoingRecord>(text);
      if (isFinal(record.state)) yield record;
    }
  }

  async mergingRequests(): Promise<RequestRecord[]> {
    return await this.#named<RequestRecord>(TABLE.merging, TABLE.request);
  }

  /** Oldest first, in the order of their requests in the chain. */
  async chats(): Promise<Chat[]> {
    const chats = await this.#all<Chat>(TABLE.chat);
    return chats.sort((a, b) => a.height - b.height || (a.request < b.request ? -1 : 1));
  }

  /** Those of the keys whose messages were read before. */
  async readChatMessages(keys: readonly string[]): Promise<Set<string>> {
    const found = await this.#level.getMany(keys.map((key) => `${TABLE.nonce}${key}`));
    return new Set(keys.filter((_, i) => found[i] !== undefined));
  }

  /** Oldest first; the cursor is where the page before ended. */
  async chatMessages(
    chat: string,
    cursor: string | undefined,
    limit: number,
  ): Promise<{ messages: ChatMessageRecord[]; next?: string }> {
    const prefix = `${TABLE.message}${chat}!`;
    const from = cursor === undefined ? { gte: prefix } : { gt: `${prefix}${cursor}` };
    const found = await this.#level.iterator({ ...from, lt: `${prefix}~`, limit: limit + 1 }).all();
    const page = found.slice(0, limit);
    const messages = page.map(([, text]) => decodeRecord<ChatMessageRecord>(text));
    const last = page.at(-1)?.[0];
    return found.length > limit && last !== undefined ? { messages, next: last.slice(prefix.length) } : { messages };
  }

  async historyOf(transaction: string): Promise<HistoryEntry | undefined> {
    const key = await this.#level.get(`${TABLE.seen}${transaction}`);
    return key === undefined ? undefined : await this.#get<HistoryEntry>(key);
  }

  /** Entries above a height, oldest first. */
  async historyAfter(height: number, limit: number, through = Number.MAX_SAFE_INTEGER): Promise<HistoryEntry[]> {
    const range = {
      gte: `${TABLE.history}${order(height + 1)}`,
      lt: `${TABLE.history}${order(Math.min(through, 999_999_999_998) + 1)}`,
      limit,
    };
    return (await this.#level.values(range).all()).map((text) => decodeRecord<HistoryEntry>(text));
  }

  /** Newest first; the cursor is where the page before ended. */
  async historyBefore(cursor: string | undefined, limit: number): Promise<{ entries: HistoryEntry[]; next?: string }> {
    const end = cursor === undefined ? `${TABLE.history}~` : `${TABLE.history}${cursor}`;
    const found = await this.#level.iterator({ gte: TABLE.history, lt: end, reverse: true, limit: limit + 1 }).all();
    const page = found.slice(0, limit);
    const entries = page.map(([, text]) => decodeRecord<HistoryEntry>(text));
    const last = page.at(-1)?.[0];
    return found.length > limit && last !== undefined
      ? { entries, next: last.slice(TABLE.history.length) }
      : { entries };
  }

  /**
   * Deletes what was read from the chain, for a rescan. Requests, signed transactions, addresses and labels stay. A marker is
   * on disk first: after a crash in between the next start finishes the deletion.
   */
  async forgetChain(meta: Meta): Promise<Meta> {
    await this.write([{ meta: { ...meta, rescan: 'forgetting' } }], true);
    for (const table of [TABLE.output, TABLE.history, TABLE.seen, TABLE.chat, TABLE.message, TABLE.nonce])
      await this.#level.clear({ gte: table, lt: `${table}~` });
    const reading: Meta = { ...meta, rescan: 'reading' };
    await this.write([{ meta: reading }], true);
    return reading;
  }

  async #get<T>(key: string): Promise<T | undefined> {
    const text = await this.#level.get(key);
    return text === undefined ? undefined : decodeRecord<T>(text);
  }

  async #all<T>(table: string): Promise<T[]> {
    const texts = await this.#level.values({ gte: table, lt: `${table}~` }).all();
    return texts.map((text) => decodeRecord<T>(text));
  }

  async #named<T>(index: string, table: string): Promise<T[]> {
    const names = await this.#level.keys({ gte: index, lt: `${index}~` }).all();
    const texts = await this.#level.getMany(names.map((name) => `${table}${name.slice(index.length)}`));
    return texts.flatMap((text) => (text === undefined ? [] : [decodeRecord<T>(text)]));
  }
}
