/**
 * QUIC for peers: the package's transport with the bounds that TCP has. What the library would do without a limit of
 * time has one here, bytes are counted, and names are looked up before they are dialled or listened on.
 */
import { lookup } from 'node:dns/promises';
import type { Connection, Stream, StreamMuxer, StreamMuxerFactory, Transport, Upgrader } from '@libp2p/interface';
import { type Multiaddr, multiaddr } from '@multiformats/multiaddr';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { acceptConnections } from '../../quic/quic-accept.ts';
import {
  type LoadQuic,
  loadQuic,
  type QuicBounds,
  type QuicComponents,
  type QuicHere,
  type QuicPackage,
  quicHere,
  quicMissing,
} from '../../quic/quic-package.ts';
import { isQuic } from '../peers/peer-address.ts';

const MEBIBYTE = 1_024 * 1_024;

const BOUNDS: Omit<QuicBounds, 'maxConcurrentStreamLimit'> = {
  handshakeTimeout: 5_000,
  maxIdleTimeout: 10_000,
  keepAliveInterval: 4_000,
  maxStreamData: MEBIBYTE,
  maxConnectionData: 8 * MEBIBYTE,
  receiveBufferSize: MEBIBYTE,
  sendBufferSize: MEBIBYTE,
};

/**
 * Undefined where nobody asks for QUIC: native code that reads what strangers send is loaded for those alone who name
 * an address of it. Throws where it is to be listened on and does not load.
 */
export async function wantedQuic(
  { listen, bootstrap }: { readonly listen: readonly string[]; readonly bootstrap: readonly string[] },
  load: LoadQuic = loadQuic,
): Promise<QuicHere | undefined> {
  if (![...listen, ...bootstrap].some(isQuic)) return undefined;
  const here = await quicHere(load);
  const unheard = listen.find(isQuic);
  if (here.package === undefined && unheard !== undefined) throw new Error(quicMissing(unheard, here.reason));
  return here;
}

/** Rejects when the signal comes first; what comes later is ended. */
function inTime<T extends { abort(error: Error): void }>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const late = () => reject(signal.reason as Error);
    if (signal.aborted) late();
    else signal.addEventListener('abort', late, { once: true });
    work.then(
      (made) => {
        signal.removeEventListener('abort', late);
        if (signal.aborted) made.abort(new Error('too late'));
        else resolve(made);
      },
      (error) => {
        signal.removeEventListener('abort', late);
        reject(error as Error);
      },
    );
  });
}

/** The same with an IP address instead of a name. */
export async function addressed(address: Multiaddr): Promise<Multiaddr> {
  const [, kind = '', host = '', ...way] = address.toString().split('/');
  if (!kind.startsWith('dns')) return address;
  const found = await lookup(host, { family: Number(kind.slice(3)) || 0 });
  return multiaddr(`/ip${found.family}/${found.address}/${way.join('/')}`);
}

type CountedStream = Stream & {
  sendData(data: { readonly byteLength: number }): unknown;
  onData(data: { readonly byteLength: number }): void;
};

export type ByteCount = { received(bytes: number): void; sent(bytes: number): void };

function measure(stream: CountedStream, { received, sent }: ByteCount): void {
  const [sendData, onData] = [stream.sendData.bind(stream), stream.onData.bind(stream)];
  stream.sendData = (data) => {
    sent(data.byteLength);
    return sendData(data);
  };
  stream.onData = (data) => {
    received(data.byteLength);
    onData(data);
  };
}

function bounded(factory: StreamMuxerFactory, count: ByteCount): StreamMuxerFactory {
  return {
    protocol: factory.protocol,
    createStreamMuxer: (connection): StreamMuxer => {
      const muxer = factory.createStreamMuxer(connection);
      muxer.addEventListener('stream', ({ detail }) => measure(detail as CountedStream, count));
      const create = muxer.createStream.bind(muxer);
      // The package waits for as long as the other side admits no stream.
      muxer.createStream = async (options) => {
        const stream = await inTime(Promise.resolve(create(options)), options?.signal);
        measure(stream as CountedStream, count);
        return stream;
      };
      return muxer;
    },
  };
}

type UpgradeOptions = { readonly muxerFactory?: StreamMuxerFactory | undefined };

function boundedUpgrader(upgrader: Upgrader, count: ByteCount): Upgrader {
  const options = <T extends UpgradeOptions>(given: T): T => ({
    ...given,
    ...(given.muxerFactory && { muxerFactory: bounded(given.muxerFactory, count) }),
  });
  return {
    upgradeInbound: (connection, given) => upgrader.upgradeInbound(connection, options(given)),
    upgradeOutbound: (connection, given) => upgrader.upgradeOutbound(connection, options(given)),
  } as Upgrader;
}

export const quicTransport =
  ({ quic }: QuicPackage, streams: number, count: ByteCount) =>
  (components: QuicComponents): Transport => {
    const transport = quic({ ...BOUNDS, maxConcurrentStreamLimit: streams })(components);
    const dial = transport.dial.bind(transport);
    const createListener = transport.createListener.bind(transport);
    transport.dial = async (to, options) => {
      const upgrader = boundedUpgrader(options.upgrader, count);
      const work = addressed(to).then((address) => dial(address, { ...options, upgrader }));
      return await inTime<Connection>(work, options.signal);
    };
    transport.createListener = (options) => {
      const listener = createListener({ ...options, upgrader: boundedUpgrader(options.upgrader, count) });
      listener.awaitInboundConnections = async () => {
        const { state } = listener;
        if (state.status !== 'listening') return;
        await acceptConnections(state.listener, {
          steady: steadyMillis,
          isClosed: () => state.controller.signal.aborted,
          accepted: (connection) => void listener.onInboundConnection(connection).catch(() => connection.abort()),
        });
      };
      return listener;
    };
    return transport as Transport;
  };
