/** A machine on which the package of QUIC does not load: a clear word, and TCP goes on. */
import { multiaddr } from '@multiformats/multiaddr';
import { expect, onTestFinished, test } from 'vitest';
import { overlayQuic } from '../../node/consensus/reach/overlay-quic.ts';
import { PeerHost } from '../../node/network/thread/peer-host.ts';
import { wantedQuic } from '../../node/network/thread/quic-transport.ts';
import { type LoadQuic, quicHere } from '../../node/quic/quic-package.ts';
import { readNetworkAddress } from '../../runtime/listen-address.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';
import { hostSettings, RawPeer } from './raw-peer.ts';

const absent: LoadQuic = () =>
  Promise.reject(new Error('Cannot find native binding. npm has a bug.\n- tried this\n- tried that'));
const never: LoadQuic = () => Promise.reject(new Error('loaded without need'));
const QUIC = '/ip4/127.0.0.1/udp/7/quic-v1';
const TCP = '/ip4/127.0.0.1/tcp/7';
const REASON = `@chainsafe/libp2p-quic does not load on this machine (${process.platform} ${process.arch}): Cannot find native binding`;

test('the reason is one line that names the package and the machine', async () => {
  expect(await quicHere(absent)).toEqual({ package: undefined, reason: REASON });
});

test('whoever names no address of QUIC loads nothing', async () => {
  expect(await wantedQuic({ listen: [TCP], bootstrap: [TCP] }, never)).toBeUndefined();
});

test('listening on QUIC is refused with what to write instead', async () => {
  const remedy = `asks for QUIC: ${REASON}. Write the address with /tcp/PORT instead, or install the package`;
  await expect(wantedQuic({ listen: [TCP, QUIC], bootstrap: [] }, absent)).rejects.toThrow(`${QUIC} ${remedy}`);
  const host = new PeerHost({} as never, absent);
  onTestFinished(() => host.close());
  await expect(host.start(hostSettings(new Uint8Array(48), { listen: [QUIC] }))).rejects.toThrow(remedy);
  const bind = { ...readNetworkAddress(QUIC), port: 7 };
  await expect(overlayQuic([bind], silentLog, absent)).rejects.toMatchObject({
    code: 'validator_config',
    message: `127.0.0.1:7 ${remedy}`,
  });
});

test('the overlay of a validator goes on over TCP, and says so once', async () => {
  const said: unknown[] = [];
  const log = { ...silentLog, info: (...words: unknown[]) => void said.push(words) };
  expect(await overlayQuic([{ host: '::', port: 7 }], log, absent)).toBeUndefined();
  expect(said).toEqual([['the validator overlay is TCP only', { reason: REASON }]]);
});

test('a peer of QUIC is left out with a warning, one of TCP is reached', async () => {
  const chainId = new Uint8Array(48).fill(3);
  const other = await RawPeer.open(chainId, {}, { listen: ['/ip4/127.0.0.1/tcp/0'] });
  onTestFinished(() => other.close());
  const said: unknown[] = [];
  const node = new Proxy({} as Record<string, unknown>, {
    get: (_, name) => async (level: string, message: string) => void (name === 'log' && said.push([level, message])),
  });
  const host = new PeerHost(node as never, absent);
  const bootstrap = [QUIC, String(multiaddr(other.host.getMultiaddrs()[0] as never))];
  await host.start(hostSettings(chainId, { bootstrap }));
  onTestFinished(() => host.close());
  await until(() => other.host.getConnections().length === 1);
  expect(said.filter((words) => (words as string[])[0] === 'warn')).toEqual([
    ['warn', 'peers are reached over TCP only'],
  ]);
  expect(said).not.toContainEqual(['debug', 'an address does not answer']);
});
