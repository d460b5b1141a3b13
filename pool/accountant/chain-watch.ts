/**
 * Checks that the node is still on the chain that the books were kept by (docs/pool.md, A node that lies): the same
 * chain id, the same cuts of an interval, the same cut at the books' height, and no more cuts than the time since the
 * pool's first start allows. The books wait, and report why, instead of following another chain: slices opened at a
 * wrong height cannot be undone.
 */
import { checkInterval } from '../../protocol/ledger/genesis.ts';
import { INTERVAL_CUTS, type NetworkName } from '../../protocol/network.ts';
import type { LaterClock } from '../../runtime/clock/clock.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';
import type { Chain } from './chain.ts';

/** A cut comes at least this long after the one before; a development chain may be started at any pace down to 20 ms. */
const LEAST_CUT_MILLIS: Readonly<Record<NetworkName, number>> = {
  mainnet: 1_250,
  testnet: 1_250,
  testnet100: 1_250,
  development: 10,
};
/** Allowance for a clock that was wrong at the first start, or is now. */
const SLACK_CUTS = INTERVAL_CUTS;

export type ChainStart = { readonly height: number; readonly atMillis: number };

/** The highest cut that there can be. */
export const highestCut = (start: ChainStart, nowMillis: number, network: NetworkName): number =>
  start.height + Math.max(0, nowMillis - start.atMillis) / LEAST_CUT_MILLIS[network] + SLACK_CUTS;

/**
 * Where to count from. If the pool's first start seems to come, or the books are above what there can have been since, a
 * clock was wrong then or is now: what they have reached counts from now on.
 */
function trustedStart(start: ChainStart, books: ChainStart, network: NetworkName): ChainStart {
  const isWrong = start.atMillis > books.atMillis || books.height > highestCut(start, books.atMillis, network);
  return isWrong ? { ...books, height: Math.max(start.height, books.height) } : start;
}

export class ChainWatch {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #chain: Chain;
  readonly #now: LaterClock;
  #start: ChainStart | undefined;
  #intervalCuts = INTERVAL_CUTS;

  constructor(network: NetworkName, dependencies: { sql: Sql; chain: Chain; now: LaterClock }) {
    this.#network = network;
    this.#sql = dependencies.sql;
    this.#chain = dependencies.chain;
    this.#now = dependencies.now;
  }

  async #setting(name: string): Promise<string | undefined> {
    const [row] = await this.#sql<{ value: string }[]>`select value from settings where name = ${name}`;
    return row?.value;
  }

  /** Called before the books follow the node, and before they accept a reward. */
  async checkChain(): Promise<void> {
    const id = await this.#chain.chainId?.();
    if (id !== undefined) {
      const known = await this.#kept('chain_id', id);
      if (known !== id)
        throw new PoolError('chain_changed', `the node follows chain ${id}, the books were kept by ${known}`);
    }
    await this.#checkInterval();
  }

  /** Cuts of an interval of the chain that the books are kept by. */
  get intervalCuts(): number {
    return this.#intervalCuts;
  }

  /** On a network with a fixed interval no node is asked. On a development chain the first answer counts: a different one later would change the allowed rewards. */
  async #checkInterval(): Promise<void> {
    if (this.#network !== 'development') return;
    const said = await this.#chain.intervalCuts?.();
    if (said === undefined) return;
    try {
      checkInterval({ network: this.#network, intervalCuts: said });
    } catch (error) {
      throw new PoolError('chain_changed', `the node names ${said} cuts of an interval: ${(error as Error).message}`);
    }
    const known = Number(await this.#kept('interval_cuts', String(said)));
    if (known !== said)
      throw new PoolError(
        'chain_changed',
        `the node names ${said} cuts of an interval, the books were kept by ${known}`,
      );
    this.#intervalCuts = known;
  }

  /** The value stored under a name; if there is none yet, the present one is stored. */
  async #kept(name: string, said: string): Promise<string> {
    const known = await this.#setting(name);
    if (known !== undefined) return known;
    await this.#sql`insert into settings values (${name}, ${said}) on conflict (name) do nothing`;
    return (await this.#setting(name)) ?? said;
  }

  /** Whether the node has the cut at the books' height. */
  async checkPlace(): Promise<void> {
    const [height, cutId] = ((await this.#setting('chain_cut')) ?? '').split(' ');
    if (cutId === undefined || this.#chain.cutIdAt === undefined) return;
    const found = await this.#chain.cutIdAt(Number(height));
    if (found === undefined)
      throw new PoolError(
        'chain_changed',
        `the node does not have cut ${height}, which the books have reached: it is behind them`,
      );
    if (found !== cutId)
      throw new PoolError('chain_changed', `cut ${height} of the node is ${found}, the books were kept by ${cutId}`);
  }

  async checkHeight(height: number): Promise<void> {
    this.#start ??= await this.#startOf(height);
    const highest = highestCut(this.#start, this.#now(), this.#network);
    if (height > highest)
      throw new PoolError('chain_height', `the node claims cut ${height}; there can be ${Math.floor(highest)} at most`);
  }

  async #startOf(height: number): Promise<ChainStart> {
    const now = Math.floor(this.#now());
    await this.#sql`insert into settings values ('chain_start', ${`${height} ${now}`})
      on conflict (name) do nothing`;
    const [first = 0, atMillis = 0] = ((await this.#setting('chain_start')) ?? '').split(' ').map(Number);
    const books = { height: Number((await this.#setting('chain_height')) ?? 0), atMillis: now };
    return trustedStart({ height: first, atMillis }, books, this.#network);
  }
}

/** Part of the transaction that brings the books to a cut. `cutId` is undefined where the cut was not seen. */
export async function noteCut(transaction: Transaction, height: number, cutId: string | undefined): Promise<void> {
  await transaction`insert into settings values ('chain_height', ${String(height)})
    on conflict (name) do update set value = excluded.value`;
  if (cutId === undefined) await transaction`delete from settings where name = 'chain_cut'`;
  else
    await transaction`insert into settings values ('chain_cut', ${`${height} ${cutId}`})
      on conflict (name) do update set value = excluded.value`;
}

/** A cut that pays blocks pays the anchor 96 cuts before it: the amount carried over is spent. */
export async function notePaidAnchor(transaction: Transaction, anchorHeight: number): Promise<void> {
  await transaction`insert into settings values ('paid_anchor', ${String(anchorHeight)})
    on conflict (name) do update set value = excluded.value where settings.value::bigint < excluded.value::bigint`;
}
