/** The same over libp2p: noise and yamux, on each connection one long-lived stream for votes and one for blocks. */
import { generateKeyPairFromSeed } from '@libp2p/crypto/keys';
import type { Stream } from '@libp2p/interface';
import { noise } from '@libp2p/noise';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { multiaddr } from '@multiformats/multiaddr';
import { createLibp2p } from 'libp2p';
import type { Bytes } from '../../../protocol/bytes.ts';
import type { ListenAddress } from '../../../runtime/command-line/command-line.ts';
import type { Line, Take } from './line.ts';

const PROTOCOLS = { vote: '/svc/consensus/1', block: '/svc/consensus-blocks/1' } as const;
type Kind = keyof typeof PROTOCOLS;
const LENGTH_BYTES = 4;
const MEBIBYTE = 1_024 * 1_024;

const framed = (bytes: Bytes): Uint8Array => {
  const frame = new Uint8Array(LENGTH_BYTES + bytes.length);
  new DataView(frame.buffer).setUint32(0, bytes.length);
  frame.set(bytes, LENGTH_BYTES);
  return frame;
};

/** Pieces are joined only when a whole message is there. */
function reader(take: Take): (piece: Uint8Array) => void {
  let pieces: Uint8Array[] = [];
  let held = 0;
  return (piece) => {
    pieces.push(piece);
    held += piece.length;
    while (held >= LENGTH_BYTES) {
      const [first] = pieces as [Uint8Array];
      const head = first.length >= LENGTH_BYTES ? first : Buffer.concat(pieces);
      const whole = LENGTH_BYTES + new DataView(head.buffer, head.byteOffset).getUint32(0);
      if (held < whole) {
        pieces = head === first ? pieces : [head];
        return;
      }
      const all = pieces.length === 1 ? first : Buffer.concat(pieces);
      take(all.subarray(LENGTH_BYTES, whole));
      const rest = all.subarray(whole);
      pieces = rest.length === 0 ? [] : [rest];
      held = rest.length;
    }
  };
}

function read(stream: Stream, take: Take): void {
  const next = reader(take);
  stream.addEventListener('message', ({ data }) => {
    if (data instanceof Uint8Array) next(data);
    else for (const piece of data) next(piece);
  });
}

export async function libp2pLine(
  member: number,
  { listen, dial }: { readonly listen?: ListenAddress; readonly dial?: ListenAddress },
  take: Take,
): Promise<Line> {
  const seed = new Uint8Array(32).fill(member + 1);
  const at = ({ host, port }: ListenAddress) => `/ip4/${host}/tcp/${port}`;
  const host = await createLibp2p({
    privateKey: await generateKeyPairFromSeed('Ed25519', seed),
    addresses: { listen: listen === undefined ? [] : [at(listen)] },
    transports: [tcp({ dialOpts: { noDelay: true }, listenOpts: { noDelay: true } })],
    connectionEncrypters: [noise()],
    streamMuxers: [
      yamux({
        streamOptions: {
          maxStreamWindowSize: 2 * MEBIBYTE,
          maxReadBufferLength: 4 * MEBIBYTE,
          maxWriteBufferLength: 16 * MEBIBYTE,
        },
      }),
    ],
    connectionManager: { maxConnections: 256, inboundConnectionThreshold: 1_000, maxIncomingPendingConnections: 256 },
    connectionMonitor: { enabled: false },
  });
  const streams: Record<Kind, Stream[]> = { vote: [], block: [] };
  for (const kind of ['vote', 'block'] as const)
    await host.handle(PROTOCOLS[kind], (stream) => {
      streams[kind].push(stream);
      read(stream, take);
    });
  if (dial !== undefined) {
    const connection = await host.dial(multiaddr(at(dial)));
    for (const kind of ['vote', 'block'] as const) {
      const stream = await connection.newStream(PROTOCOLS[kind]);
      streams[kind].push(stream);
      read(stream, take);
      // A stream exists for the other end when something was sent on it.
      stream.send(framed(new Uint8Array(16)));
    }
  }
  return {
    ends: () => Math.min(streams.vote.length, streams.block.length),
    send: (bytes, kind, end) => {
      const frame = framed(bytes);
      const to = end === undefined ? streams[kind] : streams[kind].slice(end, end + 1);
      for (const stream of to) if (stream.status === 'open') stream.send(frame);
    },
    close: async () => {
      await host.stop();
    },
  };
}
