/**
 * Proofs served by the API (protocol/books/pool-proof.ts checks them): made from closed slices and finished credit lists,
 * which never change, so trees are built once and cached.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import { formatAddress } from '../../../protocol/address.ts';
import {
  branchDocument,
  type CreditHead,
  type MembershipDocument,
  type NeighbourDocument,
  type PoolListPage,
  type PoolProof,
  type ProofPart,
  poolListId,
} from '../../../protocol/books/pool-proof.ts';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import { type SumTree, sumBranch, sumTreeSteps } from '../../../protocol/crypto/sum-tree.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import { madePayloads } from '../../books/made-accounts.ts';
import { CREDIT_BYTES, unpackCredits, unpackWork } from '../../books/packed.ts';
import type { Sql } from '../../database/connect.ts';
import { SERVICES } from '../../journal/journal-record.ts';
import { ApiRefusal } from '../api-error.ts';
import { type Page, readNumberCursor } from '../keyset.ts';

/** A list of (account, value) with its tree; never changes once made. */
type Committed = {
  readonly tree: SumTree;
  readonly values: readonly bigint[];
  /** In ascending order, as the leaves of the tree. */
  readonly payloads: readonly Buffer[];
};

type ListRow = {
  reward: bigint;
  fee: bigint;
  fee_ppm: number;
  credited: bigint;
  root: Buffer;
  accounts: number;
  window_work: string;
  window_parts: { slice: number; total: string; counted: string }[];
};

/** Trees that may wait to be built; further requests are refused. */
const MAX_WAITING = 64;
const RETRY_MILLIS = 5_000;

export const PROOF_DEFAULTS = { keptTrees: 24 } as const;

/**
 * Binary search: index of the first key not below the given one, in ascending keys; their number when there is none.
 */
function firstNotBelow(keys: readonly Buffer[], key: Buffer): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(keys[middle] as Buffer, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class ProofMaker {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #keptTrees: number;
  readonly #trees = new Map<string, Promise<Committed>>();
  #building: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: { network: NetworkName; keptTrees?: number }, dependencies: { sql: Sql }) {
    this.#network = options.network;
    this.#keptTrees = options.keptTrees ?? PROOF_DEFAULTS.keptTrees;
    this.#sql = dependencies.sql;
  }

  /** The database was replaced by an older copy: an id may now belong to another account. */
  forget(): void {
    this.#trees.clear();
  }

  /** Undefined when the slice has no credit list (yet). */
  async proof(
    service: number,
    slice: number,
    payload: Bytes,
    address: string,
    onBuilt: (leaves: number) => void = () => undefined,
  ): Promise<PoolProof | undefined> {
    const row = await this.#list(service, slice);
    if (row === undefined) return undefined;
    const key = Buffer.from(payload);
    const window = [];
    for (const part of row.window_parts) {
      const committed = await this.#slice(service, part.slice, onBuilt);
      const { count: accounts, hash } = committed.tree.root;
      window.push({ ...part, accounts, root: toHex(hash), leaf: this.#membership(committed, key) });
    }
    const credit = this.#membership(await this.#credits(service, slice, onBuilt), key);
    return { ...(await this.#head(service, slice, row, window)), address, window, credit };
  }

  /** An account's leaf in a closed slice, or its absence; also for slices that have no list yet. */
  async leaf(
    service: number,
    slice: number,
    payload: Bytes,
    onBuilt: (leaves: number) => void = () => undefined,
  ): Promise<MembershipDocument> {
    return this.#membership(await this.#slice(service, slice, onBuilt), Buffer.from(payload));
  }

  #membership(committed: Committed, key: Buffer): MembershipDocument {
    const at = firstNotBelow(committed.payloads, key);
    if (committed.payloads[at]?.equals(key) === true)
      return { value: String(committed.values[at]), branch: branchDocument(sumBranch(committed.tree, at)) };
    return { absent: { before: this.#neighbour(committed, at - 1), after: this.#neighbour(committed, at) } };
  }

  #neighbour(committed: Committed, at: number): NeighbourDocument | null {
    const payload = committed.payloads[at];
    if (payload === undefined) return null;
    return {
      address: formatAddress(payload, this.#network),
      value: String(committed.values[at]),
      branch: branchDocument(sumBranch(committed.tree, at)),
    };
  }

  /**
   * The credits of all accounts, a page at a time. The leaves of the window are published with their slices
   * (books-view.ts). Nothing is hashed here: roots and counts are in the database.
   */
  async list(service: number, slice: number, page: Page): Promise<PoolListPage | undefined> {
    const row = await this.#list(service, slice);
    if (row === undefined) return undefined;
    const from = Math.min(readNumberCursor(page.cursor) ?? 0, row.accounts);
    const roots = await this.#sql<{ number: number; accounts: number; root: Buffer }[]>`select number, root,
        octet_length(leaves) / 20 as accounts
      from slices where service = ${service} and number = any(${row.window_parts.map((part) => part.slice)}::int[])`;
    const byNumber = new Map(roots.map((each) => [each.number, each]));
    const window = row.window_parts.map((part) => {
      const { accounts, root } = byNumber.get(part.slice) as (typeof roots)[number];
      return { ...part, accounts, root: root.toString('hex') };
    });
    const [packed] = await this.#sql<{ credits: Buffer }[]>`select
        substring(credits from ${from * CREDIT_BYTES + 1}::int for ${page.limit * CREDIT_BYTES}::int) as credits
      from credit_lists where service = ${service} and slice = ${slice}`;
    const credits = unpackCredits((packed as { credits: Buffer }).credits);
    const payloads = await this.#payloads(credits.map((credit) => credit.accountId));
    const end = from + credits.length;
    return {
      ...(await this.#head(service, slice, row, window)),
      window,
      credits: credits.map(({ value }, i) => ({
        address: formatAddress(payloads[i] as Buffer, this.#network),
        amount: String(value),
      })),
      ...(end < row.accounts ? { next_cursor: `${end}-0` } : {}),
    };
  }

  async #list(service: number, slice: number): Promise<ListRow | undefined> {
    const [row] = await this.#sql<ListRow[]>`select reward, fee, fee_ppm, credited, root,
        octet_length(credits) / 12 as accounts, window_work::text, window_parts
      from credit_lists where service = ${service} and slice = ${slice}`;
    return row;
  }

  async #head(service: number, slice: number, row: ListRow, window: readonly ProofPart[]): Promise<CreditHead> {
    const blocks = await this.#sql<
      { block_id: Buffer; reward: bigint; transaction_id: Buffer; output: number; finder: number }[]
    >`select b.block_id, b.reward, b.reward_transaction as transaction_id, b.reward_output as output,
        b.account_id as finder from blocks b where b.service = ${service} and b.slice = ${slice} and b.state = 'paid' order by b.block_id`;
    const finders = await madePayloads(
      this.#sql,
      blocks.map(({ finder }) => finder),
    );
    const head = {
      version: 2 as const,
      network: this.#network,
      service: SERVICES[service] as CreditHead['service'],
      slice,
      blocks: blocks.map((block) => ({
        block_id: block.block_id.toString('hex'),
        reward: String(block.reward),
        transaction_id: block.transaction_id.toString('hex'),
        output_index: block.output,
        finder: formatAddress(finders.get(block.finder) as Buffer, this.#network),
      })),
      reward: String(row.reward),
      fee_ppm: row.fee_ppm,
      fee: String(row.fee),
      credited: String(row.credited),
      window_work: row.window_work,
      credit_accounts: row.accounts,
      credit_root: row.root.toString('hex'),
    };
    return { ...head, list_id: poolListId({ ...head, window }) };
  }

  #slice(service: number, slice: number, onBuilt: (leaves: number) => void): Promise<Committed> {
    return this.#kept(`slice/${service}/${slice}`, onBuilt, async () => {
      const [row] = await this.#sql<{ leaves: Buffer }[]>`select leaves from slices
        where service = ${service} and number = ${slice} and closed_height is not null`;
      if (row === undefined) throw new Error(`slice ${slice} of a credit list is not closed`);
      return this.#commit(unpackWork(row.leaves));
    });
  }

  #credits(service: number, slice: number, onBuilt: (leaves: number) => void): Promise<Committed> {
    return this.#kept(`credits/${service}/${slice}`, onBuilt, async () => {
      const [row] = await this.#sql<{ credits: Buffer }[]>`select credits from credit_lists
        where service = ${service} and slice = ${slice}`;
      return this.#commit(unpackCredits((row as { credits: Buffer }).credits));
    });
  }

  async #payloads(ids: readonly number[]): Promise<Buffer[]> {
    const byId = await madePayloads(this.#sql, ids);
    return ids.map((id) => byId.get(id) as Buffer);
  }

  async #commit(rows: readonly { accountId: number; value: bigint }[]): Promise<Committed> {
    const payloads = await this.#payloads(rows.map((row) => row.accountId));
    const steps = sumTreeSteps(
      rows.map((row, i) => ({ key: new Uint8Array(payloads[i] as Buffer), value: row.value })),
    );
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) await immediate();
    return {
      tree: step.value,
      values: rows.map((row) => row.value),
      payloads,
    };
  }

  /**
   * The least recently used tree is dropped first. One is built at a time, in pieces, so that it does not block other
   * work.
   */
  #kept(key: string, onBuilt: (leaves: number) => void, make: () => Promise<Committed>): Promise<Committed> {
    const found = this.#trees.get(key) ?? this.#build(make, onBuilt);
    this.#trees.delete(key);
    this.#trees.set(key, found);
    found.catch(() => this.#trees.delete(key));
    for (const oldest of this.#trees.keys()) {
      if (this.#trees.size <= this.#keptTrees) break;
      this.#trees.delete(oldest);
    }
    return found;
  }

  #build(make: () => Promise<Committed>, onBuilt: (leaves: number) => void): Promise<Committed> {
    if (this.#waiting >= MAX_WAITING)
      return Promise.reject(new ApiRefusal('unavailable', 'too many proofs are being made', RETRY_MILLIS));
    this.#waiting++;
    const built = this.#building.then(make).finally(() => this.#waiting--);
    this.#building = built.catch(() => undefined);
    void built.then(
      ({ values }) => onBuilt(values.length),
      () => undefined,
    );
    return built;
  }
}
