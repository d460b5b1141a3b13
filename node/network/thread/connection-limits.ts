/**
 * The library's connection gater: limits by address and network, and barred peers and addresses. Also counts the bytes
 * of every connection.
 */
import type { ConnectionGater, MultiaddrConnection, PeerId } from '@libp2p/interface';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import { clientKey, isLoopback } from '../../../runtime/clients/client-address.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { admitInbound, COMING, INBOUND_LIMITS, type Inbound, subnetOf } from '../peers/inbound-limits.ts';
import { ipOf } from '../peers/peer-address.ts';
import { BARRED_MILLIS } from '../peers/peer-score.ts';
import type { PeerName } from './host-types.ts';
import type { ByteCount } from './quic-transport.ts';

const MAX_BARRED = 10_000;
const MAX_NETWORKS = 10_000;
/** Writes until it is agreed what is spoken on a connection, and with whom; a few are needed. Each word of the other side has an answer. */
const MAX_FIRST_WRITES = 32;

type Counted = MultiaddrConnection & { onData?(data: { readonly byteLength: number }): void };

export class ConnectionLimits {
  readonly #places: number;
  readonly #isNear: (address: string) => boolean;
  readonly #steady: SteadyClock;
  readonly #inbound = new Map<number, Inbound & { readonly connection: MultiaddrConnection }>();
  readonly #coming = new Buckets(COMING, MAX_NETWORKS);
  readonly #barred = new BoundedMap<string, number>(MAX_BARRED);
  /** Writes to those that are not agreed yet. */
  readonly #firstWrites = new WeakMap<MultiaddrConnection, number>();
  #count = 0;
  receivedBytes = 0;
  sentBytes = 0;

  constructor(places: number, countsNear: boolean, steady: SteadyClock) {
    this.#places = places;
    this.#isNear = countsNear ? () => false : isLoopback;
    this.#steady = steady;
  }

  get barred(): number {
    return [...this.#barred.values()].filter((until) => until > this.#steady()).length;
  }

  isNear(address: string): boolean {
    return this.#isNear(address);
  }

  isBarred(name: string): boolean {
    return (this.#barred.get(name) ?? 0) > this.#steady();
  }

  /** The address that a peer shares with others; of one on this machine its name. */
  holderOf(peer: PeerName, address: string): string {
    const ip = ipOf(`${address}/`);
    return ip === undefined || this.#isNear(ip) ? peer : clientKey(ip);
  }

  /**
   * A peer at an address. Its name alone is barred nowhere: a liar has another one at once, and a stranger that forwards
   * the connection of an honest peer can hold it up.
   */
  placeOf(peer: PeerName, address: string): string {
    const holder = this.holderOf(peer, address);
    return holder === peer ? peer : `${peer} ${holder}`;
  }

  /** Bars an address, and the peer there also where the operator named it. */
  bar(peer: PeerName, address: string): void {
    const until = this.#steady() + BARRED_MILLIS;
    this.#barred.set(this.placeOf(peer, address), until);
    this.#barred.set(this.holderOf(peer, address), until);
  }

  #isPlaceBarred(peer: PeerId, { remoteAddr }: MultiaddrConnection): boolean {
    return this.isBarred(this.placeOf(`${peer}`, `${remoteAddr}`));
  }

  readonly gater: ConnectionGater = {
    denyInboundConnection: (connection) => {
      const ip = ipOf(`${connection.remoteAddr}/`) ?? '';
      if (this.isBarred(clientKey(ip))) return true;
      const limits = { places: this.#places, ...INBOUND_LIMITS };
      const found = admitInbound([...this.#inbound.values()], ip, limits, this.#isNear);
      if (!found.admitted) return true;
      if (!this.#isNear(ip) && !this.#coming.take(subnetOf(ip), this.#steady())) return true;
      if (found.evict !== undefined) this.#inbound.get(found.evict)?.connection.abort(new Error('others wait'));
      const id = this.#count++;
      this.#inbound.set(id, { id, address: clientKey(ip), subnet: subnetOf(ip), connection });
      connection.addEventListener('close', () => this.#inbound.delete(id));
      this.#measure(connection);
      this.#firstWrites.set(connection, 0);
      return false;
    },
    denyInboundUpgradedConnection: (_, connection) => {
      this.#firstWrites.delete(connection);
      return false;
    },
    denyInboundEncryptedConnection: (peer, connection) => this.#isPlaceBarred(peer, connection),
    denyOutboundEncryptedConnection: (peer, connection) => {
      if (this.#isPlaceBarred(peer, connection)) return true;
      this.#measure(connection);
      return false;
    },
  };

  /** Bytes of QUIC, whose connections hand on none themselves. */
  readonly count: ByteCount = {
    received: (bytes) => {
      this.receivedBytes += bytes;
    },
    sent: (bytes) => {
      this.sentBytes += bytes;
    },
  };

  #measure(connection: Counted): void {
    const send = connection.send.bind(connection);
    connection.send = (data) => {
      this.#countFirst(connection);
      this.sentBytes += data.byteLength;
      return send(data);
    };
    const onData = connection.onData?.bind(connection);
    if (onData !== undefined)
      connection.onData = (data) => {
        this.receivedBytes += data.byteLength;
        onData(data);
      };
  }

  #countFirst(connection: MultiaddrConnection): void {
    const writes = this.#firstWrites.get(connection);
    if (writes === undefined) return;
    if (writes >= MAX_FIRST_WRITES) throw new Error('too many words about what is spoken');
    this.#firstWrites.set(connection, writes + 1);
  }
}
