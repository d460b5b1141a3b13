/** For tests of QUIC: whether the machine has it, and half a handshake as strangers send it. */
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { generateKeyPair, privateKeyToProtobuf } from '@libp2p/crypto/keys';
import { expect, onTestFinished, test } from 'vitest';
import { type QuicBounds, type QuicPackage, quicHere } from '../../node/quic/quic-package.ts';
import { until } from '../until.ts';

export const here = await quicHere();
/** A test for machines where QUIC loads. Elsewhere a file of such tests shows that it is said why there is none. */
export function quicTest(title: string, run: () => Promise<void>): void {
  if (here.package !== undefined) test(title, run);
}

export function absenceTest(): void {
  if (here.package === undefined)
    test('QUIC does not load on this machine, and it is said why', () => {
      expect(here.reason).toMatch(/@chainsafe\/libp2p-quic does not load on this machine \(.+\): .+/);
    });
}

export const native = () => (here.package as QuicPackage).native;

export const BOUNDS: QuicBounds = {
  handshakeTimeout: 5_000,
  maxIdleTimeout: 10_000,
  keepAliveInterval: 4_000,
  maxConcurrentStreamLimit: 8,
  maxStreamData: 100_000,
  maxConnectionData: 1_000_000,
  receiveBufferSize: 500_000,
  sendBufferSize: 500_000,
};

export async function client() {
  const privateKeyProto = privateKeyToProtobuf(await generateKeyPair('Ed25519'));
  const { Client, QuinnConfig } = native();
  const made = new Client(new QuinnConfig({ ...BOUNDS, privateKeyProto }), 0);
  onTestFinished(() => made.abort());
  return made;
}

async function bound(): Promise<Socket> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

/** The system's choice: those of runtime/free-port.ts are held as UDP ports. */
export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}

/** First packets of so many handshakes, each good, none of which goes on. */
export async function halfHandshakes(count: number): Promise<Buffer[]> {
  const [deaf, dialler] = [await bound(), await client()];
  const packets: Buffer[] = [];
  deaf.on('message', (packet) => packets.push(packet));
  for (let i = 0; i < count; i++) dialler.outboundConnection('127.0.0.1', deaf.address().port).catch(() => undefined);
  await until(() => packets.length >= count);
  return packets;
}

export async function send(packets: readonly Uint8Array[], port: number): Promise<void> {
  const socket = await bound();
  for (const packet of packets) await new Promise((resolve) => socket.send(packet, port, '127.0.0.1', resolve));
}

/** Random ones, and ones that begin like those of QUIC. */
export const malformed = (count: number, begun: readonly Buffer[]): Buffer[] =>
  Array.from({ length: count }, (_, i) => {
    const random = randomBytes(1 + ((i * 37) % 1_400));
    const good = begun[i % begun.length] as Buffer;
    if (i % 3 === 0) return random;
    const cut = i % 3 === 1 ? good.subarray(0, 1 + (i % good.length)) : Buffer.from(good);
    if (i % 3 === 2) random.copy(cut, i % good.length, 0, 1 + (i % 20));
    return cut;
  });
