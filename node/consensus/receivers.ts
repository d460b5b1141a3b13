/** Which neighbours a message goes to. */
import type { Peer, Receiver } from './effects.ts';
import type { Transport } from './transport.ts';

/** Neighbours that are told at once what this node holds. */
const SOME = 3;

export class Receivers {
  /** Where each member's messages last came from. */
  readonly #members = new Map<number, Peer>();
  #turn = 0;

  cameFrom(member: number, peer: Peer): void {
    this.#members.set(member, peer);
  }

  /** Another committee: the numbers are other members'. */
  forget(): void {
    this.#members.clear();
  }

  of(to: Receiver, transport: Pick<Transport, 'peers' | 'known'>): readonly Peer[] {
    if (typeof to === 'object' && 'peer' in to) return [to.peer];
    const peers = transport.peers();
    if (to === 'all' || peers.length === 0) return peers;
    const bringer = typeof to === 'object' ? this.#members.get(to.member) : undefined;
    if (bringer !== undefined && peers.includes(bringer)) return [bringer];
    // Strangers, however many, must not stand between this node and those who answer.
    const known = transport.known();
    const asked = known.length > 0 ? known : peers;
    this.#turn += SOME;
    const count = Math.min(SOME, asked.length);
    return Array.from({ length: count }, (_, i) => asked[(this.#turn + i) % asked.length] as Peer);
  }
}
