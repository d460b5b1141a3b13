/** A pool and a node that are played, with one list, and the miner's watch over the pool's lists. */
import { ListWatch } from '../../miner/books/list-watch.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { Books, honestDecisions, SLICE_CUTS } from '../../vectors/generate/honest-books.ts';
import { honest, type Lie, renamed, SLICE, VICTIM } from '../protocol/books-liar.ts';
import { sourcesOf } from '../protocol/books-sources.ts';

export const truth: Lie = { proof: honest.proof(SLICE, VICTIM), evidence: honest.evidence(SLICE) };
export const ADDRESS = truth.proof.address;

const longer = new Books(honestDecisions(40));

/** The proof of a slice's list, which has these blocks for its first ones. */
export function proofWith(slice: number, ids: readonly string[]): PoolProof {
  const proof = longer.proof(slice, VICTIM);
  const named = (id: string) => ({ block_id: id, transaction_id: rewardTransaction(id) });
  const blocks = proof.blocks.map((block, i) => ({ ...block, ...(ids[i] === undefined ? {} : named(ids[i])) }));
  return renamed({ ...proof, blocks });
}

/** The answer to a question for the records up to a slice. */
export const recordsThrough = (slice: number) => ({
  slices: longer.records.filter((record) => record.slice <= slice).toReversed(),
});

/** The time of day when the watch's own clock is at 0: the two begin at different times. */
export const EPOCH_MILLIS = 1_800_000_000_000;

/** When the list of the slice must be there. */
export const DUE_HEIGHT = (SLICE + 1) * SLICE_CUTS + 96 + 96 + 16;

/** The answers of a pool, with the list of one slice in its page of slices; and those of a node. */
export function watched(
  lie: Lie,
  options: {
    readonly node?: boolean;
    readonly blocks?: Readonly<Record<string, string[]>>;
    readonly height?: number;
    readonly nowMillis?: number;
    /** The node tells only what is after the height that it is asked about. */
    readonly isExact?: boolean;
  } = {},
) {
  const { pool, node: told } = sourcesOf(lie);
  const { height = DUE_HEIGHT } = options;
  const heights: { node: number; pool: number | undefined } = { node: height, pool: height };
  /** When the node's newest cut was made. */
  const head: { millis: number | undefined } = { millis: undefined };
  const node = {
    ...told,
    cuts: async (asked: { before?: number }) => {
      if (asked.before !== undefined) return told?.cuts(asked as never);
      return { cuts: [{ height: heights.node, finalized_at_millis: head.millis }] };
    },
    addressChanges: async (asked: { after_height: number }) => {
      const answer = await told?.addressChanges(asked as never);
      const isAfter = (each: { finalized_height: number }) => each.finalized_height > asked.after_height;
      const changes = options.isExact === true ? answer?.changes.filter(isAfter) : answer?.changes;
      return { ...answer, changes, indexed_height: heights.node };
    },
  } as typeof told;
  /** What the pool answers instead. */
  const answers = new Map<string, unknown>();
  const alarms: string[] = [];
  const notes: string[] = [];
  let now = options.nowMillis ?? 0;
  const answered = async (path: string): Promise<unknown> => {
    const instead = answers.get(path);
    if (instead instanceof Error) throw instead;
    if (instead !== undefined) return instead;
    if (path === 'terms') return { ...((await pool(path)) as object), height: heights.pool };
    const named = options.blocks?.[path];
    if (named !== undefined) return { blocks: named.map((block_id) => ({ block_id, credited_with: SLICE })) };
    const answer = await pool(path);
    if (!/^slices\/[a-z]+\?/.test(path)) return answer;
    const { slices } = answer as { slices: { slice: number }[] };
    return {
      slices: slices.map((record) => ({
        ...record,
        credits: record.slice === lie.proof.slice ? { root: lie.proof.credit_root } : null,
      })),
    };
  };
  const watch = new ListWatch(ADDRESS, {
    pool: answered,
    node: options.node === false ? null : node,
    alarm: (kind, what, fields) => void alarms.push(`${kind} ${what} ${fields.reason ?? ''}`.trim()),
    note: (message) => void notes.push(message),
    nowMillis: () => (now += 60_000),
    wallMillis: () => EPOCH_MILLIS + now,
  });
  return { watch, alarms, notes, answers, heights, head };
}

/** What looks false is read again before the pool is accused. */
export async function twice(run: () => Promise<unknown>): Promise<void> {
  await run();
  await run();
}
