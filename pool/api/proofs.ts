/**
 * Proofs as the API hands them out (protocol/pool-proof.ts checks them): made from closed slices and finished credit lists,
 * which never change, so trees are built once and kept.
 */
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import {
  branchDocument,
  type CreditHead,
  type MembershipDocument,
  type NeighbourDocument,
  type PoolList,
  type PoolProof,
  type ProofPart,
  poolListId,
} from '../../protocol/pool-proof.ts';
import { type SumTree, sumBranch, sumTree } from '../../protocol/sum-tree.ts';
import { unpackCredits, unpackWork } from '../books/packed.ts';
import type { Sql } from '../database/connect.ts';
import { SERVICES } from '../journal-record.ts';

/** A list of (account, value) with its tree; never changes once made. */
type Committed = {
  readonly tree: SumTree;
  readonly values: readonly bigint[];
  readonly payloads: readonly Buffer[];
  readonly index: ReadonlyMap<string, number>;
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

export const PROOF_DEFAULTS = { keptTrees: 24 } as const;

export class ProofMaker {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #keptTrees: number;
  readonly #trees = new Map<string, Promise<Committed>>();

  constructor(options: { network: NetworkName; keptTrees?: number }, dependencies: { sql: Sql }) {
    this.#network = options.network;
    this.#keptTrees = options.keptTrees ?? PROOF_DEFAULTS.keptTrees;
    this.#sql = dependencies.sql;
  }

  /** Undefined when the slice has no credit list (yet). */
  async proof(service: number, slice: number, payload: Bytes, address: string): Promise<PoolProof | undefined> {
    const row = await this.#list(service, slice);
    if (row === undefined) return undefined;
    const key = toHex(payload);
    const window = [];
    for (const part of row.window_parts) {
      const committed = await this.#slice(service, part.slice);
      window.push({ ...partDocument(part, committed), leaf: this.#membership(committed, key) });
    }
    const credit = this.#membership(await this.#credits(service, slice), key);
    return { ...(await this.#head(service, slice, row, window)), address, window, credit };
  }

  #membership(committed: Committed, key: string): MembershipDocument {
    const at = committed.index.get(key);
    if (at !== undefined)
      return { value: String(committed.values[at]), branch: branchDocument(sumBranch(committed.tree, at)) };
    const after = committed.payloads.findIndex((payload) => payload.toString('hex') > key);
    const right = after === -1 ? committed.payloads.length : after;
    return { absent: { before: this.#neighbour(committed, right - 1), after: this.#neighbour(committed, right) } };
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

  /** Everybody's: the whole list, for those who check all of it. */
  async list(service: number, slice: number): Promise<PoolList | undefined> {
    const row = await this.#list(service, slice);
    if (row === undefined) return undefined;
    const window = [];
    for (const part of row.window_parts) {
      const committed = await this.#slice(service, part.slice);
      const leaves = this.#named(committed).map(({ address, value }) => ({ address, work: String(value) }));
      window.push({ ...partDocument(part, committed), leaves });
    }
    const credits = this.#named(await this.#credits(service, slice));
    return {
      ...(await this.#head(service, slice, row, window)),
      window,
      credits: credits.map(({ address, value }) => ({ address, amount: String(value) })),
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
      { block_id: Buffer; reward: bigint; transaction_id: Buffer; output: number; finder: string }[]
    >`select b.block_id, b.reward, b.reward_transaction as transaction_id, b.reward_output as output, a.address as finder
      from blocks b join accounts a on a.id = b.account_id
      where b.service = ${service} and b.slice = ${slice} and b.state = 'paid' order by b.block_id`;
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
        finder: block.finder,
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

  #slice(service: number, slice: number): Promise<Committed> {
    return this.#kept(`slice/${service}/${slice}`, async () => {
      const [row] = await this.#sql<{ leaves: Buffer }[]>`select leaves from slices
        where service = ${service} and number = ${slice} and closed_height is not null`;
      if (row === undefined) throw new Error(`slice ${slice} of a credit list is not closed`);
      return this.#commit(unpackWork(row.leaves));
    });
  }

  #credits(service: number, slice: number): Promise<Committed> {
    return this.#kept(`credits/${service}/${slice}`, async () => {
      const [row] = await this.#sql<{ credits: Buffer }[]>`select credits from credit_lists
        where service = ${service} and slice = ${slice}`;
      return this.#commit(unpackCredits((row as { credits: Buffer }).credits));
    });
  }

  async #commit(rows: readonly { accountId: number; value: bigint }[]): Promise<Committed> {
    const ids = rows.map((row) => row.accountId);
    const found = await this.#sql<{ id: number; payload: Buffer }[]>`select id, payload from accounts
      where id = any(${ids}::int[])`;
    const byId = new Map(found.map((row) => [row.id, row.payload]));
    const payloads = ids.map((id) => byId.get(id) as Buffer);
    return {
      tree: sumTree(rows.map((row, i) => ({ key: new Uint8Array(payloads[i] as Buffer), value: row.value }))),
      values: rows.map((row) => row.value),
      payloads,
      index: new Map(payloads.map((payload, i) => [payload.toString('hex'), i])),
    };
  }

  #named(committed: Committed): { address: string; value: bigint }[] {
    return committed.payloads.map((payload, i) => ({
      address: formatAddress(payload, this.#network),
      value: committed.values[i] as bigint,
    }));
  }

  /** The least recently used tree goes first. */
  #kept(key: string, make: () => Promise<Committed>): Promise<Committed> {
    const found = this.#trees.get(key) ?? make();
    this.#trees.delete(key);
    this.#trees.set(key, found);
    found.catch(() => this.#trees.delete(key));
    for (const oldest of this.#trees.keys()) {
      if (this.#trees.size <= this.#keptTrees) break;
      this.#trees.delete(oldest);
    }
    return found;
  }
}

const partDocument = (part: { slice: number; total: string; counted: string }, committed: Committed) => ({
  slice: part.slice,
  accounts: committed.tree.root.count,
  total: part.total,
  counted: part.counted,
  root: toHex(committed.tree.root.hash),
});
