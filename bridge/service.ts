/**
 * A service of a stratum server, on its own ports. A bridge has one service, which pays each miner's own address; a
 * pool has one per reward scheme, which pay the pool. Plain data: it goes to the listener threads as it is.
 */
import type { Bytes } from '../protocol/bytes.ts';
import { MAX_TAG } from '../protocol/ledger/tag.ts';
import type { ReceiptsOffer } from '../protocol/stratum/receipt-messages.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';

export type PaidPool = { readonly payout: Bytes; readonly address: string; readonly name: string };

export type StratumService = {
  /** Such as `bridge`, `pplns` or `solo`; part of every record handed to the sink. */
  readonly name: string;
  /** TCP with v1, v2 and TLS. */
  readonly listen?: ListenAddress;
  readonly listenWs?: ListenAddress;
  /** Further TCP ports, where the share work is fixed whatever a miner asks for: rented hash rate wants to know it. */
  readonly fixed?: readonly FixedPort[];
  /** Of connections that came by such a port. */
  readonly fixedWork?: bigint;
  /** Whom blocks pay; null pays each miner's own address. Only `StratumServer.setPool` changes it. */
  pool: PaidPool | null;
  /** The tag in the extranonce: the miner's own, or this text where a miner has none. */
  readonly tag: 'miner' | { readonly otherwise: string };
  /** The key that receipts are signed with, and where the API is; absent where none are given. */
  readonly receipts?: NonNullable<ReceiptsOffer>;
  /**
   * The service's mark, added to the thread byte of its extranonces, so that the ledger shows which service of a pool
   * found a block; 0 for none.
   */
  readonly mark?: number;
  /** Whom all connections work for, where a username is the name of a rig (svc-proxy). */
  readonly worksFor?: {
    readonly address: string;
    readonly account: Bytes;
    /** Those that name another address work for that one, and jobs are by account (nodes/origin-job.ts). */
    readonly keepsAddresses?: boolean;
  };
  /** The last bytes of every nonce, as the server that jobs come from wants them; a connection's own prefix is before them. */
  readonly nonceEnd?: Bytes;
};

export type FixedPort = { readonly listen: ListenAddress; readonly work: bigint };

/** A service at each of its TCP ports. */
export const tcpPortsOf = (
  service: StratumService,
): readonly { readonly listen: ListenAddress; readonly kind: 'tcp' | 'fixed'; readonly service: StratumService }[] => [
  ...(service.listen === undefined ? [] : [{ listen: service.listen, kind: 'tcp' as const, service }]),
  ...(service.fixed ?? []).map(({ listen, work }) => ({
    listen,
    kind: 'fixed' as const,
    service: { ...service, fixedWork: work },
  })),
];

export const tagOf = (service: StratumService, asked: string): string =>
  service.tag === 'miner' || asked !== '' ? asked : service.tag.otherwise.slice(0, MAX_TAG);
