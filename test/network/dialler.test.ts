/** Whom a node dials while others hold its outgoing places, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PeerBook } from '../../node/network/peers/peer-book.ts';
import type { ConnectionLimits } from '../../node/network/thread/connection-limits.ts';
import type { Host } from '../../node/network/thread/create-host.ts';
import { Dialler } from '../../node/network/thread/dialler.ts';

const OUTBOUND = 8;
const KEEP_MILLIS = 500;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

type Held = {
  readonly remotePeer: string;
  readonly remoteAddr: string;
  readonly direction: 'inbound' | 'outbound';
  status: string;
};

class Network {
  readonly connections: Held[] = [];
  readonly silent = new Set<string>();
  readonly dials: string[] = [];
  /** Peers and addresses. */
  readonly barred = new Set<string>();
  readonly book: PeerBook;
  readonly dialler: Dialler;

  constructor(named: readonly string[]) {
    this.book = new PeerBook(named, () => false);
    const host = {
      peerId: 'self',
      getConnections: () => this.connections,
      dial: async (to: unknown) => {
        const address = String(to);
        this.dials.push(address);
        if (this.silent.has(address)) throw new Error('no answer');
        const held: Held = {
          remotePeer: `peer at ${address}`,
          remoteAddr: address,
          direction: 'outbound',
          status: 'open',
        };
        this.connections.push(held);
        return held;
      },
    };
    this.dialler = new Dialler(OUTBOUND, {
      host: host as unknown as Host,
      limits: {
        isBarred: (name: string) => this.barred.has(name),
        placeOf: (peer: string) => peer,
      } as unknown as ConnectionLimits,
      book: this.book,
      failed: () => undefined,
    });
  }

  async pass(seconds: number): Promise<void> {
    for (let i = 0; i < (1_000 * seconds) / KEEP_MILLIS; i++) {
      this.dialler.keep();
      await vi.advanceTimersByTimeAsync(KEEP_MILLIS);
    }
  }

  leaves(address: string): void {
    const at = this.connections.findIndex(({ remoteAddr }) => remoteAddr === address);
    const [held] = this.connections.splice(at, 1);
    this.dialler.left((held as Held).remotePeer);
  }

  has = (address: string): boolean => this.connections.some(({ remoteAddr }) => remoteAddr === address);
}

const NAMED = Array.from({ length: 4 }, (_, i) => `/ip4/10.${i}.0.1/tcp/28705`);
const PEER = '12D3KooWFFWniSxc96QsrFX7tNZteNdTZaqTcKtac6SFQPQaw5BB';
const stranger = (i: number) => `/ip4/192.0.${i}.1/tcp/28705/p2p/${PEER}`;

test('a peer counts as named where it answered at an address that the operator named', async () => {
  const [named = ''] = NAMED;
  const network = new Network([named]);
  network.book.told(stranger(1));
  await network.pass(2);
  expect(network.has(stranger(1))).toBe(true);
  expect(network.dialler.isNamed(`peer at ${named}`)).toBe(true);
  expect(network.dialler.isNamed(`peer at ${stranger(1)}`)).toBe(false);
});

test('a peer that the operator named is dialled again after its restart, though strangers hold all places', async () => {
  const [named = ''] = NAMED;
  const network = new Network([named]);
  await network.pass(1);
  expect(network.has(named)).toBe(true);
  for (let i = 0; i < 20; i++) network.book.told(stranger(i));
  await network.pass(5);
  expect(network.connections).toHaveLength(OUTBOUND);
  network.silent.add(named);
  network.leaves(named);
  await network.pass(60);
  expect(network.connections.filter(({ remoteAddr }) => remoteAddr !== named)).toHaveLength(OUTBOUND);
  network.silent.delete(named);
  await network.pass(31);
  expect(network.has(named)).toBe(true);
  // Nobody else is dialled beyond the number.
  expect(network.connections).toHaveLength(OUTBOUND + 1);
});

test('of a long list only as many as are missing are dialled beyond the number', async () => {
  const network = new Network(NAMED);
  for (const named of NAMED) network.silent.add(named);
  for (let i = 0; i < 20; i++) network.book.told(stranger(i));
  await network.pass(60);
  expect(network.connections).toHaveLength(OUTBOUND);
  network.silent.clear();
  await network.pass(62);
  expect(NAMED.filter(network.has)).toHaveLength(2);
  expect(network.connections).toHaveLength(OUTBOUND + 2);
});

test('those that come from the network of a peer do not keep it from being dialled', async () => {
  const network = new Network([]);
  for (const last of [7, 8, 9])
    network.connections.push({
      remotePeer: `stranger ${last}`,
      remoteAddr: `/ip4/192.0.0.${last}/tcp/5000`,
      direction: 'inbound',
      status: 'open',
    });
  network.book.remember(stranger(0), 1);
  await network.pass(2);
  expect(network.has(stranger(0))).toBe(true);
});

test('a named peer is dialled although another one at its address is barred, and not where it is barred itself', async () => {
  const [named, other] = [
    '/ip4/192.0.2.1/tcp/28705',
    '/ip4/198.51.100.1/tcp/28705/p2p/12D3KooWRDpNuGjW9RjrH3Yy7R8JUxL97omQbYxWgvhK9zAboK9J',
  ];
  const network = new Network([named, other]);
  const told = '/ip4/192.0.2.1/tcp/1/p2p/12D3KooWQYV9dGMFoRzNStwpXztXaBUjtPqi6aU76ZgUriHhKust';
  network.book.told(told);
  for (const name of ['192.0.2.1', '12D3KooWRDpNuGjW9RjrH3Yy7R8JUxL97omQbYxWgvhK9zAboK9J']) network.barred.add(name);
  await network.pass(10);
  expect(network.dials).toEqual([named]);
});
