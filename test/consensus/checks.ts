/**
 * What must hold in every run, judged by code of its own and not by the engine's: one cut per height, certificates that prove it, cuts that were valid, one vote per
 * height, round and kind of an honest member, and no accusation against one.
 */
import type { Committee } from '../../node/consensus/engine/committee.ts';
import type { Proposal } from '../../node/consensus/engine/effects.ts';
import type { CutName, Proof, Vote } from '../../node/consensus/engine/votes.ts';
import { isSignedBy, type World } from './world.ts';

/** Whether the seated nodes without the faulty ones have more than two thirds of the stake. */
export function isQuorumOfHonest(
  seated: readonly number[],
  stakes: readonly bigint[],
  faulty: readonly number[],
): boolean {
  let total = 0n;
  let honest = 0n;
  for (const node of seated) {
    total += stakes[node] as bigint;
    if (!faulty.includes(node)) honest += stakes[node] as bigint;
  }
  return honest * 3n > total * 2n;
}

export class Checks {
  readonly #world: World;
  readonly #decided = new Map<number, CutName>();
  firstDecided: ((node: number) => void) | undefined;
  readonly #sent = new Map<string, CutName>();

  constructor(world: World) {
    this.#world = world;
  }

  decided(node: number, proof: Proof, committee: Committee, seats: readonly number[], tip: CutName): void {
    const { height, round, cut, votes } = proof;
    const before = this.#decided.get(height);
    if (before !== undefined && before !== cut)
      this.#world.fail(`agreement: node ${node} decided ${cut} at height ${height}, another ${before}`);
    this.#decided.set(height, cut);
    if (before === undefined) this.firstDecided?.(node);
    let stake = 0n;
    const members = new Set<number>();
    for (const vote of votes) {
      const isGood =
        vote.kind === 2 && vote.height === height && vote.round === round && vote.cut === cut && cut !== '';
      if (!isGood || members.has(vote.member) || !isSignedBy(seats[vote.member], vote))
        this.#world.fail(`certificate: node ${node}, height ${height}: a vote does not belong there`);
      members.add(vote.member);
      stake += committee.members[vote.member]?.stake ?? 0n;
    }
    const total = committee.members.reduce((sum, member) => sum + member.stake, 0n);
    if (stake * 3n <= total * 2n) this.#world.fail(`certificate: node ${node}, height ${height}: ${stake} of ${total}`);
    const known = this.#world.cuts.get(cut);
    if (known === undefined || !known.valid || known.height !== height || known.parent !== tip)
      this.#world.fail(`validity: node ${node} decided ${cut} at height ${height}`);
  }

  /** Every message that leaves an honest node and bears its own signature. */
  sent(node: number, message: { readonly vote: Vote } | { readonly proposal: Proposal }): void {
    const [kind, { height, round, cut }] =
      'vote' in message ? [message.vote.kind, message.vote] : [0, message.proposal];
    const key = `${node}/${height}/${round}/${kind}`;
    const before = this.#sent.get(key);
    if (before === undefined) this.#sent.set(key, cut);
    else if (before !== cut)
      this.#world.fail(`second vote: node ${node}, height ${height}, round ${round}, kind ${kind}`);
  }
}
