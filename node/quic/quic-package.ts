/**
 * QUIC comes with a native package that exists for some machines only. Where it does not load, everything goes on over
 * TCP; whoever asks for QUIC by name is told why there is none.
 */
import type { ComponentLogger, Connection, Listener, Metrics, PrivateKey, Transport } from '@libp2p/interface';

/** Bounds of the package. It has no time limit of a handshake but that of an idle connection. */
export type QuicBounds = {
  readonly maxIdleTimeout: number;
  readonly keepAliveInterval: number;
  readonly handshakeTimeout: number;
  /** Streams that the other side may have open. */
  readonly maxConcurrentStreamLimit: number;
  readonly maxStreamData: number;
  readonly maxConnectionData: number;
  readonly receiveBufferSize: number;
  readonly sendBufferSize: number;
};

export type NativeStream = {
  /** Undefined or null at the end. */
  read(most: number): Promise<Uint8Array | null | undefined>;
  write(bytes: Uint8Array): Promise<void>;
  finishWrite(): Promise<void> | undefined;
};
export type NativeConnection = {
  /** With the address and the key of the other end. */
  remoteMultiaddr(): string;
  inboundStream(): Promise<NativeStream>;
  outboundStream(): Promise<NativeStream>;
  closed(): Promise<void>;
  abort(): void;
};
export type NativeServer = {
  port(): number;
  /** The next one whose handshake is complete. */
  inboundConnection(): Promise<NativeConnection>;
  abort(): Promise<void>;
};
export type NativeClient = {
  outboundConnection(ip: string, port: number): Promise<NativeConnection>;
  abort(): void;
};
export type NativeQuic = {
  readonly QuinnConfig: new (config: QuicBounds & { readonly privateKeyProto: Uint8Array }) => object;
  readonly Server: new (config: object, ip: string, port: number) => NativeServer;
  /** Of IPv4: 0, of IPv6: 1. */
  readonly Client: new (
    config: object,
    family: 0 | 1,
  ) => NativeClient;
};

/** The listener of the package's transport, with what is used of its inside: its loop takes one connection at a time. */
export type QuicListener = Listener & {
  readonly state:
    | { readonly status: 'listening'; readonly listener: NativeServer; readonly controller: AbortController }
    | { readonly status: 'ready' | 'closed' };
  awaitInboundConnections(): Promise<void>;
  onInboundConnection(connection: NativeConnection): Promise<void>;
};
export type QuicTransport = Omit<Transport, 'dial' | 'createListener'> & {
  dial(...words: Parameters<Transport['dial']>): Promise<Connection>;
  createListener(...words: Parameters<Transport['createListener']>): QuicListener;
};

export type QuicComponents = {
  readonly metrics?: Metrics;
  readonly logger: ComponentLogger;
  readonly privateKey: PrivateKey;
};

export type QuicPackage = {
  readonly quic: (bounds: QuicBounds) => (components: QuicComponents) => QuicTransport;
  readonly native: NativeQuic;
};
export type LoadQuic = () => Promise<QuicPackage>;

const PACKAGE: string = '@chainsafe/libp2p-quic';
/** Not offered by the package's entry. */
const NATIVE = './napi.js';

export const loadQuic: LoadQuic = async () => {
  const native: NativeQuic = await import(new URL(NATIVE, import.meta.resolve(PACKAGE)).href);
  const { quic }: Pick<QuicPackage, 'quic'> = await import(PACKAGE);
  return { quic, native };
};

export type QuicHere = { readonly package: QuicPackage } | { readonly package: undefined; readonly reason: string };

const firstLine = (error: unknown): string => String((error as Error).message ?? error).split(/\n|\. /)[0] as string;

export async function quicHere(load: LoadQuic = loadQuic): Promise<QuicHere> {
  try {
    return { package: await load() };
  } catch (error) {
    const machine = `${process.platform} ${process.arch}`;
    return {
      package: undefined,
      reason: `${PACKAGE} does not load on this machine (${machine}): ${firstLine(error)}`,
    };
  }
}

/** What the operator is told who listens on QUIC where there is none. */
export const quicMissing = (address: string, reason: string): string =>
  `${address} asks for QUIC: ${reason}. Write the address with /tcp/PORT instead, or install the package`;
