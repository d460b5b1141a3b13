/**
 * What everybody must have earned, from what happened alone: the rules of the books (docs/protocol/books.md, rules 3 to 8)
 * written down once more with plain fractions, sharing no code with the pool.
 */
import { MONTH } from './month-edge.ts';

/** A slice that the pool was there to open. */
export type WorkedSlice = {
  readonly number: number;
  /** The network's target when it opened. */
  readonly target: bigint;
  /** PPLNS work by account. */
  readonly work: Map<string, bigint>;
};

export type PaidBlock = {
  readonly slice: number;
  readonly service: 'pplns' | 'solo';
  readonly finder: string;
  readonly amount: bigint;
};

export type ExpectedList = {
  readonly reward: bigint;
  readonly fee: bigint;
  readonly credits: ReadonlyMap<string, bigint>;
};

const sum = (values: Iterable<bigint>): bigint => {
  let total = 0n;
  for (const value of values) total += value;
  return total;
};

const feeOf = (amount: bigint, service: 'pplns' | 'solo') => (amount * MONTH.feePpm[service]) / 1_000_000n;

/** Lists by `service/slice`. */
export function expectedLists(
  slices: readonly WorkedSlice[],
  blocks: readonly PaidBlock[],
): ReadonlyMap<string, ExpectedList> {
  const worked = slices.map((slice) => ({ ...slice, total: sum(slice.work.values()) }));
  const groups = new Map<string, PaidBlock[]>();
  for (const block of blocks) {
    const key = `${block.service}/${block.slice}`;
    groups.set(key, [...(groups.get(key) ?? []), block]);
  }
  const lists = new Map<string, ExpectedList>();
  for (const [key, group] of groups) {
    const { service, slice } = group[0] as PaidBlock;
    lists.set(key, service === 'solo' ? soloList(group) : pplnsList(slice, group, worked));
  }
  return lists;
}

function soloList(blocks: readonly PaidBlock[]): ExpectedList {
  const credits = new Map<string, bigint>();
  for (const { finder, amount } of blocks)
    credits.set(finder, (credits.get(finder) ?? 0n) + amount - feeOf(amount, 'solo'));
  const reward = sum(blocks.map((block) => block.amount));
  return { reward, fee: reward - sum(credits.values()), credits };
}

type Totalled = WorkedSlice & { readonly total: bigint };

function pplnsList(number: number, blocks: readonly PaidBlock[], slices: readonly Totalled[]): ExpectedList {
  const reward = sum(blocks.map((block) => block.amount));
  const fee = feeOf(reward, 'pplns');
  const own = slices.findIndex((slice) => slice.number === number);
  const before = slices
    .slice(0, own)
    .filter((slice) => slice.total > 0n)
    .reverse();
  const first = slices.slice(own).find((slice) => slice.total > 0n) as Totalled;
  const { target } = before.length > 0 ? (slices[own] as Totalled) : first;
  const wanted = ((1n << 256n) / (target + 1n)) * MONTH.windowBlocks;
  const floor = sum(before.slice(0, 12).map((slice) => slice.total));
  let left = wanted > floor ? wanted : floor;
  // An account's part of the window is whole + part / of, where only the oldest slice is counted in part.
  const whole = new Map<string, bigint>();
  const part = new Map<string, bigint>();
  let of = 1n;
  let counted = 0n;
  for (const { work, total } of before.length > 0 ? before : [first]) {
    if (left === 0n) break;
    const used = total < left ? total : left;
    for (const [account, own] of work)
      if (used === total) whole.set(account, (whole.get(account) ?? 0n) + own);
      else part.set(account, own * used);
    if (used < total) of = total;
    left -= used;
    counted += used;
  }
  const amount = reward - fee;
  const rows = [...new Set([...whole.keys(), ...part.keys()])].map((account) => {
    const share = amount * ((whole.get(account) ?? 0n) * of + (part.get(account) ?? 0n));
    return { account, atoms: share / (counted * of), rest: share % (counted * of) };
  });
  rows.sort((a, b) => (a.rest === b.rest ? (a.account < b.account ? -1 : 1) : a.rest > b.rest ? -1 : 1));
  const over = Number(amount - sum(rows.map((row) => row.atoms)));
  const credits = new Map(rows.map((row, i) => [row.account, row.atoms + (i < over ? 1n : 0n)]));
  return { reward, fee, credits: new Map([...credits].filter(([, atoms]) => atoms > 0n)) };
}
