/** The committee of an epoch (docs/protocol/consensus.md, rules 1 and 2): members in their order, with stake and key, and who proposes when. */
import type { Bytes } from '../../../protocol/bytes.ts';
import { proposerPoint } from '../../../protocol/consensus/proposer.ts';

export type Member = { readonly publicKey: Bytes; readonly stake: bigint };

/** Proposers of this many rounds are cached; others are computed again. */
const REMEMBERED = 256;
const ROUNDS = 32;

export class Committee {
  /** `validator_set_id` of the header. */
  readonly setId: Bytes;
  readonly members: readonly Member[];
  readonly total: bigint;
  readonly #proposers = new Map<number, number>();

  constructor(setId: Bytes, members: readonly Member[]) {
    this.setId = setId;
    this.members = members;
    this.total = members.reduce((sum, { stake }) => sum + stake, 0n);
    if (this.total <= 0n) throw new RangeError('a committee has stake');
  }

  get size(): number {
    return this.members.length;
  }

  stake(member: number): bigint {
    return (this.members[member] as Member).stake;
  }

  stakeOf(bits: bigint): bigint {
    let sum = 0n;
    for (const [i, { stake }] of this.members.entries()) if ((bits >> BigInt(i)) & 1n) sum += stake;
    return sum;
  }

  /** The member whose interval of the cumulative stake contains the point of this height and round. */
  proposer(height: number, round: number): number {
    // Later rounds are rare enough to be computed each time.
    const key = round < ROUNDS ? height * ROUNDS + round : undefined;
    const known = key === undefined ? undefined : this.#proposers.get(key);
    if (known !== undefined) return known;
    const member = this.memberAt(proposerPoint(this.setId, height, round) % this.total);
    if (key === undefined) return member;
    if (this.#proposers.size >= REMEMBERED) this.#proposers.clear();
    this.#proposers.set(key, member);
    return member;
  }

  memberAt(point: bigint): number {
    let end = 0n;
    for (const [i, { stake }] of this.members.entries()) {
      end += stake;
      if (point < end) return i;
    }
    throw new RangeError('the point is past the stake');
  }
}
