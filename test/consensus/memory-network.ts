/** A network in memory for drivers under test: every neighbour hears every other, messages arrive a moment later, and a test sees and stops what it likes. */

import { FORWARD_HEAD_BYTES } from '../../node/consensus/driver/forwarding.ts';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { FORWARD_TYPE } from '../../node/consensus/link/message-types.ts';
import { processName } from '../../node/consensus/link/process-name.ts';
import type { Transport, TransportEvents } from '../../node/consensus/reach/transport.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';

export class MemoryNetwork {
  readonly #there = new Map<Peer, TransportEvents>();
  readonly dropped: { readonly by: Peer; readonly peer: Peer; readonly reason: string }[] = [];
  /** What neighbours proved to be theirs. */
  readonly keys = new Map<Peer, Bytes>();
  /** Neither named nor proven: for everybody the last to be asked. */
  readonly strangers = new Set<Peer>();
  /** Connections through a relay. */
  readonly relayed = new Set<Peer>();
  readonly #processes = new Map<Peer, Bytes>();
  #started = 0;
  /** Whether two have a connection. */
  links: (one: Peer, other: Peer) => boolean = () => true;
  /** Sees every message, and what is inside of one to forward; false loses it. */
  carries: (from: Peer, to: Peer, bytes: Bytes) => boolean = () => true;

  transport(name: Peer): Transport {
    const there = this.#there;
    const peers = () =>
      there.has(name) ? [...there.keys()].filter((other) => other !== name && this.links(name, other)) : [];
    const accountOf = (peer: Peer) => toHex(this.keys.get(peer) ?? new Uint8Array()) || String(peer);
    const process = processName(++this.#started);
    this.#processes.set(name, process);
    return {
      process,
      proven: (peer) => {
        const [key, other] = [this.keys.get(peer), this.#processes.get(peer)];
        return key && other && { key, process: other };
      },
      start: (events) => {
        there.set(name, events);
        for (const [other, others] of there)
          if (other !== name) {
            others.joined(name);
            events.joined(other);
          }
      },
      peers,
      known: () => peers().filter((peer) => !this.strangers.has(peer)),
      isKnown: (peer) => peers().includes(peer) && !this.strangers.has(peer),
      limitKey: (peer) => String(peer),
      accountOf,
      accountByWay: (peer) => (this.relayed.has(peer) ? 'relayed ' : '') + accountOf(peer),
      nearest: (peer) => peer,
      company: () =>
        peers()
          .filter((peer) => !this.strangers.has(peer))
          .map((peer) => ({ peers: [peer], key: this.keys.get(peer) })),
      send: (to, bytes) => this.carry(name, to, bytes),
      drop: (peer, reason) => void this.dropped.push({ by: name, peer, reason }),
      close: async () => {
        there.delete(name);
        for (const others of there.values()) others.left(name);
      },
    };
  }

  carry(from: Peer, to: Peer, bytes: Bytes): void {
    const copy = Uint8Array.from(bytes);
    const seen = copy[0] === FORWARD_TYPE ? copy.subarray(FORWARD_HEAD_BYTES) : copy;
    if (this.links(from, to) && this.carries(from, to, seen)) this.deliver(from, to, copy);
  }

  deliver(from: Peer, to: Peer, bytes: Bytes): void {
    setImmediate(() => this.#there.get(to)?.message(from, bytes));
  }
}
