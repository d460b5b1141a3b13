/**
 * The bodies of one connection (docs/protocol/stratum.md, S53 and S57). A body is good for one block, so the connection
 * has a current one that new jobs are on; after a block on it, the next. A large miner holds a second one in advance, the
 * spare: it moves there by itself the moment it finds a block, instead of searching a spent body until the answer and the
 * next job have come. Generations count up, a spare is always older than the current one, and every other is spent.
 */
import type { Bytes } from '../protocol/bytes.ts';
import { rewardRoot } from '../protocol/reward.ts';
import { extranonceOf, nextGeneration } from './extranonce.ts';

export type Body = { readonly generation: number; readonly extranonce: Bytes; readonly rewardRoot: Bytes };

/** What the extranonces of a connection have in common, and whom its blocks pay. */
export type BodyOwner = { readonly tag: string; readonly owner: Bytes; readonly payout: Bytes };

export const bodyOf = ({ tag, owner, payout }: BodyOwner, generation: number): Body => {
  const extranonce = extranonceOf(tag, owner, generation);
  return { generation, extranonce, rewardRoot: rewardRoot(payout, extranonce) };
};

export class Bodies {
  current: Body;
  spare: Body | null;
  /** The last generation there is has had its block. */
  isOver = false;

  constructor(owner: BodyOwner, generation: number, spare: number | null) {
    this.current = bodyOf(owner, generation);
    this.spare = spare === null ? null : bodyOf(owner, spare);
  }

  find(owner: BodyOwner, generation: number): Body {
    if (generation === this.current.generation) return this.current;
    if (generation === this.spare?.generation) return this.spare;
    return bodyOf(owner, generation);
  }

  isSpent(generation: number): boolean {
    return (generation !== this.current.generation || this.isOver) && generation !== this.spare?.generation;
  }

  /**
   * The body of `generation` has its block, and a fresh one becomes the current. When it was the spare that had one, what
   * was current until now is the spare.
   */
  spend(owner: BodyOwner, generation: number): void {
    const wasSpare = generation === this.spare?.generation;
    const fresh = nextGeneration(this.current.generation);
    if (wasSpare) this.spare = fresh === undefined ? null : this.current;
    else if (fresh === undefined) this.isOver = true;
    if (fresh !== undefined) this.current = bodyOf(owner, fresh);
  }

  /** The spare; where there is none, the current body becomes it and the next one takes its place. */
  keepSpare(owner: BodyOwner): Body | null {
    if (this.spare !== null) return this.spare;
    const fresh = nextGeneration(this.current.generation);
    if (fresh === undefined) return null;
    this.spare = this.current;
    this.current = bodyOf(owner, fresh);
    return this.spare;
  }
}
