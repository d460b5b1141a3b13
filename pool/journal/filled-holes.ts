/**
 * Fills holes of a damaged journal by a copy of it that a person put back under another name (docs/operations.md,
 * JournalDamaged), whichever of the two the books take first. What is missing in one and booked from the other is not
 * reported as lost.
 *
 * One share in two journals is no copy: a miner may bring that about. A copy has all shares of the other one under their
 * sequences, and nothing else there. So a journal is taken for a copy of another while the last AGREED shares of it, in a row,
 * counted before from the other one under the same sequences: a share that counted, at a sequence that the other journal
 * has, begins the row anew. To silence the report of a loss a stranger would have to be the only miner of two front ends for that
 * long, entry for entry. (A share that counted from a third journal says nothing: the books have what a first copy brought.)
 */
import { byteaTexts, type Transaction } from '../database/connect.ts';
import type { ShareIdentity } from './journal-record.ts';

/** Shares in a row that make a copy. A journal of fewer shares fills no holes: what is reported then is too much. */
const AGREED = 16;

export type TakenShare = {
  readonly bootId: string;
  readonly sequence: number;
  readonly identity: ShareIdentity | null;
  readonly isCounted: boolean;
};

/** The journal that another one seems to be a copy of, and the number of shares in a row in which they agree. */
export type Likeness = { readonly of: string; readonly agreed: number };

/** To be called when the positions are advanced: with all shares of a transaction, and the likenesses known before. */
export async function fillHoles(
  transaction: Transaction,
  taken: readonly TakenShare[],
  known: ReadonlyMap<string, Likeness>,
): Promise<void> {
  const before = await countedBefore(transaction, taken);
  for (const [bootId, shares] of Map.groupBy(taken, (share) => share.bootId)) {
    const others = shares.map(({ sequence }) => before.get(`${bootId}/${sequence}`) ?? []);
    const first = known.get(bootId);
    if (first === undefined && others.every((each) => each.length === 0)) continue;
    const has = new Map<string, (sequence: number) => boolean>();
    for (const other of new Set([...(first === undefined ? [] : [first.of]), ...others.flat()]))
      has.set(other, await entriesOf(transaction, other, shares));
    let likeness = first;
    for (const [i, { sequence, isCounted }] of shares.entries()) {
      const from = others[i] as readonly string[];
      if (likeness !== undefined && from.includes(likeness.of)) likeness = { ...likeness, agreed: likeness.agreed + 1 };
      else if (likeness !== undefined && isCounted && has.get(likeness.of)?.(sequence)) likeness = undefined;
      else if (likeness === undefined && from[0] !== undefined) likeness = { of: from[0], agreed: 1 };
    }
    const boot = Buffer.from(bootId, 'hex');
    const of = likeness === undefined ? null : Buffer.from(likeness.of, 'hex');
    await transaction`update journal_positions set copy_of = ${of}, agreed = ${likeness?.agreed ?? 0}
      where boot_id = ${boot}`;
    if (of === null || (likeness?.agreed ?? 0) < AGREED) continue;
    await fill(transaction, of, boot);
    await fill(transaction, boot, of);
  }
}

/** The other journals that shares counted from before under the same sequences, by `boot/sequence`. */
async function countedBefore(
  transaction: Transaction,
  taken: readonly TakenShare[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const doubled = taken.flatMap(({ bootId, sequence, identity, isCounted }) =>
    isCounted || identity === null ? [] : [{ bootId, sequence, identity }],
  );
  const found = new Map<string, string[]>();
  if (doubled.length === 0) return found;
  const anchors = doubled.map(({ identity }) => identity.anchorHeight);
  // Bounded apart from the join: without the bounds one such share may be looked for in all raw shares.
  const rows = await transaction<
    { copy: string; sequence: bigint; of: Buffer }[]
  >`select d.copy, d.sequence, s.boot_id as of
    from unnest(${doubled.map(({ bootId }) => bootId)}::text[], ${doubled.map(({ sequence }) => sequence)}::bigint[],
      ${byteaTexts(doubled.map(({ identity }) => Buffer.from(identity.bytes).toString('hex')))}::text[]::bytea[],
      ${anchors}::bigint[]) as d(copy, sequence, identity, anchor)
    join shares s on s.anchor_height = d.anchor and s.identity = d.identity and s.sequence = d.sequence
    where s.boot_id <> decode(d.copy, 'hex')
      and s.anchor_height between ${Math.min(...anchors)} and ${Math.max(...anchors)}`;
  for (const { copy, sequence, of } of rows)
    found.set(`${copy}/${sequence}`, [...(found.get(`${copy}/${sequence}`) ?? []), of.toString('hex')]);
  return found;
}

/** Whether the books have taken the entry of a journal, where some shares of another one are. */
async function entriesOf(
  transaction: Transaction,
  bootId: string,
  shares: readonly TakenShare[],
): Promise<(sequence: number) => boolean> {
  const boot = Buffer.from(bootId, 'hex');
  const [from, until] = [shares[0]?.sequence ?? 0, shares.at(-1)?.sequence ?? 0];
  const [position] = await transaction<{ through: bigint }[]>`select through from journal_positions
    where boot_id = ${boot}`;
  const holes = await transaction<{ after: bigint; until: bigint }[]>`select after, until from journal_holes
    where boot_id = ${boot} and after < ${until} and until > ${from}`;
  const unread = await transaction<{ sequence: bigint }[]>`select sequence from unread_records
    where boot_id = ${boot} and sequence between ${from} and ${until}`;
  const lacks = new Set(unread.map(({ sequence }) => Number(sequence)));
  const through = Number(position?.through ?? -1);
  return (sequence) =>
    sequence <= through &&
    !lacks.has(sequence) &&
    !holes.some((hole) => sequence > Number(hole.after) && sequence < Number(hole.until));
}

/**
 * A hole becomes smaller from its start, up to where the whole one ends or lacks something too. One that is filled stays on
 * record: its entries counted from the copy (receipts/earlier-sheets.ts).
 */
async function fill(transaction: Transaction, damaged: Buffer, whole: Buffer): Promise<void> {
  await transaction`update journal_holes set after = r.reached
    from (select h.after, h.until, least(h.until - 1, p.through,
        (select min(o.after) from journal_holes o
          where o.boot_id = ${whole} and o.after + 1 < o.until and o.after < h.until - 1 and o.until > h.after + 1),
        (select min(u.sequence) - 1 from unread_records u
          where u.boot_id = ${whole} and u.sequence > h.after and u.sequence < h.until)) as reached
      from journal_holes h join journal_positions p on p.boot_id = ${whole} where h.boot_id = ${damaged}) r
    where journal_holes.boot_id = ${damaged} and journal_holes.after = r.after and journal_holes.until = r.until
      and r.reached > r.after`;
}
