/** The stratum server's interface for the bridge and the pool: its options, its methods and its counters. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Verifier } from '../kernels/verifier.ts';
import type { Bytes } from '../protocol/bytes.ts';
import type { Network } from '../protocol/network.ts';
import type { SteadyClock } from '../runtime/clock/clock.ts';
import type { Logger } from '../runtime/log/log.ts';
import type { AnchorFigures, TemplateStore } from './nodes/template-store.ts';
import type { NodeFigures, Upstream } from './nodes/upstream.ts';
import type { StratumLimits } from './options.ts';
import type { PaidPool, StratumService } from './service.ts';
import type { SessionShelf } from './session/session-shelf.ts';
import type { BlockEntry, FoundBlocks } from './shares/found-blocks.ts';
import type { ReceiptDelivery } from './shares/receipts.ts';
import type { ShareSink } from './shares/sink.ts';
import type { BoundAddress, CertificatePem, ConnectionList, ConnectionSearch, ListenerFigures } from './threads/hub.ts';

export type StratumServerOptions = {
  readonly network: Network;
  /** Name and version sent to miners, such as `svc-bridge/0.1.0`. */
  readonly server: string;
  readonly services: readonly StratumService[];
  /** Listener threads; 0 listens in the main thread. */
  readonly threads: number;
  readonly limits: StratumLimits;
  readonly wsOrigins: readonly string[];
  /** Networks of proxies that must send a PROXY header or X-Forwarded-For. */
  readonly proxies: readonly string[];
  /** Networks that are never banned. */
  readonly allow: readonly string[];
  readonly certificate: CertificatePem | null;
  /** 8 bytes that no other start of any instance ever has; by default random. */
  readonly bootId?: Bytes;
  /** Where sessions are kept for a restart; without one they end with the process. */
  readonly sessionsDirectory?: string;
  /** Implementation of TCP streams (connection/tcp-server.ts); `handles` unless given. */
  readonly streams?: 'handles' | 'sockets';
};

export type StratumServerDependencies = {
  readonly upstream: Upstream;
  readonly sink: ShareSink;
  readonly verifier: Verifier;
  readonly log: Logger;
  /** Storage of ended sessions; instances that share it can resume each other's. */
  readonly sessions?: SessionShelf;
  /** Called for every ban by this server, so that other instances can apply it too. */
  readonly onBan?: (key: string, untilMillis: number) => void;
  readonly now?: SteadyClock;
};

export type StratumFigures = {
  readonly ready: boolean;
  readonly bootId: Bytes;
  readonly headHeight: number;
  readonly listeners: readonly ListenerFigures[];
  readonly nodes: readonly NodeFigures[];
  readonly blocks: FoundBlocks['counts'] & { readonly paidAtoms: bigint };
  readonly templates: {
    readonly published: number;
    readonly anchors: AnchorFigures;
    readonly fees: bigint;
    readonly transactions: number;
    /** Templates that a block can still need, their distinct transactions and the bytes of those. */
    readonly kept: TemplateStore['figures'];
  };
  readonly bans: number;
};

export interface StratumServer {
  readonly bootId: Bytes;
  readonly addresses: readonly BoundAddress[];
  /** Cuts of a proof-of-work epoch, as given in the newest template. */
  readonly epochLength: number | undefined;
  /** Takes over a WebSocket upgrade that another web server received for one of the services, from the given client. */
  handleUpgrade(service: string, request: IncomingMessage, socket: Duplex, head: Bytes, client: string): void;
  setCertificate(certificate: CertificatePem): void;
  /** Blocks of its services pay this pool from now on. Where the address is another, all connections end: a miner was told the one before at its login. */
  setPool(pool: PaidPool): void;
  /** Sends the receipts of a slice to the connections that asked for them. */
  receipts(delivery: ReceiptDelivery): void;
  figures(): Promise<StratumFigures>;
  /** The connections of this instance that an operator looks for. */
  connections(search: ConnectionSearch): Promise<ConnectionList>;
  blocks(limit: number): readonly BlockEntry[];
  bans(): readonly { readonly key: string; readonly untilMillis: number }[];
  /** A ban decided elsewhere. */
  ban(key: string, untilMillis: number): void;
  unban(key: string): boolean;
  /** Stops accepting, asks miners to reconnect elsewhere, and finishes verifying. */
  drain(): Promise<void>;
  close(): Promise<void>;
}
