/** Maintains a number of outgoing connections: addresses come from the book, and results are recorded there. */
import { multiaddr } from '@multiformats/multiaddr';
import { clientKey } from '../../../runtime/clients/client-address.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { ipOf } from '../peers/peer-address.ts';
import type { PeerBook } from '../peers/peer-book.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import type { Host } from './create-host.ts';
import type { PeerName } from './host-types.ts';

const DIALS_AT_ONCE = 3;
const DIAL_MILLIS = 5_000;
/** Peers of the operator's list that are dialled even if others hold all places: what else is known of the network came from peers. */
const NAMED = 2;

export type DiallerDependencies = {
  readonly host: Host;
  readonly limits: ConnectionLimits;
  readonly book: PeerBook;
  readonly failed: (address: string, reason: string) => void;
};

export class Dialler {
  readonly #outbound: number;
  readonly #with: DiallerDependencies;
  /** Addresses that are connected or being dialled, with their peers. */
  readonly #dialled = new Map<string, PeerName | undefined>();

  constructor(outbound: number, dependencies: DiallerDependencies) {
    this.#outbound = outbound;
    this.#with = dependencies;
  }

  /** Dials if there are too few. */
  keep(): void {
    const { host, book } = this.#with;
    const connected = host.getConnections();
    const names = new Set(connected.map(({ remotePeer }) => remotePeer.toString()));
    const dialling = [...this.#dialled.values()].filter((there) => there === undefined).length;
    const outward = connected.filter(({ direction }) => direction === 'outbound');
    // Who comes from a network does not keep this node from dialling into it.
    const addresses = outward.flatMap(({ remoteAddr }) => ipOf(remoteAddr.toString()) ?? []);
    const free = this.#outbound - outward.length - dialling;
    const named = [...this.#dialled.keys()].filter((address) => book.isNamed(address)).length;
    const wanted = Math.min(DIALS_AT_ONCE - dialling, Math.max(free, NAMED - named));
    for (let i = 0; i < wanted; i++) {
      const isTaken = (address: string) => this.#isTaken(address, names);
      const address = book.next(steadyMillis(), isTaken, addresses, i >= free);
      if (address === undefined) return;
      void this.#dial(address);
    }
  }

  /** Whether there are as many as there should be. */
  isContent(): boolean {
    const outward = this.#with.host.getConnections().filter(({ direction }) => direction === 'outbound');
    return outward.length >= this.#outbound;
  }

  #isTaken(address: string, connected: ReadonlySet<PeerName>): boolean {
    const { host, limits } = this.#with;
    const name = /\/p2p\/(\w+)$/.exec(address)?.[1];
    const ip = ipOf(address);
    if (this.#dialled.has(address)) return true;
    // Others that have the address of a named peer, as behind a router, do not keep this node from it.
    if (ip !== undefined && !this.#with.book.isNamed(address) && limits.isBarred(clientKey(ip))) return true;
    if (name === undefined) return false;
    return connected.has(name) || name === host.peerId.toString() || limits.isBarred(limits.placeOf(name, address));
  }

  async #dial(address: string): Promise<void> {
    const { host, book, failed } = this.#with;
    this.#dialled.set(address, undefined);
    try {
      const connection = await host.dial(multiaddr(address), { signal: AbortSignal.timeout(DIAL_MILLIS) });
      if (connection.status !== 'open') throw new Error('it was closed');
      this.#dialled.set(address, connection.remotePeer.toString());
    } catch (error) {
      this.#dialled.delete(address);
      book.failed(address, steadyMillis());
      failed(address, (error as Error).message);
    }
  }

  /** The operator named it, or an address where it answered. It may have come here before this node reached it. */
  isNamed(peer: PeerName): boolean {
    const { book } = this.#with;
    return book.names(peer) || [...this.#dialled].some(([address, there]) => there === peer && book.isNamed(address));
  }

  /** The peer sent a valid hello. */
  worked(peer: PeerName, at: string): void {
    const found = at.includes('/p2p/') ? at : `${at}/p2p/${peer}`;
    for (const [address, there] of this.#dialled)
      if (there === peer) this.#with.book.worked(address, found, steadyMillis());
  }

  /** The addresses of a peer that cannot be used are not dialled again for a while. */
  leaveAlone(peer: PeerName, leastMillis = 0): void {
    for (const [address, there] of this.#dialled)
      if (there === peer) this.#with.book.failed(address, steadyMillis(), leastMillis);
  }

  left(peer: PeerName): void {
    for (const [address, there] of this.#dialled) if (there === peer) this.#dialled.delete(address);
  }
}
