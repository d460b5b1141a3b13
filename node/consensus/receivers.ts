/** Which neighbours a message goes to, and which of them speak for members. */
import { equalBytes } from '../../protocol/bytes.ts';
import type { Committee } from './committee.ts';
import type { Company, Peer, Receiver } from './effects.ts';
import type { Answer } from './roll-call.ts';
import type { Companion, Transport } from './transport.ts';

/** Neighbours that get what this node holds at once. */
const SOME = 3;

/** What a neighbour says, the first of these where several connections of one member differ. */
const SIDES = ['taken', 'ahead', 'here', 'silent'] as const;
type Side = (typeof SIDES)[number];

/** A key that has no seat speaks for nobody. */
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
    const member = key && committee.members.findIndex(({ publicKey }) => equalBytes(publicKey, key));
    if (member === undefined) side.named++;
    else if (member >= 0) side.members.push(member);
  }
  const { here, ...others } = sides;
  return { ...here, ...others };
}

export class Receivers {
  /** Where each member's messages last came from. */
  readonly #members = new Map<number, Peer>();
  /** What each neighbour says of itself. */
  readonly #heights = new Map<Peer, number>();
  readonly #transport: Pick<Transport, 'peers' | 'known' | 'company'>;
  #turn = 0;

  constructor(transport: Pick<Transport, 'peers' | 'known' | 'company'>) {
    this.#transport = transport;
  }

  /** A stranger that brings others' messages first is not asked instead of them. */
  cameFrom(member: number, peer: Peer): void {
    if (this.#transport.known().includes(peer)) this.#members.set(member, peer);
  }

  isAt(peer: Peer, height: number): void {
    this.#heights.set(peer, height);
  }

  left(peer: Peer): void {
    this.#heights.delete(peer);
  }

  /** For a member at this height. At the tip others may be one further. `answers`: of the roll call, where this member listens. */
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

  /** Another committee: the numbers are other members'. */
  forget(): void {
    this.#members.clear();
  }

  of(to: Receiver): readonly Peer[] {
    if (typeof to === 'object' && 'peer' in to) return [to.peer];
    const peers = this.#transport.peers();
    if (peers.length === 0) return peers;
    const known = this.#transport.known();
    // Members first: strangers take what is left of the line.
    if (to === 'all') return [...known, ...peers.filter((peer) => !known.includes(peer))];
    const bringer = typeof to === 'object' ? this.#members.get(to.member) : undefined;
    if (bringer !== undefined && peers.includes(bringer)) return [bringer];
    // Strangers, however many, must not stand between this node and those who answer.
    const asked = known.length > 0 ? known : peers;
    this.#turn += SOME;
    const count = Math.min(SOME, asked.length);
    return Array.from({ length: count }, (_, i) => asked[(this.#turn + i) % asked.length] as Peer);
  }
}
