/**
 * The libp2p host with all of the library's limits set for this node: connections, streams, buffers, message sizes,
 * times. TCP with noise and yamux, and QUIC for whoever names an address of it; gossipsub without signatures, because relayed items are checked by their content,
 * not their sender.
 */
import { generateKeyPairFromSeed } from '@libp2p/crypto/keys';
import { type GossipSub, gossipsub } from '@libp2p/gossipsub';
import { identify } from '@libp2p/identify';
import type { ConnectionGater, Libp2p, Transport } from '@libp2p/interface';
import { noise } from '@libp2p/noise';
import { ping } from '@libp2p/ping';
import { tcp } from '@libp2p/tcp';
import { yamux } from '@libp2p/yamux';
import { multiaddr } from '@multiformats/multiaddr';
import { createLibp2p } from 'libp2p';
import type { QuicComponents } from '../../quic/quic-package.ts';
import { isQuic } from '../peers/peer-address.ts';
import { GOSSIP_FRAME_BYTES, GOSSIP_LISTS, limitGiven, messageId } from './gossip-rpc.ts';
import type { HostSettings } from './host-types.ts';
import { addressed } from './quic-transport.ts';

const KIBIBYTE = 1_024;
const MEBIBYTE = 1_024 * KIBIBYTE;
/** Streams that one connection may have open: gossip, questions both ways, identify, ping. */
export const STREAMS = 64;
const PENDING_CONNECTIONS = 32;
/** Attempts of one address per second. The library's default of 5 is too low for several nodes on one machine. */
const CONNECTIONS_PER_SECOND = 20;
const PREFIX = 'svc';
/** How long the library knows those that left: by default an hour or for ever, and a new identity costs nothing. */
const FORGET_MILLIS = 10_000;

export type Host = Libp2p & { readonly services: { readonly gossip: GossipSub } };

export async function createHost(
  { seed, release, listen, announce, maxPeers }: HostSettings,
  topics: readonly string[],
  connectionGater: ConnectionGater,
  quic?: (components: QuicComponents) => Transport,
): Promise<Host> {
  const heard = await Promise.all(
    listen.map(async (word) => (isQuic(word) ? `${await addressed(multiaddr(word))}` : word)),
  );
  const host = await createLibp2p({
    start: false,
    nodeInfo: { name: 'svcd', version: release, userAgent: `svcd/${release}` },
    privateKey: await generateKeyPairFromSeed('Ed25519', seed),
    addresses: { listen: heard, announce: [...announce] },
    transports: [
      tcp({ dialOpts: { noDelay: true }, listenOpts: { noDelay: true }, inboundSocketInactivityTimeout: 60_000 }),
      ...(quic === undefined ? [] : [quic]),
    ],
    connectionEncrypters: [noise()],
    streamMuxers: [
      yamux({
        maxInboundStreams: STREAMS,
        maxOutboundStreams: STREAMS,
        streamOptions: {
          maxStreamWindowSize: MEBIBYTE,
          maxReadBufferLength: MEBIBYTE,
          maxWriteBufferLength: 8 * MEBIBYTE,
        },
      }),
    ],
    connectionGater,
    connectionManager: {
      // The gater enforces limits; the library must not close connections by its own rules.
      maxConnections: 2 * maxPeers + PENDING_CONNECTIONS,
      maxIncomingPendingConnections: PENDING_CONNECTIONS,
      inboundConnectionThreshold: CONNECTIONS_PER_SECOND,
      inboundUpgradeTimeout: 5_000,
      dialTimeout: 5_000,
      maxParallelDials: 8,
      reconnectRetries: 0,
    },
    connectionMonitor: { protocolPrefix: PREFIX, pingInterval: 15_000, pingTimeout: { minTimeout: 10_000 } },
    services: {
      identify: identify({ protocolPrefix: PREFIX, maxMessageSize: 8 * KIBIBYTE }),
      ping: ping({ protocolPrefix: PREFIX }),
      gossip: gossipsub({
        globalSignaturePolicy: 'StrictNoSign',
        msgIdFn: ({ topic, data }) => messageId(topic, data),
        allowedTopics: [...topics],
        maxInboundDataLength: GOSSIP_FRAME_BYTES,
        decodeRpcLimits: GOSSIP_LISTS,
        // The gater decides who stays; noting in the store which peers are in a mesh costs 75 µs for each word of theirs.
        tagMeshPeers: false,
        // All announcers are tracked: if the first one does not deliver, the next is asked. Announcements are small
        // compared to the announced items.
        idontwantMinDataSize: GOSSIP_FRAME_BYTES,
        maxOutboundBufferSize: 4 * MEBIBYTE,
        maxTopicBytesPerPeer: 8 * KIBIBYTE,
        allowPublishToZeroTopicPeers: true,
        ignoreDuplicatePublishError: true,
        fallbackToFloodsub: false,
        doPX: false,
        // Limits by address are enforced when connections are accepted, and scores are kept by the node.
        scoreParams: { IPColocationFactorWeight: 0, behaviourPenaltyWeight: 0, retainScore: FORGET_MILLIS },
      }),
    },
  });
  const made = host as unknown as Host;
  limitGiven(made.services.gossip);
  const timer = setInterval(() => void forget(made).catch(() => undefined), FORGET_MILLIS);
  timer.unref();
  made.addEventListener('stop', () => clearInterval(timer));
  return made;
}

/** The library keeps what every peer said of itself, up to 26 KiB each. */
async function forget(host: Host): Promise<void> {
  for (const { id } of await host.peerStore.all())
    if (host.getConnections(id).length === 0) await host.peerStore.delete(id);
}
