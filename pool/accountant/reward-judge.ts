/**
 * Decides whether a node's statement about the pool's blocks is accepted: asks every configured node, compares them,
 * and checks the amount (books rule 15). A reward that does not pass is held: it is not credited, the operator sees it,
 * and it is checked again until it passes, turns out not to exist, or the operator accepts the amount.
 */
import { formatAddress } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { type NetworkName, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { type MonotonicClock, monotonicMillis } from '../../runtime/clock/clock.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { type Carried, type Claim, rewardFlaw } from '../books/reward-check.ts';
import type { Sql } from '../database/connect.ts';
import { agreementOf, type BlockSource, type Said, statementOf, type Witness } from './reward-statements.ts';

export type JudgeOptions = {
  readonly network: { readonly name: NetworkName };
  readonly poolAddress: Bytes;
  /** Undefined if the node is embedded in this process. */
  readonly maxFeePerMass?: bigint | undefined;
};

export type JudgeDependencies = {
  readonly sql: Sql;
  /** The node that the books follow. */
  readonly chain: BlockSource & { readonly others?: readonly Witness[] };
  readonly log: Logger;
  /** Cuts of an interval of the chain that the books are kept by. */
  readonly intervalCuts: () => number;
  /** A clock that does not jump. */
  readonly steadyNow?: MonotonicClock;
};

/** The limits on the rewards of an anchor's blocks. */
export type Bounds = { readonly paidBefore: number; readonly sharers: number };

export type Verdict = { readonly blockId: Bytes; readonly bounds: Bounds } & (
  | { readonly kind: 'paid'; readonly claim: Claim }
  | { readonly kind: 'held'; readonly amount: bigint | undefined; readonly reason: string }
  | { readonly kind: 'unpaid' }
);

/** The rewards of a cut for the anchor it pays. */
export type PayingCut = { readonly height: number; readonly sharers: number };

/**
 * How long to wait for a node that is unavailable or behind: less than the books wait for a held block before its list
 * is made.
 */
const PATIENCE_MILLIS = 120_000;
/** How often a held reward is checked again, and how many at a time. */
const AGAIN_MILLIS = 5_000;
const AGAIN_BLOCKS = 100;
/** After a database was restored, or a lying node was replaced, blocks that expired recently are checked once more. */
const EXPIRED_CUTS = 34_560;
const EXPIRED_BLOCKS = 500;

const WAITS = 'waits for a node that is away or behind';

type BlockRow = {
  block_id: Buffer;
  anchor_height: bigint;
  carried_fees: bigint | null;
  carried_mass: number | null;
  paid_before: bigint | null;
  sharers: number | null;
  operator_accepts: string | null;
};

const carriedOf = ({ carried_fees, carried_mass }: Pick<BlockRow, 'carried_fees' | 'carried_mass'>) =>
  carried_fees === null || carried_mass === null ? undefined : { fees: carried_fees, mass: carried_mass };

export class RewardJudge {
  readonly #options: JudgeOptions;
  readonly #dependencies: JudgeDependencies;
  readonly #steadyNow: MonotonicClock;
  /** Since when a block waits for a node, and when a held one was last checked. */
  readonly #since = new Map<string, number>();
  readonly #asked = new Map<string, number>();
  readonly #told = new Map<string, string>();

  constructor(options: JudgeOptions, dependencies: JudgeDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#steadyNow = dependencies.steadyNow ?? monotonicMillis;
  }

  /** All open blocks whose window is closed at a height, each queried by its id. */
  async due(cut: PayingCut): Promise<Verdict[]> {
    const { sql } = this.#dependencies;
    const open = await sql<BlockRow[]>`select ${columns(sql)} from blocks
      where state in ('found', 'accepted', 'registered', 'refused')
        and anchor_height + ${REGISTRATION_WINDOW} <= ${cut.height} order by anchor_height`;
    const held = await sql<BlockRow[]>`select ${columns(sql)} from blocks where state = 'held' order by anchor_height`;
    return this.#judgeAll([...open, ...this.#again(held)], cut);
  }

  /** Queries blocks recorded as expired again. Returns those that were paid after all. */
  async lately(height: number): Promise<Verdict[]> {
    const { sql } = this.#dependencies;
    const expired = await sql<BlockRow[]>`select ${columns(sql)} from blocks
      where state = 'expired' and anchor_height > ${height - EXPIRED_CUTS} order by anchor_height desc limit ${EXPIRED_BLOCKS}`;
    const verdicts = await this.#judgeAll(expired, { height, sharers: 1 });
    return verdicts.filter(({ kind }) => kind !== 'unpaid');
  }

  /** Those that were not checked recently, the longest waiting first. */
  #again(held: readonly BlockRow[]): readonly BlockRow[] {
    const now = this.#steadyNow();
    const names = new Set(held.map(nameOf));
    for (const map of [this.#asked, this.#told]) for (const name of map.keys()) if (!names.has(name)) map.delete(name);
    const lastOf = (row: BlockRow): number => this.#asked.get(nameOf(row)) ?? Number.NEGATIVE_INFINITY;
    const due = held.filter((row) => now - lastOf(row) >= AGAIN_MILLIS);
    const chosen = due.toSorted((a, b) => lastOf(a) - lastOf(b)).slice(0, AGAIN_BLOCKS);
    for (const row of chosen) this.#asked.set(nameOf(row), now);
    return chosen;
  }

  /** One after another: each accepted reward reduces what its anchor can still pay. */
  async #judgeAll(rows: readonly BlockRow[], cut: PayingCut): Promise<Verdict[]> {
    const verdicts: Verdict[] = [];
    const passed = new Map<number, { amount: bigint; carried: Carried | undefined }[]>();
    for (const row of rows) {
      const anchor = Number(row.anchor_height);
      const together = passed.get(anchor) ?? [];
      passed.set(anchor, together);
      const verdict = await this.#judge(row, cut, together);
      if (verdict.kind === 'paid') together.push({ amount: verdict.claim.amount, carried: carriedOf(row) });
      verdicts.push(verdict);
    }
    return verdicts;
  }

  async #judge(
    row: BlockRow,
    cut: PayingCut,
    together: readonly { amount: bigint; carried: Carried | undefined }[],
  ): Promise<Verdict> {
    const blockId = new Uint8Array(row.block_id);
    const bounds = await this.#boundsOf(row, cut);
    const name = nameOf(row);
    const anchorHeight = Number(row.anchor_height);
    const agreement = agreementOf(await this.#ask(name, anchorHeight + REGISTRATION_WINDOW), this.#isPatient(name));
    const hold = (reason: string, amount: bigint | undefined, fields: Record<string, unknown> = {}): Verdict => {
      this.#report(name, reason, { ...(amount === undefined ? {} : { amount }), ...fields });
      return { kind: 'held', blockId, bounds, amount, reason };
    };
    // The reason is public, and names of nodes are not: those are in the log.
    if (agreement.kind === 'waiting') return hold(WAITS, undefined, { nodes: agreement.names.join(' ') });
    this.#since.delete(name);
    if (agreement.kind === 'disagreed')
      return hold('nodes disagree about the reward', undefined, { said: agreement.said });
    const { statement, voices } = agreement;
    if (statement.kind !== 'paid') return { kind: 'unpaid', blockId, bounds };
    const { claim, payout } = statement;
    if (row.operator_accepts !== null && BigInt(row.operator_accepts) === claim.amount)
      return { kind: 'paid', blockId, bounds, claim };
    const { network, poolAddress, maxFeePerMass } = this.#options;
    if (payout !== formatAddress(poolAddress, network.name) || statement.anchorHeight !== anchorHeight)
      return hold('the node describes another block under this identifier', claim.amount);
    const facts = {
      ...bounds,
      anchorHeight,
      intervalCuts: this.#dependencies.intervalCuts(),
      siblings: [...together, ...(await this.#siblings(anchorHeight))],
      carried: carriedOf(row),
      maxFeePerMass: voices > 1 ? undefined : maxFeePerMass,
    };
    const flaw = rewardFlaw(claim, facts);
    return flaw === undefined ? { kind: 'paid', blockId, bounds, claim } : hold(flaw, claim.amount);
  }

  /** The books wait for the node that they follow; another unavailable node is ignored. */
  async #ask(blockId: string, dueHeight: number): Promise<Said[]> {
    const { chain } = this.#dependencies;
    const others = (chain.others ?? []).map(async (witness): Promise<Said> => {
      try {
        return { name: witness.name, statement: await statementOf(witness, blockId, dueHeight) };
      } catch (error) {
        return { name: witness.name, statement: { kind: 'silent', reason: (error as Error).message } };
      }
    });
    const statement = await statementOf(chain, blockId, dueHeight);
    return [{ name: 'the node', statement }, ...(await Promise.all(others))];
  }

  #isPatient(name: string): boolean {
    const since = this.#since.get(name) ?? this.#steadyNow();
    this.#since.set(name, since);
    return this.#steadyNow() - since < PATIENCE_MILLIS;
  }

  #report(block: string, reason: string, fields: Record<string, unknown>): void {
    if (this.#told.get(block) === reason) return;
    this.#told.set(block, reason);
    this.#dependencies.log[reason === WAITS ? 'warn' : 'error']('a reward is held', { block, reason, ...fields });
  }

  /** The limits when the cut that pays the anchor was read. If it was not read, the widest possible limits. */
  async #boundsOf({ anchor_height, paid_before, sharers }: BlockRow, cut: PayingCut): Promise<Bounds> {
    const anchorHeight = Number(anchor_height);
    if (paid_before !== null && sharers !== null) return { paidBefore: Number(paid_before), sharers };
    const isPaying = anchorHeight + REGISTRATION_WINDOW === cut.height;
    return { paidBefore: await this.#paidBefore(anchorHeight), sharers: isPaying ? Math.max(1, cut.sharers) : 1 };
  }

  async #paidBefore(anchorHeight: number): Promise<number> {
    const [row] = await this.#dependencies.sql<{ anchor: bigint | null }[]>`select greatest(
        (select value::bigint from settings where name = 'paid_anchor' and value::bigint < ${anchorHeight}),
        (select max(anchor_height) from blocks where state = 'paid' and anchor_height < ${anchorHeight})) as anchor`;
    return Number(row?.anchor ?? -1);
  }

  async #siblings(anchorHeight: number): Promise<{ amount: bigint; carried: Carried | undefined }[]> {
    type Row = { reward: bigint; carried_fees: bigint | null; carried_mass: number | null };
    const rows = await this.#dependencies.sql<Row[]>`select reward, carried_fees, carried_mass from blocks
      where state = 'paid' and anchor_height = ${anchorHeight}`;
    return rows.map((row) => ({ amount: row.reward, carried: carriedOf(row) }));
  }
}

const nameOf = (row: BlockRow): string => row.block_id.toString('hex');
const columns = (sql: Sql) =>
  sql`block_id, anchor_height, carried_fees, carried_mass, paid_before, sharers,
    operator_accepts::text as operator_accepts`;
