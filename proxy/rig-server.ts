/**
 * The stratum server towards the rigs. What a rig learns at its login (the address that jobs pay, the end of its nonces)
 * holds for its connection, so where the pool's word on these is another, all rigs log in again: with another address at the
 * same ports, which stay open; with another end of the nonces at a new server. It begins with the pool's first job: before that there is nothing to tell a rig.
 */
import { readCertificate, warnOfExpiry, watchCertificate } from '../bridge/connection/certificate.ts';
import type { StratumValues } from '../bridge/options.ts';
import { createStratumServer } from '../bridge/server.ts';
import type { PaidPool, StratumService } from '../bridge/service.ts';
import { certificateFiles, listenerOptions } from '../bridge/start-stratum.ts';
import type { StratumServer } from '../bridge/stratum-server.ts';
import type { Verifier } from '../kernels/verifier.ts';
import type { PoolJob } from '../miner/client/session-events.ts';
import { toHex } from '../protocol/bytes.ts';
import { NETWORKS, type NetworkName } from '../protocol/network.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import type { Logger } from '../runtime/log/log.ts';
import type { PoolJobs } from './pool-jobs.ts';
import type { ShareRelay } from './share-relay.ts';

export type RigServerOptions = {
  readonly network: NetworkName;
  readonly server: string;
  readonly listen: ListenAddress;
  readonly listenWs: ListenAddress | 'off';
  readonly worksFor: NonNullable<StratumService['worksFor']>;
  readonly values: StratumValues;
};

export type RigServerDependencies = {
  readonly jobs: PoolJobs;
  readonly relay: ShareRelay;
  readonly verifier: Verifier;
  readonly log: Logger;
  /** Its ports cannot be opened. */
  readonly fault: (error: unknown) => void;
};

/** What a rig is told at its login. */
type Terms = Pick<StratumService, 'pool' | 'nonceEnd'>;

const termsOf = ({ job, farm, pool, prefix }: PoolJob): Terms => ({
  pool: pool === null ? null : { payout: job.payout, ...pool },
  ...(farm === undefined ? { nonceEnd: prefix } : {}),
});

/** What a server keeps for as long as it runs. */
const keyOf = ({ pool, nonceEnd }: Terms): string =>
  JSON.stringify([pool === null, nonceEnd === undefined ? null : toHex(nonceEnd)]);

const isSamePool = (one: Terms['pool'], other: Terms['pool']): boolean =>
  one?.address === other?.address && one?.name === other?.name;

export class RigServer {
  readonly #options: RigServerOptions;
  readonly #dependencies: RigServerDependencies;
  #terms: Terms | undefined;
  #server: StratumServer | undefined;
  /** Where port 0 was asked for, those of the first start. */
  #ports: readonly { readonly kind: string; readonly port: number }[] = [];
  #changing: Promise<void> = Promise.resolve();
  #isClosed = false;
  #certificate: ReturnType<typeof readCertificate> | null = null;
  #stopWatch: () => void = () => undefined;

  constructor(options: RigServerOptions, dependencies: RigServerDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    const files = certificateFiles(options.values);
    if (files === null) return;
    const { log } = dependencies;
    this.#certificate = readCertificate(files);
    warnOfExpiry(this.#certificate, log, Date.now());
    this.#stopWatch = watchCertificate(files, this.#certificate, log, (news) => {
      this.#certificate = news;
      this.#server?.setCertificate(news);
    });
  }

  get current(): StratumServer | undefined {
    return this.#server;
  }

  /** Every job of the pool goes through here first, before rigs get anything of it. */
  serve(job: PoolJob): void {
    const [before, terms] = [this.#terms, termsOf(job)];
    this.#terms = terms;
    if (before !== undefined && keyOf(terms) === keyOf(before)) {
      if (terms.pool !== null && !isSamePool(before.pool, terms.pool)) this.#setPool(before.pool, terms.pool);
      return;
    }
    this.#changing = this.#changing
      .then(() => (this.#isClosed ? undefined : this.#begin(terms)))
      .catch((error: unknown) => this.#dependencies.fault(error));
  }

  #setPool(before: Terms['pool'], pool: PaidPool): void {
    if (before?.address !== pool.address)
      this.#dependencies.log.warn('rigs log in again: this pool has another address', { address: pool.address });
    this.#server?.setPool(pool);
  }

  async #begin(terms: Terms): Promise<void> {
    const { jobs: upstream, relay: sink, verifier, log } = this.#dependencies;
    const { network, server: name, worksFor, values } = this.#options;
    if (this.#server !== undefined) {
      log.warn('rigs log in again: this pool has another way of telling rigs apart');
      await this.#server.close();
    }
    const server = await createStratumServer(
      {
        network: NETWORKS[network],
        server: name,
        services: [{ name: 'proxy', ...this.#addresses(), ...terms, worksFor, tag: 'miner' }],
        ...listenerOptions(values),
        certificate: this.#certificate,
      },
      { upstream, sink, verifier, log: log.child('stratum') },
    );
    this.#server = server;
    if (this.#ports.length === 0)
      for (const { kind, host, port } of server.addresses)
        log.info('stratum listener', { kind, host, port, tls: this.#certificate !== null });
    this.#ports = server.addresses;
    const { pool } = this.#terms ?? terms;
    // It changed meanwhile.
    if (pool !== null && !isSamePool(pool, terms.pool)) server.setPool(pool);
  }

  #addresses(): Pick<StratumService, 'listen' | 'listenWs'> {
    const { listen, listenWs } = this.#options;
    const portOf = (kind: string, port: number): number => this.#ports.find((each) => each.kind === kind)?.port ?? port;
    return {
      listen: { ...listen, port: portOf('tcp', listen.port) },
      ...(listenWs === 'off' ? {} : { listenWs: { ...listenWs, port: portOf('ws', listenWs.port) } }),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWatch();
    await this.#changing;
    await this.#server?.drain();
    await this.#server?.close();
  }
}
