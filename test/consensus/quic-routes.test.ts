/** A registered route and an address to listen on stand for TCP and QUIC, whatever the machine of the test has. */
import { expect, onTestFinished, test } from 'vitest';
import type { Dialler, Target } from '../../node/consensus/reach/dialler.ts';
import { OverlayListeners } from '../../node/consensus/reach/overlay-listeners.ts';
import type { OverlayQuic } from '../../node/consensus/reach/overlay-quic.ts';
import { RegisteredRoutes } from '../../node/consensus/reach/registered-routes.ts';
import { readNetworkAddress } from '../../runtime/listen-address.ts';
import { silentLog } from '../node/bed.ts';

const ROUTES = [
  { host: 'a.example', port: 1 },
  { host: 'b.example', port: 2 },
];

function tried(hasQuic: boolean): unknown[] {
  const targets: Target[] = [];
  const routes = new RegisteredRoutes({
    dialler: { keep: (target: Target) => void targets.push(target) } as unknown as Dialler,
    steady: () => 0,
    isConnected: () => false,
    connected: () => undefined,
    hasQuic,
  });
  const validator = { id: new Uint8Array(48), publicKey: new Uint8Array(1952), routes: ROUTES };
  routes.set([{ validator, afterMillis: 0 }]);
  return Array.from({ length: 5 }, () => targets[0]?.next()).map(
    (at) => at && `${at.way ?? 'tcp'} ${at.host}:${at.port}`,
  );
}

test('a registered route is tried over TCP, then over QUIC; without QUIC over TCP alone', () => {
  const [a, b] = ['a.example:1', 'b.example:2'];
  expect(tried(true)).toEqual([`tcp ${a}`, `quic ${a}`, `tcp ${b}`, `quic ${b}`, `tcp ${a}`]);
  expect(tried(false)).toEqual([`tcp ${a}`, `tcp ${b}`, `tcp ${a}`, `tcp ${b}`, `tcp ${a}`]);
});

test('an address is listened on over TCP and QUIC of one port, a multiaddr over the one that it names', async () => {
  const heard: unknown[] = [];
  const quic = {
    listen: (at: { host: string; port: number }) => {
      heard.push(at);
      return at;
    },
  } as unknown as OverlayQuic;
  const opened = async (word: string, with_?: OverlayQuic) => {
    const listeners = new OverlayListeners(silentLog, (socket) => socket.destroy(), with_);
    onTestFinished(() => listeners.close());
    return (await listeners.open({ ...readNetworkAddress(word), port: 0 })).map(({ way }) => way);
  };
  expect(await opened('127.0.0.1', quic)).toEqual(['tcp', 'quic']);
  expect(heard).toEqual([{ host: '127.0.0.1', port: expect.any(Number) }]);
  expect((heard[0] as { port: number }).port).toBeGreaterThan(0);
  expect(await opened('127.0.0.1')).toEqual(['tcp']);
  expect(await opened('/ip4/127.0.0.1/tcp/7', quic)).toEqual(['tcp']);
  expect(await opened('/ip4/127.0.0.1/udp/7/quic-v1', quic)).toEqual(['quic']);
  expect(await opened('/dns4/localhost/udp/7/quic-v1', quic)).toEqual(['quic']);
  // A port that another program has: TCP goes on.
  const taken = {
    listen: () => {
      throw new Error('Address already in use (os error 98)');
    },
  } as unknown as OverlayQuic;
  expect(await opened('127.0.0.1', taken)).toEqual(['tcp']);
  await expect(opened('/ip4/127.0.0.1/udp/7/quic-v1', taken)).rejects.toThrow('over QUIC');
});
