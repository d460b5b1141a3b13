/** Selects the neighbours that a message is sent to, and those that represent members. */
import { equalBytes } from '../../../protocol/bytes.ts';
import { isThird } from '../../../protocol/consensus/vote.ts';
import type { Committee } from '../engine/committee.ts';
import type { Company, Peer, Receiver } from '../engine/effects.ts';
import type { Answer } from '../one-signer/roll-call.ts';
import type { Companion, Transport } from '../reach/transport.ts';

/** Neighbours that are sent this node's status at once. */
const SOME = 3;

/** A neighbour's report; the first of these if several connections of one member differ. */
const SIDES = ['taken', 'ahead', 'here', 'silent'] as const;
type Side = (typeof SIDES)[number];

/** -1 for a key without a seat; undefined for a neighbour that proved none. */
export const memberOf = (committee: Committee, key: Companion['key']): number | undefined =>
  key && committee.members.findIndex(({ publicKey }) => equalBytes(publicKey, key));

/** A key without a seat represents no member. */
export function companyOf(
  companions: readonly Companion[],
  committee: Committee,
  sideOf: (peer: Peer) => Side,
): Required<Company> {
  const none = () => ({ members: [] as number[], named: 0 });
  const sides = { taken: none(), ahead: none(), here: none(), silent: none() };
  for (const { peers, key } of companions) {
    const said = new Set(peers.map(sideOf));
    const side = sides[SIDES.find((each) => said.has(each)) ?? 'silent'];
    const member = memberOf(committee, key);
    if (member === undefined) side.named++;
    else if (member >= 0) side.members.push(member);
  }
  const { here, ...others } = sides;
  return { ...here, ...others };
}

export class Receivers {
  /** Where each member's messages last came from. */
  readonly #members = new Map<number, Peer>();
  /** The status of each neighbour. */
  readonly #heights = new Map<Peer, number>();
  readonly #transport: Pick<Transport, 'peers' | 'known' | 'isKnown' | 'company' | 'nearest'>;
  #turn = 0;

  constructor(transport: Pick<Transport, 'peers' | 'known' | 'isKnown' | 'company' | 'nearest'>) {
    this.#transport = transport;
  }

  /** A stranger that forwards messages first does not replace their senders. */
  cameFrom(member: number, peer: Peer): void {
    if (this.#transport.isKnown(peer)) this.#members.set(member, peer);
  }

  /** The member itself, where it is connected, and the neighbour that brings its messages. */
  towards(member: number, committee: Committee): readonly Peer[] {
    const itself = this.#transport.company().find(({ key }) => memberOf(committee, key) === member);
    return [...(itself?.peers ?? []), ...[this.#members.get(member)].filter((peer) => peer !== undefined)];
  }

  /** Strangers are asked only where there is nobody else. */
  isAsked(peer: Peer): boolean {
    return this.#transport.isKnown(peer) || this.#transport.known().length === 0;
  }

  isAt(peer: Peer, height: number): void {
    this.#heights.set(peer, height);
  }

  left(peer: Peer): void {
    this.#heights.delete(peer);
  }

  /**
   * Groups neighbours for a member at this height. At the tip others may be one height ahead. `answers`: of the roll
   * call, while this member listens.
   */
  company(committee: Committee, height: number, answers?: (peer: Peer) => Answer | undefined): Required<Company> {
    const sideOf = (peer: Peer): Side => {
      const answer = answers === undefined ? 'clear' : answers(peer);
      const at = this.#heights.get(peer);
      if (answer === 'taken') return 'taken';
      // A neighbour that has sent nothing yet may be at any height.
      if (at === undefined || answer === undefined) return 'silent';
      return at > height + 1 ? 'ahead' : 'here';
    };
    return companyOf(this.#transport.company(), committee, sideOf);
  }

  /**
   * The highest cut that members with more than a third of the stake report to have, so that one of them is honest; -1
   * for none.
   */
  reported(committee: Committee): number {
    const heads = new Map<number, number>();
    for (const { peers, key } of this.#transport.company()) {
      const member = memberOf(committee, key);
      const head = Math.max(...peers.map((peer) => (this.#heights.get(peer) ?? 0) - 1));
      if (member !== undefined && member >= 0 && head >= 0) heads.set(member, Math.max(head, heads.get(member) ?? 0));
    }
    let stake = 0n;
    for (const [member, head] of [...heads].sort(([, a], [, b]) => b - a)) {
      stake += committee.stake(member);
      if (isThird(stake, committee.total)) return head;
    }
    return -1;
  }

  /** Another committee: member numbers have changed. */
  forget(): void {
    this.#members.clear();
  }

  of(to: Receiver, committee: Committee): readonly Peer[] {
    if (typeof to === 'object' && 'peer' in to) return [to.peer];
    const peers = this.#transport.peers();
    if (peers.length === 0) return peers;
    const known = this.#transport.known();
    // Members first: strangers get the remaining bandwidth.
    if (to === 'all') return [...known, ...peers.filter((peer) => !known.includes(peer))];
    const towards = typeof to === 'object' ? this.towards(to.member, committee) : [];
    const near = peers.filter((peer) => towards.includes(peer));
    if (near.length > 0) return near;
    // Strangers, however many, must not displace neighbours that answer.
    const all = known.length > 0 ? known : peers;
    const asked = all.filter((peer) => this.#transport.nearest(peer) === peer);
    this.#turn += SOME;
    const count = Math.min(SOME, asked.length);
    return Array.from({ length: count }, (_, i) => asked[(this.#turn + i) % asked.length] as Peer);
  }
}
